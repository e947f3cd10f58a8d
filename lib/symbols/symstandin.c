/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symstandin - debug files by build ID alone where debugfile is not there: weak, so
 * that the real one wins.
 */
#include "debugfile.h"
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
