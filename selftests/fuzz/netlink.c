// SPDX-License-Identifier: GPL-2.0-only
/*
 * netlink - fuzz the netlink interface of dualpi2, with traffic on it.
 *
 * It makes messages by the grammar of the interface, good and bad, and mutates them (netlink/generate.c). A model of every
 * qdisc (netlink/model.c) predicts which are accepted, and each dump is compared with it (netlink/check.c, stats.c): accepted
 * options are shown, rejected messages changed nothing, the counters agree, the classes show those of the qdisc.
 * With the map of dualpi2_trace_pc.ko (trace_pc) it keeps the sequences that reached a new basic block, and
 * draws on them.
 *
 * It does not test other qdiscs, though they are parents here, nor what an option does to packets. It makes netlink
 * messages by hand, because a library would not send most of them.
 *
 * It runs as root on the debug kernel: while it does not wait, time stands still there, so that what a dump takes
 * from different places is of one moment.
 *
 *   build/fuzz/netlink --messages 1000000 --seed 1
 *
 * --messages N		end after so many answered messages [20000]; 0: only the corpus
 * --seed S		of all random numbers [1]
 * --corpus FILE	first run its cases; append what reaches new blocks
 * --state FILE		continue where the run before ended; seed and count are kept there
 * --fail FILE		where a failing case is written [fuzz-failure.txt]; repeat it by --messages 0 --corpus FILE
 *
 * Exit: 0 all good, 1 a fault, 2 it cannot run here.
 */
#include "netlink/fuzz.h"
#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define EPOCH		4096	/* messages until all devices are recreated */
#define PROGRESS_EVERY	50000
#define STATE_EVERY	20000
#define CASES_MAX	150	/* that a run appends to the corpus */
#define CASE_LEN_MAX	4095	/* of messages to draw on, bytes */
#define TRIALS_MAX	600	/* to shorten a failing case */
#define DEBUGFS		"/sys/kernel/debug/dualpi2_trace_pc/"
#define REFCNT		"/sys/module/sch_dualpi2/refcnt"
#define MODPROBE	"/proc/sys/kernel/modprobe"

static ull seed = 1, epoch;	/* epochs are independent of each other, except for the corpus */
static const char *corpus_path, *state_path, *fail_path = "fuzz-failure.txt";

static jmp_buf on_fault;
static char fault_text[16384];

void fault(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(fault_text, sizeof(fault_text), fmt, ap);
	va_end(ap);
	longjmp(on_fault, 1);
}

/* The first line of a file, "" without the file. */
static const char *line_of(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "r");

	if (!file || !fgets(line, size, file))
		line[0] = 0;
	if (file)
		fclose(file);
	return line;
}

static ull users_of_module(void)
{
	char line[64];

	return strtoull(line_of(REFCNT, line, sizeof(line)), NULL, 10);
}

/* ---- coverage ---- */

static const uint8_t *map;
static uint8_t *seen;
static size_t map_size;
static uint32_t blocks;

static void open_map(void)
{
	FILE *file = fopen(DEBUGFS "base", "r");
	void *p;
	int fd;

	if (!file || fscanf(file, "%*x %zu", &map_size) != 1 || !map_size) {
		fprintf(stderr, "netlink: no map of basic blocks here: not guided\n");
		return;
	}
	fclose(file);
	map_size = (map_size + 7) & ~7UL;
	fd = open(DEBUGFS "map", O_RDONLY);
	p = mmap(NULL, map_size, PROT_READ, MAP_SHARED, fd, 0);
	if (fd < 0 || p == MAP_FAILED)
		die("cannot map the basic blocks: %m");
	map = p;
	seen = calloc(1, map_size);
}

static uint32_t new_blocks(void)
{
	uint32_t found = 0;
	size_t n, b;

	for (n = 0; map && n < map_size; n += 8) {
		if (!(get64(map + n) & ~get64(seen + n)))
			continue;
		for (b = n; b < n + 8; b++) {
			found += map[b] && !seen[b];
			seen[b] |= map[b];
		}
	}
	blocks += found;
	return found;
}

static void keep_batch(const struct sequence *s, size_t first, uint32_t found)
{
	static int cases;
	char name[64], reason[64];

	add_copies(&corpus, s, first, s->count, CASE_LEN_MAX);
	if (!corpus_path || cases == CASES_MAX)
		return;
	snprintf(name, sizeof(name), "seed-%llu-epoch-%llu-%d", seed, epoch, cases++);
	snprintf(reason, sizeof(reason), "%u new blocks", found);
	write_case(corpus_path, "a", name, reason, s, first);
}

/* ---- cases ---- */

/* Runs a case from a clean state. */
static bool fails(const struct sequence *s)
{
	jmp_buf saved = {};
	bool bad;

	memcpy(saved, on_fault, sizeof(saved));
	open_sockets();
	if (setjmp(on_fault)) {
		bad = true;
	} else {
		setup();
		run_steps(s, 0, s->count);
		bad = false;
	}
	memcpy(on_fault, saved, sizeof(saved));
	return bad;
}

/* Drops steps, halves first, as long as it still fails. */
static void shrink(struct sequence *s)
{
	char text[sizeof(fault_text)];
	uint32_t trials = 0;
	size_t chunk, first;

	for (chunk = s->count / 2; chunk; chunk /= 2) {
		for (first = 0; first < s->count && trials < TRIALS_MAX; trials++) {
			struct sequence less = {};

			add_copies(&less, s, 0, first, UINT32_MAX);
			if (first + chunk < s->count)
				add_copies(&less, s, first + chunk, s->count, UINT32_MAX);
			strcpy(text, fault_text);
			if (less.count && fails(&less)) {
				free_sequence(s);
				*s = less;
			} else {
				strcpy(fault_text, text);
				free_sequence(&less);
				first += chunk;
			}
		}
	}
}

static void report(struct sequence *s)
{
	char name[64];

	fprintf(stderr, "netlink: FAULT in epoch %llu of seed %llu, after %llu messages:\n  %s\n", epoch, seed,
		count.messages, fault_text);
	if (fails(s))
		shrink(s);
	else
		fprintf(stderr, "netlink: it does not come again from a clean state\n");
	snprintf(name, sizeof(name), "seed-%llu-epoch-%llu", seed, epoch);
	fault_text[strcspn(fault_text, "\n")] = 0;
	write_case(fail_path, "w", name, fault_text, s, 0);
	fprintf(stderr, "netlink: %zu steps are in %s; repeat them by --messages 0 --corpus\n", s->count, fail_path);
}

static bool run_corpus(void)
{
	FILE *file = corpus_path ? fopen(corpus_path, "r") : NULL;
	struct sequence s = {};
	char name[100];
	int cases;

	if (!corpus_path)
		return true;
	if (!file)
		die("cannot read %s: %m", corpus_path);
	for (cases = 0; read_case(file, &s, name, sizeof(name)); cases++) {
		if (fails(&s)) {
			fprintf(stderr, "netlink: FAULT by case %s:\n  %s\n", name, fault_text);
			return false;
		}
		add_copies(&corpus, &s, 0, s.count, CASE_LEN_MAX);
		new_blocks();
	}
	fclose(file);
	free_sequence(&s);
	fprintf(stderr, "netlink: corpus: %d cases, %u blocks\n", cases, blocks);
	return true;
}

/* ---- runs ---- */

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void progress(const char *what)
{
	static double last_at;
	static ull last;
	double now = seconds(), answers = count.accepted + count.refused + 1;

	/* In virtual time the rate says nothing. */
	fprintf(stderr, "netlink: %s %llu messages, %.0f/s by this machine's clock, %u blocks, "
		"%.1f %% refused (%.1f %% by dualpi2), %llu made, %llu changed, %llu checked, "
		"%llu unsure, %llu frames, %llu classes, %llu reports\n",
		what, count.messages, (count.messages - last) / (now > last_at ? now - last_at : 1), blocks,
		100 * count.refused / answers, 100 * count.refused_by_dualpi2 / answers, count.creations,
		count.changes, count.checked, count.unsure, count.frames, count.classes, count.reports);
	last = count.messages;
	last_at = now;
}

static void save_state(void)
{
	char path[4096];
	FILE *file;

	if (!state_path)
		return;
	snprintf(path, sizeof(path), "%s.new", state_path);
	file = fopen(path, "w");
	if (!file)
		die("cannot write %s: %m", path);
	fprintf(file, "seed %llu\nepoch %llu\nmessages %llu\nunsure %llu\n", seed, epoch, count.messages,
		count.unsure);
	if (fclose(file) || rename(path, state_path))
		die("cannot write %s: %m", state_path);
}

static void load_state(void)
{
	FILE *file = state_path ? fopen(state_path, "r") : NULL;

	if (!file)
		return;
	if (fscanf(file, "seed %llu epoch %llu messages %llu unsure %llu", &seed, &epoch, &count.messages,
		   &count.unsure) != 4)
		die("%s is not a state", state_path);
	fclose(file);
}

static bool fuzz(ull messages)
{
	static ull next_progress, next_state;	/* static: they survive the jump of a fault */
	static struct sequence s;
	static uint32_t quiet;

	for (next_progress = next_state = count.messages; count.messages < messages; epoch++) {
		ull until;

		save_state();
		rnd_state = seed * 0x9e3779b97f4a7c15ULL + epoch * 0xd1342543de82ef95ULL;
		s.count = 0;
		s.used = 0;
		if (setjmp(on_fault)) {
			report(&s);
			return false;
		}
		/* Now and then the namespace goes with all that is in it. */
		if (epoch % 8 == 7)
			leave_namespace();
		setup();
		ask_the_family();
		until = count.messages + EPOCH < messages ? count.messages + EPOCH : messages;
		while (count.messages < until) {
			size_t first = s.count;
			uint32_t found;

			/* What is kept is a batch: small ones while there is much to find. */
			gen_batch(&s, map && quiet < 512 ? 1 + quiet / 8 : BATCH - 6);
			run_steps(&s, first, s.count);
			found = new_blocks();
			quiet = found ? 0 : quiet + 1;
			if (found)
				keep_batch(&s, first, found);
			if (count.messages >= next_progress) {
				progress("at");
				next_progress = count.messages + PROGRESS_EVERY;
			}
			if (count.messages >= next_state) {
				save_state();
				next_state = count.messages + STATE_EVERY;
			}
		}
	}
	save_state();
	return true;
}

/* Nothing is left: the devices, then the namespace. */
static bool ends_clean(ull users)
{
	char name[IFNAMSIZ];
	int n;

	open_sockets();
	if (setjmp(on_fault)) {
		fprintf(stderr, "netlink: FAULT at the end: %s\n", fault_text);
		return false;
	}
	delete_devices();
	for (n = 0; n < DEVICES; n++)
		if (if_indextoname(IFINDEX + n, name))
			fault("the device %s is left", name);
	new_namespace();
	/* Namespaces end in the background. */
	for (n = 0; users_of_module() != users && n < 1000; n++)
		usleep(10000);
	SAME(users_of_module(), users, "users of the module, and before");
	return true;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "messages", 1, NULL, 'm' }, { "seed", 1, NULL, 's' }, { "corpus", 1, NULL, 'c' },
		{ "state", 1, NULL, 'S' }, { "fail", 1, NULL, 'f' }, {},
	};
	ull messages = 20000, users = users_of_module();
	char modprobe[256];
	bool good;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'm')
			messages = strtoull(optarg, NULL, 0);
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (opt == 'c')
			corpus_path = optarg;
		else if (opt == 'S')
			state_path = optarg;
		else if (opt == 'f')
			fail_path = optarg;
		else
			die("see the head of netlink.c for the options");
	}
	if (system("grep -q 'User Mode Linux' /proc/cpuinfo"))
		die("it runs on the debug kernel only, see docs/TESTING.md");
	load_state();
	/* A kind that no module has would start a program each time. */
	line_of(MODPROBE, modprobe, sizeof(modprobe));
	write_file(MODPROBE, "\n");
	new_namespace();
	open_map();
	good = run_corpus() && fuzz(messages);
	progress("end:");
	good &= ends_clean(users);
	if (modprobe[0])
		write_file(MODPROBE, modprobe);
	fprintf(stderr, "netlink: %s\n", good ? "all good" : "NOT good");
	return good ? 0 : 1;
}
