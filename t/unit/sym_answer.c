/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/answer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static struct sym_answer_frame frame(struct sym_answer_build *b, const char *name, uint32_t line)
{
	return (struct sym_answer_frame){ .name = sym_answer_string(b, name),
		.linkage = sym_answer_string(b, name),
		.file = sym_answer_string(b, "src/a.c"),
		.line = line };
}

/* An answer: two inlined calls and their function, a symbol alone, an unknown address, two missing files. */
static uint8_t *make(size_t *len)
{
	struct sym_answer_build b;
	uint8_t *bytes = NULL;

	sym_answer_begin(&b);
	const struct sym_answer_frame three[] = { frame(&b, "inner", 1), frame(&b, "middle", 2),
		frame(&b, "outer", 3) };
	const struct sym_answer_frame one = { .name = sym_answer_string(&b, "lone") };

	sym_answer_put(&b,
		&(struct sym_answer_addr){
			.vaddr = 0x1010, .start = 0x1000, .source = SYM_SYMTAB, .debug = 1 },
		three, 3);
	sym_answer_put(&b,
		&(struct sym_answer_addr){ .vaddr = 0x2000, .start = 0x2000, .source = SYM_DYNSYM }, &one, 1);
	sym_answer_put(&b, &(struct sym_answer_addr){ .vaddr = 0x3000, .reason = SYM_R_NO_SYMBOL }, NULL, 0);
	sym_answer_want(&b, "12ab /src/a.dwo");
	sym_answer_want(&b, "34cd /src/b.dwo");
	b.head.message = sym_answer_string(&b, "a message");
	if (sym_answer_finish(&b, &bytes, len) != 0)
		abort();
	sym_answer_end(&b);
	return bytes;
}

static void test_round_trip(struct tap *t)
{
	size_t len = 0;
	_cleanup_free_ uint8_t *bytes = make(&len);
	struct sym_answer a;
	const struct sym_answer_addr *x;
	const struct sym_answer_frame *f;

	if (!tap_ok(t, sym_answer_view(bytes, len, &a, NULL) == 0, "a built answer is accepted"))
		return;
	x = sym_answer_find(&a, 0x1010);
	f = x ? &a.frames[x->first] : NULL;
	tap_ok(t, x && x->n_frames == 3 && x->source == SYM_SYMTAB && x->start == 0x1000 && x->debug,
		"an address is found with its data");
	tap_eq_str(t, f ? sym_answer_text(&a, f[0].name) : NULL, "inner",
		"the innermost frame of an address is the first");
	tap_eq_str(t, f ? sym_answer_text(&a, f[2].name) : NULL, "outer",
		"the outermost frame of an address is the last");
	tap_eq_str(t, f ? sym_answer_text(&a, f[1].file) : NULL, "src/a.c", "a frame has its source file");
	tap_ok(t, f && f[0].name == f[0].linkage && f[0].file == f[2].file, "equal strings are stored once");
	x = sym_answer_find(&a, 0x3000);
	tap_ok(t, x && x->source == SYM_NONE && x->reason == SYM_R_NO_SYMBOL,
		"an address without a name has a reason");
	tap_ok(t, !sym_answer_find(&a, 0x1011) && !sym_answer_find(&a, 0) && !sym_answer_find(&a, UINT64_MAX),
		"an address that was not requested is not found");
	tap_eq_u64(t, a.head->n_wants, 2, "missing files are counted");
	tap_eq_str(t, sym_answer_want_at(&a, 1), "34cd /src/b.dwo", "missing files are named");
	tap_eq_str(t, sym_answer_text(&a, a.head->message), "a message",
		"the message about the whole file is stored");
}

static void test_deep(struct tap *t)
{
	struct sym_answer_build b;
	struct sym_answer_frame frames[SYM_ANSWER_FRAMES_MAX + 2] = { { 0 } };
	struct sym_answer a = { 0 };
	uint8_t *bytes = NULL;
	size_t len = 0;
	bool ok;

	sym_answer_begin(&b);
	frames[SYM_ANSWER_FRAMES_MAX + 1].name = sym_answer_string(&b, "function");
	sym_answer_put(
		&b, &(struct sym_answer_addr){ .vaddr = 1, .source = SYM_DWARF }, frames, ARRAY_LEN(frames));
	ok = sym_answer_finish(&b, &bytes, &len) == 0 && sym_answer_view(bytes, len, &a, NULL) == 0 &&
	     a.addrs[0].n_frames == SYM_ANSWER_FRAMES_MAX &&
	     strcmp(sym_answer_text(&a, a.frames[SYM_ANSWER_FRAMES_MAX - 1].name), "function") == 0;
	tap_ok(t, ok, "the function itself is kept if there are too many inlined calls");
	sym_answer_end(&b);
	free(bytes);
}

static void test_empty(struct tap *t)
{
	struct sym_answer_build b;
	struct sym_answer a;
	uint8_t *bytes = NULL;
	size_t len = 0;

	sym_answer_begin(&b);
	tap_ok(t, sym_answer_string(&b, "") == 0 && sym_answer_string(&b, NULL) == 0,
		"an empty string has number 0");
	tap_ok(t,
		sym_answer_finish(&b, &bytes, &len) == 0 && sym_answer_view(bytes, len, &a, NULL) == 0 &&
			!sym_answer_find(&a, 0) && !sym_answer_text(&a, 0),
		"an answer without addresses is valid");
	sym_answer_end(&b);
	free(bytes);
}

/* A copy of LEN bytes that ends at an unmapped page; it is aligned to 8 if LEN is. */
static uint8_t *at_the_end(const void *bytes, size_t len, uint8_t **area)
{
	const size_t room = 1 << 16;
	uint8_t *p = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || len > room)
		abort();
	mprotect(p + room, 4096, PROT_NONE);
	*area = p;
	return (uint8_t *)memcpy(p + room - len, bytes, len);
}

static bool refused(const void *bytes, size_t len)
{
	uint8_t *area, *p = at_the_end(bytes, len, &area);
	struct sym_answer a;
	struct err e = { 0 };
	int rc = sym_answer_view(p, len, &a, &e);

	munmap(area, (1 << 16) + 4096);
	return rc == -EINVAL && e.msg[0];
}

static bool lie_is_refused(
	void (*lie)(struct sym_answer_head *, struct sym_answer_addr *, struct sym_answer_frame *))
{
	size_t len = 0;
	_cleanup_free_ uint8_t *bytes = make(&len);
	struct sym_answer_head *h = (void *)bytes;
	struct sym_answer_addr *a = (void *)(h + 1);

	lie(h, a, (void *)(a + h->n_addrs));
	/* not at_the_end(), whose copy is aligned only if the length is a multiple of 8 */
	return sym_answer_view(bytes, len, &(struct sym_answer){ 0 }, NULL) == -EINVAL;
}

#define LIE(name, what)                                                                                      \
	static void name(struct sym_answer_head *h, struct sym_answer_addr *a, struct sym_answer_frame *f)   \
	{                                                                                                    \
		(void)h, (void)a, (void)f;                                                                   \
		what;                                                                                        \
	}
LIE(bad_magic, h->magic++)
LIE(more_addrs, h->n_addrs++)
LIE(all_addrs, h->n_addrs = UINT32_MAX)
LIE(all_frames, h->n_frames = UINT32_MAX)
LIE(no_strings, h->strings_len = 0)
LIE(all_strings, h->strings_len = UINT32_MAX)
LIE(far_story, h->message = h->strings_len)
LIE(far_want, h->wants = h->strings_len - 1; h->n_wants = 2)
LIE(many_wants, h->n_wants = UINT32_MAX)
LIE(same_addr, a[1].vaddr = a[0].vaddr)
LIE(falling_addr, a[1].vaddr = 1)
LIE(far_frames, a[2].first = h->n_frames; a[2].n_frames = 1)
LIE(wrapped_frames, a[0].first = UINT32_MAX)
LIE(many_frames, a[0].n_frames = UINT32_MAX)
LIE(bad_source, a[0].source = SYM_SOURCE_LAST + 1)
LIE(bad_reason, a[0].reason = SYM_R_COUNT)
LIE(bad_debug, a[0].debug = 2)
LIE(late_start, a[0].start = a[0].vaddr + 1)
LIE(source_of_nothing, a[2].source = SYM_SYMTAB)
LIE(source_without_name, f[2].name = 0)
LIE(far_name, f[0].name = h->strings_len)
LIE(far_linkage, f[0].linkage = UINT32_MAX)
LIE(far_file, f[0].file = h->strings_len)
LIE(loud_nothing, ((char *)(f + h->n_frames))[0] = 'x')
LIE(no_end, ((char *)(f + h->n_frames))[h->strings_len - 1] = 'x')

static void test_lies(struct tap *t)
{
	static const struct {
		const char *name;
		void (*lie)(struct sym_answer_head *, struct sym_answer_addr *, struct sym_answer_frame *);
	} lies[] = { { "another magic number", bad_magic }, { "one address too many", more_addrs },
		{ "too many addresses", all_addrs }, { "too many frames", all_frames },
		{ "no strings", no_strings }, { "too many strings", all_strings },
		{ "a message outside the strings", far_story },
		{ "a missing file outside the strings", far_want }, { "too many missing files", many_wants },
		{ "a duplicate address", same_addr }, { "addresses out of order", falling_addr },
		{ "frames outside the answer", far_frames },
		{ "frames that begin outside the answer", wrapped_frames },
		{ "too many frames of an address", many_frames }, { "an unknown source", bad_source },
		{ "an unknown reason", bad_reason }, { "an unknown flag", bad_debug },
		{ "a symbol behind the address", late_start },
		{ "a source without frames", source_of_nothing },
		{ "a source without a name", source_without_name },
		{ "a name outside the strings", far_name },
		{ "a linkage name outside the strings", far_linkage },
		{ "a source file outside the strings", far_file },
		{ "an empty string that is not empty", loud_nothing },
		{ "a string that is not terminated", no_end } };

	for (size_t i = 0; i < ARRAY_LEN(lies); i++)
		tap_ok(t, lie_is_refused(lies[i].lie), "an answer with %s is refused", lies[i].name);
}

static void test_cuts(struct tap *t)
{
	size_t len = 0, bad = 0;
	_cleanup_free_ uint8_t *bytes = make(&len);

	for (size_t n = 0; n < len; n++)
		bad += !refused(bytes, n);
	tap_eq_u64(t, bad, 0, "an answer cut at any place is refused, and no byte behind it is read");
	for (size_t i = 0; i < len; i++) {
		struct sym_answer a;

		bytes[i] ^= 0xff;
		if (sym_answer_view(bytes, len, &a, NULL) == 0)
			for (uint32_t k = 0; k < a.head->n_addrs; k++)
				bad += a.addrs[k].first + a.addrs[k].n_frames > a.head->n_frames;
		bytes[i] ^= 0xff;
	}
	tap_eq_u64(t, bad, 0, "an answer with any byte changed is refused or consistent");
	tap_ok(t, sym_answer_view(bytes, len, &(struct sym_answer){ 0 }, NULL) == 0,
		"the unchanged answer is accepted");
}

int main(void)
{
	struct tap t = { 0 };

	test_round_trip(&t);
	test_deep(&t);
	test_empty(&t);
	test_lies(&t);
	test_cuts(&t);
	return tap_done(&t);
}
