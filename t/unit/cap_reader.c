/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cap_reader - tests that a reader returns what was written, keeps what is
 * intact before damage, and never returns anything wrong.
 *
 * cap_reader --write FILE writes the sample capture, for the shell tests;
 * cap_reader --write FILE SAMPLES writes a large one, for scripts/bench.
 */
#include "base/hash.h"
#include "base/tap.h"
#include "capture/format.h"
#include "capture/reader.h"
#include "../data/capture/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

static bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool same_id(const struct cap_build_id *a, const struct cap_build_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static bool same_host(const struct cap_host *a, const struct cap_host *b)
{
	return same(a->sysname, b->sysname) && same(a->release, b->release) && same(a->version, b->version) &&
	       same(a->machine, b->machine) && same(a->hostname, b->hostname) &&
	       same(a->boot_id, b->boot_id) && same(a->recorder, b->recorder) &&
	       same_id(&a->kernel_build_id, &b->kernel_build_id) && a->stext == b->stext &&
	       a->start_mono_ns == b->start_mono_ns && a->start_boot_ns == b->start_boot_ns &&
	       a->start_real_ns == b->start_real_ns && a->max_stack == b->max_stack && a->cpus == b->cpus &&
	       a->page_size == b->page_size;
}

static bool same_file(const struct cap_file *a, const struct cap_file *b)
{
	return a->id == b->id && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor &&
	       a->flags == b->flags && a->error == b->error && a->inode == b->inode && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && same_id(&a->build_id, &b->build_id) && same(a->path, b->path);
}

static bool same_proc(const struct cap_proc *a, const struct cap_proc *b)
{
	return a->id == b->id && a->tgid == b->tgid && a->ns_tgid == b->ns_tgid && a->flags == b->flags &&
	       a->maps_error == b->maps_error && a->start_boot_ns == b->start_boot_ns &&
	       a->image_ns == b->image_ns && same(a->comm, b->comm) && same(a->exe, b->exe);
}

static bool same_map(const struct cap_map *a, const struct cap_map *b)
{
	return a->proc == b->proc && a->file == b->file && a->prot == b->prot && a->flags == b->flags &&
	       a->from_ns == b->from_ns && a->start == b->start && a->end == b->end && a->offset == b->offset;
}

static bool same_stack(const struct cap_stack *a, const struct cap_stack *b)
{
	return a->id == b->id && a->kind == b->kind && a->verdict == b->verdict && a->reason == b->reason &&
	       a->error == b->error && a->stop_pc == b->stop_pc && a->len == b->len &&
	       a->n_exact == b->n_exact &&
	       (!a->len || memcmp(a->frames, b->frames, a->len * sizeof(*a->frames)) == 0) &&
	       (!a->n_exact || memcmp(a->exact, b->exact, a->n_exact * sizeof(*a->exact)) == 0);
}

static bool same_waker(const struct cap_waker *a, const struct cap_waker *b)
{
	return a->id == b->id && a->flags == b->flags && a->proc == b->proc && a->tid == b->tid &&
	       a->kstack == b->kstack && a->ustack == b->ustack && a->next == b->next &&
	       a->first_ns == b->first_ns;
}

static bool same_life(const struct cap_life *a, const struct cap_life *b)
{
	return a->proc == b->proc && a->tid == b->tid && a->from_ns == b->from_ns && a->to_ns == b->to_ns &&
	       a->on_cpu_ns == b->on_cpu_ns && a->is_split == b->is_split && a->runnable_ns == b->runnable_ns;
}

static bool same_frames(const struct cap_name *a, const struct cap_name *b)
{
	for (uint32_t i = 0; i < a->n; i++) {
		const struct cap_name_frame *x = &a->frames[i], *y = &b->frames[i];

		if (!same(x->name, y->name) || !same(x->linkage, y->linkage) || !same(x->file, y->file) ||
			x->line != y->line || x->column != y->column)
			return false;
	}
	return true;
}

static bool is_name(const struct cap_name *a, const struct cap_name *b)
{
	return a->file == b->file && a->offset == b->offset && a->symbol_offset == b->symbol_offset &&
	       a->source == b->source && a->reason == b->reason && a->n == b->n && a->vaddr == b->vaddr &&
	       same_frames(a, b);
}

static bool is_jit(const struct cap_jit *a, const struct cap_jit *b)
{
	return a->proc == b->proc && a->kind == b->kind && a->from_ns == b->from_ns && a->to_ns == b->to_ns &&
	       a->start == b->start && a->end == b->end && same(a->name, b->name) && same(a->file, b->file) &&
	       a->line == b->line && a->offset == b->offset;
}

static bool known_name(const struct cap_name *n)
{
	for (size_t i = 0; i < ARRAY_LEN(sample_names); i++)
		if (is_name(n, &sample_names[i]))
			return true;
	return false;
}

static bool known_jit(const struct cap_jit *j)
{
	for (size_t i = 0; i < ARRAY_LEN(sample_jits); i++)
		if (is_jit(j, &sample_jits[i]))
			return true;
	return false;
}

/*
 * Returns the kind of the first record in C that differs from what was written;
 * NULL = none. C may lack records, and a sample may lack some of its waits.
 */
static const char *find_lie(const struct cap_reader *c, const struct cap_reader *truth)
{
	if (c->last_flush_ns && !same_host(&c->host, &sample_host))
		return "host";
	for (size_t i = 0; i < c->n_files; i++)
		if (i >= ARRAY_LEN(sample_files) || !same_file(&c->files[i], &sample_files[i]))
			return "file";
	for (size_t i = 0; i < c->n_procs; i++)
		if (i >= ARRAY_LEN(sample_procs) || !same_proc(&c->procs[i], &sample_procs[i]))
			return "process";
	for (size_t i = 0; i < c->n_maps; i++)
		if (i >= ARRAY_LEN(sample_maps) || !same_map(&c->maps[i], &sample_maps[i]))
			return "mapping";
	for (size_t i = 0; i < c->n_stacks; i++)
		if (i >= ARRAY_LEN(sample_stacks) || !same_stack(&c->stacks[i], &sample_stacks[i]))
			return "stack";
	for (size_t i = 0; i < c->n_wakers; i++)
		if (i >= ARRAY_LEN(sample_wakers) || !same_waker(&c->wakers[i], &sample_wakers[i]))
			return "waker";
	for (size_t i = 0; i < c->n_lives; i++)
		if (i >= ARRAY_LEN(sample_lives) || !same_life(&c->lives[i], &sample_lives[i]))
			return "life";
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *s = &c->samples[i], *w = &truth->samples[i];

		if (i >= truth->n_samples || s->proc != w->proc || s->tid != w->tid ||
			s->kstack != w->kstack || s->ustack != w->ustack || s->state != w->state ||
			s->flags != w->flags || s->total_ns > w->total_ns || s->count > w->count ||
			s->max_ns > w->max_ns || s->first_ns < w->first_ns || s->last_ns > w->last_ns ||
			s->runnable_ns > s->total_ns || s->waker != w->waker)
			return "sample";
	}
	for (size_t i = 0; i < c->n_names; i++)
		if (!known_name(&c->names[i]))
			return "name";
	for (size_t i = 0; i < c->n_jits; i++)
		if (!known_jit(&c->jits[i]))
			return "JIT code";
	return NULL;
}

/* --- bytes that end at an inaccessible page --- */

struct edge {
	uint8_t *page_end;
	size_t room;
};

static struct edge edge_new(size_t room)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (room + page - 1) / page * page;
	uint8_t *p = mmap(NULL, len + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + len, page, PROT_NONE) != 0)
		abort();
	return (struct edge){ p + len, len };
}

static uint8_t *edge_put(const struct edge *e, const void *bytes, size_t len)
{
	return memcpy(e->page_end - len, bytes, len);
}

struct whole {
	uint8_t *bytes;
	size_t len;
	struct edge edge;
	struct cap_reader *truth;
};

/* --- tests --- */

static void test_round_trip(struct tap *t, const struct cap_reader *c)
{
	bool fine = true;

	tap_ok(t, c->complete && !*c->damage, "a whole capture is complete");
	tap_ok(t, same_host(&c->host, &sample_host), "every field of the host is read back");
	for (size_t i = 0; i < ARRAY_LEN(sample_options); i++)
		fine &= same(c->options[i].name, sample_options[i].name) &&
			same(c->options[i].value, sample_options[i].value);
	tap_ok(t, fine && c->n_options == ARRAY_LEN(sample_options), "options are read back in order");
	tap_ok(t, !find_lie(c, c),
		"every field of files, processes, mappings, stacks and wakers is read back");
	tap_ok(t,
		c->n_files == ARRAY_LEN(sample_files) && c->n_procs == ARRAY_LEN(sample_procs) &&
			c->n_maps == ARRAY_LEN(sample_maps) && c->n_stacks == ARRAY_LEN(sample_stacks) &&
			c->n_wakers == ARRAY_LEN(sample_wakers) && c->n_lives == ARRAY_LEN(sample_lives),
		"no file, process, mapping, stack or waker is missing");
	tap_ok(t,
		c->n_images == 2 && c->images[0].file == 2 && c->images[0].len == sizeof(sample_vdso) &&
			memcmp(c->images[0].bytes, sample_vdso, sizeof(sample_vdso)) == 0 &&
			c->images[1].len == 0,
		"images are read back byte for byte, including an empty one");
	tap_eq_u64(t, c->trailer.stop_ns, sample_trailer.stop_ns, "the time of the trailer is read back");
	tap_eq_str(t, c->trailer.why, "duration", "the reason why the recording stopped is read back");
	tap_eq_u64(t, c->last_flush_ns, sample_trailer.stop_ns, "the time of the last flush is read back");
}

static void test_merging(struct tap *t, const struct cap_reader *c)
{
	const struct cap_sample *s = c->samples;

	tap_eq_u64(t, c->n_samples, 5, "samples with the same key are merged");
	tap_ok(t, s[0].total_ns == 1500 && s[0].count == 3 && s[0].max_ns == 700,
		"merged samples: times and counts are summed, the maximum is kept");
	tap_ok(t, s[0].first_ns == MONO + 5 && s[0].last_ns == MONO + 20,
		"merged samples: the first and the last time cover all of them");
	tap_ok(t, s[0].is_split && s[0].runnable_ns == 800, "merged samples: runnable time is summed");
	tap_ok(t, !s[1].is_split, "merged samples: if it is not known of one, it is not known of the sum");
	tap_ok(t, s[2].is_split && !s[2].runnable_ns && !s[3].is_split,
		"no runnable time is not the same as one that is not known");
	tap_ok(t, s[1].total_ns == UINT64_MAX && s[1].count == UINT64_MAX, "sums of merged samples saturate");
	tap_ok(t, s[3].flags == CAPTURE_SAMPLE_INITIAL && s[3].count == 1,
		"samples with different flags are not merged");
	tap_eq_u64(t, c->n_threads, 3, "a thread that was renamed is listed once");
	tap_eq_str(t, cap_reader_thread(c, 0, 4243, UINT64_MAX)->comm, "new name",
		"a renamed thread has its last name");
	tap_ok(t,
		cap_reader_thread(c, 0, 4242, UINT64_MAX) && cap_reader_thread(c, 2, UINT32_MAX, UINT64_MAX),
		"threads are found");
	tap_ok(t,
		!cap_reader_thread(c, 1, 4242, UINT64_MAX) && !cap_reader_thread(c, 0, 0, UINT64_MAX) &&
			!cap_reader_thread(c, 9, 9, UINT64_MAX),
		"absent threads are not found");
	tap_eq_u64(t, c->n_counters, 3, "a counter that was written again is listed once");
	tap_eq_u64(t, cap_reader_counter(c, "waits.recorded"), 8,
		"a counter that was written again has its last value");
	tap_eq_u64(t, cap_reader_counter(c, "lost.ring_full"), UINT64_MAX, "a counter can be UINT64_MAX");
	tap_eq_u64(t, cap_reader_counter(c, "lost"), 0, "an absent counter is 0");
}

static void test_names(struct tap *t, const struct cap_reader *c)
{
	static const size_t order[] = { 4, 3, 2, 0 };
	bool fine = c->n_jits == ARRAY_LEN(order);

	for (size_t i = 0; i < ARRAY_LEN(order) && fine; i++)
		fine = is_jit(&c->jits[i], &sample_jits[order[i]]);
	tap_ok(t, fine, "JIT code is sorted by process, address, time and kind, with the last of a key");
	tap_ok(t,
		c->n_names == 3 && is_name(&c->names[0], &sample_names[3]) &&
			is_name(&c->names[1], &sample_names[2]) && is_name(&c->names[2], &sample_names[0]),
		"names are sorted by file and offset, with every field of the last of a key");
	tap_ok(t,
		cap_reader_name(c, 0, 0x1233) == &c->names[0] &&
			cap_reader_name(c, 0, 0x1234) == &c->names[1] &&
			cap_reader_name(c, 1, UINT64_MAX) == &c->names[2],
		"names are found by file and offset");
	tap_ok(t,
		!cap_reader_name(c, 0, 0x1232) && !cap_reader_name(c, 0, 0x1235) &&
			!cap_reader_name(c, 1, 0x1234) && !cap_reader_name(c, 2, 0) &&
			!cap_reader_name(c, UINT32_MAX, UINT64_MAX),
		"absent names are not found");
	tap_ok(t,
		c->names[1].frames[1].file == c->names[1].frames[2].file &&
			c->names[0].frames[0].name == c->names[0].frames[0].linkage,
		"a repeated string is stored once");
}

static const char *ksym(const struct cap_reader *c, uint64_t addr)
{
	const struct cap_ksym *s = cap_reader_ksym(c, addr);

	return s ? s->name : "none";
}

static void test_ksyms(struct tap *t, const struct cap_reader *c)
{
	tap_eq_str(t, ksym(c, UINT64_C(0xffffffff81100000)), "schedule",
		"the first byte of a symbol belongs to it");
	tap_eq_str(t, ksym(c, UINT64_C(0xffffffff8110003f)), "schedule",
		"the last byte of a symbol belongs to it");
	tap_eq_str(t, ksym(c, UINT64_C(0xffffffff81100040)), "none", "the byte after a symbol has no symbol");
	tap_eq_str(t, ksym(c, UINT64_C(0xffffffff810fffff)), "none",
		"the byte before all symbols has no symbol");
	tap_eq_str(t, ksym(c, UINT64_C(0xffffffffdeadbeef)), "prog_1",
		"an address inside the last symbol finds it");
	tap_eq_str(t, ksym(c, UINT64_MAX), "none", "the last address has no symbol");
}

static void test_cuts(struct tap *t, const struct whole *w)
{
	size_t bad = 0;
	const char *lie = NULL;

	for (size_t n = 0; n < w->len && !bad; n++) {
		struct cap_reader *c;
		int code = cap_reader_parse(edge_put(&w->edge, w->bytes, n), n, &c, NULL);

		if (n < CAPTURE_BLOCK_HEADER_LEN) {
			bad += code != -EINVAL;
			continue;
		}
		if (code || c->complete || !*c->damage || c->good_bytes > n || (lie = find_lie(c, w->truth)))
			bad = n;
		if (!code)
			cap_reader_free(c);
	}
	if (!tap_ok(t, !bad,
		    "cut at any byte: a capture is reported as incomplete and nothing in it is wrong"))
		tap_diag("cut at %zu: %s", bad, lie ? lie : "not reported");
}

#ifdef __SANITIZE_ADDRESS__
#define CHANGES 3
#else
#define CHANGES 255
#endif

/* Read the first N bytes of W as a capture that grows. False if it differs from what a whole reading has. */
static bool follows(const struct whole *w, size_t n, const char *path, const char **why)
{
	uint64_t total[8] = { 0 }, count[8] = { 0 };
	struct cap_reader *c = NULL, *truth = NULL;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), more = 1, code;
	bool fine;

	if (fd < 0 || write(fd, w->bytes, n) != (ssize_t)n)
		abort();
	close(fd);
	code = cap_reader_parse(w->bytes, n, &truth, NULL);
	if (cap_reader_follow(path, false, &c, NULL) != code) {
		*why = "another status";
		return false;
	}
	if (code)
		return true;
	while (more > 0) {
		more = cap_reader_next(c, NULL);
		for (size_t i = 0; i < c->n_samples && i < ARRAY_LEN(total); i++) {
			total[i] = add_saturating(total[i], c->samples[i].total_ns);
			count[i] = add_saturating(count[i], c->samples[i].count);
		}
	}
	fine = more == 0 && c->n_samples == truth->n_samples && c->complete == truth->complete &&
	       !*c->damage == !*truth->damage;
	for (size_t i = 0; i < truth->n_samples && fine; i++)
		fine = total[i] == truth->samples[i].total_ns && count[i] == truth->samples[i].count &&
		       c->samples[i].first_ns == truth->samples[i].first_ns &&
		       c->samples[i].last_ns == truth->samples[i].last_ns;
	fine = fine && c->n_threads == truth->n_threads && c->n_ksyms == truth->n_ksyms &&
	       c->n_names == truth->n_names && c->n_jits == truth->n_jits && c->n_maps == truth->n_maps &&
	       c->n_stacks == truth->n_stacks && c->n_counters == truth->n_counters &&
	       c->last_flush_ns == truth->last_flush_ns;
	*why = find_lie(c, truth);
	if (!*why && !fine)
		*why = "other numbers";
	cap_reader_free(c);
	cap_reader_free(truth);
	return !*why;
}

static void test_following(struct tap *t, const struct whole *w)
{
	char path[] = "/tmp/unit-cap_reader.XXXXXX";
	const char *why = NULL;
	size_t bad = 0;
	int fd = mkstemp(path);

	if (fd < 0)
		abort();
	close(fd);
	for (size_t n = 0; n <= w->len && !bad; n += n > 200 && n + 7 < w->len ? 7 : 1)
		if (!follows(w, n, path, &why))
			bad = n;
	if (!tap_ok(t, !bad, "a capture that is read flush by flush has the same in it, wherever it is cut"))
		tap_diag("cut at %zu: %s", bad, why);
	unlink(path);
}

static void test_changes(struct tap *t, const struct whole *w)
{
	uint8_t *at = edge_put(&w->edge, w->bytes, w->len);
	size_t bad = 0;
	const char *lie = NULL;

	for (size_t i = 0; i < w->len && !bad; i++) {
		for (unsigned int k = 1; k <= CHANGES && !bad; k++) {
			struct cap_reader *c;
			int code;

			at[i] = (uint8_t)(w->bytes[i] ^ (CHANGES == 3 ? (k == 3          ? 0xff
										: k == 2 ? 0x80
											 : 1)
								      : k));
			code = cap_reader_parse(at, w->len, &c, NULL);
			if (code ? code != -EINVAL || i >= CAPTURE_BLOCK_HEADER_LEN
				 : c->complete || !*c->damage || (lie = find_lie(c, w->truth)))
				bad = i + 1;
			if (!code)
				cap_reader_free(c);
		}
		at[i] = w->bytes[i];
	}
	if (!tap_ok(t, !bad, "any byte changed to %d others: damage is reported and nothing read is wrong",
		    CHANGES))
		tap_diag("byte %zu: %s", bad - 1, lie ? lie : "not reported");
}

/* Set AT to the offsets of the blocks in BYTES, and of their end. Returns the number of blocks. */
static size_t find_blocks(const uint8_t *bytes, size_t len, size_t at[64])
{
	size_t n = 0;

	for (size_t pos = CAPTURE_BLOCK_HEADER_LEN; pos < len && n < 63; n++) {
		struct cap_block b;

		at[n] = pos;
		if (!cap_block_get(bytes + pos, &b))
			abort();
		pos += CAPTURE_BLOCK_HEAD_LEN + b.len;
	}
	at[n] = len;
	return n;
}

/* Read a copy of W without block GONE, or with block TWICE repeated. NULL = it is refused. */
static struct cap_reader *without(const struct whole *w, size_t gone, size_t twice)
{
	uint8_t *bytes = malloc(w->len * 2);
	size_t at[64], n = find_blocks(w->bytes, w->len, at), len = CAPTURE_BLOCK_HEADER_LEN;
	struct cap_reader *c = NULL;

	memcpy(bytes, w->bytes, len);
	for (size_t i = 0; i < n; i++) {
		for (int times = i == gone ? 0 : i == twice ? 2 : 1; times; times--) {
			memcpy(bytes + len, w->bytes + at[i], at[i + 1] - at[i]);
			len += at[i + 1] - at[i];
		}
	}
	if (cap_reader_parse(edge_put(&w->edge, bytes, len), len, &c, NULL) != 0)
		c = NULL;
	free(bytes);
	return c;
}

/* Free C. Its strings are in the edge, so check it before the next edge_put(). */
static bool noticed(struct cap_reader *c, const struct cap_reader *truth)
{
	bool yes = c && !c->complete && *c->damage && !find_lie(c, truth);

	cap_reader_free(c);
	return yes;
}

static void test_blocks(struct tap *t, const struct whole *w)
{
	size_t at[64], n = find_blocks(w->bytes, w->len, at), missed = 0;

	for (size_t i = 0; i < n; i++) {
		missed += !noticed(without(w, i, n), w->truth);
		missed += !noticed(without(w, n, i), w->truth);
	}
	tap_eq_u64(t, missed, 0, "a missing or repeated block is reported");
}

/* A capture that is built block by block. */
struct made {
	struct buf b;
	uint32_t seq;
};

static void add(struct made *m, unsigned int type, const struct buf *payload)
{
	uint8_t header[CAPTURE_BLOCK_HEAD_LEN];

	if (!m->b.len)
		cap_block_put_header(&m->b);
	cap_block_put(header, type, m->seq++, payload->p, payload->len);
	buf_put(&m->b, header, sizeof(header));
	buf_put(&m->b, payload->p, payload->len);
}

static void record(struct buf *payload, struct buf *fields)
{
	buf_uleb(payload, fields->len);
	buf_put(payload, fields->p, fields->len);
	buf_reset(fields);
}

static struct cap_reader *read_made(const struct made *m, const struct edge *edge)
{
	struct cap_reader *c = NULL;

	return cap_reader_parse(edge_put(edge, m->b.p, m->b.len), m->b.len, &c, NULL) == 0 ? c : NULL;
}

static void add_trailer(struct made *m)
{
	struct buf p = { 0 }, f = { 0 };

	cap_record_put_trailer(&f, &sample_trailer);
	record(&p, &f);
	add(m, CAPTURE_RECORD_TRAILER, &p);
	buf_free(&p);
	buf_free(&f);
}

/*
 * Write a file, a process, kernel stack 0, user stack 1, and then BAD as a block of
 * TYPE. Does the reader keep what is before BAD, and report MESSAGE?
 */
static bool refused(const struct edge *edge, unsigned int type, const struct buf *bad, const char *message)
{
	struct cap_stack user = { .id = 1, .kind = CAPTURE_STACK_USER, .verdict = VERDICT_FAILED };
	struct made m = { { 0 }, 0 };
	struct buf p = { 0 }, f = { 0 };
	struct cap_reader *c;
	bool yes;

	cap_record_put_file(&f, &sample_files[0]);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_FILE, &p);
	buf_reset(&p);
	cap_record_put_proc(&f, &sample_procs[0]);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_PROC, &p);
	buf_reset(&p);
	cap_record_put_stack(&f, &sample_stacks[0]);
	record(&p, &f);
	cap_record_put_stack(&f, &user);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_STACK, &p);
	add(&m, type, bad);
	add_trailer(&m);
	c = read_made(&m, edge);
	yes = c && !c->complete && strstr(c->damage, message) && c->blocks == 3 && c->n_procs == 1 &&
	      c->n_files == 1 && c->n_stacks == 2 && !c->n_samples && !c->n_maps && !c->n_threads;
	if (c && !yes)
		tap_diag("damage: %s", c->damage);
	cap_reader_free(c);
	buf_free(&m.b);
	buf_free(&p);
	buf_free(&f);
	return yes;
}

#define REFUSED(what, TYPE, message, ...)                                                                    \
	do {                                                                                                 \
		struct buf p_ = { 0 }, f_ = { 0 };                                                           \
		__VA_ARGS__;                                                                                 \
		record(&p_, &f_);                                                                            \
		tap_ok(t, refused(edge, TYPE, &p_, message), "refused: %s", what);                           \
		buf_free(&p_);                                                                               \
		buf_free(&f_);                                                                               \
	} while (0)

static void test_references(struct tap *t, const struct edge *edge)
{
	struct cap_record_state state = { 0 };
	struct cap_sample s = { .proc = 0, .kstack = 0, .ustack = 1 };
	struct cap_map m = { .start = 1, .end = 2, .file = CAPTURE_NONE };
	struct cap_waker w = { .id = 1, .proc = CAPTURE_NONE, .kstack = 0, .ustack = 1 };

	s.proc = 1;
	REFUSED("a sample of an unknown process", CAPTURE_RECORD_SAMPLE, "process that is not there",
		cap_record_put_sample(&f_, &s, &state));
	s.proc = 0, s.kstack = 2;
	REFUSED("a sample with an unknown kernel stack", CAPTURE_RECORD_SAMPLE, "stack that is not there",
		cap_record_put_sample(&f_, &s, &state));
	s.kstack = 0, s.ustack = CAPTURE_NONE;
	REFUSED("a sample without a user stack", CAPTURE_RECORD_SAMPLE, "stack that is not there",
		cap_record_put_sample(&f_, &s, &state));
	s.ustack = 1, s.total_ns = 5, s.is_split = true, s.runnable_ns = 7;
	REFUSED("a sample that was runnable for longer than it took", CAPTURE_RECORD_SAMPLE,
		"runnable for longer", cap_record_put_sample(&f_, &s, &state));
	s.is_split = false, s.waker = 1;
	REFUSED("a sample with an unknown waker", CAPTURE_RECORD_SAMPLE, "waker that is not there",
		cap_record_put_sample(&f_, &s, &state));
	REFUSED("a key with an unknown waker", CAPTURE_RECORD_KEY, "waker that is not there",
		cap_record_put_key(&f_, 0, &s));
	s.waker = 0;
	REFUSED("a key id out of order", CAPTURE_RECORD_KEY, "id out of order",
		cap_record_put_key(&f_, 1, &s));
	s.proc = 1;
	REFUSED("a key of an unknown process", CAPTURE_RECORD_KEY, "process that is not there",
		cap_record_put_key(&f_, 0, &s));
	s.proc = 0;
	REFUSED("a truncated key", CAPTURE_RECORD_KEY, "malformed", buf_put(&f_, "\0\0\0\0\1\0\0", 7));
	REFUSED("a wait with an unknown key", CAPTURE_RECORD_WAIT, "key that is not there",
		cap_record_put_wait(&f_, &(struct cap_wait){ .key = 0 }, &state));
	REFUSED("a truncated wait", CAPTURE_RECORD_WAIT, "malformed", buf_put(&f_, "\0\0", 2));
	REFUSED("a change of an unknown counter", CAPTURE_RECORD_CHANGE, "counter that is not there",
		cap_record_put_change(&f_, &(struct cap_change){ .counter = 1000 }));
	REFUSED("a truncated change", CAPTURE_RECORD_CHANGE, "malformed", buf_put(&f_, "\0", 1));
	REFUSED("the life of a thread of an unknown process", CAPTURE_RECORD_LIFE,
		"process that is not there",
		cap_record_put_life(&f_, &(struct cap_life){ .proc = 1, .to_ns = 1 }));
	REFUSED("a life that ends before it begins", CAPTURE_RECORD_LIFE, "ends before it begins",
		cap_record_put_life(&f_, &(struct cap_life){ .from_ns = 2, .to_ns = 1 }));
	REFUSED("a truncated life", CAPTURE_RECORD_LIFE, "malformed", buf_put(&f_, "\0\1\1\1", 4));
	w.id = 2;
	REFUSED("a waker id out of order", CAPTURE_RECORD_WAKER, "id out of order",
		cap_record_put_waker(&f_, &w));
	w.id = 1, w.next = 1;
	REFUSED("a waker that woke itself", CAPTURE_RECORD_WAKER, "own waker is not there",
		cap_record_put_waker(&f_, &w));
	w.next = 0, w.proc = 1;
	REFUSED("a waker of an unknown process", CAPTURE_RECORD_WAKER, "process that is not there",
		cap_record_put_waker(&f_, &w));
	w.proc = 0, w.ustack = 0;
	REFUSED("a waker with a kernel stack as its user stack", CAPTURE_RECORD_WAKER,
		"stack that is not there", cap_record_put_waker(&f_, &w));
	w.ustack = 1, w.kstack = 2;
	REFUSED("a waker with an unknown kernel stack", CAPTURE_RECORD_WAKER, "stack that is not there",
		cap_record_put_waker(&f_, &w));
	REFUSED("a truncated waker", CAPTURE_RECORD_WAKER, "malformed", buf_put(&f_, "\1\0\0\0\0\1\0", 7));
	s.ustack = 0;
	REFUSED("a sample with a kernel stack as its user stack", CAPTURE_RECORD_SAMPLE,
		"stack that is not there", cap_record_put_sample(&f_, &s, &state));
	m.proc = 1;
	REFUSED("a mapping of an unknown process", CAPTURE_RECORD_MAP, "process that is not there",
		cap_record_put_map(&f_, &m));
	m.proc = 0, m.file = 1;
	REFUSED("a mapping of an unknown file", CAPTURE_RECORD_MAP, "file that is not there",
		cap_record_put_map(&f_, &m));
	m.file = CAPTURE_NONE, m.end = 1;
	REFUSED("an empty mapping", CAPTURE_RECORD_MAP, "malformed", cap_record_put_map(&f_, &m));
	m.end = 0;
	REFUSED("a mapping that ends before it starts", CAPTURE_RECORD_MAP, "malformed",
		cap_record_put_map(&f_, &m));
	REFUSED("a thread of an unknown process", CAPTURE_RECORD_THREAD, "process that is not there",
		cap_record_put_thread(&f_, &sample_threads[2]));
	REFUSED("an image of an unknown file", CAPTURE_RECORD_IMAGE, "file that is not there",
		cap_record_put_image(&f_, &sample_images[0]));
	REFUSED("a stack id out of order", CAPTURE_RECORD_STACK, "id out of order",
		cap_record_put_stack(&f_, &sample_stacks[1]));
	REFUSED("a process id out of order", CAPTURE_RECORD_PROC, "id out of order",
		cap_record_put_proc(&f_, &sample_procs[0]));
	REFUSED("a file id out of order", CAPTURE_RECORD_FILE, "id out of order",
		cap_record_put_file(&f_, &sample_files[2]));
	REFUSED("JIT code of an unknown process", CAPTURE_RECORD_JIT, "process that is not there",
		buf_put(&f_, "\1\1\0\0\1\1\0\0\0\0", 10));
	REFUSED("JIT code with an unknown name", CAPTURE_RECORD_JIT, "string that is not there",
		buf_put(&f_, "\0\1\0\0\1\1\1\0\0\0", 10));
	REFUSED("a name in an unknown file", CAPTURE_RECORD_NAME, "file that is not there",
		buf_put(&f_, "\1\0\0\0\0\0", 6));
	REFUSED("a frame with an unknown name", CAPTURE_RECORD_NAME, "string that is not there",
		buf_put(&f_, "\0\0\0\0\0\1\1\0\0\0\0", 11));
	REFUSED("a string id out of order", CAPTURE_RECORD_STRING, "id out of order",
		buf_put(&f_, "\1\1a\0", 4));
	REFUSED("a script frame id out of order", CAPTURE_RECORD_SCRIPT, "id out of order",
		cap_record_put_script(&f_, &(struct cap_script){ 1, "python", "f", "f.py", 1, 1 }));
	REFUSED("a stack with an unknown script frame", CAPTURE_RECORD_STACK,
		"script frame that is not there", buf_put(&f_, "\2\2\1\0\0\0\2\5\1\0\1\0\0", 13));
	REFUSED("an empty kernel symbol", CAPTURE_RECORD_KSYM, "malformed",
		cap_record_put_ksym(&f_, &(struct cap_ksym){ 5, 5, "", "" }));
}

static void test_malformed(struct tap *t, const struct edge *edge)
{
	static const uint8_t id[CAPTURE_BUILD_ID_MAX + 1];

	REFUSED("an empty record", CAPTURE_RECORD_OPTION, "malformed", );
	REFUSED("more frames than bytes", CAPTURE_RECORD_STACK, "malformed", buf_put(&f_, "\2\2\1\0\0\0", 6),
		buf_uleb(&f_, UINT32_MAX));
	REFUSED("a number of frames above 32 bits", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0", 6), buf_uleb(&f_, UINT64_MAX));
	REFUSED("a truncated frame", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\1\200", 8));
	REFUSED("as many exact frames as frames", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\1\1\2\1\1", 12));
	REFUSED("a number of exact frames above 32 bits", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\1\1", 9), buf_uleb(&f_, UINT64_MAX));
	REFUSED("an exact frame after the last frame", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\1\1\1\2", 11));
	REFUSED("an exact frame with a huge number", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\3\1\1\1\2\1", 12), buf_uleb(&f_, UINT32_MAX));
	REFUSED("the first frame as an exact frame", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\1\1\1\0", 11));
	REFUSED("a repeated exact frame", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\4\1\1\1\1\2\1\0", 14));
	REFUSED("fewer exact frames than their number says", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\4\1\1\1\1\2\1", 13));
	REFUSED("more script frames than bytes", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\5\1\0", 10), buf_uleb(&f_, UINT32_MAX));
	REFUSED("a script frame after the last native frame", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\5\1\0\1\2\0", 13));
	REFUSED("a script frame with a huge place", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\5\1\0\2\1\0", 13), buf_uleb(&f_, UINT32_MAX),
		buf_put(&f_, "\0", 1));
	REFUSED("a script frame in a stack without frames", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\0\0\1\0\0", 11));
	REFUSED("a truncated script frame", CAPTURE_RECORD_STACK, "malformed",
		buf_put(&f_, "\2\2\1\0\0\0\2\5\1\0\1\0\200", 13));
	REFUSED("a string longer than its record", CAPTURE_RECORD_OPTION, "malformed",
		buf_put(&f_, "\5name", 5));
	REFUSED("a string of huge length", CAPTURE_RECORD_OPTION, "malformed", buf_uleb(&f_, UINT64_MAX));
	REFUSED("a string without its NUL", CAPTURE_RECORD_OPTION, "malformed", buf_put(&f_, "\1ab\1c\0", 6));
	REFUSED("a string with a NUL inside", CAPTURE_RECORD_OPTION, "malformed",
		buf_put(&f_, "\3a\0b\0\1c\0", 8));
	REFUSED("an image longer than its record", CAPTURE_RECORD_IMAGE, "malformed",
		buf_put(&f_, "\0\4abc", 5));
	REFUSED("a build ID of 65 bytes", CAPTURE_RECORD_FILE, "malformed",
		buf_put(&f_, "\1\0\0\0\0\0\0\0\101", 9), buf_put(&f_, id, sizeof(id)),
		buf_put(&f_, "\0\0", 2));
	REFUSED("a number of more than 64 bits", CAPTURE_RECORD_FLUSH, "malformed",
		buf_put(&f_, "\377\377\377\377\377\377\377\377\377\177", 10));
	REFUSED("a number of more than 32 bits", CAPTURE_RECORD_THREAD, "malformed", buf_put(&f_, "\0", 1),
		buf_uleb(&f_, UINT64_C(1) << 32), buf_put(&f_, "\0\0\0", 3));
	REFUSED("a string of the string table with a NUL inside", CAPTURE_RECORD_STRING, "malformed",
		buf_put(&f_, "\0\2a\0\0", 5));
	REFUSED("empty JIT code", CAPTURE_RECORD_JIT, "malformed", buf_put(&f_, "\0\1\0\0\1\0\0\0\0\0", 10));
	REFUSED("JIT code that extends beyond the last address", CAPTURE_RECORD_JIT, "malformed",
		buf_put(&f_, "\0\1\0\0\2", 5), buf_uleb(&f_, UINT64_MAX), buf_put(&f_, "\0\0\0\0", 4));
	REFUSED("a name with more frames than bytes", CAPTURE_RECORD_NAME, "malformed",
		buf_put(&f_, "\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0", 15));
	REFUSED("a name with a huge number of frames", CAPTURE_RECORD_NAME, "malformed",
		buf_put(&f_, "\0\0\0\0\0", 5), buf_uleb(&f_, UINT32_MAX));
	REFUSED("a name whose source is larger than a byte", CAPTURE_RECORD_NAME, "malformed",
		buf_put(&f_, "\0\0\0\200\2\0\0", 7));
	REFUSED("a name whose address is cut", CAPTURE_RECORD_NAME, "malformed",
		buf_put(&f_, "\0\0\0\0\0\0\200", 7));
	REFUSED("a record longer than its block", CAPTURE_RECORD_FLUSH, "behind its block",
		buf_uleb(&p_, 100));
}

static void test_host_twice(struct tap *t, const struct edge *edge)
{
	struct made m = { { 0 }, 0 };
	struct buf p = { 0 }, f = { 0 };
	struct cap_reader *c;

	cap_record_put_host(&f, &sample_host);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_HOST, &p);
	add(&m, CAPTURE_RECORD_HOST, &p);
	add_trailer(&m);
	c = read_made(&m, edge);
	tap_ok(t, c && !c->complete && strstr(c->damage, "second host") && same_host(&c->host, &sample_host),
		"a second host is refused, the first is kept");
	cap_reader_free(c);
	buf_free(&m.b);
	buf_free(&p);
	buf_free(&f);
}

/* Write a new checksum to P + LEN. It covers the LEN bytes before it and then REST. */
static void seal(uint8_t *p, size_t len, const uint8_t *rest, size_t rest_len)
{
	uint32_t crc = crc32c(crc32c(0, p, len), rest, rest_len);

	for (size_t i = 0; i < 4; i++)
		p[len + i] = (uint8_t)(crc >> (8 * i));
}

static void test_flags(struct tap *t, const struct edge *edge)
{
	struct made m = { { 0 }, 0 };
	struct buf p = { 0 }, f = { 0 };
	struct cap_reader *c;

	cap_record_put_option(&f, &sample_options[0]);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_OPTION, &p);
	m.b.p[CAPTURE_BLOCK_HEADER_LEN + 6] = 1;
	seal(m.b.p + CAPTURE_BLOCK_HEADER_LEN, CAPTURE_BLOCK_HEAD_LEN - 4, p.p, p.len);
	add_trailer(&m);
	c = read_made(&m, edge);
	tap_ok(t, c && c->complete && c->unknown_blocks == 1 && !c->n_options,
		"a block with an unknown flag is skipped and counted");
	cap_reader_free(c);
	buf_free(&m.b);
	buf_free(&p);
	buf_free(&f);
}

static void test_future(struct tap *t, const struct edge *edge)
{
	struct made m = { { 0 }, 0 };
	struct buf p = { 0 }, f = { 0 };
	struct cap_reader *c;

	buf_put(&p, "what no one knows yet", 21);
	add(&m, 999, &p);
	buf_reset(&p);
	cap_record_put_option(&f, &sample_options[0]);
	buf_put(&f, "more fields", 11);
	record(&p, &f);
	cap_record_put_option(&f, &sample_options[1]);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_OPTION, &p);
	add_trailer(&m);
	c = read_made(&m, edge);
	tap_ok(t, c && c->complete && c->unknown_blocks == 1, "an unknown block is skipped and counted");
	tap_ok(t, c && c->n_options == 2 && same(c->options[1].name, "unwind"),
		"fields that a later version appends to a record are ignored");
	cap_reader_free(c);
	buf_free(&m.b);
	buf_free(&p);
	buf_free(&f);
}

/*
 * In format 1.0 a stack ends after its frames. A later version may have to write 0
 * exact frames.
 */
static void test_past(struct tap *t, const struct edge *edge)
{
	struct made m = { { 0 }, 0 };
	struct buf p = { 0 }, f = { 0 }, s = { 0 }, scripts = { 0 };
	struct cap_reader *c;

	buf_put(&f, "\0\2\1\0\0\0\2\5\1", 9);
	record(&p, &f);
	buf_put(&f, "\1\2\1\0\0\0\2\5\1\0", 10);
	record(&p, &f);
	buf_put(&f, "\2\2\1\0\0\0\2\5\1\1\1", 11);
	record(&p, &f);
	buf_put(&f, "\3\2\1\0\0\0\2\5\1\0\2\0\1\1\0more", 19);
	record(&p, &f);
	cap_record_put_script(&s, &(struct cap_script){ 0, "python", "f", "f.py", 3, 2 });
	record(&scripts, &s);
	cap_record_put_script(&s, &(struct cap_script){ 1, "python", "", "", 0, 0 });
	record(&scripts, &s);
	add(&m, CAPTURE_RECORD_SCRIPT, &scripts);
	add(&m, CAPTURE_RECORD_STACK, &p);
	buf_reset(&p);
	cap_record_put_file(&f, &sample_files[0]);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_FILE, &p);
	buf_reset(&p);
	buf_put(&f, "\0\5\0\0\1\0", 6);
	record(&p, &f);
	buf_put(&f, "\0\6\0\0\1\0\4more", 11);
	record(&p, &f);
	buf_put(&f, "\0\7\0\0\1\0\177", 7);
	record(&p, &f);
	add(&m, CAPTURE_RECORD_NAME, &p);
	buf_reset(&p);
	cap_record_put_counter(&f, &(struct cap_counter){ "procfs.looks_left_out", 5 });
	record(&p, &f);
	add(&m, CAPTURE_RECORD_COUNTER, &p);
	add_trailer(&m);
	c = read_made(&m, edge);
	tap_ok(t, c && c->complete && c->n_stacks == 4, "stacks and names of four format versions are read");
	tap_ok(t, c && !c->stacks[0].n_exact && c->stacks[0].len == 2 && c->stacks[0].frames[1] == 6,
		"a stack that ends after its frames has no exact frames");
	tap_ok(t, c && !c->stacks[1].n_exact, "a stack with 0 exact frames has none");
	tap_ok(t, c && c->stacks[2].n_exact == 1 && c->stacks[2].exact[0] == 1,
		"a stack of version 1.1 has exact frames, and no script frames");
	tap_ok(t,
		c && !c->stacks[2].n_scripts && c->stacks[3].n_scripts == 2 && !c->stacks[3].n_exact &&
			c->stacks[3].scripts[0].at == 0 && c->stacks[3].scripts[0].frame == 1 &&
			c->stacks[3].scripts[1].at == 1 && c->stacks[3].scripts[1].frame == 0,
		"a stack has its script frames, each with the native frame that it follows; what follows is "
		"ignored");
	tap_ok(t,
		c && c->n_scripts == 2 && same(c->scripts[0].function, "f") &&
			same(c->scripts[0].file, "f.py") && c->scripts[0].line == 3 &&
			c->scripts[0].first_line == 2 && same(c->scripts[1].runtime, "python"),
		"script frames have their fields");
	tap_ok(t, c && c->n_names == 3 && c->names[0].vaddr == 5,
		"a name that ends after its frames has its offset for an address");
	tap_ok(t, c && c->n_names == 3 && c->names[1].vaddr == 10 && c->names[2].vaddr == 6,
		"the address of a name is more or less than its offset");
	tap_ok(t, c && cap_reader_counter(c, "procfs.samples_skipped") == 5,
		"a counter of an earlier build is found under its present name");
	cap_reader_free(c);
	buf_free(&m.b);
	buf_free(&s);
	buf_free(&scripts);
	buf_free(&p);
	buf_free(&f);
}

static void test_ksym_order(struct tap *t, const struct edge *edge)
{
	static const struct cap_ksym s[] = { { 100, 200, "long", "" }, { 150, 160, "inner", "" },
		{ 50, 60, "one", "" }, { 50, 70, "two", "" }, { 60, 65, "three", "m" } };
	struct made m = { { 0 }, 0 };
	struct buf p = { 0 }, f = { 0 };
	struct cap_reader *c;

	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		cap_record_put_ksym(&f, &s[i]);
		record(&p, &f);
	}
	add(&m, CAPTURE_RECORD_KSYM, &p);
	add_trailer(&m);
	c = read_made(&m, edge);
	if (!c)
		abort();
	tap_eq_u64(t, c->n_ksyms, 4, "of symbols with the same start only the last is kept");
	tap_eq_str(t, ksym(c, 55), "two", "the last of symbols with the same start is found");
	tap_eq_str(t, ksym(c, 60), "three", "a symbol ends where the next begins");
	tap_eq_str(t, ksym(c, 149), "long", "before an inner symbol the outer symbol is found");
	tap_eq_str(t, ksym(c, 155), "inner", "inside an inner symbol the inner symbol is found");
	tap_eq_str(t, ksym(c, 165), "none", "after an inner symbol neither symbol is found");
	cap_reader_free(c);
	buf_free(&m.b);
	buf_free(&p);
	buf_free(&f);
}

static void test_map(struct tap *t, const struct cap_reader *c)
{
	tap_ok(t, cap_reader_map(c, 0, 0x485000, MONO + 500, MONO + 500, NULL) == &c->maps[2],
		"the mapping of an address is found");
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Payloads changed at random, with correct checksums. */
static void test_hostile(struct tap *t, const struct whole *w)
{
	size_t at[64], n = find_blocks(w->bytes, w->len, at);
	uint8_t *bytes = edge_put(&w->edge, w->bytes, w->len);
	uint32_t seed = 7;
	size_t loaded = 0, whole = 0;

	for (int round = 0; round < 20000; round++) {
		size_t k = next_random(&seed) % n, len = at[k + 1] - at[k] - CAPTURE_BLOCK_HEAD_LEN;
		uint8_t *payload = bytes + at[k] + CAPTURE_BLOCK_HEAD_LEN;
		struct cap_block b;
		struct cap_reader *c;

		cap_block_get(bytes + at[k], &b);
		for (uint32_t i = next_random(&seed) % 4 + 1; i; i--)
			payload[next_random(&seed) % len] = (uint8_t)next_random(&seed);
		cap_block_put(bytes + at[k], b.type, b.seq, payload, len);
		if (cap_reader_parse(bytes, w->len, &c, NULL) == 0) {
			loaded++;
			whole += c->complete;
			for (size_t i = 0; i < c->n_samples; i++)
				if (c->stacks[c->samples[i].ustack].kind != CAPTURE_STACK_USER)
					abort();
			for (uint32_t i = 0; i < c->n_procs; i++)
				cap_reader_map(c, i, 0x485000, MONO, MONO + 1000, NULL);
			cap_reader_free(c);
		}
		memcpy(bytes, w->bytes, w->len);
	}
	tap_ok(t, loaded == 20000 && whole > 100 && whole < 20000,
		"hostile records with correct checksums do no harm");
}

static uint8_t *read_whole(const char *path, size_t *len)
{
	uint8_t *bytes = malloc(1 << 20);
	FILE *f = fopen(path, "r");

	if (!f || !bytes)
		abort();
	*len = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

static void test_header(struct tap *t, const struct whole *w)
{
	static const struct {
		size_t at, n;
		const char *bytes, *message;
	} changes[] = {
		{ 0, 1, "\177", "not a capture" },
		{ 8, 4, "\1\2\3\4", "other byte order" },
		{ 12, 4, "\377\377\377\377", "header is damaged" },
		{ 18, 1, "\10", "header is damaged" },
	};
	uint8_t later[CAPTURE_BLOCK_HEADER_LEN + 8];
	struct err e;
	struct cap_reader *c;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		uint8_t *bytes = edge_put(&w->edge, w->bytes, w->len);

		memcpy(bytes + changes[i].at, changes[i].bytes, changes[i].n);
		tap_ok(t,
			cap_reader_parse(bytes, w->len, &c, &e) == -EINVAL &&
				strstr(e.msg, changes[i].message),
			"refused: %s", changes[i].message);
	}
	tap_ok(t, cap_reader_parse("", 0, &c, &e) == -EINVAL && strstr(e.msg, "empty"),
		"refused: an empty file");
	tap_ok(t, cap_reader_parse(w->bytes, 20, &c, &e) == -EINVAL && strstr(e.msg, "cut at byte 20"),
		"refused: a truncated header");
	memcpy(later, w->bytes, CAPTURE_BLOCK_HEADER_LEN);
	later[16] = CAPTURE_BLOCK_MAJOR + 1;
	seal(later, CAPTURE_BLOCK_HEADER_LEN - 4, NULL, 0);
	tap_ok(t,
		cap_reader_parse(later, CAPTURE_BLOCK_HEADER_LEN, &c, &e) == -EINVAL &&
			strstr(e.msg, "format 2.7") && strstr(e.hint, "newer"),
		"refused: a newer major version");
	memset(later, 0, sizeof(later));
	memcpy(later, w->bytes, CAPTURE_BLOCK_HEADER_LEN - 4);
	later[12] = sizeof(later);
	later[18] = 9;
	seal(later, sizeof(later) - 4, NULL, 0);
	tap_ok(t, cap_reader_parse(later, sizeof(later), &c, &e) == 0 && c->good_bytes == sizeof(later),
		"a newer minor version with a longer header is read");
	cap_reader_free(c);
}

int main(int argc, char **argv)
{
	char path[] = "/tmp/unit-cap_reader.XXXXXX";
	struct tap t = { 0 };
	struct err e = { 0 };
	struct whole w = { 0 };
	int fd;

	if (argc >= 3 && same(argv[1], "--write")) {
		if ((argc == 3 ? sample_write(argv[2], &e)
			       : sample_write_many(argv[2], (uint32_t)strtoul(argv[3], NULL, 10), &e)) == 0)
			return 0;
		fprintf(stderr, "cap_reader: %s\n", e.msg);
		return 2;
	}
	fd = mkstemp(path);
	if (fd < 0 || close(fd) != 0 || sample_write(path, &e) != 0)
		abort();
	tap_ok(&t, cap_reader_load(path, &w.truth, &e) == 0, "a capture is loaded from a file");
	w.bytes = read_whole(path, &w.len);
	unlink(path);
	w.edge = edge_new(1 << 16);
	test_round_trip(&t, w.truth);
	test_merging(&t, w.truth);
	test_ksyms(&t, w.truth);
	test_names(&t, w.truth);
	test_map(&t, w.truth);
	test_header(&t, &w);
	test_cuts(&t, &w);
	test_following(&t, &w);
	test_changes(&t, &w);
	test_blocks(&t, &w);
	test_references(&t, &w.edge);
	test_malformed(&t, &w.edge);
	test_host_twice(&t, &w.edge);
	test_future(&t, &w.edge);
	test_past(&t, &w.edge);
	test_flags(&t, &w.edge);
	test_ksym_order(&t, &w.edge);
	test_hostile(&t, &w);
	cap_reader_free(w.truth);
	free(w.bytes);
	return tap_done(&t);
}
