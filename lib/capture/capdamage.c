/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capdamage.h"
#include "capture/capcodec.h"

#include <inttypes.h>
#include <stdarg.h>

/* How many times the bytes behind the damage are worth a checksum. */
#define CHECKSUMS 8

/* What can still be made out behind the damage. */
struct rest {
	uint64_t blocks;
	uint64_t flush_ns; /* of the last flush; 0 = none */
	bool trailer;
};

static void look_at(struct rest *rest, const struct capblock *b, const uint8_t *payload)
{
	struct rd r = rd_init(payload, b->len), record;
	struct cap_flush f;

	rest->blocks++;
	if (b->type == CAPCODEC_TRAILER)
		rest->trailer = true;
	if (b->type == CAPCODEC_FLUSH && capcodec_next(&r, &record) && capcodec_get_flush(&record, &f))
		rest->flush_ns = f.time_ns;
}

/* Is an intact block at P? Bytes that only look like one cost a checksum each, of *BUDGET bytes. */
static bool is_block(const uint8_t *p, size_t len, uint64_t *budget, struct capblock *b)
{
	if (!capblock_get(p, b) || b->len > len - CAPBLOCK_HEAD_LEN || b->len > *budget)
		return false;
	*budget -= b->len;
	return capblock_intact(p, b);
}

static struct rest survey(const uint8_t *p, size_t len)
{
	const uint8_t sync[] = { CAPBLOCK_SYNC & 255, CAPBLOCK_SYNC >> 8 & 255, CAPBLOCK_SYNC >> 16 & 255,
		CAPBLOCK_SYNC >> 24 };
	const uint8_t *end = p + len;
	uint64_t budget = (uint64_t)len * CHECKSUMS;
	struct capblock b;
	struct rest rest = { 0 };

	while ((p = memmem(p, (size_t)(end - p), sync, sizeof(sync)))) {
		if (end - p < CAPBLOCK_HEAD_LEN)
			break;
		if (is_block(p, (size_t)(end - p), &budget, &b)) {
			look_at(&rest, &b, p + CAPBLOCK_HEAD_LEN);
			p += CAPBLOCK_HEAD_LEN + b.len;
		} else {
			p++;
		}
	}
	return rest;
}

struct text {
	char *buf;
	size_t len, cap;
};

static void say(struct text *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void say(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len = MIN(t->len + (size_t)n, t->cap - 1);
}

static void say_where(struct text *t, const struct capdamage *d)
{
	const char *type = capcodec_type_name(d->block.type);

	switch (d->kind) {
	case CAPDAMAGE_END:
		say(t, "ends at byte %" PRIu64 " without a trailer: the recorder was stopped, or still runs",
			d->total);
		return;
	case CAPDAMAGE_CUT:
		say(t, "cut at byte %" PRIu64 ": the block at byte %" PRIu64 " (%s) is incomplete", d->total,
			d->at, type);
		return;
	case CAPDAMAGE_NO_BLOCK:
		say(t, "no block where one is due");
		break;
	case CAPDAMAGE_CHECKSUM:
		say(t, "wrong checksum of a block (%s)", type);
		break;
	case CAPDAMAGE_SEQUENCE:
		say(t, "block %" PRIu32 " (%s) where block %" PRIu64 " is due", d->block.seq, type,
			d->blocks);
		break;
	case CAPDAMAGE_RECORD:
		say(t, "%s in a block (%s)", d->wrong, type);
		break;
	case CAPDAMAGE_REST:
		say(t, "something follows the trailer");
		break;
	}
	say(t, ", at byte %" PRIu64 " of %" PRIu64, d->at, d->total);
}

static double since_start(const struct capdamage *d, uint64_t time_ns)
{
	return time_ns > d->start_ns ? (double)(time_ns - d->start_ns) / 1e9 : 0;
}

static void say_missing(struct text *t, const struct capdamage *d, const struct rest *rest)
{
	if (d->last_flush_ns)
		say(t, "; waits after %.3f s of recording are missing", since_start(d, d->last_flush_ns));
	else
		say(t, "; waits are missing from the start of recording on");
	if (rest->flush_ns && d->start_ns)
		say(t, ", %s %.3f s", rest->trailer ? "up to its end at" : "at least up to",
			since_start(d, rest->flush_ns));
	if (rest->blocks)
		say(t, " (%" PRIu64 " later blocks are intact, but what they refer to may not be there)",
			rest->blocks);
}

void capdamage_describe(const struct capdamage *d, const uint8_t *rest, size_t len, char *buf, size_t cap)
{
	struct text t = { .buf = buf, .cap = cap };
	struct rest found = { 0 };

	say_where(&t, d);
	if (d->kind == CAPDAMAGE_REST) {
		say(&t, "; no waits are missing");
		return;
	}
	/* one byte on: what begins at `at` is the block that is damaged */
	if (len > 1)
		found = survey(rest + 1, len - 1);
	say_missing(&t, d, &found);
}
