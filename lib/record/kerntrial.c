/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/kerntrial.h"
#include "record/kernsample.h"

#include <string.h>
#include <sys/stat.h>

#define MM_BYTES 4096u
#define PID_BYTES 512u
#define NS_BYTES 512u
#define UPID_BYTES 16u /* int nr; struct pid_namespace *ns */
#define LEVEL_AT 4u /* of struct pid, behind the count of its users */
#define LEVELS_MAX 32u
#define TRIES 10

static uint32_t u32_at(const uint8_t *p, size_t at)
{
	uint32_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint64_t u64_at(const uint8_t *p, size_t at)
{
	uint64_t v;

	memcpy(&v, p + at, sizeof(v));
	return v;
}

static bool is_pointer(uint64_t v)
{
	return (int64_t)v < 0 && v < UINT64_C(0xfffffffffffff000) && v % 8 == 0;
}

/* What a search looks with. */
struct search {
	const struct kernsamples *s;
	struct kernshape *shape;
	uint32_t inum; /* of our PID namespace */
};

static const struct kernsample *sample(const struct search *f, int i)
{
	return &f->s->of[i];
}

static uint64_t word(const struct search *f, int i, size_t at)
{
	return u64_at(sample(f, i)->bytes, at);
}

/* Does sample I have its own at AT? */
typedef bool (*fits_fn)(const struct search *f, int i, size_t at);

/* The only place, by steps of STEP, where every sample has its own; -1 = none, or several. */
static int only_place(const struct search *f, fits_fn fits, size_t step, size_t bytes)
{
	int found = -1, i;

	for (size_t at = 0; at + bytes <= sample(f, 0)->len; at += step) {
		for (i = 0; i < KERNSAMPLES && at + bytes <= sample(f, i)->len && fits(f, i, at); i++)
			;
		if (i < KERNSAMPLES)
			continue;
		if (found >= 0)
			return -1;
		found = (int)at;
	}
	return found;
}

static bool same_twice(const struct search *f, int i, size_t at, size_t bytes)
{
	return memcmp(sample(f, i)->bytes + at, sample(f, i)->again + at, bytes) == 0;
}

static bool fits_pid(const struct search *f, int i, size_t at)
{
	return u32_at(sample(f, i)->bytes, at) == sample(f, i)->pid && same_twice(f, i, at, 4);
}

static bool fits_tgid(const struct search *f, int i, size_t at)
{
	return u32_at(sample(f, i)->bytes, at) == sample(f, i)->tgid && same_twice(f, i, at, 4);
}

static bool fits_comm(const struct search *f, int i, size_t at)
{
	return memcmp(sample(f, i)->bytes + at, sample(f, i)->comm, 16) == 0;
}

static bool fits_start(const struct search *f, int i, size_t at)
{
	return word(f, i, at) - sample(f, i)->stat.start_boot_ns < THREADSTAT_TICK_NS &&
	       same_twice(f, i, at, 8);
}

static bool fits_stack(const struct search *f, int i, size_t at)
{
	return sample(f, i)->stack && word(f, i, at) == sample(f, i)->stack;
}

/*
 * start_time and start_boottime: as long as the machine has never been
 * suspended they are equal but for the moment between the two readings of the
 * clocks, and start_boottime is read last.
 */
static int find_start(const struct search *f)
{
	int found = -1, i;

	for (size_t at = 0; at + 8 <= sample(f, 0)->len; at += 8) {
		for (i = 0; i < KERNSAMPLES && at + 8 <= sample(f, i)->len && fits_start(f, i, at); i++)
			;
		if (i < KERNSAMPLES)
			continue;
		if (found >= 0 &&
			llabs((int64_t)(word(f, 0, at) - word(f, 0, (size_t)found))) > THREADSTAT_TICK_NS)
			return -1;
		if (found < 0 || word(f, 0, at) >= word(f, 0, (size_t)found))
			found = (int)at;
	}
	return found;
}

/* The child leads itself; the threads have a leader of their process's id. */
static bool fits_leader(const struct search *f, int i, size_t at)
{
	const struct kernsample *k = sample(f, i);
	uint64_t leader = word(f, i, at);
	const struct peek *p;
	size_t pid_at = (size_t)f->shape->at[KERNSHAPE_PID], tgid_at = (size_t)f->shape->at[KERNSHAPE_TGID];

	if (i == KERNSAMPLE_CHILD)
		return leader == k->task;
	if (!is_pointer(leader) || leader == k->task || leader != word(f, 0, at))
		return false;
	p = kernpeek_at(f->s->peek, leader, PEEK_MAX);
	return p && p->len > MAX(pid_at, tgid_at) + 4 && u32_at(p->bytes, pid_at) == k->tgid &&
	       u32_at(p->bytes, tgid_at) == k->tgid;
}

static bool fits_flags(const struct search *f, int i, size_t at)
{
	return u32_at(sample(f, i)->again, at) == sample(f, i)->stat.flags;
}

/*
 * All samples have the same flags, of tasks that have not called exec. The
 * leader of the threads has called it, so that its own differ.
 */
static int find_flags(const struct search *f)
{
	int at = f->shape->at[KERNSHAPE_LEADER], found = -1, i;
	const struct peek *p = at < 0 ? NULL : kernpeek_at(f->s->peek, word(f, 0, (size_t)at), PEEK_MAX);
	struct threadstat st;
	uint32_t pid = (uint32_t)getpid();

	if (!p || threadstat_read(pid, pid, &st) != 0)
		return -1;
	for (size_t i4 = 0; i4 + 4 <= MIN(p->len, sample(f, 0)->len); i4 += 4) {
		for (i = 0; i < KERNSAMPLES && i4 + 4 <= sample(f, i)->len && fits_flags(f, i, i4); i++)
			;
		if (i < KERNSAMPLES || u32_at(p->bytes, i4) != st.flags)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i4;
	}
	return found;
}

/*
 * Where in an address space of K's the start of its code and of its stack are;
 * false when it is none. The first places: behind it may lie another one of the
 * same program.
 */
static bool look_mm(const struct search *f, const struct kernsample *k, uint64_t mm, int at[2])
{
	const struct peek *p = is_pointer(mm) ? kernpeek_at(f->s->peek, mm, MM_BYTES) : NULL;

	at[0] = at[1] = -1;
	if (!p || k->stat.start_code < 4096 || k->stat.start_stack < 4096)
		return false;
	for (size_t i = 0; i + 16 <= p->len; i += 8) {
		if (at[0] < 0 && u64_at(p->bytes, i) == k->stat.start_code &&
			u64_at(p->bytes, i + 8) == k->stat.end_code)
			at[0] = (int)i;
		if (at[1] < 0 && u64_at(p->bytes, i) == k->stat.start_stack)
			at[1] = (int)i;
	}
	return at[0] >= 0 && at[1] >= 0;
}

/* The first of them is `mm`: the second, active_mm, is the same for whatever has an mm. */
static void find_mm(const struct search *f)
{
	const struct kernsample *last = sample(f, KERNSAMPLE_CHILD);
	int ours[2], its[2];

	for (size_t at = 0; at + 8 <= MIN(sample(f, 0)->len, last->len); at += 8) {
		if (word(f, 0, at) != word(f, 1, at) || word(f, 0, at) == word(f, KERNSAMPLE_CHILD, at) ||
			!look_mm(f, sample(f, 0), word(f, 0, at), ours) ||
			!look_mm(f, last, word(f, KERNSAMPLE_CHILD, at), its) ||
			memcmp(ours, its, sizeof(its)) != 0)
			continue;
		f->shape->at[KERNSHAPE_MM] = (int)at;
		f->shape->at[KERNSHAPE_START_CODE] = ours[0];
		f->shape->at[KERNSHAPE_START_STACK] = ours[1];
		return;
	}
}

/* The struct pid that a sample's task may point to. */
struct pid_copy {
	size_t len; /* 0 = it is none */
	uint32_t level;
	uint8_t bytes[PID_BYTES];
};

static void copy_pid(const struct search *f, int i, uint64_t ptr, struct pid_copy *c)
{
	const struct peek *p =
		is_pointer(ptr) && ptr != sample(f, i)->task ? kernpeek_at(f->s->peek, ptr, PID_BYTES) : NULL;

	c->len = p ? MIN(p->len, sizeof(c->bytes)) : 0;
	memcpy(c->bytes, p ? p->bytes : c->bytes, c->len);
	c->level = c->len >= 64 ? u32_at(c->bytes, LEVEL_AT) : UINT32_MAX;
	if (c->level > LEVELS_MAX)
		c->len = 0;
}

/* Can sample I's numbers begin at AT? *NS: the namespace of the last. */
static bool fits_numbers(const struct search *f, int i, const struct pid_copy *c, size_t at, uint64_t *ns)
{
	size_t last = at + c->level * UPID_BYTES;

	if (last + UPID_BYTES > c->len || u32_at(c->bytes, at) != sample(f, i)->pid ||
		u32_at(c->bytes, last) != sample(f, i)->own_tid || !is_pointer(u64_at(c->bytes, at + 8)))
		return false;
	*ns = u64_at(c->bytes, last + 8);
	return is_pointer(*ns);
}

/*
 * Where in the struct pid of every sample its numbers begin; -1 = nowhere, or
 * in several places. A number alone may be another one: of pidfs's inode, which
 * is counted as ids are, with a pointer behind it (seen on 6.16). The namespace
 * is the same for all.
 */
static int find_numbers(const struct search *f, const struct pid_copy c[KERNSAMPLES], uint64_t *ret)
{
	int found = -1, i;

	for (size_t at = 8; at < PID_BYTES; at += 8) {
		uint64_t ns[KERNSAMPLES] = { 0 };

		for (i = 0; i < KERNSAMPLES && c[i].level == c[0].level; i++)
			if (!fits_numbers(f, i, &c[i], at, &ns[i]) || ns[i] != ns[0])
				break;
		if (i < KERNSAMPLES)
			continue;
		if (found >= 0)
			return -1;
		found = (int)at;
		*ret = ns[0];
	}
	return found;
}

/*
 * The inode's number of the namespace at PTR. The first: what follows the
 * struct in memory may be another of the same kind. Were it none, no task would
 * be seen to be in the namespace.
 */
static void find_inum(const struct search *f, uint64_t ptr)
{
	const struct peek *p = kernpeek_at(f->s->peek, ptr, NS_BYTES);

	for (size_t at = 0; p && at + 4 <= p->len; at += 4) {
		if (u32_at(p->bytes, at) == f->inum) {
			f->shape->at[KERNSHAPE_INUM] = (int)at;
			return;
		}
	}
}

static void find_thread_pid(const struct search *f)
{
	struct pid_copy c[KERNSAMPLES];
	uint64_t ns = 0;
	int numbers;

	for (size_t at = 0; at + 8 <= sample(f, 0)->len; at += 8) {
		int i = 0;

		for (; i < KERNSAMPLES; i++) {
			copy_pid(f, i, word(f, i, at), &c[i]);
			if (!c[i].len)
				break;
		}
		numbers = i == KERNSAMPLES ? find_numbers(f, c, &ns) : -1;
		if (numbers < 0)
			continue;
		f->shape->at[KERNSHAPE_THREAD_PID] = (int)at;
		f->shape->at[KERNSHAPE_LEVEL] = LEVEL_AT;
		f->shape->at[KERNSHAPE_NUMBERS] = numbers;
		f->shape->ns_level = c[0].level;
		f->shape->ns_inum = f->inum;
		find_inum(f, ns);
		return;
	}
}

static void find_regs(const struct search *f)
{
	int at = only_place(f, fits_stack, 8, 8);
	uint64_t regs = sample(f, 0)->regs_from_stack;

	for (int i = 0; i < KERNSAMPLES; i++)
		if (sample(f, i)->regs_from_stack != regs)
			return;
	if (at < 0 || !regs)
		return;
	f->shape->at[KERNSHAPE_STACK] = at;
	f->shape->regs_from_stack = (uint32_t)regs;
}

static bool fits_ran(const struct search *f, int i, size_t at)
{
	return sample(f, i)->ran && u64_at(sample(f, i)->asleep, at) == sample(f, i)->ran;
}

/* Is AT what CPU time was when the thread was put on the CPU for the last time? */
static bool shows_ran_before(const struct search *f, size_t at)
{
	bool shown = false;

	for (int i = 0; i < KERNSAMPLES; i++) {
		uint64_t before = u64_at(sample(f, i)->asleep, at);

		if (before > sample(f, i)->ran || before < sample(f, i)->ran_before)
			return false;
		shown = shown || (before == sample(f, i)->ran_before && before != sample(f, i)->ran);
	}
	return shown;
}

/*
 * CPU time; and what it was when the thread was put on the CPU for the last
 * time: right behind it, or behind vruntime, before Linux 6.6. That is when it had
 * slept before, unless it was preempted since: what no sample shows is not believed.
 */
static void find_ran(const struct search *f)
{
	int at = only_place(f, fits_ran, 8, 24);
	bool next = at >= 0 && shows_ran_before(f, (size_t)at + 8);
	bool behind = at >= 0 && shows_ran_before(f, (size_t)at + 16);

	if (next == behind)
		return;
	f->shape->at[KERNSHAPE_RAN] = at;
	f->shape->at[KERNSHAPE_RAN_BEFORE] = at + (next ? 8 : 16);
}

static void find_all(const struct search *f)
{
	int *at = f->shape->at;

	at[KERNSHAPE_PID] = only_place(f, fits_pid, 4, 4);
	at[KERNSHAPE_TGID] = only_place(f, fits_tgid, 4, 4);
	at[KERNSHAPE_COMM] = only_place(f, fits_comm, 1, 16);
	at[KERNSHAPE_FLAGS] = only_place(f, fits_flags, 4, 4);
	at[KERNSHAPE_START] = find_start(f);
	if (at[KERNSHAPE_PID] >= 0 && at[KERNSHAPE_TGID] >= 0)
		at[KERNSHAPE_LEADER] = only_place(f, fits_leader, 8, 8);
	at[KERNSHAPE_FLAGS] = find_flags(f);
	find_mm(f);
	find_regs(f);
	find_thread_pid(f);
	find_ran(f);
}

static int try_once(struct kernpeek *peek, struct kernshape *shape, struct err *e)
{
	struct search f = { .shape = shape };
	struct kernsamples s;
	struct stat st;
	int rc = kernsamples_begin(&s, peek, e);

	*shape = (struct kernshape){ 0 };
	for (int i = 0; i < KERNSHAPE_MEMBERS; i++)
		shape->at[i] = -1;
	f.s = &s;
	f.inum = stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
	if (!rc)
		find_all(&f);
	kernsamples_end(&s);
	return rc;
}

/* Chance can put the same beside each of a few tasks; other tasks lie elsewhere. */
int kerntrial_run(struct kernshape *ret, struct err *e)
{
	struct kernpeek *peek = NULL;
	int rc = kernpeek_open(&peek, e);

	for (int i = 0; i < TRIES && !rc; i++) {
		rc = try_once(peek, ret, e);
		if (!rc && kernshape_missing(ret) < 0 && ret->at[KERNSHAPE_RAN] >= 0)
			break;
	}
	if (!rc)
		ret->raw_switch = kernpeek_switch(peek);
	kernpeek_close(peek);
	return rc;
}
