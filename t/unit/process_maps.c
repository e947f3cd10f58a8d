/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "record/processes.h"

static struct mapping at(uint64_t start, uint64_t end, uint32_t file, uint64_t from_ns)
{
	return (struct mapping){ .start = start, .end = end, .file = file, .from_ns = from_ns };
}

static bool add(struct process_maps **m, uint64_t start, uint64_t end, uint32_t file, uint64_t from_ns)
{
	struct mapping new = at(start, end, file, from_ns);

	return process_maps_add(m, &new);
}

int main(void)
{
	struct tap t = { 0 };
	struct process_maps *a = NULL, *b;

	tap_ok(&t, add(&a, 0x1000, 0x2000, 1, 0) && add(&a, 0x3000, 0x4000, 2, 0) && a->n == 2,
		"mappings are appended");
	tap_ok(&t, add(&a, 0x1000, 0x2000, 1, 50) && a->n == 2, "one that is reported twice is kept once");
	tap_ok(&t, a->maps[0].from_ns == 0, "with its first time");
	tap_ok(&t, add(&a, 0x1000, 0x2000, 3, 60) && a->n == 3 && a->maps[2].file == 3,
		"another file at the same place is a new mapping");
	tap_ok(&t, add(&a, 0x1000, 0x2000, 1, 70) && a->n == 4, "and so is the first one when it comes back");
	tap_ok(&t, add(&a, 0x1800, 0x2800, 1, 80) && a->n == 5, "one that overlaps is a new mapping");

	b = process_maps_share(a);
	tap_ok(&t, b == a && a->refs == 2, "a child shares its parent's set");
	tap_ok(&t, add(&b, 0x1800, 0x2800, 1, 90) && b == a,
		"until one of them changes: what is known changes nothing");
	tap_ok(&t, add(&b, 0x5000, 0x6000, 4, 100) && b != a, "then it has its own");
	tap_ok(&t, a->n == 5 && b->n == 6 && a->refs == 1 && b->refs == 1,
		"and the other one stays as it was");
	tap_ok(&t, b->maps[4].start == 0x1800 && b->maps[5].start == 0x5000,
		"what was written already is a prefix");
	process_maps_drop(a);
	tap_ok(&t, b->maps[0].start == 0x1000, "the copy outlives the original");
	process_maps_drop(b);
	process_maps_drop(NULL);

	b = NULL;
	tap_ok(&t, add(&b, 0x7000, 0x8000, 6, 0) && add(&b, 0x6000, 0x7000, 7, 0), "two that touch");
	tap_ok(&t, process_maps_at(b, 0x6000)->file == 7 && process_maps_at(b, 0x6fff)->file == 7,
		"a mapping has its first address and its last one");
	tap_ok(&t, process_maps_at(b, 0x7000)->file == 6, "its end belongs to the next");
	tap_ok(&t, !process_maps_at(b, 0x8000) && !process_maps_at(b, 0x5fff), "or to none");
	process_maps_drop(b);
	tap_ok(&t, !process_maps_share(NULL), "NULL is the empty set");
	return tap_done(&t);
}
