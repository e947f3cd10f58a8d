/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/modhits.h"

#include <errno.h>
#include <string.h>

static const char no_load[] = "no segment of the file holds this address";

static unsigned int digit(const struct modhits_ask *a, unsigned int k)
{
	return (unsigned int)(k < 8 ? a->offset >> 8 * k : (uint64_t)a->file >> 8 * (k - 8)) & 255;
}

/* One pass of a radix sort; false where all have the same digit, which costs just the counting. */
static bool scatter(const struct modhits_ask *from, struct modhits_ask *to, size_t n, unsigned int k)
{
	size_t at[257] = { 0 };

	for (size_t i = 0; i < n; i++)
		at[digit(&from[i], k) + 1]++;
	if (at[digit(&from[0], k) + 1] == n)
		return false;
	for (size_t b = 1; b < 257; b++)
		at[b] += at[b - 1];
	for (size_t i = 0; i < n; i++)
		to[at[digit(&from[i], k)]++] = from[i];
	return true;
}

int modhits_sort(struct modhits_ask *asks, size_t n)
{
	_cleanup_free_ struct modhits_ask *room = malloc((n + 1) * sizeof(*room));
	struct modhits_ask *from = asks, *to = room;

	if (!room)
		return -ENOMEM;
	for (unsigned int k = 0; k < 12 && n; k++) {
		struct modhits_ask *full = to;

		if (!scatter(from, to, n, k))
			continue;
		to = from;
		from = full;
	}
	if (from != asks)
		memcpy(asks, from, n * sizeof(*asks));
	return 0;
}

/* P is freed with H, or now. */
static int keep(struct modhits *h, void *p)
{
	if (p && base_grow(&h->kept, &h->cap, h->n + 1, sizeof(*h->kept)) == 0) {
		h->kept[h->n++] = p;
		return 0;
	}
	free(p);
	return -ENOMEM;
}

void modhits_free(struct modhits *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->kept[i]);
	free(h->kept);
	*h = (struct modhits){ 0 };
}

/* The frames of an answer with pointers for offsets. */
static void set_calls(const struct symanswer *a, struct frame_call *calls)
{
	for (uint32_t i = 0; i < a->head->n_frames; i++) {
		const struct symanswer_frame *f = &a->frames[i];

		calls[i] = (struct frame_call){ .name = symanswer_text(a, f->name),
			.linkage = symanswer_text(a, f->linkage),
			.file = symanswer_text(a, f->file),
			.line = f->line,
			.column = f->column };
	}
}

int modhits_take(struct modhits *h, uint8_t *bytes, const struct symanswer *a, struct modhits_answer *ret)
{
	struct frame_call *calls;

	*ret = (struct modhits_answer){ 0 };
	if (keep(h, bytes) != 0)
		return -ENOMEM;
	calls = malloc((a->head->n_frames + (size_t)1) * sizeof(*calls));
	if (keep(h, calls) != 0)
		return -ENOMEM;
	set_calls(a, calls);
	*ret = (struct modhits_answer){ .a = *a, .calls = calls };
	return 0;
}

int modhits_stored(struct modhits *h, const struct capread *c, uint32_t file,
	const struct storednames_opts *o, struct modhits_answer *ret, struct err *e)
{
	struct symanswer a;
	uint8_t *bytes;
	size_t len;
	int rc;

	*ret = (struct modhits_answer){ 0 };
	if (!storednames_any(c, file))
		return 0;
	rc = storednames_answer(c, file, o, &bytes, &len, e);
	if (rc)
		return rc;
	if (symanswer_view(bytes, len, &a, NULL) != 0) {
		free(bytes);
		return 0;
	}
	return modhits_take(h, bytes, &a, ret) ? err_nomem(e, "stored names") : 0;
}

/* Does B, what was stored, know more of an address than A, what was read? */
static bool knows_more(const struct symanswer_addr *b, const struct symanswer_addr *a)
{
	bool a_sure = a && a->source != SYM_NONE && a->reason != SYM_R_BEYOND;

	if (!b || b->source == SYM_NONE)
		return false;
	if (!a_sure)
		return !a || a->source == SYM_NONE || b->reason != SYM_R_BEYOND;
	return b->debug && !a->debug;
}

void modhits_tell(const struct modhits_ask *asks, size_t n, const struct modhits_answer *read,
	const struct modhits_answer *stored, const char *why, modules_sink *sink, void *ctx)
{
	const struct symanswer_addr *x = read->calls ? read->a.addrs : NULL;
	const struct symanswer_addr *end = x ? x + read->a.head->n_addrs : NULL;
	const char *lost = !x ? why : read->lost ? read->lost : no_load;

	for (size_t i = 0; i < n; i++) {
		const struct modhits_ask *ask = &asks[i];
		struct modules_hit hit = { .offset = ask->offset, .reason = lost };
		const struct symanswer_addr *s;

		if (x && !ask->lost) { /* both are in order */
			while (x < end && x->vaddr < ask->vaddr)
				x++;
			hit.addr = x < end && x->vaddr == ask->vaddr ? x : NULL;
		}
		s = stored->calls ? symanswer_find(&stored->a, ask->offset) : NULL;
		hit.stored = knows_more(s, hit.addr);
		if (hit.stored)
			hit.addr = s;
		if (hit.addr) {
			hit.calls = (hit.stored ? stored : read)->calls + hit.addr->first;
			hit.reason = symanswer_reason_text(hit.addr->reason);
		}
		sink(ctx, ask->frame, &hit);
	}
}
