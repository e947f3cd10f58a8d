/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwhalf.h"

#include <errno.h>

int dwhalf_open(struct dwhalf *h, const struct elffile *f, bool packed, uint64_t max_bytes, struct err *e)
{
	int rc = dwinfo_open(f, true, max_bytes, &h->info, e);

	return rc || !packed ? rc : dwsplit_open(h->info->sect, DWSECT_CU_INDEX, &h->index, e);
}

void dwhalf_close(struct dwhalf *h)
{
	dwnames_free(&h->names);
	dwsplit_close(h->index);
	dwinfo_close(h->info);
	*h = (struct dwhalf){ 0 };
}

/* Before DWARF 5 the ID is in the first entry. */
static struct dwunit *unit_of_dwo(struct dwhalf *h, uint64_t id)
{
	for (size_t i = 0; i < h->info->n; i++) {
		struct dwunit *u = &h->info->units[i];
		struct dwroot root;

		if (u->shape.version >= 5 && u->id != id)
			continue;
		if (u->shape.version >= 5 || (dwinfo_root(h->info, u, &root, NULL) == 0 && root.id == id))
			return u;
	}
	return NULL;
}

static struct dwunit *unit_of_dwp(struct dwhalf *h, uint64_t id, uint64_t *lists, struct err *e)
{
	struct dwsplit_parts p;
	struct dwunit *u;

	if (dwsplit_find(h->index, id, &p, e) != 0)
		return NULL;
	u = dwinfo_unit(h->info, p.of[DWSECT_INFO].offset);
	if (!u || u->at != p.of[DWSECT_INFO].offset)
		return NULL;
	*lists = p.of[DWSECT_RNGLISTS].offset;
	if (u->str_base != DWINFO_UNKNOWN)
		return u;
	/* the first time it is asked for: from now on it counts from the sections' beginnings */
	u->abbrev += p.of[DWSECT_ABBREV].offset;
	u->str_base = p.of[DWSECT_STR_OFFSETS].offset +
		      (u->shape.version < 5 ? 0 : u->shape.offset_size * UINT64_C(2));
	return u;
}

int dwhalf_find(struct dwhalf *h, const struct dwroot *root, struct dwbases *b, struct err *e)
{
	uint64_t lists = 0, low = b->low;
	struct dwunit *u = h->index ? unit_of_dwp(h, root->id, &lists, e) : unit_of_dwo(h, root->id);

	if (!u)
		return err_set(e, -ENOENT, "split debug information does not have the unit %016llx",
			(unsigned long long)root->id);
	b->info = h->info;
	b->unit = u;
	dwrange_bases(b, root, true);
	b->lists += lists;
	b->low = low;
	return 0;
}
