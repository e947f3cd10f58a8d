/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwtop.h"

#include <string.h>

static char *copy_text(struct dwinfo *d, struct dwinfo *alt, struct dwunit *u, const struct dwvalue *v)
{
	const char *text = dwinfo_text(d, alt, u, v);

	return text ? strdup(text) : NULL;
}

int dwtop_read(struct dwtop *t, struct dwinfo *d, struct dwinfo *alt, struct dwunit *u, uint64_t lowest,
	struct err *e)
{
	int rc;

	dwtop_free(t);
	rc = dwinfo_root(d, u, &t->root, e);
	if (rc)
		return rc;
	if (t->root.str_base != DWINFO_UNKNOWN)
		u->str_base = t->root.str_base;
	/* another root that was read would take the place of texts in this one */
	else if (u->str_base == DWINFO_UNKNOWN)
		u->str_base = u->shape.version < 5 ? 0 : u->shape.offset_size * UINT64_C(2);
	t->comp_dir = copy_text(d, alt, u, &t->root.comp_dir);
	t->name = copy_text(d, alt, u, &t->root.name);
	t->dwo_name = copy_text(d, alt, u, &t->root.dwo_name);
	t->bases = (struct dwbases){ .info = d, .main = d, .unit = u, .lowest = lowest };
	dwrange_bases(&t->bases, &t->root, false);
	return 0;
}

void dwtop_free(struct dwtop *t)
{
	free(t->comp_dir);
	free(t->name);
	free(t->dwo_name);
	*t = (struct dwtop){ 0 };
}

bool dwtop_is_skeleton(const struct dwtop *t)
{
	return t->dwo_name && t->root.id;
}

char *dwtop_dwo_path(const struct dwtop *t)
{
	char *path = NULL;

	if (!t->dwo_name)
		return NULL;
	if (t->dwo_name[0] == '/' || !t->comp_dir)
		return strdup(t->dwo_name);
	return asprintf(&path, "%s/%s", t->comp_dir, t->dwo_name) < 0 ? NULL : path;
}

int dwtop_lines(const struct dwtop *t, struct dwline **ret, struct err *e)
{
	const struct dwline_opts o = { .offset = t->root.lines,
		.addr_size = t->bases.unit->shape.addr_size,
		.comp_dir = t->comp_dir,
		.name = t->name };

	*ret = NULL;
	return o.offset == DWINFO_UNKNOWN ? 0 : dwline_open(t->bases.info->sect, &o, ret, e);
}
