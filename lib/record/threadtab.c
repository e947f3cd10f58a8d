/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/threadtab.h"

#include <string.h>

static uint64_t pair(uint32_t hi, uint32_t lo)
{
	return (uint64_t)hi << 32 | lo;
}

static uint64_t image_lo(uint64_t start_boot_ns, uint32_t exec_id)
{
	/* two starts within 2^64 / golden ratio never meet: they are nanoseconds of one boot */
	return start_boot_ns * 0x9e3779b97f4a7c15u + exec_id;
}

static bool index_thread(struct threadtab *t, uint32_t at)
{
	const struct thread *th = &t->threads[at];
	uint64_t id = pair(th->tgid, th->tid);
	struct idmap_slot *s;

	if (idmap_put(&t->by_key, id, image_lo(th->start_boot_ns, th->exec_id), at, NULL) == UINT32_MAX ||
		idmap_put(&t->by_tid, 0, id, at, NULL) == UINT32_MAX)
		return false;
	s = idmap_find(&t->by_tid, 0, id);
	s->value = at;
	return true;
}

struct thread *threadtab_get(struct threadtab *t, const struct offcpu_key *key)
{
	struct idmap_slot *s =
		idmap_find(&t->by_key, pair(key->tgid, key->tid), image_lo(key->start_boot_ns, key->exec_id));
	struct thread *th;

	if (s)
		return &t->threads[s->value];
	if (base_grow(&t->threads, &t->cap, t->n + 1, sizeof(*t->threads)) != 0)
		return NULL;
	th = &t->threads[t->n];
	*th = (struct thread){ .tgid = key->tgid,
		.tid = key->tid,
		.ns_tgid = key->tgid,
		.ns_tid = key->tid,
		.start_boot_ns = key->start_boot_ns,
		.exec_id = key->exec_id,
		.image = UINT32_MAX,
		.dirty = true };
	if (!index_thread(t, (uint32_t)t->n))
		return NULL;
	t->n++;
	return th;
}

void threadtab_announce(struct threadtab *t, const struct offcpu_ev_thread *ev)
{
	struct offcpu_key key = {
		.tgid = ev->tgid, .tid = ev->tid, .start_boot_ns = ev->start_boot_ns, .exec_id = ev->exec_id
	};
	struct thread *th = threadtab_get(t, &key);

	if (!th)
		return;
	th->ns_tgid = ev->ns_tgid;
	th->ns_tid = ev->ns_tid;
	th->task_flags = ev->task_flags;
	th->dirty = true;
	memcpy(th->comm, ev->comm, sizeof(th->comm));
	memcpy(th->leader_comm, ev->leader_comm, sizeof(th->leader_comm));
}

void threadtab_rename(struct threadtab *t, uint32_t tgid, uint32_t tid, const char *comm)
{
	struct idmap_slot *s = idmap_find(&t->by_tid, 0, pair(tgid, tid));

	if (!s)
		return;
	snprintf(t->threads[s->value].comm, OFFCPU_COMM_LEN, "%s", comm);
	t->threads[s->value].dirty = true;
}

void threadtab_drop(
	struct threadtab *t, bool (*gone)(const void *ctx, const struct thread *th), const void *ctx)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!gone(ctx, &t->threads[i]))
			t->threads[kept++] = t->threads[i];
	if (kept == t->n)
		return;
	t->n = kept;
	idmap_free(&t->by_key);
	idmap_free(&t->by_tid);
	for (size_t i = 0; i < t->n; i++)
		index_thread(t, (uint32_t)i);
}

void threadtab_free(struct threadtab *t)
{
	free(t->threads);
	idmap_free(&t->by_key);
	idmap_free(&t->by_tid);
	*t = (struct threadtab){ 0 };
}
