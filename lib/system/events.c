/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/events.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "system/owner.h"
#include "system/privileges.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>

/*
 * Bytes of a CPU's buffer, powers of two. Everyone may lock the least by default
 * (kernel.perf_event_mlock_kb). Where more is permitted, the buffers are as large
 * as fits in ALL_RINGS together.
 */
#define RING_LEAST ((size_t)512 << 10)
#define RING_MOST ((size_t)4 << 20)
#define ALL_RINGS ((size_t)32 << 20)

/* Beyond that, events stay in the kernel's buffers until a drain. */
#define GATHERED_MOST ((size_t)32 << 20)

/*
 * Events of single threads: each takes a descriptor here and 1.3 KiB in the
 * kernel. FILES_LEFT descriptors stay for the rest of the program.
 */
#define WATCHES_MOST ((size_t)1 << 14)
#define ASKED_MOST ((size_t)1 << 10) /* at once, of procevents_open_by(): some 20 us each */
#define FILES_LEFT 256

#define ADD_ROUNDS 8 /* threads that appear while others are added */
#define ENDS_NS UINT64_C(1000000000) /* how often the descriptors of ended threads are looked for */

/* The buffer of a CPU. Its event is that of the whole machine: disabled, while others write to it. */
struct ring {
	int cpu;
	int fd;
	struct perf_event_mmap_page *page; /* MAP_FAILED = not mapped */
	struct buf last; /* the last record, and the identifier of the event that wrote it */
	uint64_t last_id;
};

/* An event of a thread, and of what inherits it, on one CPU. */
struct watch {
	int fd;
	uint32_t tid; /* or ENDED */
};

#define ENDED UINT32_MAX

/* A record copied out of its ring. The order is by time, then arrival. */
struct pending {
	uint64_t time_ns;
	size_t at, len; /* in `bytes` */
	bool reported; /* already seen for at_once() */
};

struct procevents {
	struct procevents_opts opts;
	struct ring *rings;
	size_t n_rings;
	struct watch *watches;
	size_t n_watches, max_watches;
	bool started;
	bool of_all; /* the events of the buffers are enabled, and there are no watches */
	bool no_inherit_thread; /* before Linux 5.13: processes inherit as well */
	bool ends; /* a thread may have ended since ends_ns */
	uint64_t ends_ns;
	int epoll_fd;
	size_t page_size;
	size_t ring_size; /* bytes of each ring, behind its page */
	struct buf bytes;
	struct pending *pending;
	size_t n_pending, max_pending;
	void (*at_once)(void *ctx, const struct procevent *ev);
	void *at_once_ctx;
	pthread_t first; /* first_of_a_thread() */
	bool opens_first;
	procevent_open_fn *open; /* procevents_open_by(); NULL = procevent_open() */
	void *open_ctx;
	size_t watches_most; /* of the current procevents_add() */
};

#define PERIOD 1 /* without one an event has no records */

int procevent_open(const struct procevent_how *how, int32_t tid, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = PERIOD,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
		.disabled = 1,
		.inherit = tid > 0,
		.inherit_thread = tid > 0 && how->inherit_thread,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = how->prompt ? 1 : RING_LEAST / 2,
	};
	long fd = syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int open_event(const struct procevents *p, pid_t tid, int cpu)
{
	const struct procevent_how how = { .prompt = p->opts.prompt,
		.inherit_thread = !p->opts.children && !p->no_inherit_thread };

	return p->open ? p->open(p->open_ctx, &how, tid, (uint32_t)cpu)
		       : procevent_open(&how, tid, (uint32_t)cpu);
}

void procevents_open_by(struct procevents *p, procevent_open_fn *fn, void *ctx)
{
	p->open = fn;
	p->open_ctx = ctx;
}

/*
 * For the first event of a thread on the machine the kernel changes the code of its
 * scheduler, and waits until each CPU has seen that. It leaves it so for a second after
 * the last one (kernel/events/core.c, account_event() and perf_sched_delayed()).
 */
static void *first_of_a_thread(void *ctx)
{
	struct procevents *p = ctx;

	const int fd = open_event(p, (pid_t)syscall(SYS_gettid), p->rings[0].cpu);

	if (fd >= 0)
		close(fd);
	return NULL;
}

static void await_first(struct procevents *p)
{
	if (p->opens_first)
		pthread_join(p->first, NULL);
	p->opens_first = false;
}

static int open_ring(struct procevents *p, int cpu, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ring *r = &p->rings[p->n_rings];
	int fd = open_event(p, -1, cpu);

	if (fd == -ENODEV)
		return 0; /* offline */
	if (fd < 0)
		return priv_explain_perf("watch processes with a perf event", fd, e);
	*r = (struct ring){ .cpu = cpu, .fd = fd, .page = MAP_FAILED };
	p->n_rings++;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0)
		return err_sys(e, -errno, "cannot wait for a perf event");
	return 0;
}

static void unmap_rings(struct procevents *p)
{
	for (size_t i = 0; i < p->n_rings; i++) {
		if (p->rings[i].page != MAP_FAILED)
			munmap(p->rings[i].page, p->page_size + p->ring_size);
		p->rings[i].page = MAP_FAILED;
	}
}

static int map_rings(struct procevents *p)
{
	for (size_t i = 0; i < p->n_rings; i++) {
		p->rings[i].page = mmap(NULL, p->page_size + p->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			p->rings[i].fd, 0);
		if (p->rings[i].page == MAP_FAILED)
			return -errno;
	}
	return 0;
}

/* The kernel may refuse large buffers: the amount of memory that a user may lock is limited. */
static int choose_size(struct procevents *p, struct err *e)
{
	int code;

	p->ring_size = RING_MOST;
	while (p->ring_size > RING_LEAST && p->ring_size * p->n_rings > ALL_RINGS)
		p->ring_size /= 2;
	for (;; p->ring_size /= 2) {
		code = map_rings(p);
		if (!code)
			return 0;
		unmap_rings(p);
		if (p->ring_size <= RING_LEAST)
			break;
	}
	err_sys(e, code, "cannot map a perf event's buffer");
	err_hint(e, "raise kernel.perf_event_mlock_kb, or give CAP_IPC_LOCK");
	return code;
}

/* Let event FD, of TID, write to buffer R. Takes FD. */
static int add_watch(struct procevents *p, const struct ring *r, int fd, uint32_t tid, struct err *e)
{
	if (base_grow(&p->watches, &p->max_watches, p->n_watches + 1, sizeof(*p->watches)) != 0) {
		close(fd);
		return err_nomem(e, "process events");
	}
	p->watches[p->n_watches++] = (struct watch){ fd, tid };
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd) != 0)
		return err_sys(e, -errno, "cannot use a perf event's buffer");
	if (p->started && ioctl(fd, PERF_EVENT_IOC_ENABLE) != 0)
		return err_sys(e, -errno, "cannot enable a perf event");
	return 0;
}

static void close_watches(struct procevents *p)
{
	for (size_t i = 0; i < p->n_watches; i++)
		close(p->watches[i].fd);
	p->n_watches = 0;
}

int procevents_widen(struct procevents *p, struct err *e)
{
	await_first(p);
	for (size_t i = 0; i < p->n_rings && p->started && !p->of_all; i++)
		if (ioctl(p->rings[i].fd, PERF_EVENT_IOC_ENABLE) != 0)
			return err_sys(e, -errno, "cannot enable a perf event");
	p->of_all = true;
	close_watches(p);
	return 0;
}

/*
 * The kernel sets the period of another CPU's event there, in an interrupt, and waits for it, be the event
 * enabled or not (kernel/events/core.c, event_function_call()). This one's runs this process.
 */
bool procevents_interrupt(struct procevents *p)
{
	const size_t cpus = (size_t)get_nprocs_conf();
	uint64_t period = PERIOD;
	bool all = p && p->started && p->n_rings == cpus && (size_t)get_nprocs() == cpus;

	for (size_t i = 0; all && i < p->n_rings; i++)
		all = ioctl(p->rings[i].fd, PERF_EVENT_IOC_PERIOD, &period) == 0;
	return all;
}

bool procevents_of_all(const struct procevents *p)
{
	return p->of_all;
}

bool procevents_of_none(const struct procevents *p)
{
	return !p->of_all && p->n_watches == 0;
}

/* -ESRCH if the thread has ended. */
static int watch_thread(struct procevents *p, uint32_t tid, struct err *e)
{
	for (size_t i = 0; i < p->n_rings; i++) {
		int fd = open_event(p, (pid_t)tid, p->rings[i].cpu), rc;

		if (fd == -EINVAL && !p->opts.children && !p->no_inherit_thread) {
			p->no_inherit_thread = true;
			fd = open_event(p, (pid_t)tid, p->rings[i].cpu);
		}
		if (fd == -ENODEV)
			continue; /* offline since */
		if (fd == -ESRCH || fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
			return fd;
		rc = fd < 0 ? priv_explain_perf("watch a process with a perf event", fd, e)
			    : add_watch(p, &p->rings[i], fd, tid, e);
		if (rc)
			return rc;
	}
	return 0;
}

static bool is_watched(const struct procevents *p, uint32_t tid)
{
	for (size_t i = 0; i < p->n_watches; i++)
		if (p->watches[i].tid == tid)
			return true;
	return false;
}

/* May N more descriptors be open? Takes all that this process may have. */
static bool may_open(const struct procevents *p, size_t n)
{
	const size_t wanted = p->n_watches + n + FILES_LEFT;
	struct rlimit files;

	if (p->n_watches + n > p->watches_most || getrlimit(RLIMIT_NOFILE, &files) != 0)
		return false;
	if (wanted <= files.rlim_cur)
		return true;
	files.rlim_cur = files.rlim_max;
	return wanted <= files.rlim_max && setrlimit(RLIMIT_NOFILE, &files) == 0;
}

/* Watch the threads of PID that are not watched yet. -EMFILE: there are too many. */
static int watch_threads(struct procevents *p, uint32_t pid, bool *new, struct err *e)
{
	char path[32];
	struct dirent *d;
	DIR *tasks;
	int rc = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	*new = false;
	while (tasks && !rc && (d = readdir(tasks))) {
		const uint32_t tid = (uint32_t)strtoul(d->d_name, NULL, 10);

		if (!tid || is_watched(p, tid))
			continue;
		rc = may_open(p, p->n_rings) ? watch_thread(p, tid, e) : -EMFILE;
		*new = *new || !rc;
		rc = rc == -ESRCH ? 0 : rc;
	}
	if (tasks)
		closedir(tasks);
	return rc;
}

static void close_ended(struct procevents *p);

/*
 * A thread that another one starts before that is watched is found in the next
 * round. Those that watched ones start need no event, but get one if they are
 * seen: is_double() drops what both report.
 */
int procevents_add(struct procevents *p, uint32_t pid, bool *new, struct err *e)
{
	bool more = true;
	int rc = 0;

	if (new)
		*new = false;
	if (p->ends)
		close_ended(p);
	await_first(p);
	p->watches_most = p->open ? MIN(WATCHES_MOST, p->n_watches + ASKED_MOST) : WATCHES_MOST;
	if (!p->open)
		owner_raise();
	for (int i = 0; i < ADD_ROUNDS && more && !rc && !p->of_all; i++) {
		rc = watch_threads(p, pid, &more, e);
		if (new)
			*new = *new || more;
	}
	if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		rc = procevents_widen(p, e);
	if (!p->open)
		owner_lower();
	return rc;
}

int procevents_open(const struct procevents_opts *o, struct procevents **ret, struct err *e)
{
	struct procevents *p = calloc(1, sizeof(*p));
	int n = get_nprocs_conf(), rc = 0;

	if (!p)
		return err_nomem(e, "process events");
	p->opts = *o;
	p->of_all = !o->some;
	p->page_size = (size_t)sysconf(_SC_PAGESIZE);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->rings = calloc((size_t)n, sizeof(*p->rings));
	if (p->epoll_fd < 0 || !p->rings)
		rc = err_nomem(e, "process events");
	owner_raise();
	for (int cpu = 0; cpu < n && !rc; cpu++)
		rc = open_ring(p, cpu, e);
	if (!rc)
		rc = choose_size(p, e);
	p->opens_first =
		!rc && o->some && p->n_rings && pthread_create(&p->first, NULL, first_of_a_thread, p) == 0;
	owner_lower();
	if (rc) {
		procevents_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

int procevents_start(struct procevents *p, struct err *e)
{
	p->started = true;
	for (size_t i = 0; i < p->n_rings && p->of_all; i++)
		if (ioctl(p->rings[i].fd, PERF_EVENT_IOC_ENABLE) != 0)
			return err_sys(e, -errno, "cannot enable a perf event");
	for (size_t i = 0; i < p->n_watches; i++)
		if (ioctl(p->watches[i].fd, PERF_EVENT_IOC_ENABLE) != 0)
			return err_sys(e, -errno, "cannot enable a perf event");
	return 0;
}

bool procevents_pending(const struct procevents *p)
{
	return p->n_pending > 0;
}

void procevents_close(struct procevents *p)
{
	if (!p)
		return;
	unmap_rings(p);
	close_watches(p);
	await_first(p);
	for (size_t i = 0; i < p->n_rings; i++) {
		close(p->rings[i].fd);
		buf_free(&p->rings[i].last);
	}
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	buf_free(&p->bytes);
	free(p->pending);
	free(p->rings);
	free(p->watches);
	free(p);
}

int procevents_fd(const struct procevents *p)
{
	return p->epoll_fd;
}

#define TRAILER 24 /* every record ends with sample_id: pid and tid, time, identifier of the event */

/* The value FROM_END bytes before the end of REC. */
static uint64_t trailer(const uint8_t *rec, size_t len, size_t from_end)
{
	uint64_t v = 0;

	if (len >= sizeof(struct perf_event_header) + TRAILER)
		memcpy(&v, rec + len - from_end, 8);
	return v;
}

/* How many bytes of REC are the same for all events that report it: a fork or exit has a time inside. */
static size_t same_for_all(const uint8_t *rec, size_t len)
{
	struct perf_event_header h;

	memcpy(&h, rec, sizeof(h));
	if (h.type == PERF_RECORD_FORK || h.type == PERF_RECORD_EXIT)
		return MIN(len, sizeof(h) + 16);
	return len >= sizeof(h) + TRAILER ? len - TRAILER : 0;
}

/*
 * Does REC report what the record before it does, for another event of the same
 * thread? The kernel writes one record for each of a thread's events, one after the
 * other, before anything else can happen on that CPU.
 */
static bool is_double(struct ring *r, const uint8_t *rec, size_t len)
{
	const uint64_t id = trailer(rec, len, 8);
	const size_t same = same_for_all(rec, len);

	if (same && r->last.len == len && id != r->last_id && memcmp(r->last.p, rec, same) == 0)
		return true;
	r->last.len = 0;
	buf_put(&r->last, rec, len);
	if (r->last.failed) {
		buf_free(&r->last);
		r->last = (struct buf){ 0 };
	}
	r->last_id = id;
	return false;
}

static void keep(struct procevents *p, struct ring *r, const uint8_t *data, uint64_t at, size_t len)
{
	size_t from = p->bytes.len, first = MIN(len, p->ring_size - (size_t)(at % p->ring_size));

	if (base_grow(&p->pending, &p->max_pending, p->n_pending + 1, sizeof(*p->pending)) != 0)
		return;
	buf_put(&p->bytes, data + at % p->ring_size, first);
	buf_put(&p->bytes, data, len - first);
	if (p->bytes.failed)
		return;
	if (p->opts.some && is_double(r, p->bytes.p + from, len)) {
		p->bytes.len = from;
		return;
	}
	p->pending[p->n_pending++] =
		(struct pending){ .time_ns = trailer(p->bytes.p + from, len, 16), .at = from, .len = len };
}

static void read_ring(struct procevents *p, struct ring *r)
{
	const uint8_t *data = (const uint8_t *)r->page + p->page_size;
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;

	while (tail < head) {
		struct perf_event_header h;

		/* records are 8-aligned and so is the buffer: a header never wraps */
		memcpy(&h, data + tail % p->ring_size, sizeof(h));
		if (h.size < sizeof(h) || h.size > head - tail)
			break;
		keep(p, r, data, tail, h.size);
		tail += h.size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;
	int c = CMP(x->time_ns, y->time_ns);

	return c ? c : CMP(x->at, y->at);
}

/* The NUL-terminated string at R, up to 8-byte padding before sample_id. */
static const char *rd_text(struct rd *r)
{
	const char *s = (const char *)r->p;

	if (!memchr(s, '\0', rd_left(r)))
		r->bad = true;
	return s;
}

static bool decode(const uint8_t *rec, const struct pending *k, struct procevent *ev)
{
	struct perf_event_header h;
	struct rd r = rd_init(rec + sizeof(h), k->len - sizeof(h));

	memcpy(&h, rec, sizeof(h));
	*ev = (struct procevent){ .time_ns = k->time_ns, .text = "" };
	switch (h.type) {
	case PERF_RECORD_MMAP2:
		ev->type = PROCEVENT_MMAP;
		ev->pid = rd_u32(&r), ev->tid = rd_u32(&r);
		ev->start = rd_u64(&r);
		ev->end = ev->start + rd_u64(&r);
		ev->offset = rd_u64(&r);
		ev->dev_major = rd_u32(&r), ev->dev_minor = rd_u32(&r);
		ev->inode = rd_u64(&r);
		rd_u64(&r); /* inode generation */
		ev->prot = rd_u32(&r), ev->flags = rd_u32(&r);
		ev->text = rd_text(&r);
		break;
	case PERF_RECORD_COMM:
		ev->type = h.misc & PERF_RECORD_MISC_COMM_EXEC ? PROCEVENT_EXEC : PROCEVENT_COMM;
		ev->pid = rd_u32(&r), ev->tid = rd_u32(&r);
		ev->text = rd_text(&r);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		ev->type = h.type == PERF_RECORD_FORK ? PROCEVENT_FORK : PROCEVENT_EXIT;
		ev->pid = rd_u32(&r), ev->parent = rd_u32(&r);
		ev->tid = rd_u32(&r);
		break;
	case PERF_RECORD_LOST:
		ev->type = PROCEVENT_LOST;
		rd_u64(&r); /* id */
		ev->lost = rd_u64(&r);
		break;
	default:
		return false;
	}
	return !r.bad && ev->start <= ev->end;
}

/* Drop the first N pending records; the bytes of the others move to the front. */
static void forget(struct procevents *p, size_t n)
{
	struct buf rest = { 0 };

	for (size_t i = n; i < p->n_pending; i++) {
		struct pending *k = &p->pending[i];
		size_t at = rest.len;

		buf_put(&rest, p->bytes.p + k->at, k->len);
		k->at = at;
	}
	memmove(p->pending, p->pending + n, (p->n_pending - n) * sizeof(*p->pending));
	p->n_pending -= n;
	buf_free(&p->bytes);
	p->bytes = rest;
}

void procevents_at_once(struct procevents *p, void (*fn)(void *ctx, const struct procevent *ev), void *ctx)
{
	p->at_once = fn;
	p->at_once_ctx = ctx;
}

static void report_at_once(struct procevents *p)
{
	for (size_t i = 0; i < p->n_pending; i++) {
		struct pending *k = &p->pending[i];
		struct procevent ev;

		if (!k->reported && decode(p->bytes.p + k->at, k, &ev) &&
			(ev.type == PROCEVENT_MMAP || ev.type == PROCEVENT_EXEC))
			p->at_once(p->at_once_ctx, &ev);
		k->reported = true;
	}
}

static void read_rings(struct procevents *p)
{
	for (size_t i = 0; i < p->n_rings; i++)
		read_ring(p, &p->rings[i]);
}

void procevents_gather(struct procevents *p)
{
	if (p->bytes.len < GATHERED_MOST)
		read_rings(p);
}

/*
 * Close the events whose threads have ended with all that inherited them: the
 * kernel hangs them up. A closed one would end with those that inherited it.
 */
static void close_ended(struct procevents *p)
{
	struct pollfd *fds = calloc(p->n_watches + 1, sizeof(*fds));
	size_t kept = 0;

	if (!fds)
		return;
	for (size_t i = 0; i < p->n_watches; i++)
		fds[i].fd = p->watches[i].fd;
	if (poll(fds, p->n_watches, 0) >= 0) {
		for (size_t i = 0; i < p->n_watches; i++) {
			if (fds[i].revents & POLLHUP)
				close(fds[i].fd);
			else
				p->watches[kept++] = p->watches[i];
		}
		p->n_watches = kept;
	}
	free(fds);
	p->ends = false;
	p->ends_ns = now_ns();
	/* poll(2) took the readiness of the buffers: read them now */
	read_rings(p);
}

/* Thread TID has ended, or its events have. Others that inherited them may not: see close_ended(). */
static void end_watch(struct procevents *p, uint32_t tid)
{
	p->ends = true;
	for (size_t i = 0; i < p->n_watches; i++)
		if (p->watches[i].tid == tid)
			p->watches[i].tid = ENDED;
}

void procevents_drain(
	struct procevents *p, bool settle, void (*fn)(void *ctx, const struct procevent *ev), void *ctx)
{
	/* not what comes while buffer after buffer is read: its cause may be in one that was read before */
	const uint64_t horizon = now_ns() - (settle ? PROCEVENTS_SETTLE_NS : 0);
	size_t n = 0;

	if (p->ends && now_ns() - p->ends_ns >= ENDS_NS)
		close_ended(p);
	read_rings(p);
	if (!p->n_pending)
		return;
	if (p->at_once)
		report_at_once(p);
	qsort(p->pending, p->n_pending, sizeof(*p->pending), by_time);
	for (; n < p->n_pending && p->pending[n].time_ns <= horizon; n++) {
		struct procevent ev;
		const struct pending *k = &p->pending[n];

		if (!decode(p->bytes.p + k->at, k, &ev))
			continue;
		if (ev.type == PROCEVENT_EXIT && !p->of_all)
			end_watch(p, ev.tid);
		fn(ctx, &ev);
	}
	if (n)
		forget(p, n);
}
