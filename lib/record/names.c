/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/names.h"
#include "base/clock.h"
#include "base/intern.h"
#include "elf/debuginfo.h"
#include "symbols/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define SEEN_MAX (1 << 18) /* pairs of process and stack that are remembered */

struct name_requests {
	struct idmap seen; /* (process and epoch, stack) */
	struct idmap known; /* (file, offset) */
	struct name_requests_place *places; /* not taken yet */
	size_t n, cap;
	uint64_t missed;
};

int name_requests_new(struct name_requests **ret, struct err *e)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err_nomem(e, "the places to be named");
}

void name_requests_free(struct name_requests *w)
{
	if (!w)
		return;
	idmap_free(&w->seen);
	idmap_free(&w->known);
	free(w->places);
	free(w);
}

bool name_requests_is_new(struct name_requests *w, uint32_t proc, uint32_t ustack, uint32_t epoch)
{
	bool added = false;

	/* empty it when it is full: adding the same stacks once more does no harm */
	if (w->seen.n >= SEEN_MAX) {
		idmap_free(&w->seen);
		w->seen = (struct idmap){ 0 };
	}
	return idmap_put(&w->seen, (uint64_t)proc << 32 | epoch, ustack, 0, &added) == UINT32_MAX || added;
}

static void put(struct name_requests *w, const struct mapping *m, uint64_t addr)
{
	uint64_t offset = addr - m->start + m->offset;
	bool added = false;

	if (idmap_find(&w->known, m->file, offset))
		return;
	if (w->known.n >= NAME_REQUESTS_PLACES_MAX ||
		base_grow(&w->places, &w->cap, w->n + 1, sizeof(*w->places)) != 0 ||
		idmap_put(&w->known, m->file, offset, 0, &added) == UINT32_MAX) {
		w->missed++;
		return;
	}
	w->places[w->n++] = (struct name_requests_place){ offset, m->file };
}

void name_requests_add(struct name_requests *w, const struct process_maps *maps, const struct cap_stack *s,
	uint64_t first_ns, uint64_t last_ns)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < s->len; i++) {
		bool exact = !i || (k < s->n_exact && s->exact[k] == i);
		uint64_t addr = s->frames[i] - (exact || !s->frames[i] ? 0 : 1);
		const struct mapping *m = process_maps_then(maps, addr, first_ns);

		k += i && exact;
		if (!m)
			m = process_maps_then(maps, addr, last_ns);
		if (m && m->file != UINT32_MAX)
			put(w, m, addr);
	}
}

void name_requests_miss(struct name_requests *w, uint64_t n)
{
	w->missed += n;
}

static int by_place(const void *a, const void *b)
{
	const struct name_requests_place *x = a, *y = b;

	return x->file != y->file ? CMP(x->file, y->file) : CMP(x->offset, y->offset);
}

size_t name_requests_waiting(const struct name_requests *w)
{
	return w->n;
}

struct name_requests_place *name_requests_take(struct name_requests *w, size_t *n)
{
	struct name_requests_place *places = w->places;

	*n = w->n;
	if (!places)
		return calloc(1, sizeof(*places));
	qsort(places, w->n, sizeof(*places), by_place);
	w->places = NULL;
	w->n = w->cap = 0;
	return places;
}

uint64_t name_requests_missed(const struct name_requests *w)
{
	return w->missed;
}

#define FILES_MAX 64 /* open at the same time, each with its debug files */
#define SECONDS 60 /* for one file, and for one batch during the recording */
#define MEMORY_BYTES (UINT64_C(512) << 20) /* of one process */
#define DEBUG_BYTES (UINT64_C(256) << 20) /* of it, for debug information */
#define NICENESS 10
#define SHARE 20 /* lookups in the background take at most a twentieth of the time */
#define NS UINT64_C(1000000000)
#define SHORT_NS NS /* a shorter recording does not wait for debug information when it stops */

/* A place and its virtual address in the file's tables. */
struct spot {
	uint64_t vaddr, offset;
};

/* The places of one file, and the outcome. */
struct file_lookup {
	struct file_table_way way;
	const struct name_requests_place *places;
	size_t n_places;
	struct elffile *elf; /* this and `debug` only while its symbols are read */
	struct debugfile debug;
	struct spot *spots; /* ascending by vaddr, distinct */
	uint64_t *vaddrs; /* of the spots */
	size_t n; /* spots */
	int error; /* why there is no answer */
	uint8_t *bytes; /* the answer */
	struct sym_answer answer;
};

/* The thread's work. While the thread runs, other threads touch only the atomic members. */
struct batch {
	struct name_requests_place *places;
	struct file_lookup *lookups;
	size_t n;
	bool nice, plain; /* plain: symbol tables only */
	_Atomic uint64_t end_ns;
	atomic_bool done;
};

struct name_store {
	struct name_requests *want;
	struct file_table *files;
	struct cap_writer *out;
	struct idmap named; /* files that provided names */
	struct name_requests_stats stats;
	struct batch batch;
	pthread_t thread;
	bool running, joinable; /* the batch is not written yet; it has a thread */
	uint64_t opened_ns, began_ns, due_ns;
};

/* --- in the thread --- */

static int by_vaddr(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	return CMP(x->vaddr, y->vaddr);
}

/* Skips places outside all segments, and duplicates: two segments may hold the same part of the file. */
static int find_spots(struct file_lookup *l)
{
	size_t n = 0;

	l->spots = calloc(l->n_places, sizeof(*l->spots));
	l->vaddrs = calloc(l->n_places, sizeof(*l->vaddrs));
	if (!l->spots || !l->vaddrs)
		return -ENOMEM;
	for (size_t i = 0; i < l->n_places; i++) {
		l->spots[n].offset = l->places[i].offset;
		n += elffile_vaddr(l->elf, l->places[i].offset, &l->spots[n].vaddr);
	}
	if (n)
		qsort(l->spots, n, sizeof(*l->spots), by_vaddr);
	for (size_t i = 0; i < n; i++)
		if (!i || l->spots[i].vaddr != l->vaddrs[l->n - 1]) {
			l->spots[l->n] = l->spots[i];
			l->vaddrs[l->n++] = l->spots[i].vaddr;
		}
	return l->n ? 0 : -ENOENT;
}

/* Open L's file and its debug file. 0 or -errno. */
static int open_lookup(struct file_lookup *l)
{
	const struct debugfile_opts local = { .symfs = -1 };
	int fd = file_table_open(&l->way), rc;

	if (fd < 0)
		return fd;
	rc = elffile_fd(fd, &l->elf, NULL);
	if (rc) {
		close(fd);
		return rc;
	}
	if (!cap_build_id_same(&l->elf->build_id, &l->way.cap.build_id))
		return -ESTALE;
	rc = find_spots(l);
	return rc ? rc : debugfile_find(&local, l->elf, l->way.cap.path, &l->debug, NULL);
}

static void close_lookup(struct file_lookup *l)
{
	debugfile_close(&l->debug);
	elffile_close(l->elf);
	l->debug = (struct debugfile){ 0 };
	l->elf = NULL;
}

static void take_answer(void *ctx, struct sym_reader_job *j)
{
	struct file_lookup *l = j->ctx;

	(void)ctx;
	l->error = j->error;
	l->bytes = j->bytes;
	l->answer = j->answer;
}

static struct sym_reader_job job_of(struct file_lookup *l, bool plain)
{
	return (struct sym_reader_job){ .ctx = l,
		.in = { .elf = l->elf,
			.debug = l->debug.debug,
			.alt = l->debug.alt,
			.dwp = l->debug.dwp,
			.vaddrs = l->vaddrs,
			.n_vaddrs = l->n,
			.inlines = !plain,
			.lines = !plain,
			.demangle = true,
			.max_bytes = DEBUG_BYTES } };
}

/* Look up N files, at most FILES_MAX. */
static void run_some(struct batch *b, struct file_lookup *lookups, size_t n)
{
	const struct sym_reader_opts o = {
		.memory_bytes = MEMORY_BYTES, .seconds = SECONDS, .end_ns = &b->end_ns
	};
	struct sym_reader_job jobs[FILES_MAX];
	size_t n_jobs = 0;

	for (size_t i = 0; i < n; i++) {
		lookups[i].error = now_ns() < b->end_ns ? open_lookup(&lookups[i]) : -ETIME;
		if (lookups[i].error)
			close_lookup(&lookups[i]);
		else
			jobs[n_jobs++] = job_of(&lookups[i], b->plain);
	}
	sym_reader_run(&o, jobs, n_jobs, take_answer, NULL, NULL);
	for (size_t i = 0; i < n; i++)
		close_lookup(&lookups[i]);
}

static void *run(void *ctx)
{
	struct batch *b = ctx;

	/* applies to this thread and to the processes that it starts */
	setpriority(PRIO_PROCESS, 0, b->nice ? NICENESS : 0);
	for (size_t i = 0; i < b->n; i += FILES_MAX)
		run_some(b, b->lookups + i, MIN(b->n - i, (size_t)FILES_MAX));
	b->done = true;
	return NULL;
}

/* --- around it --- */

static int by_size(const void *a, const void *b)
{
	const struct file_lookup *x = a, *y = b;

	return x->n_places != y->n_places ? CMP(y->n_places, x->n_places)
					  : CMP(x->places->file, y->places->file);
}

static size_t count_files(const struct name_requests_place *p, size_t n)
{
	size_t files = 0;

	for (size_t i = 0; i < n; i++)
		files += !i || p[i].file != p[i - 1].file;
	return files;
}

/* Group the places by file; files with the most places first, since time may run out. */
static void group(struct name_store *k, const struct name_requests_place *p, size_t n)
{
	struct batch *b = &k->batch;
	size_t len;

	for (size_t i = 0; i < n; i += len) {
		struct file_lookup *l = &b->lookups[b->n];

		for (len = 1; i + len < n && p[i + len].file == p[i].file; len++)
			;
		/* the vdso is in the capture */
		if (strcmp(file_table_path(k->files, p[i].file), "[vdso]") == 0)
			continue;
		*l = (struct file_lookup){ .places = &p[i], .n_places = len, .error = -ETIME };
		file_table_way(k->files, p[i].file, &l->way);
		b->n++;
	}
	if (b->n)
		qsort(b->lookups, b->n, sizeof(*b->lookups), by_size);
}

/* Start a batch, limited to NS. NICE: in the background; otherwise the recording's end waits for it. */
static void begin(struct name_store *k, bool nice, uint64_t ns)
{
	struct batch *b = &k->batch;
	size_t n;

	if (k->running || !name_requests_waiting(k->want))
		return;
	b->places = name_requests_take(k->want, &n);
	b->lookups = b->places ? calloc(count_files(b->places, n), sizeof(*b->lookups)) : NULL;
	if (!b->lookups) {
		free(b->places);
		k->stats.late += n;
		return;
	}
	b->n = 0;
	group(k, b->places, n);
	k->began_ns = now_ns();
	b->nice = nice;
	b->plain = !nice && k->began_ns - k->opened_ns < SHORT_NS;
	b->end_ns = k->began_ns + ns;
	k->running = true;
	b->done = false;
	k->joinable = pthread_create(&k->thread, NULL, run, b) == 0;
	if (!k->joinable)
		b->done = true;
}

static const char *text(const struct sym_answer *a, uint32_t string)
{
	const char *s = sym_answer_text(a, string);

	return s ? s : "";
}

/* A place without a name is written too, with the reason and where its function begins. */
static void write_name(struct name_store *k, const struct sym_answer *a, const struct sym_answer_addr *x,
	uint32_t file, uint64_t offset)
{
	struct cap_name_frame frames[SYM_ANSWER_FRAMES_MAX];

	for (uint32_t i = 0; i < x->n_frames; i++) {
		const struct sym_answer_frame *f = &a->frames[x->first + i];

		frames[i] = (struct cap_name_frame){ text(a, f->name), text(a, f->linkage), text(a, f->file),
			f->line, f->column };
	}
	cap_writer_name(k->out, &(struct cap_name){ .file = file,
					.offset = offset,
					.symbol_offset = x->start ? x->vaddr - x->start : 0,
					.source = x->source,
					.reason = x->reason,
					.n = x->n_frames,
					.frames = frames,
					.vaddr = x->vaddr });
}

static void write_lookup(struct name_store *k, const struct file_lookup *l)
{
	uint32_t file = file_table_emit(k->files, l->places->file, k->out);
	uint64_t stored = 0;
	bool added = false;

	for (size_t i = 0; l->bytes && i < l->n; i++) {
		const struct sym_answer_addr *x = sym_answer_find(&l->answer, l->vaddrs[i]);

		if (!x)
			continue;
		write_name(k, &l->answer, x, file, l->spots[i].offset);
		stored += sym_answer_names(x->source);
	}
	if (stored)
		idmap_put(&k->named, 0, file, 0, &added);
	k->stats.files += added;
	k->stats.stored += stored;
	k->stats.plain += k->batch.plain ? stored : 0;
	if (l->bytes || (l->error != -ETIME && l->error != -ETIMEDOUT))
		k->stats.unresolved += l->n_places - stored;
	else
		k->stats.late += l->n_places;
}

/* Wait for the thread and write what it found. */
static void end(struct name_store *k)
{
	struct batch *b = &k->batch;
	uint64_t now;

	if (!k->running)
		return;
	if (k->joinable)
		pthread_join(k->thread, NULL);
	k->running = false;
	for (size_t i = 0; i < b->n; i++) {
		struct file_lookup *l = &b->lookups[i];

		write_lookup(k, l);
		free(l->spots);
		free(l->vaddrs);
		free(l->bytes);
	}
	free(b->lookups);
	free(b->places);
	now = now_ns();
	k->due_ns = now + (now - k->began_ns) * SHARE;
}

int name_store_new(struct name_requests *w, struct file_table *files, struct cap_writer *out,
	struct name_store **ret, struct err *e)
{
	struct name_store *k = calloc(1, sizeof(*k));

	if (!k)
		return err_nomem(e, "names");
	k->want = w;
	k->files = files;
	k->out = out;
	k->opened_ns = now_ns();
	*ret = k;
	return 0;
}

void name_store_free(struct name_store *k)
{
	if (!k)
		return;
	k->batch.end_ns = 0;
	end(k);
	idmap_free(&k->named);
	free(k);
}

void name_store_service(struct name_store *k)
{
	if (k->running && k->batch.done)
		end(k);
	if (now_ns() >= k->due_ns)
		begin(k, true, SECONDS * NS);
}

void name_store_finish(struct name_store *k, uint64_t ns)
{
	uint64_t end_ns = now_ns() + ns;

	k->batch.end_ns = MIN(k->batch.end_ns, end_ns);
	end(k);
	begin(k, false, end_ns - MIN(end_ns, now_ns()));
	end(k);
}

void name_store_stats(const struct name_store *k, struct name_requests_stats *ret)
{
	*ret = k->stats;
	ret->late += name_requests_missed(k->want);
}
