/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symstandin - names by the symbol tables alone, in the process that asks, where symchild and debugfile are
 * not there: weak, so that the real ones win.
 */
#include "debugfile.h"
#include "demangle.h"
#include "elfsym.h"
#include "symchild.h"
#include "symfile.h"

#include <errno.h>
#include <string.h>

__attribute__((weak)) int debugfile_find(const struct debugfile_opts *o, const struct elffile *elf,
	const char *path, struct debugfile *ret, struct err *e)
{
	const struct symfile where = { .symfs = o->symfs };

	(void)path, (void)e;
	*ret = (struct debugfile){ 0 };
	symfile_open_debug(&where, &elf->build_id, &ret->debug);
	return 0;
}

__attribute__((weak)) void debugfile_close(struct debugfile *d)
{
	elffile_close(d->debug);
	elffile_close(d->alt);
	elffile_close(d->dwp);
}

static void answer(
	struct symanswer_build *b, const struct elfsym *const tables[2], uint64_t vaddr, bool demangled)
{
	struct symanswer_addr a = { .vaddr = vaddr, .reason = SYM_R_NO_SYMBOL };
	struct symanswer_frame f = { 0 };
	struct elfsym_hit hit;
	char pretty[DEMANGLE_OUT_MAX];

	for (size_t i = 0; i < 2 && !a.source; i++) {
		if (!tables[i] || !elfsym_find(tables[i], vaddr, &hit))
			continue;
		a.source = hit.dynamic ? SYM_DYNSYM : SYM_SYMTAB;
		a.reason = SYM_OK;
		a.start = hit.start;
		f.linkage = symanswer_string(b, hit.name);
		f.name = demangled && demangle(hit.name, pretty, sizeof(pretty)) ? symanswer_string(b, pretty)
										 : f.linkage;
	}
	symanswer_put(b, &a, &f, a.source != SYM_NONE);
}

static int one(struct symchild_job *j, struct err *e)
{
	const struct symlook_input *in = &j->in;
	struct elfsym *own = NULL, *debug = NULL;
	struct symanswer_build b;
	int rc = elfsym_load(in->elf, &own, e);

	if (!rc && in->debug)
		elfsym_load(in->debug, &debug, NULL);
	symanswer_begin(&b);
	for (size_t i = 0; i < in->n_vaddrs && !rc; i++)
		answer(&b, (const struct elfsym *const[]){ debug, own }, in->vaddrs[i], in->demangle);
	rc = rc ? rc : symanswer_finish(&b, &j->bytes, &j->len);
	symanswer_end(&b);
	elfsym_free(own);
	elfsym_free(debug);
	return rc ? rc : symanswer_view(j->bytes, j->len, &j->answer, e);
}

__attribute__((weak)) int symchild_run(const struct symchild_opts *o, struct symchild_job *jobs, size_t n,
	void (*done)(void *ctx, struct symchild_job *job), void *done_ctx, struct err *e)
{
	(void)o, (void)e;
	for (size_t i = 0; i < n; i++) {
		struct err why = { 0 };

		jobs[i].error = one(&jobs[i], &why);
		snprintf(jobs[i].why, sizeof(jobs[i].why), "%.200s", why.msg);
		if (done)
			done(done_ctx, &jobs[i]);
	}
	return 0;
}
