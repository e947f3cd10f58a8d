/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finding the mapping of an address: known cases, and random ones against a search of every mapping. */
#include "base/tap.h"
#include "capture/maps.h"
#include "../data/capture/sample.h"

static void test_one_process(struct tap *t)
{
	const uint64_t before = MONO, after = MONO + 1000;
	bool unsure = true;
	struct cap_map_index *m;

	if (cap_map_index_new(sample_maps, ARRAY_LEN(sample_maps), ARRAY_LEN(sample_procs), &m) != 0)
		abort();
	tap_ok(t, cap_map_index_find(m, 0, 0x400000, before, before, &unsure) == &sample_maps[0] && !unsure,
		"the first address of a mapping belongs to it");
	tap_ok(t, cap_map_index_find(m, 0, 0x4fffff, before, before, NULL) == &sample_maps[0],
		"the last byte of a mapping belongs to it");
	tap_ok(t, !cap_map_index_find(m, 0, 0x500000, before, before, &unsure) && !unsure,
		"the address after a mapping has no mapping");
	tap_ok(t, !cap_map_index_find(m, 0, 0x3fffff, before, before, NULL),
		"the address before a mapping has no mapping");
	tap_ok(t,
		cap_map_index_find(m, 0, 0x485000, before, before + 499, &unsure) == &sample_maps[0] &&
			!unsure,
		"before another mapping takes the address the old mapping is found");
	tap_ok(t,
		cap_map_index_find(m, 0, 0x485000, MONO + 500, after, &unsure) == &sample_maps[2] && !unsure,
		"after another mapping took the address the new mapping is found");
	tap_ok(t,
		cap_map_index_find(m, 0, 0x485000, before, MONO + 500, &unsure) == &sample_maps[0] && unsure,
		"for a wait over the change the old mapping is found, as unsure");
	tap_ok(t, cap_map_index_find(m, 0, 0x490000, after, after, &unsure) == &sample_maps[0] && !unsure,
		"after the end of the new mapping the rest of the old mapping is found");
	tap_ok(t, !cap_map_index_find(m, 1, 0x400000, after, after, NULL), "another process has no mapping");
	tap_ok(t, !cap_map_index_find(m, 99, 0x400000, after, after, NULL),
		"an unknown process has no mapping");
	tap_ok(t, !cap_map_index_find(m, 2, 5, 0, UINT64_MAX - 1, NULL),
		"a mapping is not found before its time");
	tap_ok(t, cap_map_index_find(m, 2, 5, 0, UINT64_MAX, &unsure) == &sample_maps[3] && unsure,
		"a mapping that appeared during the wait is found, as unsure");
	tap_ok(t, !cap_map_index_find(m, 2, UINT64_MAX, UINT64_MAX, UINT64_MAX, NULL),
		"the end of a mapping is exclusive");
	cap_map_index_free(m);
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* The reference: a search of every mapping, as the definition says. */
static const struct cap_map *search(
	const struct cap_map *m, size_t n, uint32_t proc, uint64_t addr, uint64_t first, uint64_t last)
{
	const struct cap_map *best = NULL, *later = NULL;

	for (size_t i = 0; i < n; i++) {
		if (m[i].proc != proc || addr < m[i].start || addr >= m[i].end)
			continue;
		if (m[i].from_ns <= first && (!best || m[i].from_ns >= best->from_ns))
			best = &m[i];
		if (m[i].from_ns > first && m[i].from_ns <= last && (!later || m[i].from_ns < later->from_ns))
			later = &m[i];
	}
	return best ? best : later;
}

static void test_search(struct tap *t)
{
	struct cap_map maps[400];
	struct cap_map_index *index;
	uint32_t seed = 42;
	size_t wrong = 0, hits = 0;

	for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
		uint64_t start = next_random(&seed) % 1000;

		maps[i] = (struct cap_map){ .proc = next_random(&seed) % 3,
			.file = CAPTURE_NONE,
			.start = start,
			.end = start + 1 + next_random(&seed) % (i % 7 ? 9 : 500),
			.from_ns = next_random(&seed) % 50 };
	}
	if (cap_map_index_new(maps, ARRAY_LEN(maps), 3, &index) != 0)
		abort();
	for (int i = 0; i < 100000; i++) {
		uint32_t proc = next_random(&seed) % 3;
		uint64_t addr = next_random(&seed) % 1600, first = next_random(&seed) % 60;
		uint64_t last = first + next_random(&seed) % 20;
		const struct cap_map *want = search(maps, ARRAY_LEN(maps), proc, addr, first, last);
		const struct cap_map *got = cap_map_index_find(index, proc, addr, first, last, NULL);

		/* of two later mappings with the same time either is right */
		wrong += got != want &&
			 !(got && want && want->from_ns > first && got->from_ns == want->from_ns);
		hits += want != NULL;
	}
	tap_ok(t, !wrong && hits > 10000, "100,000 look-ups agree with a search of every mapping");
	if (wrong)
		tap_diag("%zu differ, %zu hits", wrong, hits);
	cap_map_index_free(index);
}

int main(void)
{
	struct tap t = { 0 };

	test_one_process(&t);
	test_search(&t);
	return tap_done(&t);
}
