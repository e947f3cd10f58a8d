/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An auditor of the dynamic linker that blocks when fn_indirect is bound. */
#include <link.h>
#include <string.h>

#include "work.h"

FN void fn_in_auditor(void)
{
	block();
}

unsigned int la_version(unsigned int version)
{
	return version;
}

unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
	(void)map;
	(void)lmid;
	(void)cookie;
	return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *sym, unsigned int ndx, uintptr_t *from, uintptr_t *to, unsigned int *flags,
	const char *name)
{
	(void)ndx;
	(void)from;
	(void)to;
	(void)flags;
	if (!strcmp(name, "fn_indirect"))
		fn_in_auditor();
	KEEP();
	return sym->st_value;
}
