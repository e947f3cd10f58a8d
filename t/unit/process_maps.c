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
	tap_ok(&t, add(&a, 0x1000, 0x2000, 1, 50) && a->n == 2, "a mapping that is added twice is kept once");
	tap_ok(&t, a->maps[0].from_ns == 0, "a mapping that is added twice keeps its first time");
	tap_ok(&t, add(&a, 0x1000, 0x2000, 3, 60) && a->n == 3 && a->maps[2].file == 3,
		"another file at the same place is a new mapping");
	tap_ok(&t, add(&a, 0x1000, 0x2000, 1, 70) && a->n == 4,
		"a mapping that replaces another one again is a new mapping");
	tap_ok(&t, add(&a, 0x1800, 0x2800, 1, 80) && a->n == 5,
		"a mapping that overlaps another one is a new mapping");

	b = process_maps_share(a);
	tap_ok(&t, b == a && a->refs == 2, "a child shares its parent's set");
	tap_ok(&t, add(&b, 0x1800, 0x2800, 1, 90) && b == a,
		"adding a known mapping does not end the sharing");
	tap_ok(&t, add(&b, 0x5000, 0x6000, 4, 100) && b != a, "adding a new mapping makes a copy of the set");
	tap_ok(&t, a->n == 5 && b->n == 6 && a->refs == 1 && b->refs == 1,
		"the original set does not change after the copy");
	tap_ok(&t, b->maps[4].start == 0x1800 && b->maps[5].start == 0x5000,
		"the mappings of the original set are a prefix of the copy");
	process_maps_drop(a);
	tap_ok(&t, b->maps[0].start == 0x1000, "the copy is valid after the original is dropped");
	process_maps_drop(b);
	process_maps_drop(NULL);

	b = NULL;
	tap_ok(&t, add(&b, 0x7000, 0x8000, 6, 0) && add(&b, 0x6000, 0x7000, 7, 0),
		"two adjacent mappings are added");
	tap_ok(&t, process_maps_at(b, 0x6000)->file == 7 && process_maps_at(b, 0x6fff)->file == 7,
		"a mapping contains its first and its last address");
	tap_ok(&t, process_maps_at(b, 0x7000)->file == 6, "the end of a mapping belongs to the next mapping");
	tap_ok(&t, !process_maps_at(b, 0x8000) && !process_maps_at(b, 0x5fff),
		"an address before or after all mappings has none");
	process_maps_drop(b);
	tap_ok(&t, !process_maps_share(NULL), "NULL is the empty set");
	return tap_done(&t);
}
