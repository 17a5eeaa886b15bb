// SPDX-License-Identifier: GPL-2.0-only
/* Sequences of steps, in memory and as text; corpus/netlink.txt says how the text looks. */
#include "fuzz.h"

static void *grown(void *old, size_t bytes)
{
	void *new = realloc(old, bytes);

	if (!new)
		die("no memory");
	return new;
}

struct step *add_step(struct sequence *s, enum step_kind kind)
{
	if (s->count == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->steps = grown(s->steps, s->room * sizeof(*s->steps));
	}
	s->steps[s->count] = (struct step) { .kind = kind };
	return &s->steps[s->count++];
}

struct step *add_nl(struct sequence *s, uint16_t type, uint16_t flags, const void *data, uint32_t len)
{
	struct step *step = add_step(s, STEP_NL);

	if (!s->bytes || s->used + len > s->space) {
		s->space = 2 * s->space + len + 65536;
		s->bytes = grown(s->bytes, s->space);
	}
	if (len)
		memcpy(s->bytes + s->used, data, len);
	step->type = type;
	step->flags = flags;
	step->at = s->used;
	step->len = len;
	s->used += len;
	return step;
}

struct step *add_msg(struct sequence *s)
{
	return add_nl(s, m.type, m.flags, m.data, m.len);
}

/* Those of len_max bytes at most. */
void add_copies(struct sequence *to, const struct sequence *from, size_t first, size_t end, uint32_t len_max)
{
	for (; first < end; first++) {
		const struct step *step = &from->steps[first];

		if (step->len > len_max)
			continue;
		if (step->kind == STEP_NL)
			add_nl(to, step->type, step->flags, from->bytes + step->at, step->len)->oracle = step->oracle;
		else
			memcpy(add_step(to, step->kind)->arg, step->arg, sizeof(step->arg));
	}
}

void free_sequence(struct sequence *s)
{
	free(s->steps);
	free(s->bytes);
	*s = (struct sequence) {};
}

void write_case(const char *path, const char *mode, const char *name, const char *reason, const struct sequence *s,
		size_t first)
{
	FILE *file = fopen(path, mode);
	uint32_t i;

	if (!file)
		die("cannot write %s: %m", path);
	fprintf(file, "\n== %s: %s\n", name, reason);
	for (; first < s->count; first++) {
		const struct step *step = &s->steps[first];

		if (step->kind == STEP_NL) {
			fprintf(file, "%s %u 0x%x ", step->oracle ? "get" : "nl", step->type, step->flags);
			for (i = 0; i < step->len; i++)
				fprintf(file, "%02x", s->bytes[step->at + i]);
			fprintf(file, step->len ? "\n" : "-\n");
		} else if (step->kind == STEP_TX) {
			fprintf(file, "tx %u 0x%x %u %u %u %u\n", step->arg[0], step->arg[1], step->arg[2],
				step->arg[3], step->arg[4], step->arg[5]);
		} else {
			fprintf(file, "wait %u\n", step->arg[0]);
		}
	}
	if (fclose(file))
		die("cannot write %s: %m", path);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The next case of a file, and the name of it; false: there is none. */
bool read_case(FILE *file, struct sequence *s, char *name, size_t size)
{
	static char line[2 * MSG_MAX + 100];
	static uint8_t data[MSG_MAX];
	long before;

	name[0] = 0;
	s->count = 0;
	s->used = 0;
	for (before = ftell(file); fgets(line, sizeof(line), file); before = ftell(file)) {
		unsigned int a[6], type, flags;
		int at, len = 0;

		if (!strncmp(line, "== ", 3)) {
			if (name[0]) {
				fseek(file, before, SEEK_SET);
				break;
			}
			snprintf(name, size, "%.*s", (int)strcspn(line + 3, ":\n"), line + 3);
		} else if (sscanf(line, "nl %u %x %n", &type, &flags, &at) == 2 ||
			   sscanf(line, "get %u %x %n", &type, &flags, &at) == 2) {
			for (; hex_digit(line[at]) >= 0 && hex_digit(line[at + 1]) >= 0; at += 2)
				data[len++] = 16 * hex_digit(line[at]) + hex_digit(line[at + 1]);
			add_nl(s, type, flags, data, len)->oracle = line[0] == 'g';
		} else if (sscanf(line, "tx %u %x %u %u %u %u", a, a + 1, a + 2, a + 3, a + 4, a + 5) == 6) {
			memcpy(add_step(s, STEP_TX)->arg, a, sizeof(a));
		} else if (sscanf(line, "wait %u", a) == 1) {
			add_step(s, STEP_WAIT)->arg[0] = a[0];
		} else if (line[0] != '#' && line[0] != '\n') {
			die("not a step: %.60s", line);
		}
	}
	return name[0];
}
