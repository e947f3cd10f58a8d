/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/events.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "system/owner.h"
#include "system/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

struct ring {
	int cpu;
	int fd;
	int id_fd; /* reports build IDs into the same buffer; < 0 = not supported by this kernel */
	uint64_t id_id; /* its identifier in records */
	struct perf_event_mmap_page *page; /* MAP_FAILED = not mapped */
};

/* A record copied out of its ring. The order is by time, then arrival. */
struct pending {
	uint64_t time_ns;
	size_t at, len; /* in `bytes` */
	bool build_id; /* from the event that reports build IDs */
	bool reported; /* already seen for at_once() */
};

struct procevents {
	struct ring *rings;
	size_t n_rings;
	int epoll_fd;
	size_t page_size;
	size_t ring_size; /* bytes of each ring, behind its page */
	struct buf bytes;
	struct pending *pending;
	size_t n_pending, max_pending;
	void (*at_once)(void *ctx, const struct procevent *ev);
	void *at_once_ctx;
};

static int open_one(int cpu, bool build_id, bool prompt)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_IDENTIFIER,
		.disabled = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = !build_id,
		.comm_exec = !build_id,
		.build_id = build_id,
		.task = !build_id,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = prompt ? 1 : RING_LEAST / 2,
	};
	long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int open_ring(struct procevents *p, int cpu, bool prompt, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ring *r = &p->rings[p->n_rings];
	int fd = open_one(cpu, false, prompt);

	if (fd == -ENODEV)
		return 0; /* offline */
	if (fd < 0)
		return priv_explain_perf("watch processes with a perf event", fd, e);
	*r = (struct ring){ .cpu = cpu, .fd = fd, .id_fd = -1, .page = MAP_FAILED };
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

static void add_build_ids(struct ring *r, bool prompt)
{
	r->id_fd = open_one(r->cpu, true, prompt);
	if (r->id_fd >= 0 && (ioctl(r->id_fd, PERF_EVENT_IOC_ID, &r->id_id) != 0 ||
				     ioctl(r->id_fd, PERF_EVENT_IOC_SET_OUTPUT, r->fd) != 0)) {
		close(r->id_fd);
		r->id_fd = -1;
	}
}

int procevents_open(bool prompt, struct procevents **ret, struct err *e)
{
	struct procevents *p = calloc(1, sizeof(*p));
	int n = get_nprocs_conf(), rc = 0;

	if (!p)
		return err_nomem(e, "process events");
	p->page_size = (size_t)sysconf(_SC_PAGESIZE);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->rings = calloc((size_t)n, sizeof(*p->rings));
	if (p->epoll_fd < 0 || !p->rings)
		rc = err_nomem(e, "process events");
	owner_raise();
	for (int cpu = 0; cpu < n && !rc; cpu++)
		rc = open_ring(p, cpu, prompt, e);
	if (!rc)
		rc = choose_size(p, e);
	for (size_t i = 0; i < p->n_rings && !rc; i++)
		add_build_ids(&p->rings[i], prompt);
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
	for (size_t i = 0; i < p->n_rings; i++)
		if (ioctl(p->rings[i].fd, PERF_EVENT_IOC_ENABLE) != 0 ||
			(p->rings[i].id_fd >= 0 && ioctl(p->rings[i].id_fd, PERF_EVENT_IOC_ENABLE) != 0))
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
	for (size_t i = 0; i < p->n_rings; i++) {
		if (p->rings[i].id_fd >= 0)
			close(p->rings[i].id_fd);
		close(p->rings[i].fd);
	}
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	buf_free(&p->bytes);
	free(p->pending);
	free(p->rings);
	free(p);
}

int procevents_fd(const struct procevents *p)
{
	return p->epoll_fd;
}

/* The value FROM_END bytes before the end of REC. Every record ends with sample_id: pid and tid, time, id. */
static uint64_t trailer(const uint8_t *rec, size_t len, size_t from_end)
{
	uint64_t v = 0;

	if (len >= sizeof(struct perf_event_header) + 24)
		memcpy(&v, rec + len - from_end, 8);
	return v;
}

static void keep(struct procevents *p, const struct ring *r, const uint8_t *data, uint64_t at, size_t len)
{
	size_t from = p->bytes.len, first = MIN(len, p->ring_size - (size_t)(at % p->ring_size));

	if (base_grow(&p->pending, &p->max_pending, p->n_pending + 1, sizeof(*p->pending)) != 0)
		return;
	buf_put(&p->bytes, data + at % p->ring_size, first);
	buf_put(&p->bytes, data, len - first);
	if (p->bytes.failed)
		return;
	p->pending[p->n_pending++] = (struct pending){ .time_ns = trailer(p->bytes.p + from, len, 16),
		.at = from,
		.len = len,
		.build_id = r->id_fd >= 0 && trailer(p->bytes.p + from, len, 8) == r->id_id };
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

/*
 * The identifier says which of the two events a record is from, because the flag
 * PERF_RECORD_MISC_MMAP_BUILD_ID stays set in the kernel's template when an event
 * with build IDs was served before one without (seen on Linux 6.18).
 */
static bool decode(const uint8_t *rec, const struct pending *k, struct procevent *ev)
{
	struct perf_event_header h;
	struct rd r = rd_init(rec + sizeof(h), k->len - sizeof(h));

	memcpy(&h, rec, sizeof(h));
	*ev = (struct procevent){ .time_ns = k->time_ns, .text = "" };
	/*
	 * An event with mmap records gets task records as well. A loss is reported
	 * once, before the next record of either event.
	 */
	if (k->build_id && h.type != PERF_RECORD_MMAP2 && h.type != PERF_RECORD_LOST)
		return false;
	switch (h.type) {
	case PERF_RECORD_MMAP2:
		ev->type = PROCEVENT_MMAP;
		ev->pid = rd_u32(&r), ev->tid = rd_u32(&r);
		ev->start = rd_u64(&r);
		ev->end = ev->start + rd_u64(&r);
		ev->offset = rd_u64(&r);
		if (k->build_id && !(h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID))
			return false; /* a mapping without a build ID */
		if (k->build_id) {
			ev->type = PROCEVENT_BUILD_ID;
			ev->build_id.len = MIN(rd_u8(&r), 20);
			rd_bytes(&r, 3);
			memcpy(ev->build_id.bytes, r.p, MIN(rd_left(&r), 20));
			rd_bytes(&r, 20);
		} else {
			ev->dev_major = rd_u32(&r), ev->dev_minor = rd_u32(&r);
			ev->inode = rd_u64(&r);
			rd_u64(&r); /* inode generation */
		}
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

void procevents_drain(
	struct procevents *p, bool settle, void (*fn)(void *ctx, const struct procevent *ev), void *ctx)
{
	uint64_t horizon = UINT64_MAX;
	size_t n = 0;

	if (settle)
		horizon = now_ns() - PROCEVENTS_SETTLE_NS;
	read_rings(p);
	if (!p->n_pending)
		return;
	if (p->at_once)
		report_at_once(p);
	qsort(p->pending, p->n_pending, sizeof(*p->pending), by_time);
	for (; n < p->n_pending && p->pending[n].time_ns <= horizon; n++) {
		struct procevent ev;
		const struct pending *k = &p->pending[n];

		if (decode(p->bytes.p + k->at, k, &ev))
			fn(ctx, &ev);
	}
	if (n)
		forget(p, n);
}
