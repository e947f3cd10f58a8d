/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files that this process maps itself get tables in real BPF maps. The times of
 * use that BPF would record are written into its map from here.
 */
#include "base/tap.h"
#include "../lib/elf-made.h"
#include "record/unwind_tables.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define BIG 60000 /* rows: the table fills most of a chunk */
#define SMALL 1000

static char top[64];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static struct tableset *open_set(uint64_t bytes, uint64_t idle_ns)
{
	const struct tableset_opts opts = { .bytes = bytes, .idle_ns = idle_ns };
	struct tableset *s = NULL;

	if (tableset_open(&opts, &s, NULL) != 0)
		abort();
	return s;
}

static struct tableset_stats stats(const struct tableset *s)
{
	struct tableset_stats st;

	tableset_stats(s, &st);
	return st;
}

static const char *place(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

/* Create the file NAME with ROWS rows and map it. */
static struct procmap map_new(const char *name, uint32_t rows)
{
	struct procmap m;

	if (!elf_write(place(name), rows) || !elf_map(place(name), NULL, &m))
		abort();
	return m;
}

static uint32_t file_of(struct tableset *s, const struct procmap *m)
{
	return tableset_file(s, (uint32_t)getpid(), m);
}

/* The file of M, after its table has arrived. */
static uint32_t settled(struct tableset *s, const struct procmap *m)
{
	uint32_t file = file_of(s, m);

	tableset_service(s, 20000);
	tableset_applied(s);
	return file;
}

static struct unwind_map seen(const struct tableset *s, uint32_t file, const struct procmap *m)
{
	struct unwind_map map = { 0 };

	tableset_map(s, file, m->start, m->offset, &map);
	return map;
}

static enum unwind_state state(const struct tableset *s, uint32_t file, const struct procmap *m)
{
	return UNWIND_TABLE_STATE(seen(s, file, m).table);
}

/* Record a use of the table, as a walk does that met the mapping SECONDS ago. */
static void use(struct tableset *s, uint32_t file, const struct procmap *m, unsigned int seconds)
{
	uint32_t number = UNWIND_TABLE_NUMBER(seen(s, file, m).table);
	uint64_t at = now_ns() - seconds * SECOND;
	struct unwindspace_fds fds;

	unwindspace_fds(tableset_space(s), &fds);
	bpf_map_update_elem(fds.used, &number, &at, BPF_ANY);
}

static void quiet(struct tableset *s, int times)
{
	while (times--)
		tableset_quiet(s);
}

static void test_sharing(struct tap *t)
{
	struct tableset *s = open_set(8 << 20, SECOND);
	struct procmap a = map_new("a", SMALL), again, copy = map_new("copy", SMALL);
	uint32_t file = settled(s, &a), other;
	uint64_t used = stats(s).space.bytes_used;

	tap_ok(t, state(s, file, &a) == UNWIND_TABLE && seen(s, file, &a).segs == 1,
		"a mapped file gets a table");
	tap_ok(t, elf_map(place("a"), NULL, &again) && file_of(s, &again) == file,
		"a second mapping of a file is the same file");
	for (int i = 0; i < 1000; i++)
		tableset_hold(s, file);
	tap_ok(t, stats(s).space.bytes_used == used && stats(s).space.tables == 1 && stats(s).files == 1,
		"a thousand users share one table");
	rename(place("a"), place("moved"));
	unlink(place("moved"));
	tap_ok(t, file_of(s, &a) == file, "a file that was renamed and deleted is still the same file");
	other = settled(s, &copy);
	tap_ok(t, other != file && stats(s).space.tables == 2, "a copy is another file");
	for (int i = 0; i < 1002; i++)
		tableset_release(s, file);
	usleep(1500000);
	quiet(s, 3);
	tap_ok(t, stats(s).space.tables == 2, "a table with one user stays");
	tableset_release(s, file);
	quiet(s, 1);
	tap_ok(t, stats(s).space.tables == 2, "a table without users stays for a while");
	usleep(1500000);
	quiet(s, 3);
	tap_ok(t, stats(s).space.tables == 1 && stats(s).space.bytes_used == used && stats(s).dropped == 0,
		"later the memory of an unused table is free, and nothing is counted as dropped");
	tap_ok(t, settled(s, &a) == file && state(s, file, &a) == UNWIND_TABLE,
		"a file that is mapped again has a table again");
	tableset_close(s);
	tableset_close(NULL);
}

/* Three tables fill a megabyte. */
static void fill(struct tableset *s, struct procmap m[4], uint32_t file[4])
{
	static const char *const names[] = { "one", "two", "three", "four" };

	for (int i = 0; i < 4; i++)
		m[i] = map_new(names[i], BIG);
	for (int i = 0; i < 3; i++)
		file[i] = settled(s, &m[i]);
}

static unsigned int tables(const struct tableset *s, struct procmap m[4], const uint32_t file[4])
{
	unsigned int is = 0;

	for (unsigned int i = 0; i < 4; i++)
		is |= state(s, file[i], &m[i]) == UNWIND_TABLE ? 1U << i : 0;
	return is;
}

static void test_least_used(struct tap *t)
{
	struct tableset *s = open_set(1 << 20, 0);
	struct procmap m[4];
	uint32_t file[4] = { 0 };

	fill(s, m, file);
	tap_ok(t, stats(s).space.tables == 3 && stats(s).dropped == 0, "three tables fill a megabyte");
	use(s, file[0], &m[0], 10);
	use(s, file[1], &m[1], 20);
	use(s, file[2], &m[2], 8);
	file[3] = settled(s, &m[3]);
	tap_eq_u64(
		t, tables(s, m, file), 5, "for a fourth table only the least recently used one is dropped");
	tap_ok(t, state(s, file[3], &m[3]) == UNWIND_DROPPED,
		"the new table waits until the dropped one is quiet");
	quiet(s, 1);
	tap_eq_u64(t, tables(s, m, file), 5, "after one quiet period the waiting table has no place yet");
	quiet(s, 1);
	tap_eq_u64(t, tables(s, m, file), 13, "after two quiet periods the waiting table has its place");
	tap_eq_u64(t, stats(s).dropped, 1, "dropped tables are counted");

	use(s, file[0], &m[0], 0);
	use(s, file[2], &m[2], 0);
	use(s, file[3], &m[3], 0);
	usleep(2100000);
	use(s, file[0], &m[0], 0);
	use(s, file[2], &m[2], 0);
	use(s, file[3], &m[3], 0);
	use(s, file[1], &m[1], 0);
	tap_ok(t, tableset_wanted(s, file[1]) && !tableset_wanted(s, file[0]),
		"a walk that misses a dropped table makes it wanted");
	settled(s, &m[1]);
	quiet(s, 2);
	tap_eq_u64(t, tables(s, m, file), 13, "no recently used table is dropped for a wanted one");
	tap_eq_u64(t, stats(s).dropped, 2, "the table that got no room is counted as dropped");
	use(s, file[1], &m[1], 0);
	tap_ok(t, !tableset_wanted(s, file[1]), "a table that got no room is not wanted again at once");

	tableset_release(s, file[2]);
	usleep(2100000);
	use(s, file[0], &m[0], 30);
	use(s, file[1], &m[1], 0);
	tap_ok(t, tableset_wanted(s, file[1]), "a table that got no room is wanted again later");
	settled(s, &m[1]);
	quiet(s, 2);
	tap_eq_u64(t, tables(s, m, file), 11, "a table without users is dropped before any that has users");
	tableset_close(s);
}

static void test_bound(struct tap *t)
{
	struct tableset *s = open_set(1 << 20, 0);
	struct procmap huge = map_new("huge", 400000), small = map_new("small", SMALL), big[12];
	uint32_t file = settled(s, &small), never = settled(s, &huge);
	struct tableset_stats st;
	char name[16];

	tap_ok(t, state(s, never, &huge) == UNWIND_DROPPED && state(s, file, &small) == UNWIND_TABLE,
		"a table larger than the limit is not added, and no other is dropped for it");
	usleep(2100000);
	use(s, never, &huge, 0);
	tap_ok(t, !tableset_wanted(s, never), "a table larger than the limit is never wanted again");
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "big%d", i);
		big[i] = map_new(name, BIG);
		settled(s, &big[i]);
		quiet(s, 3);
	}
	st = stats(s);
	tap_ok(t, st.space.tables == 3 || st.space.tables == 4, "of many tables as many are present as fit");
	tap_ok(t, st.files == 14 && st.dropped == 14 - st.space.tables,
		"the other tables are counted as dropped");
	tap_ok(t, st.space.bytes_used <= 1 << 20, "the memory used is within the limit");
	tableset_close(s);
}

static void test_counters(struct tap *t)
{
	struct tableset *s = open_set(8 << 20, 0);
	struct procmap none = map_new("none", 0), hidden, device, text;
	_cleanup_close_ int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	struct elf_found f = { .start = (uint64_t)p };
	uint32_t file = settled(s, &none);

	tap_ok(t, state(s, file, &none) == UNWIND_BY_FP && stats(s).source.bare == 1,
		"a file without unwind information is counted as bare");
	procmaps_each((uint32_t)getpid(), elf_is_it, &f, NULL);
	device = f.m;
	tap_ok(t, f.there && file_of(s, &device) == TABLESET_NO_FILE && stats(s).files == 1,
		"a device is not counted as a file");
	text = map_new("text", SMALL);
	if (truncate(place("text"), 0) != 0)
		abort();
	file = settled(s, &text);
	tap_ok(t, state(s, file, &text) == UNWIND_BY_FP && stats(s).source.bare == 2,
		"an empty file has no table and is counted as bare");

	mkdir(place("private"), 0700);
	hidden = map_new("private/file", SMALL);
	if (seteuid(65534) != 0)
		abort();
	tap_ok(t, file_of(s, &hidden) == TABLESET_NO_FILE && file_of(s, &hidden) == TABLESET_NO_FILE,
		"a file that cannot be opened has no table");
	if (seteuid(0) != 0)
		abort();
	tap_ok(t, stats(s).source.failed == 1 && stats(s).files == 3 && strstr(stats(s).source.why, "opened"),
		"a file that cannot be opened is counted once, with a reason");
	munmap((void *)(uintptr_t)hidden.start, 4096);
	unlink(place("private/file"));
	tap_ok(t, file_of(s, &hidden) == TABLESET_NO_FILE && stats(s).source.failed == 1,
		"a mapping that is gone is not counted as failed");
	tableset_close(s);
}

static uint64_t hash_of(const struct stat *st)
{
	return ((uint64_t)st->st_mtim.tv_sec * SECOND + (uint64_t)st->st_mtim.tv_nsec) ^
	       ((uint64_t)st->st_ctim.tv_sec * SECOND + (uint64_t)st->st_ctim.tv_nsec) << 1 ^
	       (uint64_t)st->st_size << 40;
}

/*
 * Give PATH an mtime for which hash_of() gives WANT. This guesses the ctime as the last tick's, so it is
 * repeated until it succeeds.
 */
static bool forge(const char *path, uint64_t want)
{
	struct stat st;

	for (int i = 0; i < 300; i++) {
		struct timespec at[2] = { { .tv_nsec = UTIME_OMIT } }, now;
		uint64_t mtime;

		usleep(10000);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
		if (stat(path, &st) != 0)
			return false;
		mtime = want ^ ((uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec) << 1 ^
			(uint64_t)st.st_size << 40;
		at[1].tv_sec = (time_t)(mtime / SECOND);
		at[1].tv_nsec = (long)(mtime % SECOND);
		if (utimensat(AT_FDCWD, path, at, 0) != 0 || stat(path, &st) != 0)
			return false;
		if (hash_of(&st) == want)
			return true;
	}
	return false;
}

/* The same inode with other content, and with times that make it hash like the first file. */
static void test_forged(struct tap *t)
{
	const char *name = "forged files are distinguished";
	struct tableset *s = open_set(8 << 20, 0);
	struct procmap m = map_new("forged", SMALL);
	struct stat was, is;
	uint32_t first, second;

	stat(place("forged"), &was);
	first = settled(s, &m);
	if (!elf_write(place("forged"), BIG + 10000))
		abort();
	if (!forge(place("forged"), hash_of(&was))) {
		tap_skip(t, name, "the times of this file system cannot be predicted");
	} else {
		stat(place("forged"), &is);
		second = settled(s, &m);
		tap_ok(t, was.st_ino == is.st_ino && second != first && seen(s, second, &m).segs == 2, "%s",
			name);
		tap_ok(t, settled(s, &m) == second, "the forged file is found again");
	}
	tableset_close(s);
}

/* A mapping that alternates between two files. */
struct swap {
	void *at;
	_Atomic bool stop;
	int fds[2];
};

static void *swap(void *arg)
{
	struct swap *w = arg;

	for (unsigned int i = 0; !atomic_load(&w->stop); i++)
		if (mmap(w->at, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, w->fds[i & 1],
			    ELF_TEXT) == MAP_FAILED)
			abort();
	return NULL;
}

/* In how many cases of 300 rounds does a file have the table of the other one? */
static unsigned int swapped(struct tableset *s, struct procmap m[2], const struct procmap *both, int fds[2])
{
	unsigned int wrong = 0;

	for (int round = 0; round < 300; round++) {
		/* the change of ctime makes both look like new files */
		fchmod(fds[0], 0700 + (round & 1));
		fchmod(fds[1], 0700 + (round & 1));
		tableset_release(s, settled(s, both));
		for (unsigned int i = 0; i < 2; i++) {
			uint32_t file = settled(s, &m[i]);

			wrong += state(s, file, &m[i]) == UNWIND_TABLE && seen(s, file, &m[i]).segs != i + 1;
			tableset_release(s, file);
		}
	}
	return wrong;
}

static void test_swapped(struct tap *t)
{
	struct tableset *s = open_set(64 << 20, 1);
	struct procmap m[2] = { map_new("short", SMALL), map_new("long", 70000) }, both;
	struct swap w = { .fds = { open(place("short"), O_RDONLY), open(place("long"), O_RDONLY) } };
	pthread_t thread;

	if (!elf_map(place("short"), NULL, &both))
		abort();
	/* its neighbours keep it from being merged with another mapping */
	w.at = (void *)(uintptr_t)both.start;
	if (pthread_create(&thread, NULL, swap, &w) != 0)
		abort();
	tap_eq_u64(t, swapped(s, m, &both, w.fds), 0,
		"a mapping that changes while it is read gives no file another one's table");
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	tableset_close(s);
}

static void set_descriptors(rlim_t soft)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) != 0)
		abort();
	l.rlim_cur = MIN(soft, l.rlim_max);
	if (setrlimit(RLIMIT_NOFILE, &l) != 0)
		abort();
}

/* Kill the worker and wait for its end, but leave its status to the code under test. */
static void end_worker(struct tableset *s)
{
	pid_t pid = (pid_t)tableset_worker(s);
	siginfo_t how;

	if (pid > 0 && kill(pid, SIGKILL) == 0)
		waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT);
}

static void test_worker(struct tap *t)
{
	struct tableset *s = open_set(8 << 20, 0);
	struct procmap a = map_new("a1", SMALL), b = map_new("a2", SMALL), c = map_new("a3", SMALL);
	uint32_t first = settled(s, &a), file;

	end_worker(s);
	file = settled(s, &b);
	tap_ok(t, state(s, file, &b) == UNWIND_TABLE && stats(s).source.worker_lost == 0,
		"a worker that died is replaced");
	file = file_of(s, &c);
	end_worker(s);
	set_descriptors(3);
	tableset_service(s, 0);
	tableset_service(s, 0);
	set_descriptors(1024);
	tap_ok(t, stats(s).source.worker_lost == 1 && stats(s).source.worker_why[0],
		"if no worker can be started, that is counted once with a reason");
	tableset_service(s, 20000);
	tap_ok(t, state(s, file, &c) != UNWIND_PENDING && stats(s).pending == 0, "a worker is started later");
	tap_ok(t, state(s, first, &a) == UNWIND_TABLE, "tables stay when the worker dies");
	tableset_close(s);
}

static void test_no_worker(struct tap *t)
{
	struct tableset *s = open_set(8 << 20, 0);
	struct procmap a = map_new("b1", SMALL), b = map_new("b2", SMALL), c = map_new("b3", SMALL);
	uint32_t first = settled(s, &a), second = 0, third;
	char why[256];

	/* each worker dies at once, before it has a file that could be the cause */
	for (int i = 0; i < 1000 && !stats(s).source.worker_lost; i++) {
		end_worker(s);
		if (i == 1)
			second = file_of(s, &b);
		tableset_service(s, 0);
	}
	tap_eq_u64(t, stats(s).source.worker_lost, 1, "after repeated deaths no more workers are started");
	snprintf(why, sizeof(why), "%s", stats(s).source.worker_why);
	tap_ok(t, strstr(why, "killed by SIGKILL"),
		"the reason that no more workers are started is reported");
	tap_diag("%s", why);
	third = settled(s, &c);
	tap_ok(t,
		state(s, third, &c) == UNWIND_BY_FP && strcmp(stats(s).source.why, why) == 0 &&
			stats(s).source.failed >= 1,
		"later files have no tables, for the same reason");
	tap_ok(t, (!second || state(s, second, &b) != UNWIND_PENDING) && stats(s).pending == 0,
		"no file is pending when no more workers are started");
	tableset_service(s, 50);
	tap_eq_u64(t, stats(s).source.worker_lost, 1, "the loss of the worker is counted once");
	tap_ok(t, state(s, first, &a) == UNWIND_TABLE, "tables stay when no more workers are started");
	tableset_close(s);
}

int main(void)
{
	const struct tableset_opts opts = { .bytes = 1 << 20 };
	struct tableset *s = NULL;
	struct tap t = { 0 };
	char command[128];
	struct err e;
	int rc;

	setenv("STACKTOOLS_CACHE", "", 1);
	rc = tableset_open(&opts, &s, &e);
	if (rc == -EPERM)
		tap_skip(&t, "tables of files", "%s", e.msg);
	else if (rc)
		tap_ok(&t, false, "tables of files: %s", e.msg);
	if (rc)
		return tap_done(&t);
	tableset_close(s);
	snprintf(top, sizeof(top), "%s/stacktools-tableset.XXXXXX", P_tmpdir);
	if (!mkdtemp(top) || chmod(top, 0755) != 0)
		return 1;
	test_sharing(&t);
	test_least_used(&t);
	test_bound(&t);
	test_counters(&t);
	test_forged(&t);
	test_swapped(&t);
	test_worker(&t);
	test_no_worker(&t);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command) != 0 ? 1 : tap_done(&t);
}
