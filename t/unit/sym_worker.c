/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of sym_worker_next() on the records that a compromised process may leave.
 * unit/sym_reader.c tests what the process does.
 */
#include "base/tap.h"
#include "symbols/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* An answer of 13 bytes, an error, an answer of no bytes. */
struct left {
	struct sym_worker_record first;
	char answer[16];
	struct sym_worker_record second, third;
};

static struct left good_left(void)
{
	struct left l = { .first = { .magic = SYM_WORKER_MAGIC, .len = 13, .ns = 7 },
		.answer = "thirteen byte",
		.second = { .magic = SYM_WORKER_MAGIC, .number = 1, .error = -EIO },
		.third = { .magic = SYM_WORKER_MAGIC, .number = 2 } };

	strcpy(l.second.why, "a message");
	return l;
}

/* The number of consecutive records. *RC: the result that ended them. *WRONG counts values out of bounds. */
static uint32_t count(const void *bytes, size_t len, int *rc, size_t *wrong)
{
	int fd = memfd_create("left", MFD_CLOEXEC);
	uint64_t at = 0;
	uint32_t n = 0;

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		exit(1);
	for (;; n++) {
		struct sym_worker_record r;
		uint8_t *p = NULL;

		*rc = sym_worker_next(fd, len, n, &at, &r, &p);
		if (*rc == 0)
			*wrong += r.error ? p || r.len || strlen(r.why) >= sizeof(r.why) : !p || r.len > len;
		free(p);
		if (*rc)
			break;
	}
	close(fd);
	return n;
}

static void test_good(struct tap *t)
{
	struct left l = good_left();
	size_t wrong = 0;
	int rc;

	tap_ok(t, count(&l, sizeof(l), &rc, &wrong) == 3 && rc == -ENOENT && !wrong,
		"answers, errors and empty answers are read in sequence");
}

static void test_cuts(struct tap *t)
{
	const size_t ends[] = { offsetof(struct left, second) - 3, offsetof(struct left, third),
		sizeof(struct left) };
	const struct left l = good_left();
	size_t wrong = 0;

	for (size_t len = 0; len < sizeof(l); len++) {
		uint32_t want = len < ends[0] ? 0 : len < ends[1] ? 1 : 2;
		int rc;

		wrong += count(&l, len, &rc, &wrong) != want || (rc != -ENOENT && rc != -EPROTO);
	}
	tap_eq_u64(t, wrong, 0, "records cut at any place give the whole ones and nothing else");
}

static void test_flips(struct tap *t)
{
	struct left l = good_left();
	uint8_t *bytes = (uint8_t *)&l;
	size_t wrong = 0, refused = 0;

	for (size_t bit = 0; bit < 8 * sizeof(l); bit++) {
		int rc;

		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		count(&l, sizeof(l), &rc, &wrong);
		wrong += rc != -ENOENT && rc != -EPROTO && rc != -ENOMEM;
		refused += rc == -EPROTO;
		l = good_left();
	}
	tap_ok(t, !wrong && refused > 3 * 64, "records with any bit changed are refused or within bounds");
	memset(l.second.why, 'x', sizeof(l.second.why));
	tap_ok(t, count(&l, sizeof(l), &(int){ 0 }, &wrong) == 1, "an unterminated message is refused");
}

int main(void)
{
	struct tap t = { 0 };

	test_good(&t);
	test_cuts(&t);
	test_flips(&t);
	return tap_done(&t);
}
