/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "chunks.h"

#include "bitrun.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#define GROW_LEAST 8 /* chunks at a time */
#define GROW_MOST 256 /* each is a descriptor until it is in place */
#define CHUNKS_MOST 65000 /* each is a mapping, and vm.max_map_count is 65530 */
#define MAP_HEADER 4096 /* in front of values that can be mapped, in pages of its own */
#define POLL_US 50

enum phase { MAKING, INSTALLING, DONE };

/* What the thread works on; read here as far as `phase` allows. */
struct job {
	uint32_t first, n; /* chunks to be made, */
	uint32_t made; /* made: complete once no longer MAKING */
	uint32_t keys[GROW_MOST];
	int fds[GROW_MOST];
	int make_error, install_error;
	_Atomic int phase;
};

struct chunks {
	int fd;
	uint32_t limit; /* chunks, with number 0 */
	uint32_t end; /* one more than the last that can be used */
	uint8_t *base; /* chunk I is at base + I * UNWIND_CHUNK_BYTES */
	struct bitrun *runs; /* of each chunk */
	uint64_t used; /* grains */
	pthread_t thread;
	bool running; /* to be joined */
	struct job job;
};

static int create_chunk(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "unwind_chunk", sizeof(uint32_t), UNWIND_CHUNK_BYTES, 1, &opts);
}

static int create_outer(uint32_t n, int inner_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner_fd);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "unwind_chunks", sizeof(uint32_t), sizeof(uint32_t), n, &opts);
}

static int make_one(struct chunks *c, uint32_t number)
{
	_cleanup_close_ int fd = create_chunk();
	void *p;

	if (fd < 0)
		return fd;
	p = mmap(c->base + (size_t)number * UNWIND_CHUNK_BYTES, UNWIND_CHUNK_BYTES, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	return TAKE_FD(fd);
}

static void make(struct chunks *c, struct job *j)
{
	while (j->made < j->n) {
		int fd = make_one(c, j->first + j->made);

		if (fd < 0) {
			j->make_error = fd;
			return;
		}
		j->keys[j->made] = j->first + j->made;
		j->fds[j->made++] = fd;
	}
}

/* One system call for all, because each one waits for RCU; kernels before 5.19 know no such call. */
static int put_in_place(int outer_fd, const struct job *j)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t count = j->made;
	int rc;

	if (count == 0 || bpf_map_update_batch(outer_fd, j->keys, j->fds, &count, &opts) == 0)
		return 0;
	for (uint32_t i = 0; i < j->made; i++) {
		rc = bpf_map_update_elem(outer_fd, &j->keys[i], &j->fds[i], BPF_ANY);
		if (rc)
			return rc;
	}
	return 0;
}

static void *work(void *ctx)
{
	struct chunks *c = ctx;
	struct job *j = &c->job;

	make(c, j);
	atomic_store(&j->phase, INSTALLING);
	j->install_error = put_in_place(c->fd, j);
	atomic_store(&j->phase, DONE);
	return NULL;
}

/* Signals are for the thread that waits for them. */
static bool start_thread(struct chunks *c)
{
	sigset_t all, old;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	started = pthread_create(&c->thread, NULL, work, c) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return started;
}

static void start(struct chunks *c, uint32_t n)
{
	struct job *j = &c->job;

	j->first = c->end;
	j->n = MIN(n, MIN(GROW_MOST, c->limit - c->end));
	j->made = 0;
	j->make_error = j->install_error = 0;
	atomic_store(&j->phase, MAKING);
	c->running = start_thread(c);
	if (!c->running)
		work(c);
}

/* Every chunk that was asked for is usable here, or there is an error why not. */
static int collect(struct chunks *c, struct err *e)
{
	const struct job *j = &c->job;

	while (atomic_load(&j->phase) == MAKING)
		usleep(POLL_US);
	while (c->end < j->first + j->made) {
		if (bitrun_open(&c->runs[c->end], CHUNKS_GRAINS) != 0)
			return err_nomem(e, "unwind tables");
		c->end++;
	}
	if (j->made == 0 && j->make_error)
		return err_sys(e, j->make_error, "cannot make memory for unwind tables");
	return 0;
}

/* Is the last of the chunks in the array? They are put there in their order. */
static bool in_sight(const struct chunks *c)
{
	uint32_t last = c->job.first + c->job.made - 1, id;

	return c->job.made == 0 || bpf_map_lookup_elem(c->fd, &last, &id) == 0;
}

/* The thread has ended, and what it made is in place. */
static int settle(struct chunks *c, struct err *e)
{
	struct job *j = &c->job;

	if (c->running)
		pthread_join(c->thread, NULL);
	c->running = false;
	if (j->install_error)
		return err_sys(e, j->install_error, "cannot show BPF the memory of unwind tables");
	for (uint32_t i = 0; i < j->made; i++)
		close(j->fds[i]);
	j->first += j->made;
	j->made = 0;
	return 0;
}

int chunks_commit(struct chunks *c, struct err *e)
{
	int rc = collect(c, e);

	if (rc && c->job.made)
		return rc;
	while (!in_sight(c)) {
		if (atomic_load(&c->job.phase) == DONE)
			return settle(c, e);
		usleep(POLL_US);
	}
	return 0;
}

/* At least N chunks more, in steps that grow with what is there, so that there are few. */
static int grow(struct chunks *c, uint32_t n, struct err *e)
{
	uint32_t end = c->end;
	int rc = collect(c, e);

	if (rc == 0 && c->end > end)
		return 0;
	if (c->end == c->limit)
		return err_set(e, -ENOSPC, "no room is left in the %u MiB for unwind tables", c->limit / 4);
	rc = settle(c, e);
	if (rc)
		return rc;
	start(c, MAX(n, MAX(GROW_LEAST, c->end / 16)));
	return collect(c, e);
}

static uint64_t free_grains(const struct chunks *c, uint32_t end)
{
	return (uint64_t)(end - 1) * CHUNKS_GRAINS - c->used;
}

int chunks_reserve(struct chunks *c, uint64_t grains, struct err *e)
{
	if (grains > free_grains(c, c->limit))
		return err_set(e, -ENOSPC, "no room is left in the %u MiB for unwind tables", c->limit / 4);
	while (grains > free_grains(c, c->end)) {
		uint64_t lacking = grains - free_grains(c, c->end);
		int rc = grow(c, (uint32_t)((lacking + CHUNKS_GRAINS - 1) / CHUNKS_GRAINS), e);

		if (rc)
			return rc;
	}
	return 0;
}

static bool take_from(struct chunks *c, uint32_t from, uint32_t grains, struct chunks_block *ret)
{
	for (uint32_t i = from; i < c->end; i++) {
		if (!bitrun_take(&c->runs[i], grains, &ret->grain))
			continue;
		ret->chunk = i;
		ret->p = c->base + (size_t)i * UNWIND_CHUNK_BYTES + (size_t)ret->grain * UNWIND_GRAIN;
		c->used += grains;
		return true;
	}
	return false;
}

int chunks_take(struct chunks *c, uint32_t grains, struct chunks_block *ret, struct err *e)
{
	uint32_t from = 1;

	if (grains == 0 || grains > CHUNKS_GRAINS)
		return err_set(e, -EINVAL, "a block of %u grains", grains);
	while (!take_from(c, from, grains, ret)) {
		int rc;

		from = c->end;
		rc = grow(c, 1, e);
		if (rc)
			return rc;
	}
	return 0;
}

void chunks_give(struct chunks *c, uint32_t chunk, uint32_t grain, uint32_t grains)
{
	bitrun_give(&c->runs[chunk], grain, grains);
	c->used -= grains;
}

bool chunks_ever_fit(
	const struct chunks *c, uint32_t (*grains)(const void *ctx, uint32_t i), const void *ctx, uint32_t n)
{
	_cleanup_free_ uint32_t *left = calloc(c->limit, sizeof(*left));
	uint32_t end = 1, full = 1;

	/* without memory nobody can tell: say what lets the caller try again */
	for (uint32_t i = 0; left && i < n; i++) {
		uint32_t need = grains(ctx, i), at = full;

		while (at < end && left[at] < need)
			at++;
		if (at == c->limit)
			return false;
		if (at == end)
			left[end++] = CHUNKS_GRAINS;
		left[at] -= need;
		while (full < end && left[full] == 0)
			full++;
	}
	return true;
}

static int open_maps(struct chunks *c, struct err *e)
{
	_cleanup_close_ int inner = create_chunk();
	void *p;

	c->fd = inner < 0 ? inner : create_outer(c->limit, inner);
	if (c->fd < 0)
		return err_sys(e, c->fd, "cannot create the maps of unwind tables");
	p = mmap(NULL, (size_t)c->limit * UNWIND_CHUNK_BYTES, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return err_sys(
			e, -errno, "cannot set aside %u MiB of addresses for unwind tables", c->limit / 4);
	c->base = p;
	return 0;
}

DEFINE_CLEANUP(struct chunks *, chunks_close);

int chunks_open(uint32_t n, uint32_t first, struct chunks **ret, struct err *e)
{
	CLEANUP(chunks_close_p) struct chunks *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e, "unwind tables");
	c->fd = -1;
	c->limit = MIN(MAX(n, 2), CHUNKS_MOST);
	c->end = 1;
	c->runs = calloc(c->limit, sizeof(*c->runs));
	if (!c->runs)
		return err_nomem(e, "unwind tables");
	rc = open_maps(c, e);
	if (rc)
		return rc;
	start(c, first);
	*ret = TAKE_PTR(c);
	return 0;
}

void chunks_close(struct chunks *c)
{
	if (!c)
		return;
	if (c->running)
		pthread_join(c->thread, NULL);
	for (uint32_t i = 0; i < c->job.made; i++)
		close(c->job.fds[i]);
	for (uint32_t i = 1; i < c->end; i++)
		bitrun_close(&c->runs[i]);
	if (c->base)
		munmap(c->base, (size_t)c->limit * UNWIND_CHUNK_BYTES);
	if (c->fd >= 0)
		close(c->fd);
	free(c->runs);
	free(c);
}

int chunks_fd(const struct chunks *c)
{
	return c->fd;
}

void chunks_stats(const struct chunks *c, struct chunks_stats *ret)
{
	ret->chunks = c->end - 1;
	ret->bytes = ret->chunks * (UNWIND_CHUNK_BYTES + MAP_HEADER);
	ret->bytes_used = c->used * UNWIND_GRAIN;
}
