/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capfiles.h"
#include "base/intern.h"

#include <errno.h>

/* The files of the frames of S: procs[file] is set. */
static void mark(const struct capread *c, const struct cap_sample *s, uint32_t *procs)
{
	const struct cap_stack *k = &c->stacks[s->ustack];
	uint32_t e = 0;

	for (uint32_t i = 0; i < k->len; i++) {
		bool marked = e < k->n_exact && k->exact[e] == i;
		uint64_t addr = k->frames[i] - (!i || marked || !k->frames[i] ? 0 : 1);
		const struct cap_map *m = capread_map(c, s->proc, addr, s->first_ns, s->last_ns, NULL);

		e += marked;
		if (m && m->file != CAP_NONE && procs[m->file] == CAP_NONE)
			procs[m->file] = s->proc;
	}
}

/* Samples of one process and stack differ in their files only where their epochs do. */
static int mark_all(const struct capread *c, uint32_t *procs)
{
	struct idmap seen = { 0 };
	int rc = 0;

	for (size_t i = 0; i < c->n_samples && !rc; i++) {
		const struct cap_sample *s = &c->samples[i];
		bool added = false;

		if (idmap_put(&seen, (uint64_t)s->proc << 32 | s->ustack, s->flags / CAP_SAMPLE_EPOCH, 0,
			    &added) == UINT32_MAX)
			rc = -ENOMEM;
		else if (added)
			mark(c, s, procs);
	}
	idmap_free(&seen);
	return rc;
}

int capfiles_make(const struct capread *c, struct capfiles *ret)
{
	_cleanup_free_ uint32_t *procs = malloc((c->n_files + 1) * sizeof(*procs));

	*ret = (struct capfiles){ .files = malloc((c->n_files + 1) * sizeof(*ret->files)),
		.procs = malloc((c->n_files + 1) * sizeof(*ret->procs)) };
	for (size_t i = 0; procs && i < c->n_files; i++)
		procs[i] = CAP_NONE;
	if (!procs || !ret->files || !ret->procs || mark_all(c, procs) != 0) {
		capfiles_free(ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < c->n_files; i++) {
		if (procs[i] == CAP_NONE)
			continue;
		ret->files[ret->n] = i;
		ret->procs[ret->n++] = procs[i];
	}
	return 0;
}

void capfiles_free(struct capfiles *f)
{
	free(f->files);
	free(f->procs);
	*f = (struct capfiles){ 0 };
}
