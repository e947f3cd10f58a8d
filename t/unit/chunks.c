/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chunks on the running kernel, and with calls that the kernel refuses: each of
 * these cases runs in its own process, under a seccomp filter or a limit.
 */
#include "../lib/self.h"
#include "base/tap.h"
#include "record/unwind_memory.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define NOT_SUPPORTED 524 /* ENOTSUPP: what the kernel returns if a type of map has no batch operation */

/* Returns how many of the chunks FIRST to END - 1 are in the kernel's array. */
static uint32_t in_place(const struct chunks *c, uint32_t first, uint32_t end)
{
	uint32_t n = 0, id;

	for (uint32_t i = first; i < end; i++)
		n += bpf_map_lookup_elem(chunks_fd(c), &i, &id) == 0;
	return n;
}

static uint64_t made(const struct chunks *c)
{
	struct chunks_stats st;

	chunks_stats(c, &st);
	return st.chunks;
}

/* Write a byte to B. Does the kernel have it? */
static bool readable(const struct chunks *c, const struct chunks_block *b)
{
	_cleanup_free_ uint8_t *bytes = malloc(UNWIND_CHUNK_BYTES);
	_cleanup_close_ int fd = -1;
	uint32_t id, zero = 0;
	uint8_t mark = (uint8_t)(b->chunk * 7 + b->grain);

	*(uint8_t *)b->p = mark;
	if (!bytes || bpf_map_lookup_elem(chunks_fd(c), &b->chunk, &id) != 0)
		return false;
	fd = bpf_map_get_fd_by_id(id);
	return fd >= 0 && bpf_map_lookup_elem(fd, &zero, bytes) == 0 &&
	       bytes[(size_t)b->grain * UNWIND_GRAIN] == mark;
}

static void test_blocks(struct tap *t)
{
	struct chunks_block a, b, d, big;
	struct chunks *c;
	struct err e;

	if (chunks_open(4, 1, NULL, &c, &e) != 0)
		return;
	tap_ok(t,
		chunks_take(c, 0, &a, &e) == -EINVAL && chunks_take(c, CHUNKS_GRAINS + 1, &a, &e) == -EINVAL,
		"a block of size 0, or larger than a chunk, is refused");
	tap_ok(t, chunks_take(c, 10, &a, &e) == 0 && a.chunk == 1 && a.grain == 0,
		"the first block is at the start of chunk 1");
	tap_ok(t, chunks_take(c, CHUNKS_GRAINS - 15, &b, &e) == 0 && b.chunk == 1 && b.grain == 10,
		"the next block directly follows the first one");
	tap_ok(t, chunks_take(c, CHUNKS_GRAINS, &big, &e) == 0 && big.chunk == 2 && big.grain == 0,
		"a block that does not fit into the chunk goes into a new one");
	tap_ok(t, chunks_take(c, 5, &d, &e) == 0 && d.chunk == 1 && d.grain == CHUNKS_GRAINS - 5,
		"the rest of the first chunk is used");
	tap_ok(t,
		chunks_commit(c, &e) == 0 && readable(c, &a) && readable(c, &b) && readable(c, &big) &&
			readable(c, &d),
		"what is written to the blocks is visible to BPF");
	tap_ok(t, in_place(c, 0, 1) == 0, "there is no chunk 0");
	chunks_give(c, 1, 0, 10);
	tap_ok(t,
		chunks_take(c, 11, &a, &e) == 0 && a.chunk == 3 && chunks_take(c, 4, &a, &e) == 0 &&
			a.chunk == 1 && a.grain == 0,
		"freed space is used again if a block fits into it");
	tap_ok(t, chunks_take(c, CHUNKS_GRAINS, &a, &e) == -ENOSPC && strstr(e.msg, "1 MiB"),
		"the error message at the limit names the limit");
	chunks_close(c);
}

static uint32_t one_size(const void *ctx, uint32_t i)
{
	(void)i;
	return *(const uint32_t *)ctx;
}

static void test_fit(struct tap *t)
{
	uint32_t whole = CHUNKS_GRAINS, over_half = CHUNKS_GRAINS / 2 + 1, none = 0;
	struct chunks *c;

	if (chunks_open(11, 0, NULL, &c, NULL) != 0)
		return;
	tap_ok(t, chunks_ever_fit(c, one_size, &whole, 10) && !chunks_ever_fit(c, one_size, &whole, 11),
		"ten blocks as large as a chunk fit into ten chunks, eleven do not");
	tap_ok(t,
		chunks_ever_fit(c, one_size, &over_half, 10) && !chunks_ever_fit(c, one_size, &over_half, 11),
		"ten blocks of more than half a chunk fit into ten chunks, eleven do not");
	tap_ok(t, chunks_ever_fit(c, one_size, &none, 1000), "blocks of size 0 always fit");
	tap_eq_u64(t, made(c), 0, "checking whether blocks fit creates no chunk");
	chunks_close(c);
}

static void test_growth(struct tap *t)
{
	struct chunks_block b;
	struct chunks *c;
	uint32_t wrong = 0, n = 0;

	if (chunks_open(601, 0, NULL, &c, NULL) != 0)
		return;
	while (chunks_take(c, CHUNKS_GRAINS, &b, NULL) == 0) {
		n++;
		*(uint32_t *)b.p = b.chunk;
		wrong += n % 50 == 0 && (chunks_commit(c, NULL) != 0 || in_place(c, 1, n + 1) != n);
	}
	tap_eq_u64(t, n, 600, "chunks are created one by one up to the limit");
	tap_eq_u64(t, wrong, 0, "all chunks are in place after each commit");
	chunks_close(c);
	if (chunks_open(601, 3, NULL, &c, NULL) != 0)
		return;
	tap_ok(t, chunks_reserve(c, 600 * CHUNKS_GRAINS + 1, NULL) == -ENOSPC && made(c) <= 3,
		"more than the limit cannot be reserved");
	tap_ok(t, chunks_reserve(c, 600 * CHUNKS_GRAINS, NULL) == 0 && made(c) == 600,
		"everything up to the limit can be reserved at once");
	tap_ok(t, chunks_commit(c, NULL) == 0 && in_place(c, 1, 601) == 600,
		"reserved chunks are in place after a commit");
	chunks_close(c);
}

/* Returns the memory, in bytes, that the kernel reports for a map in /proc/self/fdinfo. */
static uint64_t held(uint32_t id)
{
	_cleanup_close_ int fd = bpf_map_get_fd_by_id(id);
	char path[64], line[256];
	unsigned long long bytes = 0;
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memlock: %llu", &bytes) == 1)
			break;
	return bytes;
}

static void test_bytes(struct tap *t)
{
	struct chunks_stats st;
	struct chunks *c;
	uint64_t bytes = 0;

	if (chunks_open(8, 5, NULL, &c, NULL) != 0)
		return;
	chunks_commit(c, NULL);
	for (uint32_t i = 1, id; i < 8; i++)
		if (bpf_map_lookup_elem(chunks_fd(c), &i, &id) == 0)
			bytes += held(id);
	chunks_stats(c, &st);
	tap_eq_u64(t, st.chunks, 5, "the requested number of chunks is created at once");
	tap_eq_u64(t, st.bytes, bytes, "the memory of the chunks is what the kernel reports");
	chunks_close(c);
}

static int no_thread(void)
{
	struct chunks_block b;
	struct chunks *c;

	if (!self_refuse(SYS_clone3, -1, ENOSYS) || !self_refuse(SYS_clone, -1, EAGAIN))
		return 1;
	if (chunks_open(8, 2, NULL, &c, NULL) != 0)
		return 2;
	if (in_place(c, 1, 3) != 2 || chunks_take(c, CHUNKS_GRAINS, &b, NULL) != 0)
		return 3;
	if (chunks_reserve(c, 6 * CHUNKS_GRAINS, NULL) != 0 || chunks_commit(c, NULL) != 0)
		return 4;
	if (in_place(c, 1, 8) != 7)
		return 5;
	chunks_close(c);
	return 0;
}

static int no_batch(void)
{
	struct chunks *c;

	if (!self_refuse(SYS_bpf, BPF_MAP_UPDATE_BATCH, NOT_SUPPORTED) ||
		chunks_open(8, 7, NULL, &c, NULL) != 0)
		return 1;
	if (chunks_commit(c, NULL) != 0 || in_place(c, 1, 8) != 7)
		return 2;
	chunks_close(c);
	return 0;
}

static int no_place(void)
{
	struct err e = { 0 };
	struct chunks *c;

	if (!self_refuse(SYS_bpf, BPF_MAP_UPDATE_BATCH, EPERM) ||
		!self_refuse(SYS_bpf, BPF_MAP_UPDATE_ELEM, EPERM) || chunks_open(8, 2, NULL, &c, NULL) != 0)
		return 1;
	if (chunks_commit(c, &e) != -EPERM || !strstr(e.msg, "cannot show BPF"))
		return 2;
	if (chunks_commit(c, &e) != -EPERM || in_place(c, 1, 8) != 0)
		return 3;
	if (chunks_reserve(c, 3 * CHUNKS_GRAINS, &e) != -EPERM || made(c) != 2)
		return 4;
	chunks_close(c);
	return 0;
}

static int no_memory(void)
{
	struct chunks_block b;
	struct err e = { 0 };
	struct chunks *c;

	if (chunks_open(8, 1, NULL, &c, NULL) != 0 || chunks_take(c, CHUNKS_GRAINS, &b, NULL) != 0)
		return 1;
	if (!self_refuse(SYS_bpf, BPF_MAP_CREATE, ENOMEM))
		return 2;
	if (chunks_take(c, 1, &b, &e) != -ENOMEM || !strstr(e.msg, "cannot make memory"))
		return 3;
	if (chunks_reserve(c, 1, &e) != -ENOMEM || made(c) != 1)
		return 4;
	if (chunks_commit(c, &e) != 0)
		return 5;
	chunks_give(c, 1, 0, CHUNKS_GRAINS);
	if (chunks_take(c, 1, &b, &e) != 0)
		return 6;
	chunks_close(c);
	return 0;
}

static int few_descriptors(void)
{
	const struct rlimit few = { 12, 12 };
	struct chunks_block b;
	struct chunks *c;
	uint32_t n = 0;

	if (setrlimit(RLIMIT_NOFILE, &few) != 0 || chunks_open(101, 50, NULL, &c, NULL) != 0)
		return 1;
	while (n < 100 && chunks_take(c, CHUNKS_GRAINS, &b, NULL) == 0)
		n++;
	if (n != 100 || chunks_commit(c, NULL) != 0)
		return 2;
	if (in_place(c, 1, 101) != 100)
		return 3;
	chunks_close(c);
	return 0;
}

static int not_permitted(void)
{
	struct err e = { 0 };
	struct chunks *c;

	if (!self_refuse(SYS_bpf, -1, EPERM))
		return 1;
	return chunks_open(8, 1, NULL, &c, &e) == -EPERM && strstr(e.msg, "cannot create the maps") ? 0 : 2;
}

/* Not with the address sanitizer, which needs terabytes of addresses. */
static int no_addresses(void)
{
	const struct rlimit little = { 1 << 30, 1 << 30 };
	struct err e = { 0 };
	struct chunks *c;

	if (setrlimit(RLIMIT_AS, &little) != 0)
		return 1;
	return chunks_open(16384, 1, NULL, &c, &e) == -ENOMEM && strstr(e.msg, "4096 MiB of addresses") ? 0
													: 2;
}

int main(void)
{
	struct tap t = { 0 };
	struct chunks *c;
	struct err e;
	int rc;

	rc = chunks_open(2, 0, NULL, &c, &e);
	if (rc == -EPERM)
		tap_skip(&t, "chunks", "%s", e.msg);
	else if (rc)
		tap_ok(&t, false, "chunks: %s", e.msg);
	if (rc)
		return tap_done(&t);
	chunks_close(c);
	chunks_close(NULL);
	test_blocks(&t);
	test_fit(&t);
	test_growth(&t);
	test_bytes(&t);
	tap_eq_u64(
		&t, self_apart(no_thread), 0, "if no thread can be started, its work is done synchronously");
	tap_eq_u64(&t, self_apart(no_batch), 0, "without batch updates the elements are set one by one");
	tap_eq_u64(&t, self_apart(no_place), 0,
		"after a chunk cannot be put in place every commit fails, and no chunk is created");
	tap_eq_u64(&t, self_apart(no_memory), 0,
		"without memory for another chunk the existing ones stay usable");
	tap_eq_u64(&t, self_apart(few_descriptors), 0, "a few descriptors are enough for many chunks");
	tap_eq_u64(&t, self_apart(not_permitted), 0,
		"if BPF is not permitted the maps cannot be created, and the error says so");
#ifdef __SANITIZE_ADDRESS__
	(void)no_addresses;
	tap_skip(&t, "if addresses are limited the error says so", "the address sanitizer needs them");
#else
	tap_eq_u64(&t, self_apart(no_addresses), 0, "if addresses are limited the error says so");
#endif
	return tap_done(&t);
}
