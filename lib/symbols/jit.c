/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/jit.h"
#include "base/fs.h"
#include "base/intern.h"
#include "base/search.h"
#include "symbols/jitdump.h"
#include "symbols/perfmap.h"
#include "system/worker.h"

#include <errno.h>
#include <string.h>

#define MEMORY_BYTES (UINT64_C(3) << 30)
#define ANSWER_BYTES_MAX (UINT64_C(256) << 20)
#define SECONDS 20
#define WHO "the process that reads it"
#define OUT_FD (SANDBOX_FD + 1)
#define MAP_FD (SANDBOX_FD + 2)

/* --- the child --- */

struct answer {
	struct jit_reader_head head;
	struct jit_reader_piece *pieces;
	size_t cap;
	char *strings;
	size_t max_strings;
	struct intern known; /* id -> at[] */
	uint32_t *at;
	size_t max_at;
};

/* The offset of TEXT in the strings; UINT32_MAX when out of memory or beyond ANSWER_BYTES_MAX. "" is at 0. */
static uint32_t put_string(struct answer *a, const char *text)
{
	size_t len = strlen(text) + 1;
	uint32_t id = intern_put(&a->known, text, len);

	if (id == INTERN_NONE || base_grow(&a->at, &a->max_at, (size_t)id + 1, sizeof(*a->at)) != 0)
		return UINT32_MAX;
	if (a->at[id])
		return a->at[id] - 1;
	if (a->head.strings_len + len > ANSWER_BYTES_MAX ||
		base_grow(&a->strings, &a->max_strings, a->head.strings_len + len, 1) != 0)
		return UINT32_MAX;
	memcpy(a->strings + a->head.strings_len, text, len);
	a->at[id] = (uint32_t)a->head.strings_len + 1;
	a->head.strings_len += len;
	return a->at[id] - 1;
}

static int put_piece(struct answer *a, const struct jit_reader_piece *p)
{
	if (p->name == UINT32_MAX || p->file == UINT32_MAX ||
		base_grow(&a->pieces, &a->cap, a->head.n_pieces + 1, sizeof(*a->pieces)) != 0)
		return -ENOMEM;
	a->pieces[a->head.n_pieces++] = *p;
	return 0;
}

static int from_map(const struct jit_reader_question *q, struct answer *a, struct err *e)
{
	struct perfmap *m;
	struct perfmap_hit hit = { 0 };
	uint64_t size;
	int rc = perfmap_load(MAP_FD, &m, &size, e);

	for (size_t i = 0; i < q->n && !rc; i++) {
		if (q->addrs[i] < hit.piece_end || !perfmap_find(m, q->addrs[i], &hit))
			continue;
		rc = put_piece(a, &(struct jit_reader_piece){ .start = hit.piece_start,
					  .end = hit.piece_end,
					  .offset = hit.piece_start - hit.start,
					  .to_ns = UINT64_MAX,
					  .name = put_string(a, hit.name),
					  .file = put_string(a, "") });
		if (rc)
			err_nomem(e, "the entries of a perf map");
	}
	if (!rc)
		a->head.bad = perfmap_bad(m);
	return rc;
}

/*
 * Put all versions of the code at ADDR, counting those beyond the limit. Another address may put
 * the same pieces.
 */
static int from_dump_at(const struct jitdump *j, uint64_t addr, struct answer *a)
{
	struct jitdump_hit hit;
	size_t kept = 0;
	int rc = 0;

	for (size_t i = 0; !rc && jitdump_each(j, addr, i, &hit); i++) {
		if (hit.from_ns >= hit.to_ns)
			continue;
		if (kept++ >= JIT_READER_VERSIONS_MAX) {
			a->head.cut++;
			continue;
		}
		rc = put_piece(a, &(struct jit_reader_piece){ .start = hit.piece_start,
					  .end = hit.piece_end,
					  .offset = hit.piece_start - hit.start,
					  .from_ns = hit.from_ns,
					  .to_ns = hit.to_ns,
					  .name = put_string(a, hit.name),
					  .file = put_string(a, hit.file ? hit.file : ""),
					  .line = hit.line });
	}
	return rc;
}

static int piece_cmp(const void *a, const void *b)
{
	const struct jit_reader_piece *x = a, *y = b;

	return x->start != y->start ? CMP(x->start, y->start) : CMP(x->from_ns, y->from_ns);
}

/* Drop duplicates: each address of a piece put that piece once. */
static void drop_twins(struct answer *a)
{
	uint32_t kept = 0;

	if (a->head.n_pieces)
		qsort(a->pieces, a->head.n_pieces, sizeof(*a->pieces), piece_cmp);
	for (uint32_t i = 0; i < a->head.n_pieces; i++)
		if (!kept || piece_cmp(&a->pieces[kept - 1], &a->pieces[i]) != 0)
			a->pieces[kept++] = a->pieces[i];
	a->head.n_pieces = kept;
}

static int from_dump(const struct jit_reader_question *q, struct answer *a, struct err *e)
{
	struct jitdump *j;
	int rc = jitdump_load(MAP_FD, &j, e);

	for (size_t i = 0; i < q->n && !rc; i++) {
		rc = from_dump_at(j, q->addrs[i], a);
		if (rc)
			err_nomem(e, "the code of a jitdump file");
	}
	if (rc)
		return rc;
	a->head.bad = jitdump_bad(j);
	drop_twins(a);
	return 0;
}

static int send_answer(const struct answer *a)
{
	const size_t pieces = a->head.n_pieces * sizeof(*a->pieces);
	int rc = writefd_at(OUT_FD, a->pieces, pieces, sizeof(a->head));

	rc = rc ? rc : writefd_at(OUT_FD, a->strings, a->head.strings_len, sizeof(a->head) + pieces);
	/* the head last: an answer with a head is complete */
	return rc ? rc : writefd_at(OUT_FD, &a->head, sizeof(a->head), 0);
}

/* Releases nothing: the process ends. */
static int work(void *arg, int sock)
{
	const struct jit_reader_question *q = arg;
	struct answer a = { .head.magic = JIT_READER_MAGIC };
	struct err e = { 0 };

	(void)sock;
	put_string(&a, "");
	a.head.error = q->kind == CAPTURE_JIT_PERFMAP ? from_map(q, &a, &e) : from_dump(q, &a, &e);
	if (a.head.error) {
		a.head.n_pieces = 0;
		a.head.strings_len = 0;
		a.at = NULL;
		a.max_at = 0;
		intern_reset(&a.known);
		put_string(&a, e.msg);
	}
	return send_answer(&a) != 0;
}

/* --- the parent --- */

/* Does P cover any of the addresses? */
static bool covers(const struct jit_reader_question *q, const struct jit_reader_piece *p)
{
	size_t low = PARTITION_POINT(0, q->n, mid, q->addrs[mid] < p->start);

	return low < q->n && q->addrs[low] < p->end;
}

static bool take_piece(const struct jit_reader_question *q, const struct jit_reader_head *h,
	const struct jit_reader_piece *p, struct jit_reader_answer *a)
{
	if (p->start >= p->end || p->from_ns >= p->to_ns || p->name >= h->strings_len ||
		p->file >= h->strings_len || !a->strings[p->name] || !covers(q, p))
		return false;
	a->jits[a->n++] = (struct cap_jit){ .kind = q->kind,
		.from_ns = p->from_ns,
		.to_ns = p->to_ns,
		.start = p->start,
		.end = p->end,
		.name = a->strings + p->name,
		.file = a->strings + p->file,
		.line = p->line,
		.offset = p->offset };
	return true;
}

int jit_reader_view(const struct jit_reader_question *q, const char *bytes, size_t len,
	struct jit_reader_answer *a, struct err *e)
{
	static const char malformed[] = WHO " sent a malformed reply";
	struct jit_reader_head h;
	struct jit_reader_piece p;

	if (len < sizeof(h))
		return err_set(e, -EPROTO, malformed);
	memcpy(&h, bytes, sizeof(h));
	len -= sizeof(h);
	if (h.magic != JIT_READER_MAGIC || h.n_pieces > len / sizeof(p) || h.error > 0 || h.error < -4095)
		return err_set(e, -EPROTO, malformed);
	len -= h.n_pieces * sizeof(p);
	if (!h.strings_len || h.strings_len != len || bytes[sizeof(h) + h.n_pieces * sizeof(p) + len - 1])
		return err_set(e, -EPROTO, malformed);
	if (h.error)
		return err_set(e, h.error, "%s", bytes + sizeof(h) + h.n_pieces * sizeof(p));
	a->jits = calloc((size_t)h.n_pieces + 1, sizeof(*a->jits));
	a->strings = malloc(len);
	if (!a->jits || !a->strings)
		return err_nomem(e, "the names of JIT code");
	memcpy(a->strings, bytes + sizeof(h) + h.n_pieces * sizeof(p), len);
	for (uint32_t i = 0; i < h.n_pieces; i++) {
		memcpy(&p, bytes + sizeof(h) + i * sizeof(p), sizeof(p));
		if (!take_piece(q, &h, &p, a))
			return err_set(e, -EPROTO, malformed);
	}
	a->bad = h.bad;
	a->cut = h.cut;
	return 0;
}

static int ask(const struct jit_reader_question *q, int out, struct jit_reader_answer *ret, struct err *e)
{
	const int files[] = { out, q->fd };
	const struct sandbox_opts box = { .more_fds = files,
		.n_more = ARRAY_LEN(files),
		.comm = "jit-names",
		.memory_bytes = MEMORY_BYTES,
		.file_bytes = 2 * ANSWER_BYTES_MAX };
	const struct worker_opts opts = {
		.who = WHO, .sandbox = &box, .run = work, .arg = (void *)(uintptr_t)q
	};
	_cleanup_free_ char *bytes = NULL;
	struct worker *w = NULL;
	size_t len;
	int rc = worker_start(&opts, &w, e);

	rc = rc ? rc : worker_wait(w, q->seconds ? q->seconds : SECONDS, e);
	worker_free(w);
	rc = rc ? rc : readfd_all(out, 2 * ANSWER_BYTES_MAX, &bytes, &len, e);
	return rc ? rc : jit_reader_view(q, bytes, len, ret, e);
}

int jit_reader_ask(const struct jit_reader_question *q, struct jit_reader_answer *ret, struct err *e)
{
	_cleanup_close_ int out = worker_memfd("jit-names");
	int rc;

	*ret = (struct jit_reader_answer){ 0 };
	if (out < 0)
		return err_sys(e, out, "cannot make room for an answer");
	rc = ask(q, out, ret, e);
	if (rc)
		jit_reader_free(ret);
	return rc;
}

void jit_reader_free(struct jit_reader_answer *a)
{
	free(a->jits);
	free(a->strings);
	*a = (struct jit_reader_answer){ 0 };
}
