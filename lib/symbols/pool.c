/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/pool.h"
#include "base/clock.h"
#include "base/fs.h"
#include "system/worker.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 4 /* of one task, not counting .dwo files */
#define GROUP_MAX 32 /* tasks of one process: each needs two descriptors or a few more */

_Static_assert(sizeof(struct sym_worker_record) % 8 == 0, "answers are aligned to 8");

/* The descriptors that the tasks need, without duplicates. */
struct fds {
	int *p;
	size_t n, cap;
	bool failed;
};

static uint64_t align8(uint64_t v)
{
	return (v + 7) & ~UINT64_C(7);
}

static void need(struct fds *fds, int fd)
{
	for (size_t i = 0; i < fds->n; i++)
		if (fds->p[i] == fd)
			return;
	if (base_grow(&fds->p, &fds->cap, fds->n + 1, sizeof(*fds->p)) != 0)
		fds->failed = true;
	else
		fds->p[fds->n++] = fd;
}

static void need_file(struct fds *fds, const struct elffile *f)
{
	if (f && f->fd >= 0)
		need(fds, f->fd);
}

static void need_all(struct fds *fds, const struct sym_lookup_input *in)
{
	need_file(fds, in->elf);
	need_file(fds, in->debug);
	need_file(fds, in->alt);
	need_file(fds, in->dwp);
	for (size_t i = 0; i < in->n_dwos; i++)
		need_file(fds, in->dwos[i].file);
}

/* The work of one process. */
struct sym_worker {
	const struct sym_lookup_input *tasks[GROUP_MAX];
	size_t n;
	sym_reader_task *lookup;
	/* The answer file, then the tasks' files; in the sandbox they start at SYM_WORKER_OUT. */
	struct fds fds;
};

/* Copy F with its descriptor in the sandbox. */
static const struct elffile *moved(const struct fds *fds, const struct elffile *f, struct elffile *copy)
{
	if (!f)
		return NULL;
	*copy = *f;
	for (size_t i = 0; i < fds->n && f->fd >= 0; i++)
		if (fds->p[i] == f->fd)
			copy->fd = SYM_WORKER_OUT + (int)i;
	return copy;
}

/* Call w->lookup with the descriptors of the sandbox. */
static int run_task(const struct sym_worker *w, const struct sym_lookup_input *task, uint8_t **ret,
	size_t *len, struct err *e)
{
	const struct fds *fds = &w->fds;
	struct sym_lookup_input in = *task;
	struct elffile copies[FILES_MAX];
	_cleanup_free_ struct elffile *dwo_copies = calloc(in.n_dwos + 1, sizeof(*dwo_copies));
	_cleanup_free_ struct sym_lookup_dwo *dwos = calloc(in.n_dwos + 1, sizeof(*dwos));

	if (!dwos || !dwo_copies)
		return err_nomem(e, "files");
	in.elf = moved(fds, in.elf, &copies[0]);
	in.debug = moved(fds, in.debug, &copies[1]);
	in.alt = moved(fds, in.alt, &copies[2]);
	in.dwp = moved(fds, in.dwp, &copies[3]);
	for (size_t i = 0; i < in.n_dwos; i++) {
		dwos[i].id = task->dwos[i].id;
		dwos[i].file = moved(fds, task->dwos[i].file, &dwo_copies[i]);
	}
	in.dwos = dwos;
	return w->lookup(&in, ret, len, e);
}

/* Write the answer at AT. The offset of the next one, or 0 if it cannot be written. */
static uint64_t answer(uint64_t at, struct sym_worker_record *r, const uint8_t *bytes, const struct err *e)
{
	const uint64_t behind = at + sizeof(*r);

	if (!r->error)
		r->error = writefd_at(SYM_WORKER_OUT, bytes, r->len, behind);
	if (r->error) {
		r->len = 0;
		snprintf(r->why, sizeof(r->why), "%.*s", (int)sizeof(r->why) - 1,
			e->msg[0] ? e->msg : "the answer cannot be handed over");
	}
	return writefd_at(SYM_WORKER_OUT, r, sizeof(*r), at) ? 0 : behind + align8(r->len);
}

static int work(void *arg, int sock)
{
	const struct sym_worker *w = arg;
	uint64_t at = 0;

	(void)sock;
	for (size_t i = 0; i < w->n && (at || !i); i++) {
		struct sym_worker_record r = { .magic = SYM_WORKER_MAGIC, .number = (uint32_t)i };
		uint64_t began = now_on(CLOCK_PROCESS_CPUTIME_ID);
		struct err e = { 0 };
		uint8_t *bytes = NULL;
		size_t len = 0;

		r.error = run_task(w, w->tasks[i], &bytes, &len, &e);
		r.len = len;
		r.ns = now_on(CLOCK_PROCESS_CPUTIME_ID) - began;
		at = answer(at, &r, bytes, &e);
		free(bytes);
	}
	return 0;
}

int sym_worker_next(
	int fd, uint64_t size, uint32_t number, uint64_t *at, struct sym_worker_record *ret, uint8_t **bytes)
{
	int rc;

	*bytes = NULL;
	if (size < *at || size - *at < sizeof(*ret))
		return -ENOENT;
	rc = readfd_at(fd, ret, sizeof(*ret), *at);
	if (rc)
		return rc;
	if (!ret->magic)
		return -ENOENT;
	*at += sizeof(*ret);
	if (ret->magic != SYM_WORKER_MAGIC || ret->number != number || ret->len > size - *at ||
		ret->error > 0 || ret->error < -4095 || (ret->error && ret->len) ||
		!memchr(ret->why, 0, sizeof(ret->why)))
		return -EPROTO;
	if (ret->error)
		return 0;
	*bytes = malloc(ret->len + 1);
	if (!*bytes)
		return -ENOMEM;
	rc = readfd_at(fd, *bytes, ret->len, *at);
	*at += align8(ret->len);
	return rc;
}

#define MEMORY_DEFAULT (UINT64_C(2) << 30)
#define ANSWER_MAX (UINT64_C(1) << 30)
#define SECONDS_DEFAULT 60
#define GROUP_NS 3000000 /* cost of a full group: starting a process takes a third of this */
#define TICK_MS 200
#define NS UINT64_C(1000000000)
#define GRACE_MS 100

/* A job and its estimated cost, which only affects the order. */
struct item {
	struct sym_reader_job *job;
	uint64_t cost_ns;
	bool shares; /* may share a process: see is_trusted() */
};

/* A process with the items [at, end). */
struct slot {
	struct worker *worker; /* NULL = none */
	int out;
	size_t at, end;
	size_t seen; /* how many were answered when the deadline was set */
	uint64_t deadline_ns;
};

struct run {
	struct sym_reader_opts o;
	sym_reader_task *lookup;
	struct item *items;
	size_t n, next; /* items from NEXT on are not started */
	struct slot *slots;
	size_t n_slots, running;
	void (*done)(void *ctx, struct sym_reader_job *job);
	void *done_ctx;
};

/* --- which process does what --- */

static uint64_t section_bytes(const struct elffile *f, bool symbols)
{
	uint64_t sum = 0;

	for (size_t i = 0; f && i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];
		bool table = s->type == SHT_SYMTAB || s->type == SHT_DYNSYM;

		/* sections that are not loaded are mostly debug information */
		if (symbols ? table : s->type == SHT_PROGBITS && !(s->flags & SHF_ALLOC))
			sum += s->size < f->size ? s->size : 0;
	}
	return sum;
}

/* Measured: half a nanosecond for a byte of a symbol table, at most two for one of debug information. */
static uint64_t cost_of(const struct sym_reader_job *j)
{
	const struct sym_lookup_input *in = &j->in;
	uint64_t tables = section_bytes(in->elf, true) + section_bytes(in->debug, true);
	uint64_t debug = in->inlines || in->lines
				 ? section_bytes(in->elf, false) + section_bytes(in->debug, false)
				 : 0;

	return 50000 + tables / 2 + in->n_vaddrs * 200 + debug * 2;
}

static bool is_of_root(const struct elffile *f)
{
	struct stat st;

	return !f || (f->fd >= 0 && fstat(f->fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & 022));
}

/*
 * A file that takes over the process reading it can forge the answers for all files of that
 * process. Files that only root can have written may share a process; any other file, and bytes in
 * memory, get their own.
 */
static bool is_trusted(const struct sym_lookup_input *in)
{
	if (!in->elf || !is_of_root(in->elf) || !is_of_root(in->debug) || !is_of_root(in->alt) ||
		!is_of_root(in->dwp))
		return false;
	for (size_t i = 0; i < in->n_dwos; i++)
		if (!is_of_root(in->dwos[i].file))
			return false;
	return true;
}

static bool is_small(const struct item *i)
{
	return i->shares && i->cost_ns < GROUP_NS;
}

/* Largest first; items that can share a process are adjacent. */
static int by_cost(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int c = CMP(is_small(x), is_small(y));

	c = c ? c : CMP(y->cost_ns, x->cost_ns);
	return c ? c : CMP(x->job, y->job);
}

/* The end of the next process's items: small ones are grouped until they are worth a process. */
static size_t group_end(const struct run *r)
{
	uint64_t cost = r->items[r->next].cost_ns;
	size_t i = r->next + 1;

	for (; is_small(&r->items[r->next]) && i < r->n && i - r->next < GROUP_MAX; i++) {
		cost += r->items[i].cost_ns;
		if (cost > GROUP_NS)
			break;
	}
	return i;
}

/* --- finished jobs --- */

static void finish(const struct run *r, struct sym_reader_job *j)
{
	if (r->done)
		r->done(r->done_ctx, j);
}

static void fail(const struct run *r, struct sym_reader_job *j, int code, const char *why)
{
	j->error = code;
	snprintf(j->why, sizeof(j->why), "%.*s", (int)sizeof(j->why) - 1, why);
	finish(r, j);
}

/* Does A hold exactly the requested addresses? */
static bool answers_all(const struct sym_lookup_input *in, const struct sym_answer *a)
{
	if (a->head->n_addrs != in->n_vaddrs)
		return false;
	for (size_t i = 0; i < in->n_vaddrs; i++)
		if (a->addrs[i].vaddr != in->vaddrs[i])
			return false;
	return true;
}

/* The job owns BYTES from here on. */
static void take(const struct run *r, struct sym_reader_job *j, const struct sym_worker_record *rec,
	uint8_t *bytes, uint64_t memory)
{
	j->ns = rec->ns;
	j->memory_bytes = memory;
	if (rec->error) {
		fail(r, j, rec->error, rec->why);
	} else if (sym_answer_view(bytes, rec->len, &j->answer, NULL) != 0 ||
		   !answers_all(&j->in, &j->answer)) {
		free(bytes);
		fail(r, j, -EIO, "the process that reads its symbols sent a malformed reply");
	} else {
		j->bytes = bytes;
		j->len = rec->len;
		finish(r, j);
	}
}

/* Collect the answers of the process of S. Afterwards S->at is the first item without an answer. */
static void collect(const struct run *r, struct slot *s, uint64_t memory)
{
	struct sym_worker_record rec;
	struct stat st;
	uint64_t at = 0;
	uint32_t number = 0;

	if (fstat(s->out, &st) != 0)
		return;
	for (; s->at < s->end; s->at++, number++) {
		uint8_t *bytes;
		int rc = sym_worker_next(s->out, (uint64_t)st.st_size, number, &at, &rec, &bytes);

		if (rc == 0) {
			take(r, r->items[s->at].job, &rec, bytes, memory);
			continue;
		}
		free(bytes);
		if (rc != -ENOMEM)
			return;
		fail(r, r->items[s->at].job, rc, "no memory for its symbols");
	}
}

/* --- processes --- */

static void slot_close(struct slot *s)
{
	if (s->out >= 0)
		close(s->out);
	s->out = -1;
	worker_free(s->worker);
	s->worker = NULL;
}

static void set_clock(const struct run *r, struct slot *s)
{
	s->deadline_ns = now_ns() + r->o.seconds * NS;
}

static int start_worker(const struct run *r, struct slot *s, struct sym_worker *w, struct err *e)
{
	struct sandbox_opts box = { .comm = "symbols",
		.memory_bytes = r->o.memory_bytes,
		.file_bytes = MIN(r->o.memory_bytes, ANSWER_MAX) };
	const struct worker_opts opts = {
		.who = "the process that reads its symbols", .sandbox = &box, .run = work, .arg = w
	};

	need(&w->fds, s->out);
	for (size_t i = 0; i < w->n; i++) {
		w->tasks[i] = &r->items[s->at + i].job->in;
		need_all(&w->fds, w->tasks[i]);
	}
	if (w->fds.failed)
		return err_nomem(e, "files");
	box.more_fds = w->fds.p;
	box.n_more = w->fds.n;
	return worker_start(&opts, &s->worker, e);
}

/* Start a process for the items [s->at, s->end). 0, or -errno with S unused. */
static int start(struct run *r, struct slot *s, struct err *e)
{
	struct sym_worker w = { .n = s->end - s->at, .lookup = r->lookup };
	int rc;

	s->seen = 0;
	s->out = worker_memfd("symbols");
	if (s->out < 0)
		return err_sys(e, s->out, "cannot make room for symbols");
	rc = start_worker(r, s, &w, e);
	free(w.fds.p);
	if (rc) {
		slot_close(s);
		return rc;
	}
	r->running++;
	set_clock(r, s);
	return 0;
}

/* The process of S has ended, or must end. WHY NULL: report how it ended. */
static void end(struct run *r, struct slot *s, int code, const char *why)
{
	struct worker_end how;

	worker_stop(s->worker, why ? 0 : GRACE_MS, &how);
	r->running--;
	collect(r, s, (uint64_t)how.usage.ru_maxrss << 10);
	slot_close(s);
	if (s->at < s->end)
		fail(r, r->items[s->at++].job, code, why ? why : how.why);
}

/* Counts answers. Records are written last, so an existing record is complete. */
static size_t answered(const struct slot *s)
{
	struct sym_worker_record rec;
	struct stat st;
	uint64_t at = 0;
	size_t n = 0;

	if (fstat(s->out, &st) != 0)
		return 0;
	for (; n < s->end - s->at; n++) {
		if (at + sizeof(rec) > (uint64_t)st.st_size ||
			readfd_at(s->out, &rec, sizeof(rec), at) != 0 || rec.magic != SYM_WORKER_MAGIC ||
			rec.len > (uint64_t)st.st_size)
			break;
		at += sizeof(rec) + ((rec.len + 7) & ~UINT64_C(7));
	}
	return n;
}

/* The time limit is for one item: a process that reached another item gets a new deadline. */
static void check_clock(struct run *r, struct slot *s)
{
	char why[128];
	size_t n;

	if (now_ns() < s->deadline_ns)
		return;
	n = answered(s);
	if (n > s->seen) {
		s->seen = n;
		set_clock(r, s);
		return;
	}
	snprintf(why, sizeof(why), "to read its symbols took longer than %u s", r->o.seconds);
	end(r, s, -ETIMEDOUT, why);
}

/* Start work in every free slot. -errno only if none is running and none can be started. */
static int start_all(struct run *r, struct err *e)
{
	for (size_t i = 0; i < r->n_slots; i++) {
		struct slot *s = &r->slots[i];
		size_t next = r->next;
		int rc;

		if (s->worker)
			continue;
		if (s->at == s->end && r->next == r->n)
			continue;
		if (s->at == s->end) {
			s->at = r->next;
			s->end = next = group_end(r);
		}
		rc = start(r, s, e);
		if (rc == 0)
			r->next = next;
		else if (!r->running)
			return rc;
		else if (next != r->next)
			s->end = s->at; /* try again later */
	}
	return 0;
}

static int wait_ms(const struct run *r)
{
	uint64_t now = now_ns(), end_ns = r->o.end_ns ? *r->o.end_ns : UINT64_MAX;

	return now >= end_ns ? 0 : (int)MIN((uint64_t)TICK_MS, (end_ns - now) / 1000000 + 1);
}

static void wait_a_while(const struct run *r, struct pollfd *fds)
{
	/* only POLLHUP, which needs no request */
	for (size_t i = 0; i < r->n_slots; i++)
		fds[i] = (struct pollfd){ .fd = r->slots[i].worker ? worker_fd(r->slots[i].worker) : -1 };
	if (poll(fds, r->n_slots, wait_ms(r)) <= 0) {
		for (size_t i = 0; i < r->n_slots; i++)
			fds[i].revents = 0;
		if (r->o.tick)
			r->o.tick(r->o.tick_ctx);
	}
}

/* After the deadline, end all processes but keep their answers. -ETIME if the deadline has passed. */
static int end_in_time(struct run *r, struct err *e)
{
	static const char why[] = "the time for all symbols was over";

	if (!r->o.end_ns || now_ns() < *r->o.end_ns)
		return 0;
	for (size_t i = 0; i < r->n_slots; i++)
		if (r->slots[i].worker)
			end(r, &r->slots[i], -ETIME, why);
	return err_set(e, -ETIME, "%s", why);
}

static int run_all(struct run *r, struct err *e)
{
	_cleanup_free_ struct pollfd *fds = calloc(r->n_slots, sizeof(*fds));
	int rc = fds ? start_all(r, e) : err_nomem(e, "processes");

	while (rc == 0 && r->running) {
		wait_a_while(r, fds);
		for (size_t i = 0; i < r->n_slots; i++) {
			struct slot *s = &r->slots[i];

			if (s->worker && fds[i].revents)
				end(r, s, -EIO, NULL);
			else if (s->worker)
				check_clock(r, s);
		}
		rc = end_in_time(r, e);
		rc = rc ? rc : start_all(r, e);
	}
	return rc;
}

/* No process is left to do the remaining items. */
static void fail_rest(struct run *r, const struct err *e)
{
	for (size_t i = 0; i < r->n_slots; i++)
		for (struct slot *s = &r->slots[i]; s->at < s->end && s->at < r->next; s->at++)
			fail(r, r->items[s->at].job, e->code, e->msg);
	for (; r->next < r->n; r->next++)
		fail(r, r->items[r->next].job, e->code, e->msg);
}

static int prepare(struct run *r, struct sym_reader_job *jobs, struct err *e)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	r->o.jobs = r->o.jobs ? r->o.jobs : (unsigned int)MAX(cpus, 1L);
	r->o.memory_bytes = r->o.memory_bytes ? r->o.memory_bytes : MEMORY_DEFAULT;
	r->o.seconds = r->o.seconds ? r->o.seconds : SECONDS_DEFAULT;
	r->n_slots = MIN((size_t)r->o.jobs, r->n);
	r->items = calloc(r->n, sizeof(*r->items));
	r->slots = calloc(r->n_slots, sizeof(*r->slots));
	if (!r->items || !r->slots)
		return err_nomem(e, "symbols");
	for (size_t i = 0; i < r->n_slots; i++)
		r->slots[i].out = -1;
	for (size_t i = 0; i < r->n; i++) {
		jobs[i].bytes = NULL;
		jobs[i].error = 0;
		jobs[i].why[0] = 0;
		r->items[i] = (struct item){
			.job = &jobs[i], .cost_ns = cost_of(&jobs[i]), .shares = is_trusted(&jobs[i].in)
		};
	}
	qsort(r->items, r->n, sizeof(*r->items), by_cost);
	return 0;
}

int sym_reader_run_with(const struct sym_reader_opts *o, sym_reader_task *lookup, struct sym_reader_job *jobs,
	size_t n, void (*done)(void *ctx, struct sym_reader_job *job), void *done_ctx, struct err *e)
{
	struct run r = { .lookup = lookup, .n = n, .done = done, .done_ctx = done_ctx };
	struct err mine = { 0 };
	int rc;

	if (!n)
		return 0;
	if (o)
		r.o = *o;
	rc = prepare(&r, jobs, e);
	if (rc == 0) {
		rc = run_all(&r, &mine);
		if (rc)
			fail_rest(&r, &mine);
		rc = rc == -ETIME ? 0 : rc;
		if (rc && e)
			*e = mine;
	}
	free(r.items);
	free(r.slots);
	return rc;
}

int sym_reader_run(const struct sym_reader_opts *o, struct sym_reader_job *jobs, size_t n,
	void (*done)(void *ctx, struct sym_reader_job *job), void *done_ctx, struct err *e)
{
	return sym_reader_run_with(o, sym_lookup, jobs, n, done, done_ctx, e);
}
