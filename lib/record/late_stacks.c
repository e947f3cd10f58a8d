/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/late_stacks.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/intern.h"
#include "capture/types.h"
#include "unwind/host.h"
#include "unwind/walk.h"

#include <string.h>

#define AGAIN_NS UINT64_C(4000000) /* between tries at snapshots that are not ready */
#define HEAD_BYTES offsetof(struct offcpu_ev_snapshot, stack)

struct snap {
	struct offcpu_stack_id id, answer;
	struct offcpu_ev_snapshot *ev; /* NULL = there is an answer */
	bool reported; /* the answer was given */
};

struct late_stacks {
	uint32_t depth;
	struct snap *snaps; /* in order of arrival */
	size_t n, cap;
	struct idmap by_id;
	size_t n_waiting, bytes;
	size_t first; /* no snapshot before this one waits */
	uint64_t due_ns;
	struct offcpu_ev_stack out;
	struct late_stacks_stats stats;
};

int late_stacks_new(uint32_t depth, struct late_stacks **ret, struct err *e)
{
	struct late_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return err_nomem(e, "snapshots of stacks");
	s->depth = depth && depth <= OFFCPU_DEPTH_MAX ? depth : OFFCPU_DEPTH_MAX;
	s->due_ns = UINT64_MAX;
	*ret = s;
	return 0;
}

void late_stacks_free(struct late_stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free(s->snaps[i].ev);
	free(s->snaps);
	idmap_free(&s->by_id);
	free(s);
}

static struct offcpu_ev_snapshot *copy_of(struct late_stacks *s, const struct offcpu_ev_snapshot *ev)
{
	size_t bytes = HEAD_BYTES + ev->bytes;
	struct offcpu_ev_snapshot *copy;

	if (s->bytes + bytes > LATE_STACKS_BYTES)
		return NULL;
	copy = malloc(bytes);
	if (!copy)
		return NULL;
	memcpy(copy, ev, bytes);
	s->bytes += bytes;
	return copy;
}

void late_stacks_add(struct late_stacks *s, const struct offcpu_ev_snapshot *ev)
{
	struct snap snap = { .id = ev->id, .answer = ev->walked };

	/* without an answer the stack is lost, and counted as such when the wait arrives */
	if (ev->bytes > OFFCPU_SNAPSHOT_BYTES ||
		base_grow(&s->snaps, &s->cap, s->n + 1, sizeof(*s->snaps)) != 0 ||
		idmap_put(&s->by_id, ev->id.hi, ev->id.lo, (uint32_t)s->n, NULL) == UINT32_MAX) {
		s->stats.memory++;
		return;
	}
	snap.ev = copy_of(s, ev);
	if (snap.ev) {
		s->n_waiting++;
		s->due_ns = MIN(s->due_ns, ev->time_ns + AGAIN_NS);
	} else {
		s->stats.memory++;
	}
	s->snaps[s->n++] = snap;
}

/* --- one walk --- */

struct walking {
	const struct late_stacks_by *by;
	const struct offcpu_ev_snapshot *ev;
	struct past_maps past;
	struct past_maps_when when;
	uint64_t real_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	bool later; /* some events have not arrived yet */
	uint32_t file; /* of the last mapping, held; its mapping: */
	struct procmap map;
	struct unwind_map place;
};

/* Set W's map and place to the mapping of PC and its table. */
static enum snapwalk_code find_map(struct walking *w, uint64_t pc)
{
	struct procmap m;
	uint64_t made_ns;
	enum past_maps_code code = past_maps_find(&w->past, &w->when, pc, &m, &made_ns);

	if (code == PAST_MAPS_NOT_MAPPED)
		return SNAPWALK_NO_MAPPING;
	w->later = code == PAST_MAPS_LATER;
	if (code != PAST_MAPS_MAPPED)
		return SNAPWALK_UNKNOWN;
	tableset_release(w->by->tables, w->file);
	w->file = TABLESET_NO_FILE;
	if (!tableset_file_then(
		    w->by->tables, w->when.tgid, &m, made_ns ? made_ns + w->real_ns : 0, &w->file))
		return SNAPWALK_UNKNOWN;
	w->map = m;
	w->place = (struct unwind_map){ .start = m.start, .end = m.end };
	tableset_map(w->by->tables, w->file, m.start, m.offset, &w->place);
	return SNAPWALK_TABLE;
}

static enum snapwalk_code find(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	/* by state of the table */
	static const enum snapwalk_code codes[] = { [UNWIND_BY_FP] = SNAPWALK_NO_TABLE,
		[UNWIND_PENDING] = SNAPWALK_NOT_READY,
		[UNWIND_DROPPED] = SNAPWALK_DROPPED,
		[UNWIND_TABLE] = SNAPWALK_TABLE };
	struct walking *w = ctx;
	enum snapwalk_code code;

	/* look up every PC: a newer mapping may cover a part of the last one */
	code = find_map(w, pc);
	if (code != SNAPWALK_TABLE)
		return code;
	code = codes[UNWIND_TABLE_STATE(w->place.table)];
	if (code == SNAPWALK_TABLE)
		*rule = unwindspace_rule(
			tableset_space(w->by->tables), w->place.seg, w->place.segs, pc - w->place.bias);
	return code;
}

/* The snapshot has the code at its PC. */
static bool code(void *ctx, uint64_t addr, uint64_t *word)
{
	const struct walking *w = ctx;
	const uint64_t pc = HOST(saved)(w->ev->regs, HOST_PC);

	if (addr != pc && addr + sizeof(*word) != pc)
		return false;
	*word = addr == pc ? w->ev->code_after : w->ev->code_before;
	return true;
}

static void walk(struct late_stacks *s, const struct late_stacks_by *by, const struct offcpu_ev_snapshot *ev,
	struct snapwalk_end *end, bool *later)
{
	struct walking w = { .by = by,
		.ev = ev,
		.when = { .tgid = ev->tgid,
			.exec_id = ev->exec_id,
			.start_boot_ns = ev->start_boot_ns,
			.time_ns = ev->time_ns,
			.settled_ns = by->settled_ns },
		.real_ns = now_on(CLOCK_REALTIME) - now_ns(),
		.file = TABLESET_NO_FILE };
	const struct snapwalk_opts opts = {
		.depth = s->depth, .find = find, .code = code, .no_fp = true, .ctx = &w
	};
	const struct snapwalk_area stack = { .bytes = ev->stack, .from = ev->from, .len = ev->bytes };
	const struct snapwalk_memory memory = { .areas = &stack, .n = 1, .bottom = ev->bottom };

	process_table_past(by->procs, &w.past);
	snapwalk(&opts, ev->regs, &memory, s->out.frames, end);
	tableset_release(by->tables, w.file);
	*later = w.later || end->code == SNAPWALK_NOT_READY;
}

static bool rule_at(const struct late_stacks_by *by, const struct offcpu_key *key, uint64_t pc,
	uint64_t time_ns, struct unwind_rule *ret)
{
	struct walking w = { .by = by,
		.when = { .tgid = key->tgid,
			.exec_id = key->exec_id,
			.start_boot_ns = key->start_boot_ns,
			.time_ns = time_ns,
			.settled_ns = by->settled_ns },
		.real_ns = now_on(CLOCK_REALTIME) - now_ns(),
		.file = TABLESET_NO_FILE };
	const struct unwind_rule *rule = NULL;
	bool known;

	process_table_past(by->procs, &w.past);
	known = find(&w, pc, &rule) == SNAPWALK_TABLE && rule && rule->cfa != UNWIND_CFA_NONE;
	if (known)
		*ret = *rule;
	tableset_release(by->tables, w.file);
	return known;
}

bool late_stacks_same_rule(
	const struct late_stacks_by *by, const struct offcpu_key *key, uint64_t pc, uint64_t at_ns)
{
	struct unwind_rule before, after;

	return rule_at(by, key, pc, at_ns - 1, &before) && rule_at(by, key, pc, at_ns, &after) &&
	       memcmp(&before, &after, sizeof(before)) == 0;
}

/* --- the outcome of a walk --- */

/*
 * Make the id from the stack itself, so that equal stacks have one id. BPF's
 * ids are hashes under a secret key, so the two can collide only by chance.
 */
static void identify(struct offcpu_ev_stack *ev)
{
	size_t bytes = ev->len * sizeof(ev->frames[0]);
	uint64_t seed = ev->stop_pc ^ (uint64_t)ev->reason << 56 ^ (uint64_t)ev->verdict << 48;

	ev->id.hi = hash_bytes(ev->frames, bytes, seed) | 1;
	ev->id.lo = hash_bytes(ev->frames, bytes, seed ^ HASH_K1);
}

static struct offcpu_stack_id publish(
	struct late_stacks *s, const struct late_stacks_by *by, const struct snapwalk_end *end)
{
	s->out.type = OFFCPU_EV_STACK;
	s->out.kind = CAPTURE_STACK_USER;
	s->out.verdict = end->verdict;
	s->out.reason = end->reason;
	s->out.stop_pc = end->stop_pc;
	s->out.len = (uint16_t)end->len;
	identify(&s->out);
	stack_table_add(by->stacks, &s->out);
	stack_table_sure(by->stacks, &s->out.id);
	return s->out.id;
}

/* The counter for a truncated walk that found no more than BPF's own; NULL if it found more. */
static uint64_t *why_not(struct late_stacks *s, const struct snapwalk_end *end, bool later)
{
	if (later)
		return &s->stats.late;
	if (end->code == SNAPWALK_UNKNOWN)
		return &s->stats.unmapped;
	/* BPF might have continued by frame pointer here */
	if (end->reason == REASON_NO_ROW || end->reason == REASON_NO_FRAME_POINTER)
		return &s->stats.by_fp;
	if (end->reason == REASON_MEMORY)
		return &s->stats.short_stack;
	return NULL;
}

static void settle(struct late_stacks *s, struct snap *snap)
{
	s->bytes -= HEAD_BYTES + snap->ev->bytes;
	s->n_waiting--;
	free(snap->ev);
	snap->ev = NULL;
}

static void walk_one(struct late_stacks *s, const struct late_stacks_by *by, struct snap *snap, bool last)
{
	struct snapwalk_end end;
	uint64_t *why = NULL;
	bool later;

	walk(s, by, snap->ev, &end, &later);
	if (later && !last)
		return;
	if (end.verdict == VERDICT_STOPPED)
		why = why_not(s, &end, later);
	if (why) {
		++*why;
	} else {
		snap->answer = publish(s, by, &end);
		++*(end.verdict == VERDICT_COMPLETE ? &s->stats.complete : &s->stats.cut);
	}
	settle(s, snap);
}

void late_stacks_walk(struct late_stacks *s, const struct late_stacks_by *by, bool last)
{
	uint64_t now = now_ns();

	if (!s->n_waiting || (!last && now < s->due_ns))
		return;
	for (size_t i = s->first; i < s->n; i++) {
		struct snap *snap = &s->snaps[i];

		if (snap->ev)
			walk_one(s, by, snap, last || now - snap->ev->time_ns > by->late_ns);
	}
	while (s->first < s->n && !s->snaps[s->first].ev)
		s->first++;
	s->due_ns = s->n_waiting ? now + AGAIN_NS : UINT64_MAX;
}

size_t late_stacks_waiting(const struct late_stacks *s)
{
	return s->n_waiting;
}

uint64_t late_stacks_due_ns(const struct late_stacks *s)
{
	return s->due_ns;
}

bool late_stacks_answer(struct late_stacks *s, struct offcpu_stack_id *id)
{
	struct idmap_slot *slot = idmap_find(&s->by_id, id->hi, id->lo);
	struct snap *snap = slot ? &s->snaps[slot->value] : NULL;

	if (!snap)
		return true;
	if (snap->ev)
		return false;
	snap->reported = true;
	*id = snap->answer;
	return true;
}

void late_stacks_tidy(struct late_stacks *s)
{
	size_t kept = 0, extra = s->n > LATE_STACKS_ANSWERS ? s->n - LATE_STACKS_ANSWERS : 0;

	for (size_t i = 0; i < s->n; i++) {
		struct snap *snap = &s->snaps[i];

		if (snap->ev || (!snap->reported && i >= extra))
			s->snaps[kept++] = *snap;
	}
	if (kept == s->n)
		return;
	s->n = kept;
	s->first = 0;
	idmap_free(&s->by_id);
	for (size_t i = 0; i < s->n; i++)
		idmap_put(&s->by_id, s->snaps[i].id.hi, s->snaps[i].id.lo, (uint32_t)i, NULL);
}

void late_stacks_hold(const struct late_stacks *s, struct stack_table *stacks)
{
	for (size_t i = 0; i < s->n; i++) {
		stack_table_hold(stacks, CAPTURE_STACK_USER, &s->snaps[i].answer);
		if (s->snaps[i].ev)
			stack_table_hold(stacks, CAPTURE_STACK_USER, &s->snaps[i].ev->walked);
	}
}

void late_stacks_stats(const struct late_stacks *s, struct late_stacks_stats *ret)
{
	*ret = s->stats;
}
