/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares the mappings in the kernel's maps with /proc/PID/maps, for child
 * processes and for this process.
 */
#include "base/clock.h"
#include "base/tap.h"
#include "../lib/elf-made.h"
#include "record/unwinder.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>

#define DROPPED_NS UINT64_C(120000000000)
#define FILLERS 40 /* files whose tables together fill more than a megabyte */
#define FILLER_ROWS 6000 /* of each file: its table is smaller than what the mappings of test_room() lack */

static char top[64];

static struct unwinder *open_unwinder(uint64_t bytes)
{
	const struct tableset_opts opts = { .bytes = bytes };
	struct unwinder *u = NULL;

	if (unwinder_open(&opts, &u, NULL) != 0)
		abort();
	return u;
}

static struct unwinder_stats stats(const struct unwinder *u)
{
	struct unwinder_stats st;

	unwinder_stats(u, &st);
	return st;
}

/* A child that waits for its end. */
static uint32_t child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0)
		for (;;)
			pause();
	return (uint32_t)pid;
}

static void end(uint32_t pid)
{
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, NULL, 0);
}

/* Report an image as BPF does, with a made-up identity, and read its mappings. */
static void image(struct unwinder *u, uint32_t pid, uint64_t start, uint32_t exec_id)
{
	unwinder_image(
		u, &(struct offcpu_ev_image){ .tgid = pid, .start_boot_ns = start, .exec_id = exec_id });
	unwinder_service(u, 20000);
}

static void event(struct unwinder *u, uint32_t type, uint32_t pid, uint32_t parent)
{
	const struct procevent ev = {
		.type = type, .pid = pid, .tid = pid, .parent = parent, .prot = PROT_EXEC
	};

	if (type == PROCEVENT_MMAP)
		unwinder_mapped(u, &ev);
	else
		unwinder_event(u, &ev);
}

/* What BPF finds for PID; false if it finds nothing. */
static bool look(const struct unwinder *u, uint32_t pid, struct unwind_proc *ret)
{
	struct unwindspace_fds fds;

	unwinder_fds(u, &fds);
	return bpf_map_lookup_elem(fds.procs, &pid, ret) == 0;
}

/* The mappings of P, read from their chunk in the kernel, valid until the next call; NULL = none. */
static const struct unwind_map *mappings(const struct unwinder *u, const struct unwind_proc *p)
{
	static uint64_t chunk[UNWIND_CHUNK_BYTES / 8];
	struct unwindspace_fds fds;
	uint32_t id, zero = 0;
	bool read;
	int fd;

	unwinder_fds(u, &fds);
	if (bpf_map_lookup_elem(fds.chunks, &p->chunk, &id) != 0)
		return NULL;
	fd = bpf_map_get_fd_by_id(id);
	read = fd >= 0 && bpf_map_lookup_elem(fd, &zero, chunk) == 0;
	if (fd >= 0)
		close(fd);
	return read ? (const struct unwind_map *)(const void *)chunk +
			       p->grain * UNWIND_GRAIN / sizeof(struct unwind_map)
		    : NULL;
}

struct against {
	const struct unwind_map *maps; /* N_MAPS of them */
	uint32_t n_maps, n, tables;
	bool same;
};

static int compare(void *ctx, const struct procmap *m)
{
	struct against *a = ctx;
	const struct unwind_map *is = a->n < a->n_maps ? &a->maps[a->n] : NULL;

	if (!(m->prot & PROT_EXEC) || m->start > INT64_MAX)
		return 0;
	a->n++;
	a->same = a->same && is && is->start == m->start && is->end == m->end;
	a->tables += is && UNWIND_TABLE_STATE(is->table) == UNWIND_TABLE;
	return 0;
}

/* Are the mappings that BPF has of PID the same as in /proc? *TABLES: how many have a table. */
static bool right(const struct unwinder *u, uint32_t pid, uint32_t *tables)
{
	struct unwind_proc p;
	struct against a = { .same = true };

	if (!look(u, pid, &p))
		return false;
	a.maps = mappings(u, &p);
	a.n_maps = a.maps ? p.maps : 0;
	if (procmaps_each(pid, compare, &a, NULL) != 0)
		return false;
	if (tables)
		*tables = a.tables;
	return a.same && a.n == p.maps && a.n > 0;
}

static void test_image(struct tap *t)
{
	struct unwinder *u = open_unwinder(16 << 20);
	uint32_t pid = child(), tables = 0;
	struct unwind_proc p, before;

	unwinder_prepare(u, pid);
	tap_ok(t, !look(u, pid, &p), "BPF gets no mappings of a process whose identity is not known");
	image(u, pid, 77, 3);
	tap_ok(t, look(u, pid, &p) && p.start_boot_ns == 77 && p.exec_id == 3,
		"a reported image is stored under its own identity");
	tap_ok(t, right(u, pid, &tables) && tables >= 3,
		"the mappings of an image match /proc, and some have tables");
	image(u, pid, 77, 3);
	before = p;
	tap_ok(t, look(u, pid, &p) && p.serial == before.serial,
		"an image that is reported again is not read again");
	image(u, pid, 77, 4);
	tap_ok(t, look(u, pid, &p) && p.exec_id == 4 && right(u, pid, NULL),
		"after an exec a process has a new image");
	tap_eq_u64(t, stats(u).procs, 1, "a process with several images is counted once");
	end(pid);
	event(u, PROCEVENT_EXIT, pid, 0);
	unwinder_quiet(u);
	tap_ok(t, !look(u, pid, &p) && stats(u).procs == 0, "a process that has ended is dropped");
	image(u, pid, 78, 1);
	tap_ok(t, !look(u, pid, &p), "an image that is gone has no mappings");
	unwinder_close(u);
	unwinder_close(NULL);
}

static void test_sharing(struct tap *t)
{
	struct unwinder *u = open_unwinder(16 << 20);
	uint32_t pids[20];
	uint64_t tables, files, used, each;

	for (int i = 0; i < 20; i++)
		pids[i] = child();
	image(u, pids[0], 1, 1);
	tables = stats(u).tables.space.tables;
	files = stats(u).tables.files;
	used = stats(u).tables.space.bytes_used;
	image(u, pids[1], 1, 1);
	each = stats(u).tables.space.bytes_used - used;
	for (int i = 2; i < 20; i++)
		image(u, pids[i], 1, 1);
	tap_ok(t, stats(u).tables.space.tables == tables && stats(u).tables.files == files,
		"twenty processes of one program share its tables");
	tap_ok(t, each < 4096 && stats(u).tables.space.bytes_used == used + 19 * each,
		"each further process only adds memory for its mappings");
	for (int i = 1; i < 20; i++) {
		end(pids[i]);
		event(u, PROCEVENT_EXIT, pids[i], 0);
	}
	for (int i = 0; i < 3; i++)
		unwinder_quiet(u);
	tap_eq_u64(t, stats(u).tables.space.bytes_used, used,
		"the memory for mappings is free when the processes have ended");
	tap_ok(t, right(u, pids[0], NULL), "the remaining process still has its mappings");
	end(pids[0]);
	unwinder_close(u);
}

/* Give a child its parent's mappings, as BPF does. */
static void as_bpf(const struct unwinder *u, uint32_t parent, uint32_t pid)
{
	struct unwindspace_fds fds;
	struct unwind_proc p;

	unwinder_fds(u, &fds);
	if (look(u, parent, &p)) {
		p.start_boot_ns = 99;
		bpf_map_update_elem(fds.procs, &pid, &p, BPF_ANY);
	}
}

static void test_forks(struct tap *t)
{
	struct unwinder *u = open_unwinder(16 << 20);
	uint32_t parent = child(), forked = child(), orphan = child();
	struct unwind_proc p, q;
	uint64_t used;

	image(u, parent, 1, 1);
	used = stats(u).tables.space.bytes_used;
	as_bpf(u, parent, forked);
	event(u, PROCEVENT_FORK, forked, parent);
	tap_ok(t,
		look(u, forked, &q) && look(u, parent, &p) && q.start_boot_ns == 99 && q.chunk == p.chunk &&
			q.grain == p.grain && stats(u).tables.space.bytes_used == used,
		"a forked child shares its parent's mappings and adds no memory");
	end(parent);
	event(u, PROCEVENT_EXIT, parent, 0);
	for (int i = 0; i < 3; i++)
		unwinder_quiet(u);
	tap_ok(t, !look(u, parent, &p) && right(u, forked, NULL) && stats(u).tables.space.bytes_used == used,
		"a forked child keeps the mappings when its parent ends");
	as_bpf(u, forked, orphan);
	unwinder_distrust(u);
	unwinder_service(u, 0);
	tap_ok(t, !look(u, orphan, &p) && right(u, forked, NULL),
		"when events were lost, unknown processes are dropped and the others stay");
	end(forked);
	end(orphan);
	unwinder_close(u);
}

static void test_mapped(struct tap *t)
{
	struct unwinder *u = open_unwinder(16 << 20);
	const uint32_t self = (uint32_t)getpid();
	char path[96];
	struct procmap m;
	uint32_t before = 0, after = 0;

	image(u, self, 1, 1);
	right(u, self, &before);
	snprintf(path, sizeof(path), "%s/lib", top);
	if (!elf_write(path, 1000) || !elf_map(path, NULL, &m))
		abort();
	tap_ok(t, !right(u, self, NULL), "a new mapping is missing until it is reported");
	event(u, PROCEVENT_MMAP, self, 0);
	/* how soon it is read depends on how long reading took */
	for (int i = 0; i < 100 && !(right(u, self, &after) && after == before + 1); i++) {
		usleep(20000);
		unwinder_service(u, 1000);
	}
	tap_ok(t, right(u, self, &after) && after == before + 1,
		"a reported mapping is read and has a table");
	munmap((void *)(uintptr_t)m.start, 4096);
	unwinder_close(u);
}

/* Make N executable mappings of one page, none of which can be merged with another. */
static char *many_maps(const char *path, uint32_t n)
{
	char *p = mmap(NULL, (size_t)n * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	for (uint32_t i = 0; p != MAP_FAILED && i < n; i++) {
		_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

		if (mmap(p + (size_t)i * 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd,
			    ELF_TEXT) == MAP_FAILED)
			return NULL;
	}
	return p;
}

static void test_many(struct tap *t)
{
	struct unwinder *u = open_unwinder(16 << 20);
	const uint32_t self = (uint32_t)getpid();
	struct unwind_proc p;
	struct against a = { .maps = NULL };
	char path[96], *many;

	snprintf(path, sizeof(path), "%s/many", top);
	if (!elf_write(path, 1000))
		abort();
	many = many_maps(path, 9000);
	image(u, self, 1, 1);
	tap_ok(t, look(u, self, &p) && p.maps == UNWIND_MAPS_MAX, "of 9,000 mappings 8,192 are stored");
	procmaps_each(self, compare, &a, NULL);
	tap_eq_u64(t, stats(u).maps_cut, a.n - UNWIND_MAPS_MAX, "mappings beyond the limit are counted");
	unwinder_distrust(u);
	usleep(200000);
	unwinder_service(u, 0);
	tap_eq_u64(t, stats(u).maps_cut, a.n - UNWIND_MAPS_MAX,
		"mappings beyond the limit are counted once, even if read again");
	munmap(many, (size_t)9000 * 8192);
	unwinder_close(u);
}

#define MANY 100000 /* processes, one after the other: an hour of 28 a second */
#define AT_A_TIME 1000
#define PID_MOST 4194304 /* of any kernel: others there are not */

static void test_gone(struct tap *t)
{
	struct unwinder *u = open_unwinder(16 << 20);
	const uint32_t self = (uint32_t)getpid();
	size_t bytes = 0, most = 0;
	struct unwind_proc p;
	bool found = true;

	image(u, self, 1, 1);
	for (uint32_t i = 1; i <= MANY; i++) {
		event(u, PROCEVENT_FORK, PID_MOST + i, self);
		event(u, PROCEVENT_EXIT, PID_MOST + i, 0);
		if (i % AT_A_TIME)
			continue;
		unwinder_quiet(u);
		found = found && right(u, self, NULL) && !look(u, PID_MOST + i, &p);
		if (i == 10 * AT_A_TIME)
			bytes = mallinfo2().uordblks;
		else if (i > 10 * AT_A_TIME)
			most = MAX(most, mallinfo2().uordblks);
	}
	tap_ok(t, most < bytes + 65536,
		"%d children that end take no more memory than %d: %zu bytes, and %zu", MANY, 10 * AT_A_TIME,
		most, bytes);
	tap_ok(t, found && stats(u).procs == 1, "their parent is found meanwhile, and they are not");
	unwinder_close(u);
}

/* Tables fill the memory and are dropped to make room for mappings. */
static void test_room(struct tap *t)
{
	struct unwinder *u = open_unwinder(1 << 20);
	const uint32_t self = (uint32_t)getpid();
	uint32_t pid, dropped;
	char path[96], *many;
	struct procmap m;
	struct unwind_proc p;

	for (int i = 0; i < FILLERS; i++) {
		snprintf(path, sizeof(path), "%s/filler%d", top, i);
		if (!elf_write(path, FILLER_ROWS) || !elf_map(path, NULL, &m))
			abort();
	}
	pid = child();
	image(u, pid, 1, 1);
	dropped = (uint32_t)stats(u).tables.dropped;
	many = many_maps(path, 6000);
	end(pid);
	event(u, PROCEVENT_EXIT, pid, 0);
	image(u, self, 1, 1);
	tap_ok(t, !look(u, self, &p) && stats(u).maps_cut >= 6000,
		"6,000 mappings find no room in a megabyte that tables fill");
	/* tables of a process that has ended have no users at once */
	for (const uint64_t end_ns = now_ns() + DROPPED_NS; !right(u, self, NULL) && now_ns() < end_ns;) {
		unwinder_quiet(u);
		usleep(500000);
		unwinder_service(u, 0);
	}
	tap_ok(t, right(u, self, NULL), "tables are dropped until the mappings have room");
	if (!right(u, self, NULL))
		tap_diag("found %d, %u mappings, %llu cut, %llu tables dropped, %u pending",
			look(u, self, &p), p.maps, (unsigned long long)stats(u).maps_cut,
			(unsigned long long)stats(u).tables.dropped, (unsigned int)stats(u).tables.pending);
	tap_ok(t, stats(u).tables.dropped > dropped, "tables dropped for mappings are counted");
	munmap(many, (size_t)6000 * 8192);
	unwinder_close(u);
}

int main(void)
{
	const struct tableset_opts opts = { .bytes = 1 << 20 };
	struct unwinder *u = NULL;
	struct tap t = { 0 };
	char command[128];
	struct err e;
	int rc;

	setenv("STACKTOOLS_CACHE", "", 1);
	rc = unwinder_open(&opts, &u, &e);
	if (rc == -EPERM)
		tap_skip(&t, "processes and their mappings", "%s", e.msg);
	else if (rc)
		tap_ok(&t, false, "processes and their mappings: %s", e.msg);
	if (rc)
		return tap_done(&t);
	unwinder_close(u);
	snprintf(top, sizeof(top), "%s/stacktools-unwinder.XXXXXX", P_tmpdir);
	if (!mkdtemp(top))
		return 1;
	test_image(&t);
	test_sharing(&t);
	test_forks(&t);
	test_mapped(&t);
	test_many(&t);
	test_gone(&t);
	test_room(&t);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command) != 0 ? 1 : tap_done(&t);
}
