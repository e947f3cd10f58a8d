/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/pastmap.h"

/* Between that time and the scan something else may have been mapped there. */
static bool is_sure(const struct pastmap *p, const struct image *im, uint64_t time_ns)
{
	return im->overtaken_ns <= time_ns && !(p->lost_ns && p->lost_ns >= im->begin_ns);
}

static enum pastmap_code found(
	const struct pastmap *p, const struct mapping *m, struct procmap *ret, uint64_t *made_ns)
{
	*ret = (struct procmap){ .start = m->start,
		.end = m->end,
		.offset = m->offset,
		.prot = m->prot,
		.flags = m->flags,
		.path = "" };
	filetab_place(p->files, m->file, ret);
	*made_ns = m->from_ns;
	return PASTMAP_MAPPED;
}

/*
 * What the last scan before that time found is believed, as BPF does; what it
 * lacks was mapped since, and the next one finds it, if the image lives.
 */
static enum pastmap_code by_scans(const struct pastmap *p, const struct image *im,
	const struct pastmap_when *when, uint64_t addr, struct procmap *ret, uint64_t *made_ns)
{
	const struct mapping *m = mapset_then(im->maps, addr, when->time_ns);

	if (m)
		return found(p, m, ret, made_ns);
	if (im->scan_ns > when->time_ns)
		return PASTMAP_NOT_MAPPED;
	return im->gone ? PASTMAP_UNSURE : PASTMAP_LATER;
}

enum pastmap_code pastmap_find(const struct pastmap *p, const struct pastmap_when *when, uint64_t addr,
	struct procmap *ret, uint64_t *made_ns)
{
	const struct image *im =
		imagetab_then(p->images, when->tgid, when->exec_id, when->start_boot_ns, when->time_ns);
	const struct mapping *m;

	/* it was there before, and its turn to be read will come */
	if (!im && p->scanning && !imagetab_newest(p->images, when->tgid))
		return PASTMAP_LATER;
	if (!im)
		return PASTMAP_UNSURE;
	if (p->no_events)
		return by_scans(p, im, when, addr, ret, made_ns);
	if (MAX(im->scan_ns, when->time_ns) > when->settled_ns)
		return PASTMAP_LATER;
	if (!is_sure(p, im, when->time_ns))
		return PASTMAP_UNSURE;
	m = mapset_then(im->maps, addr, when->time_ns);
	return m ? found(p, m, ret, made_ns) : PASTMAP_NOT_MAPPED;
}
