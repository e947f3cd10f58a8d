/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests of record/processes.h: events go in, and the written capture is checked with cap_reader_*(). */
#include "base/clock.h"
#include "base/tap.h"
#include "capture/reader.h"
#include "record/processes.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

struct table {
	struct process_table *tab;
	struct cap_writer *w;
	char path[32];
};

static void open_table(struct tap *t, struct table *x, bool all, bool follow)
{
	struct err e;

	*x = (struct table){ .path = "/tmp/unit-process_table.XXXXXX" };
	close(mkstemp(x->path));
	tap_ok(t,
		process_table_new(all, follow, &x->tab, &e) == 0 &&
			cap_writer_open(x->path, true, &x->w, &e) == 0,
		"a process table and a capture are opened");
}

static struct cap_reader *read_back(struct table *x)
{
	struct cap_reader *c = NULL;
	struct err e;

	process_table_flush(x->tab, 100 * SECOND, x->w);
	if (cap_writer_flush(x->w, 100 * SECOND, &e) == 0)
		cap_writer_finish(x->w, &(struct cap_trailer){ .stop_ns = 100 * SECOND, .why = "end" }, &e);
	cap_writer_close(x->w);
	process_table_free(x->tab);
	if (cap_reader_load(x->path, &c, &e) != 0)
		c = NULL;
	unlink(x->path);
	return c;
}

static void event(struct table *x, struct procevent ev)
{
	if (!ev.tid)
		ev.tid = ev.pid;
	if (!ev.text)
		ev.text = "";
	process_table_event(x->tab, &ev);
}

static void forked(struct table *x, uint32_t pid, uint32_t parent, uint64_t at)
{
	event(x, (struct procevent){ .type = PROCEVENT_FORK, .pid = pid, .parent = parent, .time_ns = at });
}

static void execed(struct table *x, uint32_t pid, const char *name, uint64_t at)
{
	event(x, (struct procevent){ .type = PROCEVENT_EXEC, .pid = pid, .text = name, .time_ns = at });
}

static void exited(struct table *x, uint32_t pid, uint64_t at)
{
	event(x, (struct procevent){ .type = PROCEVENT_EXIT, .pid = pid, .time_ns = at });
}

static void mapped(struct table *x, uint32_t pid, uint64_t start, const char *path, uint64_t at)
{
	event(x, (struct procevent){ .type = PROCEVENT_MMAP,
			 .pid = pid,
			 .start = start,
			 .end = start + 0x1000,
			 .inode = start,
			 .prot = 5,
			 .flags = 2,
			 .text = path,
			 .time_ns = at });
}

static uint32_t emit(struct table *x, uint32_t pid, uint64_t start_boot, uint32_t exec_id, uint64_t first_ns)
{
	struct offcpu_key key = { .tgid = pid, .tid = pid, .start_boot_ns = start_boot, .exec_id = exec_id };

	return process_table_emit(x->tab, &key, first_ns, false, x->w);
}

/* PIDs above any pid_max, so that /proc has no such processes. */
enum { A = 5000001, B = 5000002, C = 5000003 };

static void two_images(struct tap *t)
{
	struct table x;
	struct cap_reader *c;
	uint32_t before, after;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1 * SECOND);
	execed(&x, A, "first", 1 * SECOND + 1);
	mapped(&x, A, 0x10000, "/bin/first", 1 * SECOND + 2);
	execed(&x, A, "second", 2 * SECOND);
	mapped(&x, A, 0x10000, "/bin/second", 2 * SECOND + 1);
	before = emit(&x, A, 7, 1, 1 * SECOND + 5);
	after = emit(&x, A, 7, 2, 2 * SECOND + 5);
	tap_ok(t, before != after && before != CAPTURE_NONE && after != CAPTURE_NONE,
		"an exec begins another process image");
	tap_ok(t, emit(&x, A, 7, 1, 1 * SECOND + 9) == before && emit(&x, A, 7, 2, 2 * SECOND + 9) == after,
		"each wait belongs to the image that was current when it began");
	c = read_back(&x);
	tap_ok(t, c && c->n_procs == 2,
		"the image between fork and exec, which had no wait, is not in the capture");
	if (!c)
		return;
	tap_eq_str(t, c->procs[before].comm, "first", "the first image has its name");
	tap_eq_str(t, c->procs[after].comm, "second", "the second image has its name");
	tap_eq_str(t, c->procs[after].exe, "/bin/second",
		"the executable of the second image is its first mapping");
	tap_ok(t, c->procs[before].tgid == A && c->procs[after].tgid == A, "both images have the same PID");
	const struct cap_map *m = cap_reader_map(c, before, 0x10010, 1 * SECOND + 5, 1 * SECOND + 5, NULL);

	tap_ok(t, m && m->file != CAPTURE_NONE && strcmp(c->files[m->file].path, "/bin/first") == 0,
		"an address in the first image has the first image's mapping");
	m = cap_reader_map(c, after, 0x10010, 2 * SECOND + 5, 2 * SECOND + 5, NULL);
	tap_ok(t, m && m->file != CAPTURE_NONE && strcmp(c->files[m->file].path, "/bin/second") == 0,
		"the same address in the second image has the second image's mapping");
	cap_reader_free(c);
}

static void inherited(struct tap *t)
{
	struct table x;
	struct cap_reader *c;
	uint32_t child;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1 * SECOND);
	execed(&x, A, "parent", 1 * SECOND + 1);
	mapped(&x, A, 0x10000, "/bin/parent", 1 * SECOND + 2);
	forked(&x, B, A, 2 * SECOND);
	mapped(&x, A, 0x20000, "/lib/later", 3 * SECOND);
	child = emit(&x, B, 8, 0, 2 * SECOND + 5);
	c = read_back(&x);
	tap_ok(t, c && c->n_procs == 1, "a process without waits is not in the capture");
	if (!c)
		return;
	tap_ok(t, cap_reader_map(c, child, 0x10000, 4 * SECOND, 4 * SECOND, NULL) != NULL,
		"a child has its parent's mappings");
	tap_ok(t, !cap_reader_map(c, child, 0x20000, 4 * SECOND, 4 * SECOND, NULL),
		"a child does not have mappings that its parent made later");
	tap_eq_str(t, c->procs[child].comm, "parent", "a child has its parent's name");
	cap_reader_free(c);
}

static void pid_again(struct tap *t)
{
	struct table x;
	struct cap_reader *c;
	uint32_t first, second, third;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1 * SECOND);
	exited(&x, A, 2 * SECOND);
	forked(&x, B, 1, 1 * SECOND);
	execed(&x, B, "first", 1 * SECOND + 1);
	first = emit(&x, B, 11, 1, 1 * SECOND + 5);
	exited(&x, B, 2 * SECOND);
	forked(&x, B, 1, 3 * SECOND);
	execed(&x, B, "second", 3 * SECOND + 1);
	second = emit(&x, B, 12, 1, 3 * SECOND + 5);
	tap_ok(t, first != CAPTURE_NONE && second != CAPTURE_NONE && first != second,
		"a reused PID is another process");

	/* A ended long ago and had no waits: it is forgotten, and its PID is used again */
	process_table_flush(x.tab, 20 * SECOND, x.w);
	forked(&x, A, 1, 21 * SECOND);
	execed(&x, A, "third", 21 * SECOND + 1);
	third = emit(&x, A, 13, 1, 21 * SECOND + 5);
	tap_ok(t, third != CAPTURE_NONE, "the PID of a forgotten process can be used again");
	c = read_back(&x);
	tap_ok(t, c && c->n_procs == 3, "the capture has three processes");
	if (!c)
		return;
	if (third != CAPTURE_NONE)
		tap_eq_str(t, c->procs[third].comm, "third",
			"the process that reuses a forgotten PID has its own name");
	cap_reader_free(c);
}

static void threads(struct tap *t)
{
	struct offcpu_ev_thread said = { .type = OFFCPU_EV_THREAD,
		.tgid = A,
		.tid = C,
		.ns_tgid = 1,
		.ns_tid = 2,
		.start_boot_ns = 5,
		.comm = "worker",
		.leader_comm = "leader" };
	struct offcpu_key key = { .tgid = A, .tid = C, .start_boot_ns = 5 };
	const struct cap_thread *th;
	struct table x;
	struct cap_reader *c;
	uint32_t id;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1 * SECOND);
	process_table_announce(x.tab, &said);
	id = process_table_emit(x.tab, &key, 2 * SECOND, false, x.w);
	event(&x, (struct procevent){ .type = PROCEVENT_COMM,
			  .pid = A,
			  .tid = C,
			  .text = "renamed",
			  .time_ns = 3 * SECOND });
	c = read_back(&x);
	th = c ? cap_reader_thread(c, id, C, UINT64_MAX) : NULL;
	tap_ok(t, th && strcmp(th->comm, "renamed") == 0, "a thread has the last of its names");
	tap_ok(t, th && th->ns_tid == 2 && c->procs[id].ns_tgid == 1,
		"the ids in the thread's own PID namespace are kept");
	tap_ok(t, c && c->procs[id].flags & CAPTURE_PROC_MAPS_LOST && c->procs[id].maps_error,
		"a process without known mappings has the flag and the error");
	cap_reader_free(c);
}

static void strangers(struct tap *t)
{
	struct process_table_stats st;
	struct table x;
	struct err e;

	open_table(t, &x, false, true);
	tap_ok(t, process_table_scan(x.tab, A, SECOND, &e) != 0 && e.msg[0],
		"scanning a missing process fails with a message");
	tap_ok(t, process_table_scan(x.tab, (uint32_t)getpid(), SECOND, &e) == 0,
		"this process can be scanned");
	event(&x, (struct procevent){ .type = PROCEVENT_LOST, .lost = 42 });
	process_table_stats(x.tab, &st);
	tap_eq_u64(t, st.events_lost, 42, "lost events are counted");
	cap_reader_free(read_back(&x));
}

static enum past_maps_code then(
	struct table *x, uint64_t addr, uint64_t at, uint64_t settled, struct procmap *m)
{
	const struct past_maps_when when = { .tgid = A, .time_ns = at, .settled_ns = settled };
	struct past_maps past;
	uint64_t made;

	process_table_past(x->tab, &past);
	return past_maps_find(&past, &when, addr, m, &made);
}

/* What was mapped at an address at a given time, for stacks that are walked later. */
static void at_a_time(struct tap *t)
{
	struct procmap m;
	struct table x;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1 * SECOND);
	execed(&x, A, "first", 2 * SECOND);
	mapped(&x, A, 0x10000, "/bin/first", 3 * SECOND);
	mapped(&x, A, 0x10000, "/bin/second", 5 * SECOND);
	tap_ok(t,
		then(&x, 0x10010, 4 * SECOND, 9 * SECOND, &m) == PAST_MAPS_MAPPED &&
			!strcmp(m.path, "/bin/first") && m.start == 0x10000 && m.inode == 0x10000,
		"the mapping at that time is reported, not the one that replaced it");
	tap_ok(t,
		then(&x, 0x10010, 6 * SECOND, 9 * SECOND, &m) == PAST_MAPS_MAPPED &&
			!strcmp(m.path, "/bin/second"),
		"at a later time the replacement is reported");
	tap_ok(t, then(&x, 0x10010, 2 * SECOND + 1, 9 * SECOND, &m) == PAST_MAPS_NOT_MAPPED,
		"before the first mapping the address is not mapped");
	tap_ok(t, then(&x, 0x10010, 6 * SECOND, 5 * SECOND, &m) == PAST_MAPS_LATER,
		"a time for which events are still missing is PAST_MAPS_LATER");
	tap_ok(t, then(&x, 0x10010, SECOND / 2, 9 * SECOND, &m) == PAST_MAPS_UNSURE,
		"a time before the fork is unsure");
	event(&x, (struct procevent){ .type = PROCEVENT_LOST, .lost = 1, .time_ns = 7 * SECOND });
	tap_ok(t, then(&x, 0x10010, 4 * SECOND, 9 * SECOND, &m) == PAST_MAPS_UNSURE,
		"after lost events the mappings of the image are unsure");
	execed(&x, A, "third", 8 * SECOND);
	tap_ok(t, then(&x, 0x10010, 8 * SECOND + 1, 9 * SECOND, &m) == PAST_MAPS_NOT_MAPPED,
		"the mappings of an image that began after lost events are sure");
	cap_reader_free(read_back(&x));
}

static bool knows_this_function(const struct table *x)
{
	return process_table_covers(x->tab, (uint32_t)getpid(), (uint64_t)(uintptr_t)knows_this_function);
}

/* With the events of some processes: they end at an exec of a program with other privileges. */
static void events_that_end(struct tap *t)
{
	const uint32_t self = (uint32_t)getpid();
	const uint64_t at = now_ns();
	struct table x;

	open_table(t, &x, false, true);
	process_table_of_some(x.tab, true);
	process_table_scan(x.tab, A, SECOND, NULL);
	forked(&x, self, A, at);
	execed(&x, self, "other", at + 1);
	mapped(&x, self, 0x10000, "/bin/other", at + 2);
	exited(&x, self, at + 3);
	tap_ok(t, !process_table_unwatched(x.tab),
		"the end of a process that had mapped its program is its end");
	execed(&x, self, "privileged", at + 4);
	tap_ok(t, !knows_this_function(&x), "after an exec nothing is mapped");
	exited(&x, self, at + 5);
	tap_ok(t, process_table_unwatched(x.tab) && !process_table_unwatched(x.tab),
		"an end right after an exec, of a process that goes on, is that of its events");
	process_table_freshen(x.tab, SECOND);
	tap_ok(t, knows_this_function(&x), "its mappings are read instead");
	execed(&x, B, "gone", at + 6);
	exited(&x, B, at + 7);
	tap_ok(t, !process_table_unwatched(x.tab), "of a process that is gone it is the end");
	tap_ok(t, emit(&x, C, 7, 1, at + 8) != CAPTURE_NONE && process_table_unwatched(x.tab),
		"an image that no event has reported has no events");
	cap_reader_free(read_back(&x));
}

/* --- without events: this process, with images as BPF would report them --- */

static bool who_now(void *ctx, uint32_t tgid, struct offcpu_ev_image *ret)
{
	*ret = *(const struct offcpu_ev_image *)ctx;
	return ret->tgid == tgid;
}

/* What image EV had mapped at the address of who_now() at that time. */
static enum past_maps_code scanned(struct table *x, const struct offcpu_ev_image *ev, uint64_t at)
{
	const struct past_maps_when when = {
		.tgid = ev->tgid, .exec_id = ev->exec_id, .start_boot_ns = ev->start_boot_ns, .time_ns = at
	};
	struct past_maps past;
	struct procmap m;
	uint64_t made;

	process_table_past(x->tab, &past);
	return past_maps_find(&past, &when, (uint64_t)(uintptr_t)who_now, &m, &made);
}

static void without_events(struct tap *t)
{
	const struct offcpu_ev_image first = {
		.type = OFFCPU_EV_IMAGE, .tgid = (uint32_t)getpid(), .start_boot_ns = 77, .exec_id = 1
	};
	struct offcpu_ev_image now = first, second = first, third = first, child = first;
	uint64_t before = now_ns();
	struct table x;

	open_table(t, &x, true, false);
	process_table_without_events(x.tab, who_now, &now);
	process_table_image_seen(x.tab, &first);
	tap_ok(t, scanned(&x, &first, before) == PAST_MAPS_LATER,
		"the mappings of a new image are not known yet");
	process_table_freshen(x.tab, SECOND);
	tap_ok(t, scanned(&x, &first, before) == PAST_MAPS_MAPPED,
		"the mappings of a new image are read by process_table_freshen()");

	/* when its mappings are read, the process already has another image */
	second.exec_id = 2;
	now.exec_id = 3;
	process_table_image_seen(x.tab, &second);
	process_table_freshen(x.tab, SECOND);
	tap_ok(t, scanned(&x, &second, now_ns()) == PAST_MAPS_UNSURE,
		"an image does not get the mappings of the image after it");
	third.exec_id = 3;
	process_table_image_seen(x.tab, &third);
	process_table_freshen(x.tab, SECOND);
	tap_ok(t, scanned(&x, &third, now_ns()) == PAST_MAPS_MAPPED, "the current image has its mappings");
	tap_ok(t, scanned(&x, &first, before) == PAST_MAPS_MAPPED, "the first image keeps its mappings");

	child.type = OFFCPU_EV_FORK;
	child.tgid = UINT32_C(0x7ffffff0);
	child.parent = third.tgid;
	child.time_ns = now_ns();
	process_table_image_seen(x.tab, &child);
	process_table_freshen(x.tab, SECOND);
	tap_ok(t, scanned(&x, &child, now_ns()) == PAST_MAPS_MAPPED,
		"a child that has ended has its parent's mappings");
	cap_reader_free(read_back(&x));
}

/* The path of what image EV had mapped at ADDR at that time; "" = unknown. */
static const char *path_at(struct table *x, const struct offcpu_ev_image *ev, const void *addr, uint64_t at)
{
	const struct past_maps_when when = {
		.tgid = ev->tgid, .exec_id = ev->exec_id, .start_boot_ns = ev->start_boot_ns, .time_ns = at
	};
	static char path[PATH_MAX];
	struct past_maps past;
	struct procmap m;
	uint64_t made;

	process_table_past(x->tab, &past);
	path[0] = '\0';
	if (past_maps_find(&past, &when, (uint64_t)(uintptr_t)addr, &m, &made) == PAST_MAPS_MAPPED)
		snprintf(path, sizeof(path), "%s", m.path);
	return path;
}

/*
 * A library in place of another one: BPF reports it before it is there, and its
 * code is mapped inside the first mapping without another report.
 */
static void mapped_in_steps(struct tap *t)
{
	const struct offcpu_ev_image image = {
		.type = OFFCPU_EV_IMAGE, .tgid = (uint32_t)getpid(), .start_boot_ns = 77, .exec_id = 1
	};
	struct offcpu_ev_image now = image, report = image;
	char old[PATH_MAX], new[PATH_MAX];
	int old_fd = open(realpath("/proc/self/exe", old), O_RDONLY | O_CLOEXEC),
	    new_fd = open(realpath("/bin/sh", new), O_RDONLY | O_CLOEXEC);
	void *addr = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, old_fd, 0);
	uint64_t before, between;
	struct table x;

	open_table(t, &x, true, false);
	process_table_without_events(x.tab, who_now, &now);
	process_table_image_seen(x.tab, &image);
	process_table_freshen(x.tab, SECOND);
	before = now_ns();
	munmap(addr, 4096);
	report.type = OFFCPU_EV_MAPPING;
	report.time_ns = now_ns();
	process_table_mapping(x.tab, &report);
	process_table_stale(x.tab, &image, true);
	process_table_freshen(x.tab, SECOND);
	between = now_ns();
	tap_ok(t, mmap(addr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, new_fd, 0) == addr,
		"a file is mapped at the address of another one");
	process_table_stale(x.tab, &image, true);
	process_table_freshen(x.tab, SECOND);
	tap_eq_str(t, path_at(&x, &image, addr, before), old, "before the report it is the old file");
	tap_eq_str(t, path_at(&x, &image, addr, between), new,
		"the new file dates from the last scan that did not see it, not from the first one that did");
	munmap(addr, 4096);
	close(old_fd);
	close(new_fd);
	cap_reader_free(read_back(&x));
}

static uint64_t published_ns;

static uint64_t published(void *ctx, uint32_t tgid, uint64_t time_ns)
{
	(void)ctx;
	return tgid == A && published_ns > time_ns ? published_ns : 0;
}

static bool same(void *ctx, const struct offcpu_key *key, uint64_t addr, uint64_t at_ns)
{
	return key->tgid == A && at_ns == 10 && addr == *(uint64_t *)ctx;
}

/* Another file at the same addresses, of which BPF knew only from a later time on. */
static void behind(struct tap *t)
{
	static const uint64_t through[] = { 0x9000, 0x5008, 0x8000 }, beside[] = { 0x9000, 0x6000, 0x8000 };
	static const uint32_t exact[] = { 1 };
	const struct offcpu_key key = { .tgid = A, .tid = A, .start_boot_ns = 1 };
	const struct cap_stack s = { .len = 3, .frames = through }, after = { .len = 3, .frames = beside },
			       at = { .len = 3, .frames = beside, .n_exact = 1, .exact = exact };
	struct table x;
	uint64_t addr;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1);
	mapped(&x, A, 0x5000, "/lib/one", 2);
	mapped(&x, A, 0x8000, "/bin/main", 3);
	emit(&x, A, 1, 0, 4);
	tap_ok(t, process_table_trusted(x.tab, &key, 5, 6, &s, NULL, NULL) == UINT32_MAX,
		"without a change all is certain");
	event(&x, (struct procevent){ .type = PROCEVENT_MMAP,
			  .pid = A,
			  .start = 0x5000,
			  .end = 0x6000,
			  .inode = 77,
			  .prot = 5,
			  .flags = 2,
			  .text = "/lib/two",
			  .time_ns = 10 });
	tap_eq_u64(t, process_table_trusted(x.tab, &key, 10, 10, &s, NULL, NULL), 2,
		"after it, a stack through the changed addresses is certain up to there");
	tap_ok(t, process_table_trusted(x.tab, &key, 8, 9, &s, NULL, NULL) == UINT32_MAX,
		"before it, it is certain");
	tap_eq_u64(t, process_table_trusted(x.tab, &key, 8, 12, &s, NULL, NULL), 2,
		"and not if only some of its waits were");
	tap_eq_u64(t, process_table_trusted(x.tab, &key, 12, 12, &after, NULL, NULL), 2,
		"a call may be the last instruction there");
	tap_ok(t, process_table_trusted(x.tab, &key, 12, 12, &at, NULL, NULL) == UINT32_MAX,
		"an exact address is not looked up before itself");
	addr = 0x5007;
	tap_ok(t, process_table_trusted(x.tab, &key, 12, 12, &s, same, &addr) == UINT32_MAX,
		"where both lead to the same caller, it is certain, too");
	addr = 0x5008;
	tap_eq_u64(t, process_table_trusted(x.tab, &key, 12, 12, &s, same, &addr), 2,
		"which is asked of the byte before a return address");
	published_ns = 10;
	process_table_published(x.tab, published, NULL);
	tap_eq_u64(t, process_table_trusted(x.tab, &key, 100, 100, &s, NULL, NULL), 2,
		"what BPF learned before it does not count");
	published_ns = 20;
	process_table_published(x.tab, published, NULL);
	published_ns = 30;
	process_table_published(x.tab, published, NULL);
	tap_eq_u64(t, process_table_trusted(x.tab, &key, 20, 25, &s, NULL, NULL), 2, "until BPF knows");
	tap_ok(t, process_table_trusted(x.tab, &key, 21, 25, &s, NULL, NULL) == UINT32_MAX,
		"from then on all is certain again");
	cap_writer_close(x.w);
	process_table_free(x.tab);
	unlink(x.path);
}

#define MANY 100000 /* processes, one after the other: an hour of 28 a second */
#define AT_A_TIME 1000 /* in a second */

static void many(struct tap *t)
{
	struct table x;
	size_t bytes = 0, most = 0;
	uint64_t at = 0;

	open_table(t, &x, true, false);
	forked(&x, A, 1, 1);
	for (uint32_t i = 1; i <= MANY; i++) {
		at = i * (SECOND / AT_A_TIME);
		forked(&x, A + i, A, at);
		execed(&x, A + i, "short", at + 1);
		mapped(&x, A + i, 0x1000, "/bin/short", at + 2);
		emit(&x, A + i, i, 1, at + 3);
		exited(&x, A + i, at + 4);
		if (i % AT_A_TIME)
			continue;
		process_table_flush(x.tab, at + 5, x.w);
		cap_writer_flush(x.w, at + 5, NULL);
		if (i == 20 * AT_A_TIME)
			bytes = mallinfo2().uordblks;
		else if (i > 20 * AT_A_TIME)
			most = MAX(most, mallinfo2().uordblks);
	}
	tap_ok(t, most < bytes + 65536, "%d processes take no more memory than %d: %zu bytes, and %zu", MANY,
		20 * AT_A_TIME, most, bytes);
	tap_ok(t, process_table_tracks(x.tab, A) && !process_table_tracks(x.tab, A + 1),
		"the one that lives is known, and one that ended is not");
	cap_writer_close(x.w);
	process_table_free(x.tab);
	unlink(x.path);
}

int main(void)
{
	struct tap t = { 0 };

	process_table_free(NULL);
	two_images(&t);
	inherited(&t);
	pid_again(&t);
	threads(&t);
	strangers(&t);
	at_a_time(&t);
	events_that_end(&t);
	without_events(&t);
	mapped_in_steps(&t);
	behind(&t);
	many(&t);
	return tap_done(&t);
}
