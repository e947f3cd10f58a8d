/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A capture whose every record is known: what the tests write, and what they
 * compare with. Two flushes; extreme values; foreign bytes in every name.
 */
#ifndef STACKTOOLS_T_SAMPLE_H
#define STACKTOOLS_T_SAMPLE_H

#include "capture/writer.h"

#include <string.h>

#define MONO UINT64_C(5000000000)

static const struct cap_host sample_host = {
	.sysname = "Linux",
	.release = "6.18.0-test",
	.version = "#1 SMP",
	.machine = "x86_64",
	.hostname = "h\303\266st\033[31m",
	.boot_id = "9d1c1ddc-3f4e-4a86-8b43-2a1d5a8f5b11",
	.recorder = "unit 1",
	.kernel_build_id = { 20,
		{ 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0xff } },
	.stext = UINT64_C(0xffffffff81000000),
	.start_mono_ns = MONO,
	.start_boot_ns = UINT64_MAX,
	.start_real_ns = UINT64_C(1789000000123456789),
	.max_stack = 127,
	.cpus = UINT32_MAX,
	.page_size = 4096,
};

static const struct cap_option sample_options[] = { { "pid", "4242" }, { "unwind", "fp" }, { "", "" } };

static const struct cap_file sample_files[] = {
	{ .id = 0,
		.dev_major = 8,
		.dev_minor = 1,
		.inode = 99,
		.size = 12345,
		.mtime_ns = 1,
		.build_id = { 1, { 0 } },
		.path = "/usr/bin/target" },
	{ .id = 1,
		.dev_major = UINT32_MAX,
		.dev_minor = UINT32_MAX,
		.flags = CAPTURE_FILE_DELETED | CAPTURE_FILE_UNREAD,
		.error = INT32_MIN,
		.inode = UINT64_MAX,
		.size = UINT64_MAX,
		.mtime_ns = UINT64_MAX,
		.build_id = { CAPTURE_BUILD_ID_MAX, { [63] = 7 } },
		.path = "/tmp/new\nline \377\033" },
	{ .id = 2, .flags = CAPTURE_FILE_PSEUDO, .path = "[vdso]" },
};

static const struct cap_proc sample_procs[] = {
	{ .id = 0,
		.tgid = 4242,
		.ns_tgid = 7,
		.start_boot_ns = 1000,
		.comm = "tar;get",
		.exe = "/usr/bin/target" },
	{ .id = 1, .tgid = 2, .ns_tgid = 2, .flags = CAPTURE_PROC_KTHREAD, .comm = "kthreadd", .exe = "" },
	{ .id = 2,
		.tgid = UINT32_MAX,
		.ns_tgid = 0,
		.flags = CAPTURE_PROC_MAPS_LOST,
		.maps_error = -13,
		.start_boot_ns = UINT64_MAX,
		.image_ns = UINT64_MAX,
		.comm = "",
		.exe = "\001" },
};

static const struct cap_thread sample_threads[] = {
	{ .proc = 0, .tid = 4243, .ns_tid = 8, .comm = "old name" },
	{ .proc = 0, .tid = 4242, .ns_tid = 7, .comm = "tar;get" },
	{ .proc = 2, .tid = UINT32_MAX, .ns_tid = UINT32_MAX, .comm = "fifteen bytes.." },
	{ .proc = 0, .tid = 4243, .ns_tid = 8, .comm = "new name" },
};

static const struct cap_map sample_maps[] = {
	{ .proc = 0, .file = 0, .prot = 5, .flags = 2, .start = 0x400000, .end = 0x500000, .offset = 0x1000 },
	{ .proc = 0,
		.file = 2,
		.prot = 5,
		.flags = 2,
		.start = UINT64_C(0x7ffff7fc0000),
		.end = UINT64_C(0x7ffff7fc2000) },
	{ .proc = 0,
		.file = CAPTURE_NONE,
		.prot = 7,
		.flags = 1,
		.from_ns = MONO + 500,
		.start = 0x480000,
		.end = 0x490000 },
	{ .proc = 2,
		.file = 1,
		.prot = UINT32_MAX,
		.flags = UINT32_MAX,
		.from_ns = UINT64_MAX,
		.start = 0,
		.end = UINT64_MAX,
		.offset = UINT64_MAX },
};

static const uint8_t sample_vdso[] = { 0x7f, 'E', 'L', 'F', 0, 1, 2, 3 };
static const struct cap_image sample_images[] = { { 2, sizeof(sample_vdso), sample_vdso },
	{ 0, 0, sample_vdso } };

static const struct cap_ksym sample_ksyms[] = {
	{ UINT64_C(0xffffffff81200000), UINT64_C(0xffffffff81200100), "do_wait", "" },
	{ UINT64_C(0xffffffff81100000), UINT64_C(0xffffffff81100040), "schedule", "" },
	{ UINT64_C(0xffffffffc0000000), UINT64_MAX, "prog_1", "bpf" },
};

static const uint64_t frames_0[] = { UINT64_C(0xffffffff81100012), UINT64_C(0xffffffff81200034) };
static const uint64_t frames_1[] = { 0x401234, UINT64_C(0x7ffff7fc0010), 0, UINT64_MAX, 1,
	UINT64_C(1) << 63 };
static const uint32_t exact_1[] = { 1, 2, 5 };
static const uint64_t frames_3[] = { 0x401234, UINT64_C(0x7ffff7fc0010), 0x401300 };
static const struct cap_stack sample_stacks[] = {
	{ .id = 0, .kind = CAPTURE_STACK_KERNEL, .verdict = VERDICT_COMPLETE, .len = 2, .frames = frames_0 },
	{ .id = 1,
		.kind = CAPTURE_STACK_USER,
		.verdict = VERDICT_STOPPED,
		.reason = REASON_MEMORY,
		.stop_pc = UINT64_MAX,
		.len = 6,
		.n_exact = 3,
		.frames = frames_1,
		.exact = exact_1 },
	{ .id = 2,
		.kind = CAPTURE_STACK_USER,
		.verdict = VERDICT_FAILED,
		.reason = REASON_ERRNO,
		.error = -14 },
	{ .id = 3, .kind = CAPTURE_STACK_USER, .verdict = VERDICT_UNVERIFIED, .len = 3, .frames = frames_3 },
	{ .id = 4, .kind = CAPTURE_STACK_USER, .verdict = VERDICT_FAILED, .reason = REASON_KTHREAD },
};

static const struct cap_life sample_lives[] = {
	{ 0, 4242, MONO, MONO + 1500000000, 250000000, true, 500000000 },
	{ 1, 2, 0, UINT64_MAX, UINT64_MAX, false, 0 },
	{ 0, 4243, MONO, MONO, 0, true, UINT64_MAX },
	{ 0, 4242, MONO + 1600000000, MONO + 2000000000, 5, true, 7 },
};

static const struct cap_waker sample_wakers[] = {
	{ 1, CAPTURE_WAKER_INTERRUPT, CAPTURE_NONE, 0, 0, 4, 0, MONO },
	{ 2, 0, 0, 4243, 0, 3, 1, UINT64_MAX },
	{ 3, UINT32_MAX, 2, UINT32_MAX, 0, 2, 0, 0 },
};

/* In two flushes: [0, FIRST_FLUSH) and the rest. */
#define FIRST_FLUSH 3
static const struct cap_sample sample_samples[] = {
	{ 0, 4242, 0, 1, 1, 0, 1000, 2, 700, MONO + 10, MONO + 20, true, 300, 0 },
	{ 0, 4243, 0, 3, 2, CAPTURE_SAMPLE_OPEN, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, true,
		UINT64_MAX, 0 },
	{ 1, 2, 0, 4, 0x402, 0, 5, 1, 5, 0, UINT64_MAX, true, 0, 2 },
	{ 0, 4242, 0, 1, 1, 0, 500, 1, 500, MONO + 5, MONO + 15, true, 500, 0 },
	{ 0, 4242, 0, 1, 1, CAPTURE_SAMPLE_INITIAL, 50, 1, 50, MONO, MONO, false, 0, 1 },
	{ 0, 4243, 0, 3, 2, CAPTURE_SAMPLE_OPEN, 1, 1, 1, MONO, MONO, false, 0, 0 },
	{ 2, UINT32_MAX, 0, 2, UINT32_MAX, UINT32_MAX & ~8u, 7, 1, 7, MONO + 3, MONO + 3, false, 0, 3 },
};

/* The same key twice, later; one that is reported by its time, one by its kind. */
static const struct cap_jit sample_jits[] = {
	{ 2, CAPTURE_JIT_JITDUMP, MONO, MONO + 9, 0, UINT64_MAX, "LazyCompile:~f /tmp/a b.js", "", 0, 0 },
	{ 0, CAPTURE_JIT_PERFMAP, 0, UINT64_MAX, 0x480000, 0x480001, "old", "", 0, 0 },
	{ 0, CAPTURE_JIT_JITDUMP, MONO, UINT64_MAX, 0x480000, 0x480100, "f", "a.js", UINT32_MAX,
		0x1234567890 },
	{ 0, CAPTURE_JIT_JITDUMP, 0, MONO, 0x480000, 0x480100, "old", "", 0, 0 },
	{ 0, CAPTURE_JIT_PERFMAP, 0, UINT64_MAX, 0x480000, 0x480020, "new\n\377\033", "", 0, 16 },
};

static const struct cap_name_frame name_frames_0[] = { { "inner<int>(int)", "_Z5innerIiEvi", "/src/a.h", 7,
							       3 },
	{ "", "", "/src/a.c", 1, 0 }, { "outer", "outer", "/src/a.c", UINT32_MAX, UINT32_MAX } };
static const struct cap_name_frame name_frames_1[] = { { "later", "later", "", 0, 0 } };
static const struct cap_name sample_names[] = {
	{ 1, UINT64_MAX, UINT64_MAX, UINT8_MAX, UINT8_MAX, 0, NULL, 0 },
	{ 0, 0x1234, 0x10, 1, 1, 1, name_frames_0, UINT64_MAX },
	{ 0, 0x1234, 0x34, 2, 0, 3, name_frames_0, 0x401234 },
	{ 0, 0x1233, 0, 3, 2, 1, name_frames_1, 0x1233 },
};
#define FIRST_NAMES 2

static const struct cap_counter sample_counters[] = { { "waits.recorded", 4 }, { "waits.recorded_ns", 1005 },
	{ "lost.ring_full", 3 }, { "waits.recorded", 8 }, { "lost.ring_full", UINT64_MAX } };
#define FIRST_COUNTERS 3

static const struct cap_trailer sample_trailer = { MONO + 2000000000, "duration" };

#define SAMPLE_EACH(w, what, array, from, to)                                                                \
	do {                                                                                                 \
		for (size_t i_ = (from); i_ < (to); i_++)                                                    \
			cap_writer_##what((w), &(array)[i_]);                                                \
	} while (0)

/* Samples before what they refer to: the writer puts that right. */
static inline int sample_first(struct cap_writer *w, struct err *e)
{
	SAMPLE_EACH(w, sample, sample_samples, 0, FIRST_FLUSH);
	SAMPLE_EACH(w, counter, sample_counters, 0, FIRST_COUNTERS);
	SAMPLE_EACH(w, name, sample_names, 0, FIRST_NAMES);
	SAMPLE_EACH(w, jit, sample_jits, 0, 2);
	SAMPLE_EACH(w, waker, sample_wakers, 0, ARRAY_LEN(sample_wakers));
	SAMPLE_EACH(w, stack, sample_stacks, 0, ARRAY_LEN(sample_stacks));
	SAMPLE_EACH(w, ksym, sample_ksyms, 0, ARRAY_LEN(sample_ksyms));
	SAMPLE_EACH(w, image, sample_images, 0, ARRAY_LEN(sample_images));
	SAMPLE_EACH(w, map, sample_maps, 0, ARRAY_LEN(sample_maps));
	SAMPLE_EACH(w, life, sample_lives, 0, 2);
	SAMPLE_EACH(w, thread, sample_threads, 0, 3);
	SAMPLE_EACH(w, proc, sample_procs, 0, ARRAY_LEN(sample_procs));
	SAMPLE_EACH(w, file, sample_files, 0, ARRAY_LEN(sample_files));
	SAMPLE_EACH(w, option, sample_options, 0, ARRAY_LEN(sample_options));
	cap_writer_host(w, &sample_host);
	return cap_writer_flush(w, MONO + 1000000000, e);
}

static inline int sample_second(struct cap_writer *w, struct err *e)
{
	SAMPLE_EACH(w, thread, sample_threads, 3, ARRAY_LEN(sample_threads));
	SAMPLE_EACH(w, life, sample_lives, 2, ARRAY_LEN(sample_lives));
	SAMPLE_EACH(w, sample, sample_samples, FIRST_FLUSH, ARRAY_LEN(sample_samples));
	SAMPLE_EACH(w, counter, sample_counters, FIRST_COUNTERS, ARRAY_LEN(sample_counters));
	SAMPLE_EACH(w, name, sample_names, FIRST_NAMES, ARRAY_LEN(sample_names));
	SAMPLE_EACH(w, jit, sample_jits, 2, ARRAY_LEN(sample_jits));
	return cap_writer_finish(w, &sample_trailer, e);
}

static inline int sample_write(const char *path, struct err *e)
{
	struct cap_writer *w;
	int code = cap_writer_open(path, false, &w, e);

	if (code)
		return code;
	code = sample_first(w, e);
	if (!code)
		code = sample_second(w, e);
	cap_writer_close(w);
	return code;
}

/*
 * A recording of a busy machine: SAMPLES samples over 60 flushes of 50,021 keys
 * that come again and again, 50 processes, 20,000 stacks of 24 frames.
 */
static inline int sample_write_many(const char *path, uint32_t samples, struct err *e)
{
	enum { PROCS = 50, STACKS = 20000, DEPTH = 24, FLUSHES = 60 };
	uint64_t frames[DEPTH];
	struct cap_writer *w;
	int code = cap_writer_open(path, true, &w, e);

	if (code)
		return code;
	cap_writer_host(w, &sample_host);
	for (uint32_t i = 0; i < PROCS; i++)
		cap_writer_proc(w,
			&(struct cap_proc){ .id = i, .tgid = 1000 + i, .comm = "worker", .exe = "/bin/w" });
	for (uint32_t i = 0; i < STACKS; i++) {
		for (uint32_t k = 0; k < DEPTH; k++)
			frames[k] = UINT64_C(0x7f1234560000) + (i * UINT32_C(2654435761) >> 12) + k * k * 997;
		cap_writer_stack(w, &(struct cap_stack){ .id = i,
					    .kind = i % 2 ? CAPTURE_STACK_USER : CAPTURE_STACK_KERNEL,
					    .verdict = VERDICT_COMPLETE,
					    .len = DEPTH,
					    .frames = frames });
	}
	for (uint32_t i = 0; i < samples && !code; i++) {
		uint32_t key = i % 50021 * UINT32_C(2654435761) >> 8;

		cap_writer_sample(w, &(struct cap_sample){ .proc = key % PROCS,
					     .tid = 1000 + key % 997,
					     .kstack = key % (STACKS / 2) * 2,
					     .ustack = key / 7 % (STACKS / 2) * 2 + 1,
					     .state = 1,
					     .total_ns = 50000 + key % 100000,
					     .count = 1 + key % 9,
					     .max_ns = 40000,
					     .first_ns = MONO + UINT64_C(60000) * i,
					     .last_ns = MONO + UINT64_C(60000) * i + 1000 });
		if (i % (samples / FLUSHES + 1) == samples / FLUSHES)
			code = cap_writer_flush(w, MONO + UINT64_C(60000) * i, e);
	}
	if (!code)
		code = cap_writer_finish(w, &sample_trailer, e);
	cap_writer_close(w);
	return code;
}

#endif
