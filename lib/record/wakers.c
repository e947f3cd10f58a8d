/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/wakers.h"
#include "base/intern.h"

struct entry {
	struct offcpu_waker waker;
	uint64_t time_ns; /* of the first wake-up that was reported */
	struct cap_waker last; /* as it was written last; id 0 = never */
	uint32_t epoch; /* in which it was used last */
};

struct waker_table {
	struct entry *entries;
	size_t n, cap;
	struct idmap by_id;
	uint32_t emitted;
	uint32_t epoch;
};

int waker_table_new(struct waker_table **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the table of wakers");
}

void waker_table_free(struct waker_table *t)
{
	if (!t)
		return;
	free(t->entries);
	idmap_free(&t->by_id);
	free(t);
}

/* Without memory it is missing, as if it had not arrived. */
void waker_table_add(struct waker_table *t, const struct offcpu_ev_waker *ev)
{
	bool added;
	uint32_t at;

	if (base_grow(&t->entries, &t->cap, t->n + 1, sizeof(*t->entries)) != 0)
		return;
	at = idmap_put(&t->by_id, ev->id.hi, ev->id.lo, (uint32_t)t->n, &added);
	if (at == UINT32_MAX)
		return;
	if (added)
		t->entries[t->n++] = (struct entry){ .waker = ev->waker, .time_ns = ev->time_ns };
	t->entries[at].epoch = t->epoch;
}

static struct entry *find(struct waker_table *t, const struct offcpu_stack_id *id)
{
	const struct idmap_slot *slot = id->hi ? idmap_find(&t->by_id, id->hi, id->lo) : NULL;

	return slot ? &t->entries[slot->value] : NULL;
}

bool waker_table_ready(struct waker_table *t, const struct offcpu_stack_id *id, struct late_stacks *s)
{
	struct entry *k = find(t, id);

	for (int i = 0; s && k && i < OFFCPU_WAKERS_MAX; i++, k = find(t, &k->waker.next))
		if (!late_stacks_answer(s, &k->waker.user))
			return false;
	return true;
}

/* Does A say the same as B, whatever their ids and times? */
static bool same(const struct cap_waker *a, const struct cap_waker *b)
{
	return a->flags == b->flags && a->proc == b->proc && a->tid == b->tid && a->kstack == b->kstack &&
	       a->ustack == b->ustack && a->next == b->next;
}

/* STEPS: how many more wakers the chain may have. A hash of BPF's is not trusted to make no circle. */
static uint32_t emit(struct waker_table *t, const struct offcpu_stack_id *id, uint64_t first_ns,
	uint64_t last_ns, int steps, waker_place *place, void *ctx, struct cap_writer *w)
{
	struct entry *k = steps ? find(t, id) : NULL;
	struct cap_waker out;
	struct offcpu_key key;

	if (!k)
		return 0;
	k->epoch = t->epoch;
	out = (struct cap_waker){ .flags = k->waker.flags,
		.tid = k->waker.tid,
		.first_ns = MAX(first_ns, k->time_ns), /* a wait begins before its waker comes */
		.next = emit(t, &k->waker.next, first_ns, last_ns, steps - 1, place, ctx, w) };
	key = (struct offcpu_key){ .tgid = k->waker.tgid,
		.tid = k->waker.tid,
		.start_boot_ns = k->waker.start_boot_ns,
		.exec_id = k->waker.exec_id,
		.kernel = k->waker.kernel,
		.user = k->waker.user };
	if (!place(ctx, &key, MAX(last_ns, out.first_ns), &out))
		return 0;
	if (k->last.id && same(&k->last, &out))
		return k->last.id;
	out.id = ++t->emitted;
	cap_writer_waker(w, &out);
	k->last = out;
	return out.id;
}

uint32_t waker_table_emit(struct waker_table *t, const struct offcpu_stack_id *id, uint64_t first_ns,
	uint64_t last_ns, waker_place *place, void *ctx, struct cap_writer *w)
{
	return emit(t, id, first_ns, last_ns, OFFCPU_WAKERS_MAX, place, ctx, w);
}

size_t waker_table_count(const struct waker_table *t)
{
	return t ? t->n : 0;
}

void waker_table_turn(struct waker_table *t)
{
	if (t)
		t->epoch++;
}

void waker_table_hold(struct waker_table *t, const struct offcpu_stack_id *id)
{
	struct entry *k = t ? find(t, id) : NULL;

	for (int i = 0; k && i < OFFCPU_WAKERS_MAX; i++, k = find(t, &k->waker.next))
		k->epoch = t->epoch;
}

/* Those that wakers in use refer to are in use themselves. */
static void hold_chains(struct waker_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->entries[i].epoch == t->epoch)
			waker_table_hold(t, &t->entries[i].waker.next);
}

void waker_table_forget(struct waker_table *t, struct stack_table *stacks)
{
	struct idmap by_id = { 0 };
	size_t kept = 0;

	if (!t)
		return;
	hold_chains(t);
	for (size_t i = 0; i < t->n; i++) {
		struct entry *k = &t->entries[i];
		const struct idmap_slot *slot = &t->by_id.slots[i]; /* both in the order of arrival */

		if (k->epoch != t->epoch)
			continue;
		stack_table_hold(stacks, CAPTURE_STACK_KERNEL, &k->waker.kernel);
		stack_table_hold(stacks, CAPTURE_STACK_USER, &k->waker.user);
		/* without memory it is missing */
		if (idmap_put(&by_id, slot->hi, slot->lo, (uint32_t)kept, NULL) != UINT32_MAX)
			t->entries[kept++] = *k;
	}
	t->n = kept;
	idmap_free(&t->by_id);
	t->by_id = by_id;
}
