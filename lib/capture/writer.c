/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/writer.h"
#include "base/clock.h"
#include "base/hashtable.h"
#include "base/intern.h"
#include "base/result.h"
#include "capture/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define BACKLOG_GOAL ((size_t)4 << 20) /* bytes that wait for a pipe: more are waited for at the end, */
#define BACKLOG_MAX ((size_t)256 << 20) /* and more than these end the recording */
#define KEYS_MAX 65536 /* that are remembered: one that comes again later is written again */
#define STALLED_NS UINT64_C(2000000000) /* how long the end waits for a pipe that is not read, */
#define PATIENCE_NS UINT64_C(10000000000) /* and in all for one that is */
#define DRAIN_NS UINT64_C(20000000) /* how long one call writes to a pipe that is read at the same time */

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

/* What a flush has put into the ring: whole blocks, whose sequence numbers do not count. */
struct ring_part {
	uint64_t at, len; /* bytes */
	uint64_t time_ns; /* of the flush */
	uint64_t waits, waits_ns;
};

struct ring {
	int fd; /* 0 = there is none */
	uint64_t keep_ns;
	uint64_t max_bytes; /* of the capture, with what the ring will add; 0 = any number */
	struct ring_part *parts; /* from `first` on, in order of time */
	size_t first, n, max;
	uint64_t end, released; /* where the next part goes; everything before is no longer on the disk */
	uint64_t since_ns; /* it has everything since then */
	uint64_t waits, waits_ns; /* that were queued for the next part */
	uint64_t lost, lost_ns; /* dropped */
	uint64_t copied, copied_ns; /* into the capture */
	uint64_t names; /* that were dropped at the end */
};

/* A counter; its place in the array is its number in changes. */
struct count {
	char *name;
	uint64_t now, written;
};

struct cap_writer {
	int fd;
	bool regular; /* it can be truncated */
	struct result_claim claim; /* that it is named by the path which was given, not "-" */
	char *moved; /* the name that it has instead */
	bool lost; /* it has none */
	int code; /* the first error: nothing is written after it */
	char *name; /* the path, or what it is called in messages */
	char message[256]; /* about a record that no reader would accept */
	uint64_t bytes;
	/* to a pipe: finished blocks, of which the first `sent` bytes are written; until `patience_ns` it is
	   waited for */
	struct buf backlog;
	size_t sent;
	uint64_t patience_ns;
	uint32_t seq;
	struct ids procs, files, scripts, stacks, wakers; /* of wakers, their ids less one */
	struct cap_sample *keys; /* the last ones that were written, from id `first_key` on */
	size_t n_keys, max_keys;
	uint32_t first_key;
	struct hashtable by_key;
	struct count *counts;
	size_t n_counts, max_counts, n_written; /* of them, those that are in the capture */
	uint64_t n_names; /* queued names of user code */
	size_t next_count; /* the recorder gives them in the same order each time */
	uint64_t n_waits, n_waits_ns; /* that were queued, or are in the file */
	uint64_t flushed, flushed_ns; /* of these, at the end of the last flush */
	bool has_flush; /* one is in the file */
	struct intern strings; /* those that were written; the id is that of the record */
	struct cap_record_state samples, waits; /* of the blocks being filled */
	struct buf scratch; /* one record, until its length is known */
	struct ring ring;
	struct buf string; /* likewise, while another record is encoded */
	struct queue queues[CAPTURE_RECORD_TYPES];
};

/* The order of the blocks in a flush: references must point backwards. */
static const unsigned char order[] = { CAPTURE_RECORD_HOST, CAPTURE_RECORD_OPTION, CAPTURE_RECORD_FILE,
	CAPTURE_RECORD_PROC, CAPTURE_RECORD_THREAD, CAPTURE_RECORD_MAP, CAPTURE_RECORD_IMAGE,
	CAPTURE_RECORD_KSYM, CAPTURE_RECORD_SCRIPT, CAPTURE_RECORD_STACK, CAPTURE_RECORD_WAKER,
	CAPTURE_RECORD_KEY, CAPTURE_RECORD_STRING, CAPTURE_RECORD_JIT, CAPTURE_RECORD_NAME,
	CAPTURE_RECORD_LIFE, CAPTURE_RECORD_SAMPLE, CAPTURE_RECORD_WAIT, CAPTURE_RECORD_COUNTER,
	CAPTURE_RECORD_CHANGE, CAPTURE_RECORD_FLUSH, CAPTURE_RECORD_TRAILER };
#define TABLES (ARRAY_LEN(order) - 7) /* what others refer to */
#define TIMED (ARRAY_LEN(order) - 4) /* and what a ring keeps */

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
	w->ring.since_ns = h->start_mono_ns;
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

void cap_writer_life(struct cap_writer *w, const struct cap_life *l)
{
	refer(&w->procs, l->proc);
	if (l->from_ns > l->to_ns)
		refuse(w, "the life of a thread ends before it begins");
	cap_record_put_life(begin_record(w), l);
	end_record(w, CAPTURE_RECORD_LIFE);
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

static void count_queued(struct cap_writer *w, const struct cap_sample *s)
{
	if (s->flags & CAPTURE_SAMPLE_ON_CPU)
		return;
	w->n_waits += s->count;
	w->n_waits_ns += s->total_ns;
	w->ring.waits += s->count;
	w->ring.waits_ns += s->total_ns;
}

void cap_writer_sample(struct cap_writer *w, const struct cap_sample *s)
{
	refer_key(w, s);
	count_queued(w, s);
	cap_record_put_sample(begin_record(w), s, &w->samples);
	end_record(w, CAPTURE_RECORD_SAMPLE);
}

/* The id of the key of S, which is written first if it is new. */
static uint32_t key_id(struct cap_writer *w, const struct cap_sample *s)
{
	const uint64_t hash = cap_sample_hash(s);
	uint32_t id = HASHTABLE_FIND(&w->by_key, hash, i, cap_sample_same_key(&w->keys[i], s));

	if (id != HASHTABLE_NONE)
		return w->first_key + id;
	refer_key(w, s);
	if (w->n_keys == KEYS_MAX) {
		w->first_key += (uint32_t)w->n_keys;
		w->n_keys = 0;
		hashtable_free(&w->by_key);
	}
	if (base_grow(&w->keys, &w->max_keys, w->n_keys + 1, sizeof(*w->keys)) != 0 ||
		hashtable_reserve(&w->by_key, 1) != 0) {
		w->queues[CAPTURE_RECORD_KEY].records.failed = true;
		return 0;
	}
	id = (uint32_t)w->n_keys++;
	w->keys[id] = *s;
	hashtable_add(&w->by_key, hash, id);
	cap_record_put_key(begin_record(w), w->first_key + id, s);
	end_record(w, CAPTURE_RECORD_KEY);
	return w->first_key + id;
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
	count_queued(w, s);
	cap_record_put_wait(begin_record(w), &wait, &w->waits);
	end_record(w, CAPTURE_RECORD_WAIT);
}

static struct count *find_count(struct cap_writer *w, const char *name)
{
	size_t at = w->next_count < w->n_counts && strcmp(w->counts[w->next_count].name, name) == 0
			    ? w->next_count
			    : 0;

	while (at < w->n_counts && strcmp(w->counts[at].name, name) != 0)
		at++;
	w->next_count = at + 1;
	return at < w->n_counts ? &w->counts[at] : NULL;
}

void cap_writer_counter(struct cap_writer *w, const struct cap_counter *c)
{
	struct count *k = find_count(w, c->name);

	if (!k && base_grow(&w->counts, &w->max_counts, w->n_counts + 1, sizeof(*w->counts)) == 0) {
		k = &w->counts[w->n_counts];
		*k = (struct count){ .name = strdup(c->name) };
		w->n_counts += k->name != NULL;
	}
	if (!k || !k->name)
		w->queues[CAPTURE_RECORD_COUNTER].records.failed = true;
	else
		k->now = c->value;
}

/* Queue what the capture does not have yet of the counters; ALL: each one whole. */
static void put_counts(struct cap_writer *w, bool all)
{
	for (size_t i = 0; i < w->n_counts; i++) {
		struct count *k = &w->counts[i];

		if (all || i >= w->n_written) {
			cap_record_put_counter(begin_record(w), &(struct cap_counter){ k->name, k->now });
			end_record(w, CAPTURE_RECORD_COUNTER);
		} else if (k->now != k->written) {
			cap_record_put_change(
				begin_record(w), &(struct cap_change){ (uint32_t)i, k->now - k->written });
			end_record(w, CAPTURE_RECORD_CHANGE);
		}
		k->written = k->now;
	}
	w->n_written = w->n_counts;
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
	w->n_names++;
	cap_code_names_put_jit(begin_record(w), j, string_ref, w);
	end_record(w, CAPTURE_RECORD_JIT);
}

void cap_writer_name(struct cap_writer *w, const struct cap_name *n)
{
	refer(&w->files, n->file);
	w->n_names++;
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
	if (w->lost)
		return result_claim_check(w->fd, w->name, &w->claim, &(char *){ NULL }, e);
	if (w->code == -ETIMEDOUT)
		return err_set(e, w->code,
			"cannot write to '%s': its reader took %" PRIu64
			" bytes, and has not read the other %zu",
			w->name, w->bytes, w->backlog.len - w->sent);
	err_sys(e, w->code, "cannot write to '%s'", w->name);
	if (w->bytes && (w->code == -ENOSPC || w->code == -EDQUOT || w->code == -EFBIG))
		err_hint(e, "the first %llu bytes are kept and can be read", (unsigned long long)w->bytes);
	return w->code;
}

/* Write all of V into the regular file FD. *DONE counts the bytes written, also on failure. */
static int write_all(int fd, struct iovec *v, size_t n, uint64_t *done)
{
	while (n) {
		ssize_t got = writev(fd, v, (int)MIN(n, (size_t)IOV_MAX));
		size_t left;

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

/* Forget what was written, when moving the rest costs less than that. */
static void tidy_backlog(struct cap_writer *w)
{
	struct buf *b = &w->backlog;

	if (!w->sent || w->sent < b->len - w->sent)
		return;
	memmove(b->p, b->p + w->sent, b->len - w->sent);
	b->len -= w->sent;
	w->sent = 0;
}

/*
 * Write of the backlog what the pipe takes. Until END_NS (0 = not at all) wait for that, but not for a reader
 * that has stopped reading. A pipe that poll(2) finds writable takes PIPE_BUF bytes without blocking.
 * (O_NONBLOCK would be set for every process that has it.)
 */
static int drain(struct cap_writer *w, uint64_t end_ns)
{
	const uint64_t stop_ns = MAX(end_ns, now_ns() + DRAIN_NS);
	struct pollfd p = { .fd = w->fd, .events = POLLOUT };
	uint64_t now, until = MIN(end_ns, now_ns() + STALLED_NS);
	ssize_t got;

	while (w->sent < w->backlog.len && (now = now_ns()) < stop_ns) {
		const int n = poll(&p, 1, now < until ? (int)((until - now) / 1000000) + 1 : 0);

		if (n == 0)
			break;
		got = n < 0 ? -1
			    : write(w->fd, w->backlog.p + w->sent,
				      MIN(w->backlog.len - w->sent, (size_t)PIPE_BUF));
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		w->sent += (size_t)MAX(got, 0);
		w->bytes += (uint64_t)MAX(got, 0);
		if (got > 0)
			until = MIN(end_ns, now + STALLED_NS);
	}
	tidy_backlog(w);
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

/* Into a pipe: what it does not take at once waits in the backlog. */
static int send_batch(struct cap_writer *w, const struct batch *b)
{
	for (size_t i = 0; i < 2 * b->n; i++)
		buf_put(&w->backlog, b->v[i].iov_base, b->v[i].iov_len);
	if (w->backlog.failed)
		return -ENOMEM;
	w->seq += (uint32_t)b->n;
	if (w->backlog.len - w->sent > BACKLOG_MAX)
		return -ETIMEDOUT;
	return drain(w, w->backlog.len - w->sent > BACKLOG_GOAL ? w->patience_ns : 0);
}

static bool batch_new(struct batch *b, size_t blocks)
{
	*b = (struct batch){ .v = calloc(blocks * 2 + 1, sizeof(*b->v)),
		.headers = calloc(blocks + 1, sizeof(*b->headers)) };
	return b->v && b->headers;
}

static void batch_free(struct batch *b)
{
	free(b->v);
	free(b->headers);
}

/* End the blocks being filled, and make of all those of order[FROM] up to order[TO], exclusive, a batch. */
static int gather(struct cap_writer *w, size_t from, size_t to, struct batch *b)
{
	size_t blocks = 0;

	for (size_t i = from; i < to; i++) {
		struct queue *q = &w->queues[order[i]];

		if (q->records.len > q->open_from)
			cut(q);
		if (q->records.failed)
			return -ENOMEM;
		blocks += q->n_cuts;
	}
	if (!batch_new(b, blocks))
		return -ENOMEM;
	for (size_t i = from; i < to; i++) {
		struct queue *q = &w->queues[order[i]];

		for (size_t k = 0; k < q->n_cuts; k++)
			add_block(w, b, order[i], q->records.p + q->cuts[k].from,
				q->cuts[k].to - q->cuts[k].from);
	}
	return 0;
}

/* Write these queues as blocks, in order, with one system call if the kernel takes them all. */
static int write_queues(struct cap_writer *w, size_t from, size_t to)
{
	struct batch b = { 0 };
	int code = gather(w, from, to, &b);

	code = code ? code : w->regular ? write_batch(w, &b) : send_batch(w, &b);
	batch_free(&b);
	return code;
}

/* --- the ring --- */

void cap_writer_ring(struct cap_writer *w, int fd, uint64_t keep_ns, uint64_t max_bytes)
{
	w->ring = (struct ring){ .fd = fd, .keep_ns = keep_ns, .max_bytes = max_bytes };
}

/* What the capture has, and what it gets as soon as a pipe is read. */
static uint64_t taken_bytes(const struct cap_writer *w)
{
	return w->bytes + w->backlog.len - w->sent;
}

bool cap_writer_full(const struct cap_writer *w)
{
	const uint64_t max = w->ring.max_bytes;

	return max && taken_bytes(w) > max - max / 4;
}

void cap_writer_overwritten(const struct cap_writer *w, uint64_t *count, uint64_t *ns)
{
	*count = w->ring.lost;
	*ns = w->ring.lost_ns;
}

/* Give the disk back what lies before AT. A failure costs only space. */
static void release_before(struct ring *r, uint64_t at)
{
	at &= ~UINT64_C(4095);
	if (at > r->released && fallocate(r->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)r->released, (off_t)(at - r->released)) == 0)
		r->released = at;
}

static void drop_first(struct ring *r, size_t n)
{
	for (; n; n--, r->n--) {
		const struct ring_part *p = &r->parts[r->first++];

		r->lost += p->waits;
		r->lost_ns += p->waits_ns;
		r->since_ns = p->time_ns;
	}
	if (!r->n)
		r->first = 0;
	release_before(r, r->n ? r->parts[r->first].at : r->end);
}

/* How many parts are older than the ring keeps. */
static size_t n_old(const struct ring *r, uint64_t now_ns)
{
	size_t n = 0;

	while (n < r->n && (int64_t)(now_ns - r->parts[r->first + n].time_ns) > 0 &&
		now_ns - r->parts[r->first + n].time_ns > r->keep_ns)
		n++;
	return n;
}

static bool is_full(int code)
{
	return code == -ENOSPC || code == -EDQUOT;
}

/* Write B behind the others. If the disk is full, drop the older half of them, and so on. */
static int write_to_ring(struct ring *r, const struct batch *b, uint64_t *len)
{
	_cleanup_free_ struct iovec *v = calloc(2 * b->n + 1, sizeof(*v));
	int code;

	for (;;) {
		if (!v)
			return -ENOMEM;
		memcpy(v, b->v, 2 * b->n * sizeof(*v));
		*len = 0;
		code = lseek(r->fd, (off_t)r->end, SEEK_SET) < 0 ? -errno
								 : write_all(r->fd, v, 2 * b->n, len);
		if (!is_full(code) || !r->n)
			return code;
		drop_first(r, (r->n + 1) / 2);
	}
}

/* Move the queues of samples and waits into the ring. */
static int fill_ring(struct cap_writer *w, uint64_t time_ns)
{
	struct ring *r = &w->ring;
	struct ring_part part = { r->end, 0, time_ns, r->waits, r->waits_ns };
	struct batch b = { 0 };
	int code = gather(w, TABLES, TIMED, &b);

	if (!code && r->first && r->first + r->n == r->max) {
		memmove(r->parts, r->parts + r->first, r->n * sizeof(*r->parts));
		r->first = 0;
	}
	if (!code && base_grow(&r->parts, &r->max, r->first + r->n + 1, sizeof(*r->parts)) != 0)
		code = -ENOMEM;
	if (!code && b.n)
		code = write_to_ring(r, &b, &part.len);
	if (is_full(code)) {
		/* it alone has no room: then it is what is dropped */
		code = ftruncate(r->fd, (off_t)r->end) == 0 ? 0 : -errno;
		r->lost += part.waits;
		r->lost_ns += part.waits_ns;
		r->since_ns = time_ns;
	} else if (!code) {
		r->end += part.len;
		r->parts[r->first + r->n++] = part;
	}
	r->waits = r->waits_ns = 0;
	batch_free(&b);
	return code;
}

/* How many blocks the LEN bytes of a part are, which this process wrote; 0 = someone else did. */
static size_t count_blocks(const uint8_t *p, uint64_t len)
{
	struct cap_block b;
	size_t n = 0;

	for (uint64_t at = 0; at < len; at += CAPTURE_BLOCK_HEAD_LEN + b.len, n++)
		if (len - at < CAPTURE_BLOCK_HEAD_LEN || !cap_block_get(p + at, &b) ||
			len - at - CAPTURE_BLOCK_HEAD_LEN < b.len)
			return 0;
	return n;
}

/* Copy PART into the capture. */
static int write_part(struct cap_writer *w, const struct ring_part *part)
{
	_cleanup_free_ uint8_t *bytes = malloc(part->len);
	struct batch b = { 0 };
	struct cap_block block;
	uint64_t have = 0;
	int code = 0;

	while (bytes && have < part->len) {
		ssize_t n = pread(w->ring.fd, bytes + have, part->len - have, (off_t)(part->at + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		have += (uint64_t)n;
	}
	if (!bytes || !batch_new(&b, count_blocks(bytes, part->len)))
		code = -ENOMEM;
	for (uint64_t at = 0; !code && at < part->len; at += CAPTURE_BLOCK_HEAD_LEN + block.len) {
		if (!cap_block_get(bytes + at, &block))
			break;
		add_block(w, &b, block.type, bytes + at + CAPTURE_BLOCK_HEAD_LEN, block.len);
	}
	code = code ? code : w->regular ? write_batch(w, &b) : send_batch(w, &b);
	batch_free(&b);
	return code;
}

#define END_BYTES 16384 /* the counters at the end, and what is a second old */

/* What the queues but those of the ring will take in the capture. */
static uint64_t queued_bytes(const struct cap_writer *w)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const struct queue *q = &w->queues[order[i]];

		if (i < TABLES || i >= TIMED)
			sum += q->records.len + (q->n_cuts + 1) * CAPTURE_BLOCK_HEAD_LEN;
	}
	return sum;
}

/* Reserve NEED bytes of the disk for the capture. If it has not got them, drop the oldest parts. */
static void reserve(struct cap_writer *w, uint64_t need)
{
	const off_t end = lseek(w->fd, 0, SEEK_CUR);
	struct ring *r = &w->ring;

	while (w->regular && r->n && fallocate(w->fd, FALLOC_FL_KEEP_SIZE, end, (off_t)need) != 0 &&
		is_full(-errno))
		drop_first(r, 1);
}

/*
 * Room for all that is queued, and for a copy of the largest part: each part is
 * copied before its place is given back.
 */
static uint64_t whole_bytes(const struct cap_writer *w)
{
	const struct ring *r = &w->ring;
	uint64_t largest = 0;

	for (size_t i = 0; i < r->n; i++)
		largest = MAX(largest, r->parts[r->first + i].len);
	return queued_bytes(w) + largest + (1 << 16);
}

/* Drop the oldest parts until the rest fits into the capture. */
static void keep_to_size(struct cap_writer *w)
{
	const uint64_t others = taken_bytes(w) + queued_bytes(w) + END_BYTES;
	struct ring *r = &w->ring;
	size_t n = 0;

	if (!r->max_bytes)
		return;
	while (n < r->n && others + r->end - r->parts[r->first + n].at > r->max_bytes)
		n++;
	drop_first(r, n);
}

/* Names are less than waits, but if there is no room without any, do without: files have them too. */
static void drop_names(struct cap_writer *w)
{
	static const unsigned char types[] = { CAPTURE_RECORD_STRING, CAPTURE_RECORD_JIT,
		CAPTURE_RECORD_NAME };

	if (!w->ring.max_bytes || taken_bytes(w) + queued_bytes(w) + END_BYTES <= w->ring.max_bytes)
		return;
	w->ring.names = w->n_names;
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct queue *q = &w->queues[types[i]];

		buf_reset(&q->records);
		q->n_cuts = q->open_from = 0;
	}
}

/* Copy the whole ring into the capture, and empty it. */
static int write_ring(struct cap_writer *w)
{
	struct ring *r = &w->ring;
	int code = 0;

	for (size_t i = 0; i < r->n; i++) {
		const struct ring_part *p = &r->parts[r->first + i];

		code = p->len ? write_part(w, p) : 0;
		if (code)
			break;
		r->copied += p->waits;
		r->copied_ns += p->waits_ns;
		release_before(r, p->at + p->len);
	}
	if (code)
		return code;
	r->since_ns = r->n ? r->parts[r->first + r->n - 1].time_ns : r->since_ns;
	r->first = r->n = 0;
	release_before(r, r->end);
	return 0;
}

static void empty_queues(struct cap_writer *w)
{
	for (size_t i = 0; i < CAPTURE_RECORD_TYPES; i++) {
		buf_reset(&w->queues[i].records);
		w->queues[i].n_cuts = w->queues[i].open_from = 0;
	}
	w->ring.waits = w->ring.waits_ns = w->n_names = 0;
	w->samples = w->waits = (struct cap_record_state){ 0 };
}

/* Since when the ring has everything, and how much it has dropped, which may have changed since the recorder
 * asked. */
static void put_kept(struct cap_writer *w, uint64_t time_ns)
{
	uint64_t waits, waits_ns;
	char text[64];

	snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, w->ring.since_ns, time_ns);
	cap_writer_option(w, &(struct cap_option){ CAPTURE_OPTION_KEPT, text });
	cap_writer_waits(w, &waits, &waits_ns);
	cap_writer_counter(w, &(struct cap_counter){ "waits.recorded", waits });
	cap_writer_counter(w, &(struct cap_counter){ "waits.recorded_ns", waits_ns });
	cap_writer_counter(w, &(struct cap_counter){ "waits.overwritten", w->ring.lost });
	cap_writer_counter(w, &(struct cap_counter){ "waits.overwritten_ns", w->ring.lost_ns });
	cap_writer_counter(w, &(struct cap_counter){ "names.dropped", w->ring.names });
}

void cap_writer_waits(const struct cap_writer *w, uint64_t *count, uint64_t *ns)
{
	*count = w->n_waits - w->ring.lost;
	*ns = w->n_waits_ns - w->ring.lost_ns;
}

/*
 * A flush has failed, whose first block would be the one numbered SEQ, after BYTES. Take back what it has
 * written: its counters are missing, and without it the file agrees with those of the flush before. Not the
 * first flush, which is better than nothing. Of a ring there is what was copied.
 */
static void take_back(struct cap_writer *w, uint32_t seq, uint64_t bytes)
{
	const struct ring *r = &w->ring;

	w->n_waits = r->fd ? r->copied + r->lost : w->flushed;
	w->n_waits_ns = r->fd ? r->copied_ns + r->lost_ns : w->flushed_ns;
	if (r->fd || !w->regular || !w->has_flush)
		return;
	cut_back(w, w->bytes - bytes);
	w->seq = seq;
	w->bytes = bytes;
}

/* With a ring, WHOLE: write what it has, too; else nothing but tables. LAST: the capture ends here. */
static int write_all_queues(struct cap_writer *w, uint64_t time_ns, bool whole, bool last)
{
	int code;

	if (!w->ring.fd) {
		put_counts(w, last);
		return write_queues(w, 0, ARRAY_LEN(order));
	}
	code = fill_ring(w, time_ns);
	drop_first(&w->ring, n_old(&w->ring, time_ns));
	if (last)
		drop_names(w);
	keep_to_size(w);
	reserve(w, whole ? whole_bytes(w) : queued_bytes(w));
	if (whole) {
		put_kept(w, time_ns);
		put_counts(w, last);
	}
	code = code ? code : write_queues(w, 0, TABLES);
	if (whole) {
		code = code ? code : write_ring(w);
		code = code ? code : write_queues(w, TIMED, ARRAY_LEN(order));
	}
	/* release what was reserved and not needed */
	if (w->regular && !code && ftruncate(w->fd, lseek(w->fd, 0, SEEK_CUR)) != 0)
		code = -errno;
	return code;
}

static int flush(struct cap_writer *w, uint64_t time_ns, bool whole, bool last)
{
	const uint64_t bytes = w->bytes;
	const uint32_t seq = w->seq;
	int code;

	if (w->procs.need > w->procs.have)
		refuse(w, "a record refers to a process that was not written");
	if (w->files.need > w->files.have)
		refuse(w, "a record refers to a file that was not written");
	if (w->stacks.need > w->stacks.have)
		refuse(w, "a sample refers to a stack that was not written");
	if (w->wakers.need > w->wakers.have)
		refuse(w, "a sample refers to a waker that was not written");
	if (!w->code && !result_claim_linked(w->fd, &w->claim)) {
		w->lost = true;
		fail(w, -ESTALE);
	}
	if (w->code)
		return w->code;
	code = write_all_queues(w, time_ns, whole, last);
	empty_queues(w);
	if (code) {
		take_back(w, seq, bytes);
		return fail(w, code);
	}
	w->flushed = w->n_waits;
	w->flushed_ns = w->n_waits_ns;
	w->has_flush = true;
	return 0;
}

int cap_writer_flush(struct cap_writer *w, uint64_t time_ns, struct err *e)
{
	cap_record_put_flush(begin_record(w), &(struct cap_flush){ .time_ns = time_ns });
	end_record(w, CAPTURE_RECORD_FLUSH);
	return flush(w, time_ns, false, false) ? put_error(w, e) : 0;
}

int cap_writer_release(struct cap_writer *w, uint64_t time_ns, struct err *e)
{
	cap_record_put_flush(begin_record(w), &(struct cap_flush){ .time_ns = time_ns });
	end_record(w, CAPTURE_RECORD_FLUSH);
	w->patience_ns = now_ns() + PATIENCE_NS;
	return flush(w, time_ns, true, false) ? put_error(w, e) : 0;
}

bool cap_writer_behind(const struct cap_writer *w)
{
	return w->sent < w->backlog.len;
}

int cap_writer_service(struct cap_writer *w, struct err *e)
{
	int code = w->code || !cap_writer_behind(w) ? 0 : drain(w, 0);

	return code ? fail(w, code), put_error(w, e) : 0;
}

int cap_writer_finish(struct cap_writer *w, const struct cap_trailer *t, struct err *e)
{
	int code;

	cap_record_put_flush(begin_record(w), &(struct cap_flush){ .time_ns = t->stop_ns });
	end_record(w, CAPTURE_RECORD_FLUSH);
	cap_record_put_trailer(begin_record(w), t);
	end_record(w, CAPTURE_RECORD_TRAILER);
	w->patience_ns = now_ns() + PATIENCE_NS;
	if (flush(w, t->stop_ns, true, true))
		return put_error(w, e);
	code = drain(w, w->patience_ns);
	if (code || w->sent < w->backlog.len)
		return fail(w, code ? code : -ETIMEDOUT), put_error(w, e);
	if (w->regular && fsync(w->fd) != 0)
		return fail(w, -errno), put_error(w, e);
	code = result_claim_check(w->fd, w->name, &w->claim, &w->moved, e);
	w->lost = code && !w->moved;
	return code ? fail(w, code) : 0;
}

const char *cap_writer_place(const struct cap_writer *w)
{
	return w->lost ? NULL : w->moved ? w->moved : w->name;
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
	if (!w->regular)
		buf_put(&w->backlog, w->scratch.p, w->scratch.len);
	if (w->scratch.failed || w->backlog.failed)
		return err_nomem(e, "the capture");
	v = (struct iovec){ w->scratch.p, w->scratch.len };
	code = w->regular ? write_all(w->fd, &v, 1, &w->bytes) : drain(w, 0);
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
	w->name = strdup(strcmp(path, "-") == 0 ? "standard output" : path);
	if (!w->name)
		return err_nomem(e, "the capture");
	w->regular = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
	code = strcmp(path, "-") != 0 ? result_claim(fd, path, &w->claim, e) : 0;
	code = code ? code : write_header(w, e);
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
	result_claim_free(&w->claim);
	free(w->name);
	free(w->moved);
	for (size_t i = 0; i < CAPTURE_RECORD_TYPES; i++) {
		buf_free(&w->queues[i].records);
		free(w->queues[i].cuts);
	}
	if (w->ring.fd)
		close(w->ring.fd);
	free(w->ring.parts);
	free(w->keys);
	hashtable_free(&w->by_key);
	buf_free(&w->scratch);
	buf_free(&w->backlog);
	buf_free(&w->string);
	intern_free(&w->strings);
	for (size_t i = 0; i < w->n_counts; i++)
		free(w->counts[i].name);
	free(w->counts);
	free(w);
}
