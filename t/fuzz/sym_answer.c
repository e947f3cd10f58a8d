/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libFuzzer target (`make fuzz`): any bytes as an answer about symbols, as the
 * output of a process that reads symbols, and as a recipe for an answer. The
 * first byte chooses.
 */
#include "base/bytes.h"
#include "symbols/answer.h"
#include "symbols/pool.h"

#include <string.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static size_t length(const char *s)
{
	return s ? strlen(s) : 0;
}

/* Everything that a reader follows without a check of its own. */
static void use(const struct sym_answer *a)
{
	volatile size_t sum = length(sym_answer_text(a, a->head->message));

	for (uint32_t i = 0; i < a->head->n_frames; i++)
		sum += length(sym_answer_text(a, a->frames[i].name)) +
		       length(sym_answer_text(a, a->frames[i].linkage)) +
		       length(sym_answer_text(a, a->frames[i].file));
	for (uint32_t i = 0; i < a->head->n_addrs; i++) {
		const struct sym_answer_addr *x = &a->addrs[i];

		if (sym_answer_find(a, x->vaddr) != x)
			abort();
		for (uint32_t k = 0; k < x->n_frames; k++)
			sum += a->frames[x->first + k].line;
		if (sym_answer_names(x->source))
			sum += strlen(sym_answer_text(a, a->frames[x->first + x->n_frames - 1].name));
		sum += length(sym_answer_reason_text(x->reason));
	}
	for (uint32_t i = 0; i < MIN(a->head->n_wants, 100u); i++)
		sum += strlen(sym_answer_want_at(a, i));
}

/* Use a copy: it is aligned, and a read beyond its end is detected. */
static void view(const uint8_t *data, size_t len, bool is_answer)
{
	uint8_t *bytes = malloc(len ? len : 1);
	struct sym_answer a;
	struct err e = { 0 };
	int rc;

	if (!bytes)
		return;
	if (len)
		memcpy(bytes, data, len);
	rc = sym_answer_view(bytes, len, &a, &e);
	if (rc == 0)
		use(&a);
	else if (is_answer || !e.msg[0])
		abort();
	free(bytes);
}

static void as_left(const uint8_t *data, size_t len)
{
	int fd = memfd_create("left", MFD_CLOEXEC);
	struct sym_worker_record rec;
	uint64_t at = 0;
	uint8_t *bytes;

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	for (uint32_t i = 0; sym_worker_next(fd, len, i, &at, &rec, &bytes) == 0; i++) {
		struct sym_answer a;

		if (rec.error ? !!bytes || strlen(rec.why) >= sizeof(rec.why) : rec.len > len)
			abort();
		if (!rec.error && sym_answer_view(bytes, rec.len, &a, NULL) == 0)
			use(&a);
		free(bytes);
		bytes = NULL;
	}
	free(bytes);
	close(fd);
}

static uint32_t text(struct sym_answer_build *b, struct rd *r)
{
	char s[8] = { 0 };

	snprintf(s, sizeof(s), "%c%d", 'a' + rd_u8(r) % 26, rd_u8(r) % 32);
	return sym_answer_string(b, s[1] == '0' ? "" : s);
}

static void put_addr(struct sym_answer_build *b, struct rd *r, struct sym_answer_addr *x)
{
	struct sym_answer_frame frames[4];
	size_t n = rd_u8(r) % 5;

	x->vaddr += 1 + rd_u8(r);
	x->start = x->vaddr - rd_u8(r) % x->vaddr;
	x->reason = rd_u8(r) % SYM_R_COUNT;
	x->debug = rd_u8(r) % 2;
	for (size_t i = 0; i < n; i++)
		frames[i] = (struct sym_answer_frame){
			.name = text(b, r), .linkage = text(b, r), .file = text(b, r), .line = rd_u8(r)
		};
	x->source = rd_u8(r) % SYM_SOURCES;
	if (sym_answer_names(x->source) != (n && frames[n - 1].name))
		x->source = n && frames[n - 1].name ? SYM_GOPCLNTAB : rd_u8(r) % 2 ? SYM_FDE : SYM_NONE;
	sym_answer_put(b, x, frames, n);
}

/* An answer that the builder makes must be valid. */
static void as_recipe(const uint8_t *data, size_t len)
{
	struct rd r = rd_init(data, len);
	struct sym_answer_addr x = { 0 };
	struct sym_answer_build b;
	uint8_t *bytes = NULL;
	size_t n = 0;

	sym_answer_begin(&b);
	b.head.message = text(&b, &r);
	while (rd_left(&r) && !r.bad) {
		uint8_t what = rd_u8(&r);

		if (what < 240)
			put_addr(&b, &r, &x);
		else
			sym_answer_want(&b, what & 1 ? "" : "12ab a.dwo");
	}
	if (sym_answer_finish(&b, &bytes, &n) == 0)
		view(bytes, n, true);
	sym_answer_end(&b);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	switch (data[0] % 3) {
	case 0:
		view(data + 1, len - 1, false);
		break;
	case 1:
		as_left(data + 1, len - 1);
		break;
	default:
		as_recipe(data + 1, len - 1);
	}
	return 0;
}
