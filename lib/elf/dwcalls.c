/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/dwcalls.h"

#include <errno.h>

int dwcalls_reset(struct dwcalls *c, size_t n)
{
	c->n = 0;
	if (base_grow(&c->list, &c->cap, n, sizeof(*c->list)) != 0)
		return -ENOMEM;
	if (n)
		memset(c->list, 0, n * sizeof(*c->list));
	c->n = n;
	return 0;
}

void dwcalls_free(struct dwcalls *c)
{
	free(c->list);
}

const struct dwcalls_one *dwcalls_get(struct dwcalls *c, size_t i, size_t at)
{
	struct dwcalls_one *one = &c->list[i];
	const struct dwabbrev *a;
	struct rd r = c->bytes;

	if (one->known)
		return one;
	one->known = true;
	rd_bytes(&r, at);
	a = dwabbrev_find(c->table, rd_uleb(&r));
	if (a && !r.bad)
		dwnames_of_entry(c->names, c->info, c->unit, c->table, a, r, &one->name, &one->call);
	return one;
}
