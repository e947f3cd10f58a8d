/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as the answer of a process that
 * reads a perf map or a jitdump file. The first byte chooses: unchanged, or as
 * pieces and strings after a matching head.
 */
#include "base/bytes.h"
#include "symbols/jit.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const uint64_t addrs[] = { 0, 1, 0x1000, 0x1004, UINT64_C(1) << 47, UINT64_MAX };

static bool is_requested(const struct cap_jit *j)
{
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++)
		if (addrs[i] >= j->start && addrs[i] < j->end)
			return true;
	return false;
}

/* An accepted answer can be used without checks. */
static void view(const void *bytes, size_t len)
{
	struct jit_reader_question q = {
		.fd = -1, .kind = CAPTURE_JIT_JITDUMP, .addrs = addrs, .n = ARRAY_LEN(addrs)
	};
	struct jit_reader_answer a = { 0 };
	struct err e = { 0 };
	volatile size_t sum = 0;
	int rc = jit_reader_view(&q, bytes, len, &a, &e);

	if (rc > 0 || (rc && !e.msg[0] && len < sizeof(struct jit_reader_head)))
		abort();
	for (size_t i = 0; !rc && i < a.n; i++) {
		const struct cap_jit *j = &a.jits[i];

		if (!is_requested(j) || j->from_ns >= j->to_ns || !*j->name)
			abort();
		sum += strlen(j->name) + strlen(j->file);
	}
	jit_reader_free(&a);
}

static void as_pieces(const uint8_t *data, size_t len)
{
	const size_t size = sizeof(struct jit_reader_piece);
	struct jit_reader_head h = { .magic = JIT_READER_MAGIC, .n_pieces = *data++ };
	struct buf b = { 0 };

	len--;
	h.n_pieces = (uint32_t)MIN(h.n_pieces, len / size);
	h.strings_len = len - h.n_pieces * size + 1;
	buf_put(&b, &h, sizeof(h));
	buf_put(&b, data, len);
	buf_put(&b, "", 1);
	view(b.p, b.len);
	buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len >= 2 && data[0] & 1)
		as_pieces(data + 1, len - 1);
	else if (len)
		view(data + 1, len - 1);
	return 0;
}
