/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/imagetab.h"

/* A wait is reported a flush after it ended at the latest: twice that, and more. */
#define KEEP_ENDED_NS UINT64_C(5000000000)

void imagetab_init(struct imagetab *t)
{
	*t = (struct imagetab){ .free = UINT32_MAX };
}

static void image_clear(struct image *im)
{
	mapset_drop(im->maps);
	free(im->exe);
	free(im->changes);
	im->maps = NULL;
	im->exe = NULL;
	im->changes = NULL;
}

void imagetab_free(struct imagetab *t)
{
	for (size_t i = 0; i < t->n; i++)
		image_clear(&t->images[i]);
	free(t->images);
	idmap_free(&t->by_tgid);
	idmap_free(&t->by_key);
	imagetab_init(t);
}

struct image *imagetab_newest(const struct imagetab *t, uint32_t tgid)
{
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, tgid);

	return s && s->value < t->n ? &t->images[s->value] : NULL;
}

struct image *imagetab_at(const struct imagetab *t, uint32_t tgid, uint64_t time_ns)
{
	struct image *im = imagetab_newest(t, tgid);

	while (im && im->begin_ns > time_ns && im->older != UINT32_MAX)
		im = &t->images[im->older];
	return im;
}

const struct image *imagetab_then(
	const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns, uint64_t time_ns)
{
	uint32_t at = imagetab_told(t, tgid, exec_id, start_boot_ns);
	const struct image *im = at != UINT32_MAX ? &t->images[at] : imagetab_at(t, tgid, time_ns);

	if (!im || im->begin_ns > time_ns || im->mixed || im->maps_error ||
		((im->claimed || im->told) && (im->exec_id != exec_id || im->start_boot_ns != start_boot_ns)))
		return NULL;
	return im;
}

/* A slot for an image: one that was forgotten, or a new one; UINT32_MAX without memory. */
static uint32_t take_slot(struct imagetab *t)
{
	uint32_t at = t->free;

	if (at != UINT32_MAX) {
		t->free = t->images[at].older;
		return at;
	}
	if (base_grow(&t->images, &t->cap, t->n + 1, sizeof(*t->images)) != 0)
		return UINT32_MAX;
	t->images[t->n] = (struct image){ .free = true };
	return (uint32_t)t->n++;
}

struct image *imagetab_add(struct imagetab *t, uint32_t tgid, uint64_t begin_ns)
{
	struct image *old = NULL, *im;
	struct idmap_slot *s;
	uint32_t at = take_slot(t);

	if (at == UINT32_MAX)
		return NULL;
	/* the value of a tgid whose images were all forgotten is UINT32_MAX too: look, do not compare */
	idmap_put(&t->by_tgid, 0, tgid, UINT32_MAX, NULL);
	s = idmap_find(&t->by_tgid, 0, tgid);
	if (!s)
		return NULL;
	if (s->value < t->n)
		old = &t->images[s->value];
	im = &t->images[at];
	*im = (struct image){ .tgid = tgid,
		.ns_tgid = tgid,
		.cap_id = CAP_NONE,
		.older = old ? s->value : UINT32_MAX,
		.begin_ns = begin_ns,
		.end_ns = UINT64_MAX };
	if (old && old->begin_ns < begin_ns)
		old->end_ns = MIN(old->end_ns, begin_ns);
	s->value = at;
	return im;
}

static uint64_t key_hi(uint32_t tgid, uint32_t exec_id)
{
	return (uint64_t)tgid << 32 | exec_id;
}

uint32_t imagetab_claimed(const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	struct idmap_slot *s = idmap_find(&t->by_key, key_hi(tgid, exec_id), start_boot_ns);

	return s ? s->value : UINT32_MAX;
}

bool imagetab_claim(struct imagetab *t, uint32_t at, uint32_t exec_id, uint64_t start_boot_ns)
{
	struct image *im = &t->images[at];

	im->claimed = true;
	im->exec_id = exec_id;
	im->start_boot_ns = start_boot_ns;
	return idmap_put(&t->by_key, key_hi(im->tgid, exec_id), start_boot_ns, at, NULL) != UINT32_MAX;
}

void imagetab_tell(struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	struct image *im = imagetab_newest(t, tgid);

	if (!im || im->claimed)
		return;
	im->told = true;
	im->exec_id = exec_id;
	im->start_boot_ns = start_boot_ns;
}

uint32_t imagetab_told(const struct imagetab *t, uint32_t tgid, uint32_t exec_id, uint64_t start_boot_ns)
{
	const struct image *im = imagetab_newest(t, tgid);

	while (im && !(im->told && im->exec_id == exec_id && im->start_boot_ns == start_boot_ns))
		im = im->older < t->n ? &t->images[im->older] : NULL;
	return im ? (uint32_t)(im - t->images) : UINT32_MAX;
}

static bool is_over(const struct imagetab *t, const struct image *im, uint64_t now_ns)
{
	char path[32];

	if (im->free || im->end_ns > now_ns || now_ns - im->end_ns < KEEP_ENDED_NS)
		return false;
	if (imagetab_newest(t, im->tgid) != im)
		return true;
	snprintf(path, sizeof(path), "/proc/%u", im->tgid);
	return access(path, F_OK) != 0;
}

size_t imagetab_mark_over(struct imagetab *t, uint64_t now_ns)
{
	size_t over = 0;

	for (size_t i = 0; i < t->n; i++) {
		t->images[i].over = is_over(t, &t->images[i], now_ns);
		over += t->images[i].over;
	}
	return over;
}

/* Take image AT out of the chain of its tgid. */
static void unlink_image(struct imagetab *t, uint32_t at)
{
	struct idmap_slot *s = idmap_find(&t->by_tgid, 0, t->images[at].tgid);
	uint32_t *link = s ? &s->value : NULL;

	while (link && *link < t->n && *link != at)
		link = &t->images[*link].older;
	if (link && *link == at)
		*link = t->images[at].older;
}

void imagetab_forget(struct imagetab *t)
{
	idmap_free(&t->by_key);
	for (uint32_t i = 0; i < t->n; i++) {
		struct image *im = &t->images[i];

		if (im->over) {
			unlink_image(t, i);
			image_clear(im);
			*im = (struct image){ .cap_id = CAP_NONE, .free = true, .older = t->free };
			t->free = i;
		} else if (!im->free && im->claimed) {
			imagetab_claim(t, i, im->exec_id, im->start_boot_ns);
		}
	}
}
