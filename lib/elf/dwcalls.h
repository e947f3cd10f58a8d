/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwcalls - names and calls of the functions of one unit, each read once.
 */
#ifndef STACKTOOLS_DWCALLS_H
#define STACKTOOLS_DWCALLS_H

#include "elf/dwname.h"

struct dwcalls_one {
	struct dwname name;
	struct dwcall call;
	bool known;
};

struct dwcalls {
	/* of the unit at hand; the caller's */
	struct dwnames *names;
	struct dwinfo *info;
	struct dwunit *unit;
	const struct dwabbrev_table *table;
	struct rd bytes; /* its bytes with the head; one NUL behind them */

	struct dwcalls_one *list;
	size_t n, cap;
};

int dwcalls_reset(struct dwcalls *c, size_t n); /* N functions, of which nothing is known. -ENOMEM */
void dwcalls_free(struct dwcalls *c);

/* Number I (below N), whose entry stands at offset AT of the unit. */
const struct dwcalls_one *dwcalls_get(struct dwcalls *c, size_t i, size_t at);

#endif
