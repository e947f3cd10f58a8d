/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a capture of many waits, each by itself, as of a busy server:
 *
 *   samples CAPTURE N
 *
 * N waits of 64 threads of 8 processes, one after another in each thread, in 100 places each, of 4,000 pairs
 * of stacks of 8 kernel and 24 user frames, of 5,000 functions; every other wait has one of 500 wakers.
 */
#include "capture/writer.h"
#include "symbols/answer.h"

#include <errno.h>
#include <sys/mman.h>

#define PROCESSES 8
#define THREADS 64
#define STACKS 4000 /* of each half */
#define PLACES 100 /* of a thread */
#define USER_FRAMES 24
#define KERNEL_FRAMES 8
#define FUNCTIONS 5000
#define KERNEL_FUNCTIONS 400
#define WAKERS 500
#define FUNCTION_BYTES 0x100
#define T0 UINT64_C(1000000000)
#define K UINT64_C(0xffffffff81000000)
#define USER UINT64_C(0x7f0000000000)

static uint64_t rng = 42;

static uint64_t pick(uint64_t n)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng % n;
}

static void put_names(struct cap_writer *w)
{
	char text[64];

	for (uint64_t i = 0; i < KERNEL_FUNCTIONS; i++) {
		snprintf(text, sizeof(text), "kernel_function_%u", (unsigned int)i);
		cap_writer_ksym(w, &(struct cap_ksym){ .start = K + i * FUNCTION_BYTES,
					   .end = K + (i + 1) * FUNCTION_BYTES,
					   .name = text,
					   .module = "" });
	}
	cap_writer_file(w, &(struct cap_file){
				   .flags = CAPTURE_FILE_DELETED, .inode = 1, .path = "/usr/lib/server.so" });
	for (uint64_t i = 0; i < FUNCTIONS; i++) {
		struct cap_name_frame frame = {
			.name = text, .linkage = text, .file = "/src/server.c", .line = 1
		};

		snprintf(text, sizeof(text), "namespace::function_%u(int, char const*)", (unsigned int)i);
		for (uint64_t at = 0; at < 2; at++)
			cap_writer_name(w, &(struct cap_name){ .offset = i * FUNCTION_BYTES + 0x20 - at,
						   .vaddr = i * FUNCTION_BYTES + 0x20 - at,
						   .symbol_offset = 0x20 - at,
						   .source = SYM_SYMTAB,
						   .n = 1,
						   .frames = &frame });
	}
}

static void put_processes(struct cap_writer *w)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		cap_writer_proc(w, &(struct cap_proc){ .id = i,
					   .tgid = 100 * (i + 1),
					   .ns_tgid = 100 * (i + 1),
					   .comm = "server",
					   .exe = "/usr/bin/server" });
		cap_writer_map(w, &(struct cap_map){ .proc = i,
					  .prot = PROT_READ | PROT_EXEC,
					  .flags = MAP_PRIVATE,
					  .start = USER,
					  .end = USER + (FUNCTIONS + 16) * FUNCTION_BYTES / 4096 * 4096 });
	}
}

/* Kernel stacks have ids below STACKS, user stacks those from there on. */
static void put_stacks(struct cap_writer *w)
{
	uint64_t frames[USER_FRAMES];

	for (uint32_t id = 0; id < 2 * STACKS; id++) {
		const bool user = id >= STACKS;
		const uint32_t len = user ? USER_FRAMES : KERNEL_FRAMES;

		for (uint32_t i = 0; i < len; i++)
			frames[i] = (user ? USER : K) +
				    pick(user ? FUNCTIONS : KERNEL_FUNCTIONS) * FUNCTION_BYTES + 0x20;
		cap_writer_stack(w, &(struct cap_stack){ .id = id,
					    .kind = user ? CAPTURE_STACK_USER : CAPTURE_STACK_KERNEL,
					    .verdict = VERDICT_COMPLETE,
					    .len = len,
					    .frames = frames });
	}
	for (uint32_t id = 1; id <= WAKERS; id++)
		cap_writer_waker(w, &(struct cap_waker){ .id = id,
					    .proc = (uint32_t)pick(PROCESSES),
					    .tid = 100,
					    .kstack = (uint32_t)pick(STACKS),
					    .ustack = STACKS + (uint32_t)pick(STACKS),
					    .first_ns = T0 });
}

static uint64_t put_waits(struct cap_writer *w, uint64_t n)
{
	uint64_t at_ns[THREADS], last_ns = T0;

	for (uint32_t i = 0; i < THREADS; i++)
		at_ns[i] = T0 + i;
	for (uint64_t i = 0; i < n; i++) {
		const uint32_t thread = (uint32_t)pick(THREADS),
			       stack = (uint32_t)(thread * 60 + pick(PLACES)) % STACKS;
		const uint64_t ns = 1000 + pick(100000);

		cap_writer_wait(w, &(struct cap_sample){ .proc = thread % PROCESSES,
					   .tid = 1000 + thread,
					   .kstack = stack,
					   .ustack = STACKS + stack,
					   .state = 1,
					   .total_ns = ns,
					   .count = 1,
					   .max_ns = ns,
					   .first_ns = at_ns[thread],
					   .last_ns = at_ns[thread],
					   .is_split = true,
					   .runnable_ns = pick(1000),
					   .waker = i % 2 ? stack % WAKERS + 1 : 0 });
		at_ns[thread] += ns + pick(10000);
		last_ns = at_ns[thread] > last_ns ? at_ns[thread] : last_ns;
	}
	return last_ns;
}

int main(int argc, char *argv[])
{
	struct cap_writer *w = NULL;
	struct err e = { 0 };
	uint64_t end_ns;

	if (argc != 3) {
		fprintf(stderr, "usage: samples CAPTURE N\n");
		return 64;
	}
	if (cap_writer_open(argv[1], true, &w, &e) != 0) {
		fprintf(stderr, "samples: %s\n", e.msg);
		return 2;
	}
	cap_writer_host(w, &(struct cap_host){ .sysname = "Linux",
				   .release = "6.1",
				   .version = "",
				   .machine = "x86_64",
				   .hostname = "bench",
				   .boot_id = "",
				   .recorder = "samples",
				   .start_mono_ns = T0,
				   .start_real_ns = T0,
				   .page_size = 4096 });
	cap_writer_option(w, &(struct cap_option){ "events", "kept" });
	put_processes(w);
	put_names(w);
	put_stacks(w);
	end_ns = put_waits(w, strtoull(argv[2], NULL, 10));
	if (cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = end_ns, .why = "made" }, &e) != 0) {
		fprintf(stderr, "samples: %s\n", e.msg);
		return 2;
	}
	cap_writer_close(w);
	return 0;
}
