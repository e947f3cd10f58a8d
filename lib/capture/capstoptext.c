/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capstoptext.h"
#include "base/out.h"

#include <inttypes.h>

#define SHOWN 20

/* A file and the place in it that most of the waits stopped at; or what there is in its stead. */
static void put_place(struct out *o, const struct capread *c, const struct capstops_stop *k)
{
	if (k->file != CAP_NONE)
		outtext_put(o, c->files[k->file].path, TEXT_LINE);
	else
		out_str(o, k->mapped ? "memory of no file" : "no known mapping");
	out_printf(o, k->file != CAP_NONE ? "+0x%" PRIx64 "\n" : ", 0x%" PRIx64 "\n", k->place);
}

void capstoptext_put(struct out *o, const struct capread *c, const struct capstops *stops)
{
	if (!stops->n)
		return;
	out_str(o, "\nwhere user stacks stopped\n");
	out_printf(o, "  %-16s %12s %22s %9s  %s\n", "REASON", "WAITS", "OFF-CPU", "PLACES",
		"FILE, AND THE PLACE OF MOST WAITS");
	for (size_t i = 0; i < MIN(stops->n, (size_t)SHOWN); i++) {
		const struct capstops_stop *k = &stops->list[i];

		out_printf(o, "  %-16s %12" PRIu64 " %10" PRIu64 ".%09" PRIu64 " s %9" PRIu64 "  ",
			capture_reason_name(k->reason), k->waits, k->off_ns / 1000000000,
			k->off_ns % 1000000000, k->places);
		put_place(o, c, k);
	}
	if (stops->n > SHOWN)
		out_printf(o, "  %zu more: --json has all\n", stops->n - SHOWN);
}
