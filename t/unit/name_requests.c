/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "record/names.h"

static struct process_maps *maps_of(const struct mapping *m, size_t n)
{
	struct process_maps *maps = NULL;

	for (size_t i = 0; i < n; i++)
		if (!process_maps_add(&maps, &m[i]))
			abort();
	return maps;
}

static struct name_requests *new_want(void)
{
	struct name_requests *w;

	if (name_requests_new(&w, NULL) != 0)
		abort();
	return w;
}

/* Are the new places of W those of WANT? */
static bool takes(struct name_requests *w, const struct name_requests_place *want, size_t n)
{
	size_t waiting = name_requests_waiting(w), got;
	struct name_requests_place *p = name_requests_take(w, &got);
	bool fine = p && got == n && waiting == n;

	for (size_t i = 0; i < n && fine; i++)
		fine = p[i].file == want[i].file && p[i].offset == want[i].offset;
	free(p);
	return fine;
}

static void test_places(struct tap *t)
{
	static const struct mapping m[] = {
		{ .start = 0x1000, .end = 0x2000, .offset = 0x400, .file = 7 },
		{ .start = 0x2000, .end = 0x3000, .file = 3 },
		{ .start = 0x5000, .end = 0x6000, .file = UINT32_MAX },
		{ .start = 0x1000, .end = 0x2000, .file = 9, .from_ns = 100 },
		{ .start = 0x8000, .end = 0x9000, .file = 4, .from_ns = 100 },
	};
	/*
	 * the leaf, a return address, one just past its mapping, an exact one
	 * (interrupted), one without a file, and one without a mapping
	 */
	static const uint64_t frames[] = { 0x1010, 0x1020, 0x2000, 0x2010, 0x5010, 0x7000, 0 };
	static const uint32_t exact[] = { 3 };
	static const struct name_requests_place before[] = { { 0x10, 3 }, { 0x410, 7 }, { 0x41f, 7 },
		{ 0x13ff, 7 } };
	static const struct name_requests_place after[] = { { 0x10, 9 }, { 0x1f, 9 }, { 0xfff, 9 } };
	static const struct name_requests_place late[] = { { 0x0, 4 } };
	static const uint64_t soon[] = { 0x8000 };
	const struct cap_stack s = {
		.len = ARRAY_LEN(frames), .n_exact = 1, .frames = frames, .exact = exact
	};
	const struct cap_stack k = { .len = 1, .frames = soon };
	struct process_maps *maps = maps_of(m, ARRAY_LEN(m));
	struct name_requests *w = new_want();

	name_requests_add(w, maps, &s, 50, 60);
	tap_ok(t, takes(w, before, ARRAY_LEN(before)),
		"places are sorted by file; only those of return addresses are one byte back");
	name_requests_add(w, maps, &s, 50, 60);
	tap_ok(t, takes(w, NULL, 0), "a place that was taken is not added again");
	name_requests_add(w, maps, &s, 150, 160);
	tap_ok(t, takes(w, after, ARRAY_LEN(after)), "the same address in a later mapping is another place");
	name_requests_add(w, maps, &k, 50, 160);
	tap_ok(t, takes(w, late, ARRAY_LEN(late)),
		"a mapping made during the waits applies if there was none before");
	name_requests_add(w, NULL, &s, 50, 60);
	tap_ok(t, takes(w, NULL, 0) && !name_requests_missed(w),
		"a process without known mappings has no places");
	name_requests_miss(w, 5);
	tap_eq_u64(t, name_requests_missed(w), 5, "frames that are not available are counted");
	name_requests_free(w);
	process_maps_drop(maps);
}

static void test_new(struct tap *t)
{
	struct name_requests *w = new_want();
	bool fine = true;

	tap_ok(t, name_requests_is_new(w, 1, 2, 0) && !name_requests_is_new(w, 1, 2, 0),
		"a stack is new only once");
	tap_ok(t, name_requests_is_new(w, 2, 1, 0) && name_requests_is_new(w, 1, 2, 1),
		"a stack is new again in another process or epoch");
	for (uint32_t i = 0; i < 1000000; i++)
		fine &= name_requests_is_new(w, 3, i, 0);
	tap_ok(t, fine && !name_requests_is_new(w, 3, 999999, 0), "each of a million stacks is new");
	name_requests_free(w);
}

static void test_many(struct tap *t)
{
	static const struct mapping m = { .start = 0x1000, .end = UINT64_C(1) << 40, .file = 1 };
	struct process_maps *maps = maps_of(&m, 1);
	struct name_requests *w = new_want();
	const uint32_t n = NAME_REQUESTS_PLACES_MAX + 1000;

	for (uint64_t i = 0; i < n; i++) {
		const uint64_t addr = 0x1000 + i;

		name_requests_add(w, maps, &(struct cap_stack){ .len = 1, .frames = &addr }, 0, 0);
	}
	tap_eq_u64(t, name_requests_waiting(w), NAME_REQUESTS_PLACES_MAX, "the number of places is limited");
	tap_eq_u64(t, name_requests_missed(w), 1000, "the places beyond the limit are counted");
	name_requests_free(w);
	process_maps_drop(maps);
}

int main(void)
{
	struct tap t = { 0 };

	test_places(&t);
	test_new(&t);
	test_many(&t);
	return tap_done(&t);
}
