/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwhit.h"

#include <string.h>

struct dwhit_held {
	struct dwlook_hit hit;
	uint64_t rank;
	struct dwlook_frame frames[];
};

static size_t text_size(const char *s)
{
	return s ? strlen(s) + 1 : 0;
}

static const char *put_text(char **at, const char *s)
{
	size_t n = text_size(s);

	if (!n)
		return NULL;
	memcpy(*at, s, n);
	*at += n;
	return *at - n;
}

/* With strings of its own: those of the hit are valid during the call. */
static struct dwhit_held *copy_of(const struct dwlook_hit *hit, uint64_t rank)
{
	size_t size = sizeof(struct dwhit_held) + hit->n * sizeof(*hit->frames);
	struct dwhit_held *h;
	char *at;

	for (size_t i = 0; i < hit->n; i++)
		size += text_size(hit->frames[i].name) + text_size(hit->frames[i].linkage) +
			text_size(hit->frames[i].file);
	h = malloc(size);
	if (!h)
		return NULL;
	h->rank = rank;
	h->hit = *hit;
	h->hit.frames = h->frames;
	at = (char *)&h->frames[hit->n];
	for (size_t i = 0; i < hit->n; i++) {
		h->frames[i] = hit->frames[i];
		h->frames[i].name = put_text(&at, hit->frames[i].name);
		h->frames[i].linkage = put_text(&at, hit->frames[i].linkage);
		h->frames[i].file = put_text(&at, hit->frames[i].file);
	}
	return h;
}

void dwhit_offer(struct dwhit_held **held, const struct dwlook_hit *hit, uint64_t rank, bool last,
	dwlook_sink *sink, void *ctx)
{
	bool better = hit && (!*held || rank < (*held)->rank);

	if (last) {
		if (better)
			sink(ctx, hit);
		else if (*held)
			sink(ctx, &(*held)->hit);
		free(*held);
		*held = NULL;
		return;
	}
	if (better) {
		struct dwhit_held *copy = copy_of(hit, rank);

		if (copy) {
			free(*held);
			*held = copy;
		}
	}
}
