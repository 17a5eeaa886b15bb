/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface between tc and a qdisc plugin: the plugin's entry, and the
 * functions and variables that tc exports.  Distributions ship no header for it.
 *
 * This header may only have what every tc since 5.10 exports with the same type.
 * Functions are bound lazily: a missing function ends tc when it is called.  A
 * missing variable makes tc reject the plugin.
 */
#ifndef TC_PLUGIN_H
#define TC_PLUGIN_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/rtnetlink.h>

/* The signatures are given by tc. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* tc writes to next, so that this cannot be const. */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f,
			  struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt,
			 __u32 block_idx, bool *p_has);
};

/* tc looks up this symbol by the name of the qdisc. */
extern struct qdisc_util dualpi2_qdisc_util, dualpi2_mq_qdisc_util;

enum output_type {
	PRINT_FP = 1,		/* only as text */
	PRINT_JSON = 2,		/* only as JSON */
	PRINT_ANY = 4,
};

/* Set by "tc -d". */
extern int show_details;

enum color_attr {
	COLOR_NONE = 6,
};

bool is_json_context(void);
void open_json_object(const char *str);
void close_json_object(void);
void open_json_array(enum output_type type, const char *delim);
void close_json_array(enum output_type type, const char *delim);
void print_nl(void);

int print_color_uint(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, unsigned int value);
int print_color_int(enum output_type t, enum color_attr color,
		    const char *key, const char *fmt, int value);
int print_color_lluint(enum output_type t, enum color_attr color,
		       const char *key, const char *fmt,
		       unsigned long long value);
int print_color_float(enum output_type t, enum color_attr color,
		      const char *key, const char *fmt, double value);
int print_color_string(enum output_type t, enum color_attr color,
		       const char *key, const char *fmt, const char *value);
int print_color_bool(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, bool value);
int print_color_null(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, const char *value);

#define print_uint(t, key, fmt, value) \
	print_color_uint(t, COLOR_NONE, key, fmt, value)
#define print_int(t, key, fmt, value) \
	print_color_int(t, COLOR_NONE, key, fmt, value)
#define print_lluint(t, key, fmt, value) \
	print_color_lluint(t, COLOR_NONE, key, fmt, value)
#define print_float(t, key, fmt, value) \
	print_color_float(t, COLOR_NONE, key, fmt, value)
#define print_string(t, key, fmt, value) \
	print_color_string(t, COLOR_NONE, key, fmt, value)
#define print_bool(t, key, fmt, value) \
	print_color_bool(t, COLOR_NONE, key, fmt, value)
#define print_null(t, key, fmt, value) \
	print_color_null(t, COLOR_NONE, key, fmt, value)

int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#endif /* TC_PLUGIN_H */
