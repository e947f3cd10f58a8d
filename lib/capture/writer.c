/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/writer.h"
#include "base/hashtable.h"
#include "base/intern.h"
#include "base/result.h"
#include "capture/format.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* A finished block: the bytes [from, to) of its type's buffer. */
struct piece {
	size_t from, to;
};

struct queue {
	struct buf records;
	struct piece *cuts; /* how to split the records into blocks */
	size_t n_cuts, max_cuts;
	size_t open_from; /* where the block being filled begins */
};

/* The number of ids written, and one more than the highest id referred to. */
struct ids {
	uint64_t have, need;
};

struct cap_writer {
	int fd;
	bool regular; /* it can be truncated */
	int code; /* the first error: nothing is written after it */
	char name[256]; /* for messages */
	char message[256]; /* about a record that no reader would accept */
	uint64_t bytes;
	uint32_t seq;
	struct ids procs, files, scripts, stacks, wakers; /* of wakers, their ids less one */
	struct cap_sample *keys; /* those that were written; index = id */
	size_t n_keys, max_keys;
	struct hashtable by_key;
	struct intern strings; /* those that were written; the id is that of the record */
	struct cap_record_state samples, waits; /* of the blocks being filled */
	struct buf scratch; /* one record, until its length is known */
	struct buf string; /* likewise, while another record is encoded */
	struct queue queues[CAPTURE_RECORD_TYPES];
};

/* The order of the blocks in a flush: references must point backwards. */
static const unsigned char order[] = { CAPTURE_RECORD_HOST, CAPTURE_RECORD_OPTION, CAPTURE_RECORD_FILE,
	CAPTURE_RECORD_PROC, CAPTURE_RECORD_THREAD, CAPTURE_RECORD_MAP, CAPTURE_RECORD_IMAGE,
	CAPTURE_RECORD_KSYM, CAPTURE_RECORD_SCRIPT, CAPTURE_RECORD_STACK, CAPTURE_RECORD_WAKER,
	CAPTURE_RECORD_KEY, CAPTURE_RECORD_SAMPLE, CAPTURE_RECORD_WAIT, CAPTURE_RECORD_STRING,
	CAPTURE_RECORD_JIT, CAPTURE_RECORD_NAME, CAPTURE_RECORD_COUNTER, CAPTURE_RECORD_FLUSH,
	CAPTURE_RECORD_TRAILER };

/* --- records into queues --- */

static void refuse(struct cap_writer *w, const char *message)
{
	if (w->code)
		return;
	w->code = -EINVAL;
	snprintf(w->message, sizeof(w->message), "%s", message);
}

static void refer(struct ids *ids, uint64_t id)
{
	ids->need = MAX(ids->need, id + 1);
}

static void next_id(struct cap_writer *w, struct ids *ids, uint64_t id, const char *message)
{
	if (id != ids->have)
		refuse(w, message);
	ids->have++;
}

/* End the block being filled: the next record begins another one. */
static void cut(struct queue *q)
{
	if (base_grow(&q->cuts, &q->max_cuts, q->n_cuts + 1, sizeof(*q->cuts)) != 0) {
		q->records.failed = true;
		return;
	}
	q->cuts[q->n_cuts++] = (struct piece){ q->open_from, q->records.len };
	q->open_from = q->records.len;
}

/* The buffer to encode the next record into; end_record() queues it. */
static struct buf *begin_record(struct cap_writer *w)
{
	buf_reset(&w->scratch);
	return &w->scratch;
}

static void queue_record(struct cap_writer *w, enum cap_record_type type, const struct buf *record)
{
	struct queue *q = &w->queues[type];

	if (record->len > CAPTURE_WRITER_RECORD_MAX)
		refuse(w, "a record is too long for any block");
	if (record->failed)
		q->records.failed = true;
	buf_uleb(&q->records, record->len);
	buf_put(&q->records, record->p, record->len);
	if (q->records.len - q->open_from >= CAPTURE_BLOCK_PAYLOAD_GOAL) {
		cut(q);
		if (type == CAPTURE_RECORD_SAMPLE)
			w->samples = (struct cap_record_state){ 0 };
		if (type == CAPTURE_RECORD_WAIT)
			w->waits = (struct cap_record_state){ 0 };
	}
}

static void end_record(struct cap_writer *w, enum cap_record_type type)
{
	queue_record(w, type, &w->scratch);
}

void cap_writer_host(struct cap_writer *w, const struct cap_host *h)
{
	cap_record_put_host(begin_record(w), h);
	end_record(w, CAPTURE_RECORD_HOST);
}

void cap_writer_option(struct cap_writer *w, const struct cap_option *o)
{
	cap_record_put_option(begin_record(w), o);
	end_record(w, CAPTURE_RECORD_OPTION);
}

void cap_writer_proc(struct cap_writer *w, const struct cap_proc *p)
{
	next_id(w, &w->procs, p->id, "process ids are not 0, 1, 2 ...");
	cap_record_put_proc(begin_record(w), p);
	end_record(w, CAPTURE_RECORD_PROC);
}

void cap_writer_thread(struct cap_writer *w, const struct cap_thread *t)
{
	refer(&w->procs, t->proc);
	cap_record_put_thread(begin_record(w), t);
	end_record(w, CAPTURE_RECORD_THREAD);
}

void cap_writer_file(struct cap_writer *w, const struct cap_file *f)
{
	next_id(w, &w->files, f->id, "file ids are not 0, 1, 2 ...");
	cap_record_put_file(begin_record(w), f);
	end_record(w, CAPTURE_RECORD_FILE);
}

void cap_writer_map(struct cap_writer *w, const struct cap_map *m)
{
	refer(&w->procs, m->proc);
	if (m->file != CAPTURE_NONE)
		refer(&w->files, m->file);
	if (m->start >= m->end)
		refuse(w, "a mapping ends before it begins");
	cap_record_put_map(begin_record(w), m);
	end_record(w, CAPTURE_RECORD_MAP);
}

void cap_writer_image(struct cap_writer *w, const struct cap_image *i)
{
	refer(&w->files, i->file);
	cap_record_put_image(begin_record(w), i);
	end_record(w, CAPTURE_RECORD_IMAGE);
}

void cap_writer_ksym(struct cap_writer *w, const struct cap_ksym *s)
{
	if (s->start >= s->end)
		refuse(w, "a kernel symbol ends before it begins");
	cap_record_put_ksym(begin_record(w), s);
	end_record(w, CAPTURE_RECORD_KSYM);
}

/* Indexes must be in range and ascending, without 0: the first frame is always exact. */
static bool exact_fine(const struct cap_stack *s)
{
	for (uint32_t i = 0; i < s->n_exact; i++)
		if (s->exact[i] >= s->len || s->exact[i] <= (i ? s->exact[i - 1] : 0))
			return false;
	return true;
}

void cap_writer_script(struct cap_writer *w, const struct cap_script *s)
{
	next_id(w, &w->scripts, s->id, "script frame ids are not 0, 1, 2 ...");
	cap_record_put_script(begin_record(w), s);
	end_record(w, CAPTURE_RECORD_SCRIPT);
}

static bool scripts_fine(struct cap_writer *w, const struct cap_stack *s)
{
	for (uint32_t i = 0; i < s->n_scripts; i++) {
		refer(&w->scripts, s->scripts[i].frame);
		if (s->scripts[i].at >= s->len || (i && s->scripts[i].at < s->scripts[i - 1].at))
			return false;
	}
	return true;
}

void cap_writer_stack(struct cap_writer *w, const struct cap_stack *s)
{
	if (!scripts_fine(w, s))
		refuse(w, "script frames are not in the order of the native frames");
	if (!exact_fine(s))
		refuse(w, "the numbers of exact frames are not 1, 2 ... in ascending order");
	next_id(w, &w->stacks, s->id, "stack ids are not 0, 1, 2 ...");
	cap_record_put_stack(begin_record(w), s);
	end_record(w, CAPTURE_RECORD_STACK);
}

void cap_writer_waker(struct cap_writer *w, const struct cap_waker *k)
{
	if (k->proc != CAPTURE_NONE)
		refer(&w->procs, k->proc);
	refer(&w->stacks, k->kstack);
	refer(&w->stacks, k->ustack);
	if (k->next >= k->id)
		refuse(w, "a waker comes before the one that had woken it");
	next_id(w, &w->wakers, (uint64_t)k->id - 1, "waker ids are not 1, 2, 3 ...");
	cap_record_put_waker(begin_record(w), k);
	end_record(w, CAPTURE_RECORD_WAKER);
}

static void refer_key(struct cap_writer *w, const struct cap_sample *s)
{
	refer(&w->procs, s->proc);
	refer(&w->stacks, s->kstack);
	refer(&w->stacks, s->ustack);
	if (s->waker)
		refer(&w->wakers, s->waker - 1);
}

void cap_writer_sample(struct cap_writer *w, const struct cap_sample *s)
{
	refer_key(w, s);
	cap_record_put_sample(begin_record(w), s, &w->samples);
	end_record(w, CAPTURE_RECORD_SAMPLE);
}

/* The id of the key of S, which is written first if it is new. */
static uint32_t key_id(struct cap_writer *w, const struct cap_sample *s)
{
	const uint64_t hash = cap_sample_hash(s);
	uint32_t id = HASHTABLE_FIND(&w->by_key, hash, i, cap_sample_same_key(&w->keys[i], s));

	if (id != HASHTABLE_NONE)
		return id;
	refer_key(w, s);
	if (base_grow(&w->keys, &w->max_keys, w->n_keys + 1, sizeof(*w->keys)) != 0 ||
		hashtable_reserve(&w->by_key, 1) != 0) {
		w->queues[CAPTURE_RECORD_KEY].records.failed = true;
		return 0;
	}
	id = (uint32_t)w->n_keys++;
	w->keys[id] = *s;
	hashtable_add(&w->by_key, hash, id);
	cap_record_put_key(begin_record(w), id, s);
	end_record(w, CAPTURE_RECORD_KEY);
	return id;
}

void cap_writer_wait(struct cap_writer *w, const struct cap_sample *s)
{
	const struct cap_wait wait = { .key = key_id(w, s),
		.is_split = s->is_split,
		.start_ns = s->first_ns,
		.total_ns = s->total_ns,
		.runnable_ns = s->runnable_ns };

	if (s->count != 1)
		refuse(w, "a record of one wait is of several");
	cap_record_put_wait(begin_record(w), &wait, &w->waits);
	end_record(w, CAPTURE_RECORD_WAIT);
}

void cap_writer_counter(struct cap_writer *w, const struct cap_counter *c)
{
	cap_record_put_counter(begin_record(w), c);
	end_record(w, CAPTURE_RECORD_COUNTER);
}

/* The number that stands for TEXT. A new string is queued first, while its record is being encoded. */
static uint64_t string_ref(void *writer, const char *text)
{
	struct cap_writer *w = writer;
	uint32_t known = (uint32_t)w->strings.n, id;

	if (!text || !*text)
		return 0;
	id = intern_put(&w->strings, text, strlen(text));
	if (id == INTERN_NONE) {
		w->scratch.failed = true;
		return 0;
	}
	if (id == known) {
		buf_reset(&w->string);
		cap_code_names_put_string(&w->string, id, text);
		queue_record(w, CAPTURE_RECORD_STRING, &w->string);
	}
	return (uint64_t)id + 1;
}

void cap_writer_jit(struct cap_writer *w, const struct cap_jit *j)
{
	refer(&w->procs, j->proc);
	if (j->start >= j->end)
		refuse(w, "a piece of JIT code ends before it begins");
	cap_code_names_put_jit(begin_record(w), j, string_ref, w);
	end_record(w, CAPTURE_RECORD_JIT);
}

void cap_writer_name(struct cap_writer *w, const struct cap_name *n)
{
	refer(&w->files, n->file);
	cap_code_names_put_name(begin_record(w), n, string_ref, w);
	end_record(w, CAPTURE_RECORD_NAME);
}

/* --- queues into the file --- */

static int fail(struct cap_writer *w, int code)
{
	w->code = code;
	return code;
}

static int put_error(const struct cap_writer *w, struct err *e)
{
	if (w->message[0])
		return err_set(e, w->code, "'%s': wrong record: %s", w->name, w->message);
	if (w->code == -ENOMEM)
		return err_nomem(e, "the capture");
	err_sys(e, w->code, "cannot write to '%s'", w->name);
	if (w->code == -ENOSPC || w->code == -EDQUOT || w->code == -EFBIG)
		err_hint(e, "the first %llu bytes are kept and can be read", (unsigned long long)w->bytes);
	return w->code;
}

static int wait_writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

/* Write all of V. *DONE counts the bytes written, also on failure. */
static int write_all(int fd, struct iovec *v, size_t n, uint64_t *done)
{
	while (n) {
		ssize_t got = writev(fd, v, (int)MIN(n, (size_t)IOV_MAX));
		size_t left;

		if (got < 0 && errno == EAGAIN && wait_writable(fd) == 0)
			continue;
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -EIO;
		*done += (uint64_t)got;
		left = (size_t)got;
		for (; n && left >= v->iov_len; v++, n--)
			left -= v->iov_len;
		if (n) {
			v->iov_base = (char *)v->iov_base + left;
			v->iov_len -= left;
		}
	}
	return 0;
}

/*
 * After a failed write, TORN bytes of an incomplete block follow the last
 * complete one. Truncate them, so that a reader sees a clean end. If that is not
 * possible, the reader detects the incomplete block.
 */
static void cut_back(const struct cap_writer *w, uint64_t torn)
{
	off_t end = lseek(w->fd, 0, SEEK_CUR);
	struct stat st;

	if (!w->regular || !torn || end < (off_t)torn || fstat(w->fd, &st) != 0 || st.st_size != end)
		return;
	if (ftruncate(w->fd, end - (off_t)torn) == 0)
		(void)!lseek(w->fd, end - (off_t)torn, SEEK_SET);
}

struct batch {
	struct iovec *v; /* header, payload, header, payload ... */
	uint8_t (*headers)[CAPTURE_BLOCK_HEAD_LEN];
	size_t n; /* blocks */
};

static void add_block(struct cap_writer *w, struct batch *b, unsigned int type, uint8_t *payload, size_t len)
{
	uint8_t *header = b->headers[b->n];

	cap_block_put(header, type, w->seq + (uint32_t)b->n, payload, len);
	b->v[2 * b->n] = (struct iovec){ header, CAPTURE_BLOCK_HEAD_LEN };
	b->v[2 * b->n + 1] = (struct iovec){ payload, len };
	b->n++;
}

static int write_batch(struct cap_writer *w, struct batch *b)
{
	size_t *ends = calloc(b->n + 1, sizeof(*ends)), kept = 0;
	uint64_t done = 0;
	int code;

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < b->n; i++)
		ends[i + 1] = ends[i] + b->v[2 * i].iov_len + b->v[2 * i + 1].iov_len;
	code = write_all(w->fd, b->v, 2 * b->n, &done);
	while (kept < b->n && ends[kept + 1] <= done)
		kept++;
	w->seq += (uint32_t)kept;
	w->bytes += ends[kept];
	if (code)
		cut_back(w, done - ends[kept]);
	free(ends);
	return code;
}

/* Write every queue as blocks, in order, with one system call if the kernel takes them all. */
static int write_queues(struct cap_writer *w)
{
	struct batch b = { 0 };
	size_t blocks = 0;
	int code = -ENOMEM;

	for (size_t i = 0; i < CAPTURE_RECORD_TYPES; i++) {
		struct queue *q = &w->queues[i];

		if (q->records.len > q->open_from)
			cut(q);
		if (q->records.failed)
			return -ENOMEM;
		blocks += q->n_cuts;
	}
	b.v = calloc(blocks * 2 + 1, sizeof(*b.v));
	b.headers = calloc(blocks + 1, sizeof(*b.headers));
	if (b.v && b.headers) {
		for (size_t i = 0; i < ARRAY_LEN(order); i++) {
			struct queue *q = &w->queues[order[i]];

			for (size_t k = 0; k < q->n_cuts; k++)
				add_block(w, &b, order[i], q->records.p + q->cuts[k].from,
					q->cuts[k].to - q->cuts[k].from);
		}
		code = write_batch(w, &b);
	}
	free(b.v);
	free(b.headers);
	return code;
}

static void empty_queues(struct cap_writer *w)
{
	for (size_t i = 0; i < CAPTURE_RECORD_TYPES; i++) {
		buf_reset(&w->queues[i].records);
		w->queues[i].n_cuts = w->queues[i].open_from = 0;
	}
	w->samples = w->waits = (struct cap_record_state){ 0 };
}

static int flush(struct cap_writer *w)
{
	int code;

	if (w->procs.need > w->procs.have)
		refuse(w, "a record refers to a process that was not written");
	if (w->files.need > w->files.have)
		refuse(w, "a record refers to a file that was not written");
	if (w->stacks.need > w->stacks.have)
		refuse(w, "a sample refers to a stack that was not written");
	if (w->wakers.need > w->wakers.have)
		refuse(w, "a sample refers to a waker that was not written");
	if (w->code)
		return w->code;
	code = write_queues(w);
	empty_queues(w);
	return code ? fail(w, code) : 0;
}

int cap_writer_flush(struct cap_writer *w, uint64_t time_ns, struct err *e)
{
	cap_record_put_flush(begin_record(w), &(struct cap_flush){ .time_ns = time_ns });
	end_record(w, CAPTURE_RECORD_FLUSH);
	return flush(w) ? put_error(w, e) : 0;
}

int cap_writer_finish(struct cap_writer *w, const struct cap_trailer *t, struct err *e)
{
	cap_record_put_flush(begin_record(w), &(struct cap_flush){ .time_ns = t->stop_ns });
	end_record(w, CAPTURE_RECORD_FLUSH);
	cap_record_put_trailer(begin_record(w), t);
	end_record(w, CAPTURE_RECORD_TRAILER);
	if (flush(w))
		return put_error(w, e);
	if (w->regular && fsync(w->fd) != 0)
		return fail(w, -errno), put_error(w, e);
	return 0;
}

uint64_t cap_writer_bytes(const struct cap_writer *w)
{
	return w->bytes;
}

/* --- the file --- */

DEFINE_CLEANUP(struct cap_writer *, cap_writer_close);

static int write_header(struct cap_writer *w, struct err *e)
{
	struct iovec v;
	int code;

	cap_block_put_header(begin_record(w));
	if (w->scratch.failed)
		return err_nomem(e, "the capture");
	v = (struct iovec){ w->scratch.p, w->scratch.len };
	code = write_all(w->fd, &v, 1, &w->bytes);
	return code ? fail(w, code), put_error(w, e) : 0;
}

const struct result_type cap_writer_type = { "a capture", CAPTURE_BLOCK_MAGIC, CAPTURE_BLOCK_MAGIC_LEN };

int cap_writer_create(const char *path, bool force, struct err *e)
{
	return strcmp(path, "-") == 0 ? result_file_stdout(&cap_writer_type, e)
				      : result_file_create(path, force, &cap_writer_type, e);
}

int cap_writer_open(const char *path, bool force, struct cap_writer **ret, struct err *e)
{
	int fd = cap_writer_create(path, force, e);

	return fd < 0 ? fd : cap_writer_begin(fd, path, ret, e);
}

int cap_writer_begin(int fd, const char *path, struct cap_writer **ret, struct err *e)
{
	CLEANUP(cap_writer_close_p) struct cap_writer *w = calloc(1, sizeof(*w));
	struct stat st;
	int code;

	if (!w) {
		close(fd);
		return err_nomem(e, "the capture");
	}
	w->fd = fd;
	snprintf(w->name, sizeof(w->name), "%s", strcmp(path, "-") == 0 ? "standard output" : path);
	w->regular = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
	code = write_header(w, e);
	if (code)
		return code;
	*ret = TAKE_PTR(w);
	return 0;
}

void cap_writer_close(struct cap_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	for (size_t i = 0; i < CAPTURE_RECORD_TYPES; i++) {
		buf_free(&w->queues[i].records);
		free(w->queues[i].cuts);
	}
	free(w->keys);
	hashtable_free(&w->by_key);
	buf_free(&w->scratch);
	buf_free(&w->string);
	intern_free(&w->strings);
	free(w);
}
