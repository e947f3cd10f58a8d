/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of symbols/resolve.h. With an option it writes a capture instead, for comparisons with other
 * symbolizers and for other tests:
 *
 *   resolve --gen CAPTURE ELF DISTINCT TOTAL
 *
 * writes TOTAL frames, drawn from DISTINCT random code addresses of ELF, as stacks of 100 frames, and prints
 * for each frame the virtual address to look up.
 *
 *   resolve --list CAPTURE ELF PATH <ADDRESSES
 *
 * does the same with addresses from standard input, one hexadecimal address per line, of ELF mapped under the
 * name PATH.
 *
 *   resolve --many CAPTURE N ELF...
 *
 * writes a stack of N random addresses of each ELF file.
 *
 *   resolve --kernel CAPTURE ELF STEXT VADDR|NAME=VADDR...
 *
 * writes a kernel stack of the calls at VADDRs (hex) in ELF, which stands for vmlinux and has its _stext at
 * STEXT, and of one call in a module. NAME= adds a kernel symbol of 2 bytes at VADDR; the return address is
 * VADDR + 1.
 *
 *   resolve --make CAPTURE ELF PATH COMM FLAGS ADDRESS...
 *
 * writes what t/tools/symbolize.t needs: a process COMM that has ELF mapped under the name PATH and waits
 * with the ADDRESSes (virtual, hex; the first one is exact, and so is one written as "=ADDRESS") as its user
 * stack, and a kernel thread. FLAGS are letters:
 *
 *   b  another build ID             z  no build ID: size and time identify the file
 *   Z  no build ID, another size    l  events were lost
 *   t  no trailer                   f  a wait for each way in which a stack can fail
 *   a  the file is deleted          m  two more waits, one of another thread, not in order of time
 */
#include "../lib/self.h"
#include "base/bytes.h"
#include "base/tap.h"
#include "capture/writer.h"
#include "elf/file.h"
#include "symbols/resolve.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define BASE UINT64_C(0x7f0000000000)
#define DEPTH 100
#define T0 UINT64_C(1000000000)

static uint64_t rng = 42;

static uint64_t next_random(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return rng;
}

static void put_process(struct cap_writer *w, uint32_t id)
{
	const struct cap_proc p = {
		.id = id, .tgid = 4242 + id, .ns_tgid = 4242 + id, .comm = "prog", .exe = "/bin/prog"
	};

	cap_writer_proc(w, &p);
}

static void put_host_of(struct cap_writer *w, const struct cap_build_id *kernel)
{
	const struct cap_host h = { .kernel_build_id = *kernel,
		.sysname = "Linux",
		.release = "6.18.0",
		.version = "#1",
		.machine = "x86_64",
		.hostname = "there",
		.boot_id = "another",
		.recorder = "resolve",
		.stext = UINT64_C(0xffffffff81000000),
		.start_mono_ns = T0,
		.start_real_ns = UINT64_C(1700000000000000000),
		.max_stack = 127,
		.cpus = 2,
		.page_size = 4096 };

	cap_writer_host(w, &h);
}

static void put_host(struct cap_writer *w)
{
	put_host_of(w, &(struct cap_build_id){ 0 });
}

static struct cap_file file_of(const char *path, const struct elffile *f, uint32_t id)
{
	return (struct cap_file){ .id = id,
		.path = path,
		.size = f->size,
		.mtime_ns = f->mtime_ns,
		.build_id = f->build_id,
		.inode = 1 };
}

static struct cap_map map_of_load(const struct elffile_load *l, uint32_t proc, uint32_t file, uint64_t base)
{
	return (struct cap_map){ .proc = proc,
		.file = file,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.start = base + (l->vaddr & ~UINT64_C(4095)),
		.end = base + ((l->vaddr + l->filesz + 4095) & ~UINT64_C(4095)),
		.offset = l->offset & ~UINT64_C(4095) };
}

/* The last executable load of F, mapped at BASE as the kernel would map it. */
static struct cap_map map_of(const struct elffile *f, uint32_t proc, uint32_t file, uint64_t base)
{
	for (size_t i = f->n_loads; i-- > 0;)
		if (f->loads[i].exec)
			return map_of_load(&f->loads[i], proc, file, base);
	return (struct cap_map){ .proc = proc, .file = file };
}

static uint64_t random_vaddr(const struct elffile *f, uint64_t code)
{
	uint64_t at = next_random() % code;

	for (size_t i = 0; i < f->n_sections; i++) {
		const struct elffile_section *s = &f->sections[i];

		if (!(s->flags & SHF_EXECINSTR))
			continue;
		if (at < s->size)
			return s->addr + at;
		at -= s->size;
	}
	return 0;
}

static void put_stack(struct cap_writer *w, uint32_t id, const uint64_t *frames, uint32_t len)
{
	const struct cap_stack s = { .id = id,
		.kind = CAPTURE_STACK_USER,
		.verdict = VERDICT_COMPLETE,
		.len = len,
		.frames = frames };

	cap_writer_stack(w, &s);
}

static void put_sample(struct cap_writer *w, uint32_t ustack, uint64_t when)
{
	const struct cap_sample s = { .tid = 4242,
		.kstack = 0,
		.ustack = ustack,
		.state = 1,
		.total_ns = 1000,
		.count = 1,
		.max_ns = 1000,
		.first_ns = when,
		.last_ns = when };

	cap_writer_sample(w, &s);
}

static void gen_stacks(struct cap_writer *w, const uint64_t *pool, size_t distinct, size_t total)
{
	const struct cap_stack none = {
		.kind = CAPTURE_STACK_KERNEL, .verdict = VERDICT_FAILED, .reason = REASON_NOT_RECORDED
	};
	uint64_t frames[DEPTH];
	uint32_t id = 1;

	cap_writer_stack(w, &none);
	for (size_t done = 0; done < total; id++) {
		uint32_t len = (uint32_t)MIN(total - done, (size_t)DEPTH);

		for (uint32_t i = 0; i < len; i++, done++) {
			uint64_t at = pool[total == distinct ? done : next_random() % distinct];

			/* a return address is one past the byte to look up */
			frames[i] = BASE + at + (i ? 1 : 0);
			printf("0x%" PRIx64 "\n", at);
		}
		put_stack(w, id, frames, len);
		put_sample(w, id, T0 + id);
	}
}

/* Write a capture in which all executable loads of F are mapped as PATH, with the stacks of gen_stacks(). */
static int write_gen(const char *out, const struct elffile *f, const char *path, const uint64_t *pool,
	size_t distinct, size_t total, struct err *e)
{
	struct cap_writer *w = NULL;
	struct cap_file file = file_of(path, f, 0);
	int rc = cap_writer_open(out, true, &w, e);

	if (rc)
		return rc;
	put_host(w);
	put_process(w, 0);
	cap_writer_file(w, &file);
	for (size_t i = 0; i < f->n_loads; i++)
		if (f->loads[i].exec) {
			struct cap_map map = map_of_load(&f->loads[i], 0, 0, BASE);

			cap_writer_map(w, &map);
		}
	gen_stacks(w, pool, distinct, total);
	rc = cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2 * T0, .why = "made" }, e);
	cap_writer_close(w);
	return rc;
}

/* --gen: random addresses of the code of PATH. */
static int generate(const char *out, const char *path, size_t distinct, size_t total)
{
	struct elffile *f = NULL;
	struct err e = { 0 };
	uint64_t *pool = calloc(distinct + 1, sizeof(*pool)), code = 0;
	int rc = pool ? elffile_open(AT_FDCWD, path, false, &f, &e) : -ENOMEM;

	if (rc == 0) {
		for (size_t i = 0; i < f->n_sections; i++)
			code += f->sections[i].flags & SHF_EXECINSTR ? f->sections[i].size : 0;
		for (size_t i = 0; i < distinct; i++)
			pool[i] = random_vaddr(f, code);
		rc = write_gen(out, f, path, pool, distinct, total, &e);
	}
	if (rc)
		fprintf(stderr, "resolve: %s\n", e.msg);
	elffile_close(f);
	free(pool);
	return rc ? 2 : 0;
}

/* --list: the addresses from standard input, in the file PATH that is mapped as MAPPED. */
static int list(const char *out, const char *path, const char *mapped)
{
	struct elffile *f = NULL;
	struct err e = { 0 };
	struct buf pool = { 0 };
	char line[64];
	int rc = elffile_open(AT_FDCWD, path, false, &f, &e);

	while (rc == 0 && fgets(line, sizeof(line), stdin)) {
		uint64_t at = strtoull(line, NULL, 16);

		buf_put(&pool, &at, sizeof(at));
		rc = pool.failed ? -ENOMEM : 0;
	}
	if (rc == 0)
		rc = write_gen(out, f, mapped, (const uint64_t *)(void *)pool.p, pool.len / sizeof(uint64_t),
			pool.len / sizeof(uint64_t), &e);
	if (rc)
		fprintf(stderr, "resolve: %s\n", e.msg);
	elffile_close(f);
	buf_free(&pool);
	return rc ? 2 : 0;
}

/* Map PATH as file ID, far from the others; put N of its addresses into stack and sample ID + 1. */
static int put_some(struct cap_writer *w, uint32_t id, const char *path, size_t n, struct err *e)
{
	struct elffile *f = NULL;
	uint64_t base = BASE + ((uint64_t)id << 32), code = 0, frames[DEPTH];
	int rc = elffile_open(AT_FDCWD, path, false, &f, e);

	if (rc)
		return rc;
	struct cap_file file = file_of(path, f, id);
	struct cap_map map = map_of(f, 0, id, base);

	for (size_t i = 0; i < f->n_sections; i++)
		code += f->sections[i].flags & SHF_EXECINSTR ? f->sections[i].size : 0;
	cap_writer_file(w, &file);
	cap_writer_map(w, &map);
	for (size_t i = 0; i < n && code; i++)
		frames[i] = base + random_vaddr(f, code) + (i ? 1 : 0);
	put_stack(w, id + 1, frames, (uint32_t)(code ? n : 0));
	put_sample(w, id + 1, T0 + id + 1);
	elffile_close(f);
	return 0;
}

static int many(const char *out, size_t n, char *const paths[], int n_paths)
{
	const struct cap_stack none = {
		.kind = CAPTURE_STACK_KERNEL, .verdict = VERDICT_FAILED, .reason = REASON_NOT_RECORDED
	};
	struct cap_writer *w = NULL;
	struct err e = { 0 };
	int rc = cap_writer_open(out, true, &w, &e);

	if (rc == 0) {
		put_host(w);
		put_process(w, 0);
		cap_writer_stack(w, &none);
		for (int i = 0; i < n_paths && rc == 0; i++)
			rc = put_some(w, (uint32_t)i, paths[i], MIN(n, (size_t)DEPTH), &e);
		rc = rc ? rc
			: cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2 * T0, .why = "made" }, &e);
	}
	if (rc)
		fprintf(stderr, "resolve: %s\n", e.msg);
	cap_writer_close(w);
	return rc ? 2 : 0;
}

#define K UINT64_C(0xffffffff81000000)
#define MODULE_FUNCTION UINT64_C(0xffffffffc0001000)

static int kernel(char *const argv[], int argc)
{
	const struct cap_stack none = {
		.id = 1, .kind = CAPTURE_STACK_USER, .verdict = VERDICT_FAILED, .reason = REASON_KTHREAD
	};
	struct elffile *f = NULL;
	struct cap_writer *w = NULL;
	struct err e = { 0 };
	uint64_t frames[DEPTH] = { 0 };
	struct cap_stack s = { .kind = CAPTURE_STACK_KERNEL, .verdict = VERDICT_COMPLETE, .frames = frames };
	int rc = elffile_open(AT_FDCWD, argv[1], false, &f, &e);
	uint64_t stext = strtoull(argv[2], NULL, 16);

	rc = rc ? rc : cap_writer_open(argv[0], true, &w, &e);
	for (int i = 3; rc == 0 && i < argc && s.len < DEPTH - 1; i++) {
		char *name = argv[i], *vaddr = strchr(name, '=');
		uint64_t at = K + strtoull(vaddr ? vaddr + 1 : name, NULL, 16) - stext;

		frames[s.len++] = at + 1;
		if (vaddr) {
			*vaddr = '\0';
			cap_writer_ksym(w, &(struct cap_ksym){ at, at + 2, name, "" });
		}
	}
	if (rc == 0) {
		frames[s.len++] = MODULE_FUNCTION + 0x10;
		cap_writer_ksym(w, &(struct cap_ksym){ MODULE_FUNCTION, MODULE_FUNCTION + 0x1000, "nf_hook",
					   "nf_tables" });
		put_host_of(w, &f->build_id);
		put_process(w, 0);
		cap_writer_stack(w, &s);
		cap_writer_stack(w, &none);
		put_sample(w, 1, T0 + 1);
		rc = cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 2 * T0, .why = "made" }, &e);
	}
	if (rc)
		fprintf(stderr, "resolve: %s\n", e.msg);
	cap_writer_close(w);
	elffile_close(f);
	return rc ? 2 : 0;
}

static bool flag(const char *flags, char c)
{
	return strchr(flags, c) != NULL;
}

static void put_ksyms(struct cap_writer *w)
{
	const struct cap_ksym k[] = { { K + 0x1000, K + 0x2000, "__schedule", "" },
		{ MODULE_FUNCTION, MODULE_FUNCTION + 0x1000, "nf_hook", "nf_tables" },
		{ UINT64_C(0xffffffffc0003000), UINT64_C(0xffffffffc0004000), "bpf_prog_6deef7357e7b4530",
			"bpf" } };

	for (size_t i = 0; i < ARRAY_LEN(k); i++)
		cap_writer_ksym(w, &k[i]);
}

static void put_kernel_stack(struct cap_writer *w, uint32_t id)
{
	const uint64_t frames[] = { K + 0x12a7, UINT64_C(0xffffffffc0001010), UINT64_C(0xffffffffc0003020),
		K + 0x2000, /* the return address of a call that ends __schedule: named by the byte before */
		K + 0x5000 };
	const struct cap_stack s = { .id = id,
		.kind = CAPTURE_STACK_KERNEL,
		.verdict = VERDICT_COMPLETE,
		.len = ARRAY_LEN(frames),
		.frames = frames };

	cap_writer_stack(w, &s);
}

static void put_wait(struct cap_writer *w, uint32_t proc, uint32_t tid, uint32_t k, uint32_t u, uint64_t at)
{
	const struct cap_sample s = { .proc = proc,
		.tid = tid,
		.kstack = k,
		.ustack = u,
		.state = 1,
		.flags = at % 2 ? CAPTURE_SAMPLE_OPEN | CAPTURE_SAMPLE_INITIAL : 0,
		.total_ns = 3456,
		.count = 12,
		.max_ns = 900,
		.first_ns = at,
		.last_ns = at };

	cap_writer_sample(w, &s);
}

static void put_failed(struct cap_writer *w, const struct cap_stack *s)
{
	cap_writer_stack(w, s);
	put_wait(w, 0, 4242, s->kind == CAPTURE_STACK_KERNEL ? s->id : 0,
		s->kind == CAPTURE_STACK_KERNEL ? 1 : s->id, 3 * T0 + s->id);
}

/* Failed, stopped and truncated stacks, each with a wait of its own. */
static void put_failures(struct cap_writer *w)
{
	const uint64_t one[] = { 0x1000 };
	uint32_t id = 3;

	for (uint8_t reason = REASON_ERRNO; reason < REASON_COUNT; reason++, id++) {
		bool stopped = reason >= REASON_MEMORY;

		put_failed(w, &(struct cap_stack){ .id = id,
				      .kind = CAPTURE_STACK_USER,
				      .verdict = reason == REASON_DEPTH ? VERDICT_UNVERIFIED
						 : stopped              ? VERDICT_STOPPED
									: VERDICT_FAILED,
				      .reason = reason,
				      .error = reason == REASON_ERRNO ? -14 : 0,
				      .stop_pc = stopped && reason != REASON_DEPTH ? 0xabcd : 0,
				      .len = stopped,
				      .frames = one });
	}
	put_failed(w, &(struct cap_stack){ .id = id,
			      .kind = CAPTURE_STACK_USER,
			      .verdict = VERDICT_UNVERIFIED,
			      .reason = REASON_LOOP,
			      .stop_pc = 0x1234,
			      .len = 1,
			      .frames = one });
	id++;
	put_failed(w, &(struct cap_stack){ .id = id,
			      .kind = CAPTURE_STACK_USER,
			      .verdict = VERDICT_TRUNCATED,
			      .len = 1,
			      .frames = one });
	id++;
	put_failed(w, &(struct cap_stack){ .id = id,
			      .kind = CAPTURE_STACK_KERNEL,
			      .verdict = VERDICT_FAILED,
			      .reason = REASON_ERRNO,
			      .error = -17 });
}

static void put_made_file(struct cap_writer *w, const struct elffile *f, const char *path, const char *flags)
{
	struct cap_file file = file_of(path, f, 0);

	if (flag(flags, 'b'))
		file.build_id.bytes[0] ^= 0xff;
	if (flag(flags, 'z') || flag(flags, 'Z'))
		file.build_id.len = 0;
	if (flag(flags, 'Z'))
		file.size++;
	if (flag(flags, 'a'))
		file.flags = CAPTURE_FILE_DELETED;
	cap_writer_file(w, &file);
}

static void put_made(struct cap_writer *w, const struct elffile *f, char *const argv[], int n)
{
	const char *flags = argv[3];
	const uint64_t base = f->type == ET_DYN ? BASE : 0;
	const struct cap_proc prog = { .tgid = 4242, .ns_tgid = 42, .comm = argv[2], .exe = argv[1] };
	const struct cap_proc kthread = { .id = 1,
		.tgid = 99,
		.ns_tgid = 99,
		.flags = CAPTURE_PROC_KTHREAD,
		.comm = "kworker/0:1",
		.exe = "" };
	const struct cap_thread other = { .tid = 4243, .ns_tid = 43, .comm = "other" };
	const struct cap_map map = map_of(f, 0, 0, base);
	const struct cap_stack none = {
		.id = 2, .kind = CAPTURE_STACK_USER, .verdict = VERDICT_FAILED, .reason = REASON_KTHREAD
	};
	uint64_t frames[DEPTH];
	uint32_t exact[DEPTH], n_exact = 0;

	put_host(w);
	cap_writer_proc(w, &prog);
	cap_writer_proc(w, &kthread);
	cap_writer_thread(w, &other);
	put_made_file(w, f, argv[1], flags);
	cap_writer_map(w, &map);
	put_ksyms(w);
	put_kernel_stack(w, 0);
	for (int i = 0; i < n && i < DEPTH; i++) {
		bool marked = argv[4 + i][0] == '=';

		frames[i] = base + strtoull(argv[4 + i] + marked, NULL, 16);
		if (marked)
			exact[n_exact++] = (uint32_t)i;
	}
	const struct cap_stack user = { .id = 1,
		.kind = CAPTURE_STACK_USER,
		.verdict = VERDICT_UNVERIFIED,
		.len = (uint32_t)n,
		.n_exact = n_exact,
		.frames = frames,
		.exact = exact };
	cap_writer_stack(w, &user);
	cap_writer_stack(w, &none);
	put_wait(w, 0, 4242, 0, 1, 2 * T0);
	put_wait(w, 1, 99, 0, 2, 2 * T0 + 1);
	if (flag(flags, 'm')) {
		put_wait(w, 0, 4243, 0, 2, T0 + 7);
		put_wait(w, 0, 4242, 0, 2, T0 + 5);
	}
	if (flag(flags, 'f'))
		put_failures(w);
	if (flag(flags, 'l')) {
		cap_writer_counter(w, &(struct cap_counter){ "lost.ring_full", 7 });
		cap_writer_counter(w, &(struct cap_counter){ "lost.ring_full_ns", 1000 });
	}
}

static int make(char *const argv[], int argc)
{
	struct elffile *f = NULL;
	struct cap_writer *w = NULL;
	struct err e = { 0 };
	int rc = elffile_open(AT_FDCWD, argv[1], false, &f, &e);
	char *rest[DEPTH + 4] = { 0 };

	rc = rc ? rc : cap_writer_open(argv[0], true, &w, &e);
	if (rc == 0) {
		/* put_made() takes its arguments from PATH on at [1]; [0] is the ELF file */
		for (int i = 0; i < argc - 1 && i < DEPTH + 4; i++)
			rest[i] = argv[i + 1];
		put_made(w, f, rest, argc - 5);
		if (flag(rest[3], 't'))
			rc = cap_writer_flush(w, 2 * T0, &e);
		else
			rc = cap_writer_finish(
				w, &(struct cap_trailer){ .stop_ns = 3 * T0, .why = "made" }, &e);
	}
	if (rc)
		fprintf(stderr, "resolve: %s\n", e.msg);
	cap_writer_close(w);
	elffile_close(f);
	return rc ? 2 : 0;
}

/* Two files at the same address, one after the other, the second one deleted; and the vdso. */
static int write_turns(const char *path, const struct elffile *libc, const char *libc_path,
	const uint8_t *vdso, uint32_t vdso_len)
{
	struct cap_writer *w = NULL;
	struct err e = { 0 };
	struct cap_file files[3] = { file_of(libc_path, libc, 0),
		{ .id = 1,
			.path = "/nowhere/gone.so",
			.flags = CAPTURE_FILE_DELETED,
			.build_id = { 1, { 1 } } },
		{ .id = 2, .path = "[vdso]", .flags = CAPTURE_FILE_PSEUDO } };
	struct cap_map maps[3] = { map_of(libc, 0, 0, BASE), map_of(libc, 0, 1, BASE),
		{ .file = 2, .prot = 5, .start = 0x7ffe00000000, .end = 0x7ffe00002000 } };
	const struct cap_image image = { .file = 2, .len = vdso_len, .bytes = vdso };

	if (cap_writer_open(path, true, &w, &e) != 0)
		return -1;
	maps[1].from_ns = 5 * T0;
	put_host(w);
	put_process(w, 0);
	put_process(w, 1);
	for (size_t i = 0; i < 3; i++)
		cap_writer_file(w, &files[i]);
	cap_writer_image(w, &image);
	for (size_t i = 0; i < 3; i++)
		cap_writer_map(w, &maps[i]);
	int rc = cap_writer_finish(w, &(struct cap_trailer){ .stop_ns = 9 * T0, .why = "made" }, &e);

	cap_writer_close(w);
	return rc;
}

static const struct frame *user_frame(
	struct resolve *r, uint32_t proc, uint64_t addr, uint64_t from, uint64_t to)
{
	uint32_t id = resolve_user(r, proc, addr, true, from, to);

	return id == RESOLVE_FAILED || resolve_run(r, NULL) != 0 ? NULL : resolve_frame(r, id);
}

static void test_turns(struct tap *t, struct resolve *r)
{
	const struct frame *f = user_frame(r, 0, BASE + 0x100000, 2 * T0, 3 * T0);
	struct modules_file file;

	tap_ok(t, f && f->in_file && f->source <= FRAME_MODULE && f->module,
		"before the change a frame is found in the first file");
	tap_eq_str(t, f ? f->module : NULL, "/usr/lib/x86_64-linux-gnu/libc.so.6",
		"the frame's module is the file that was mapped then");
	f = user_frame(r, 0, BASE + 0x100000, 6 * T0, 7 * T0);
	tap_eq_str(t, f ? f->module : NULL, "/nowhere/gone.so",
		"after the change a frame's module is the second file");
	tap_ok(t, f && f->source == FRAME_MODULE && f->reason,
		"a frame in a deleted file has its module and a reason");
	f = user_frame(r, 0, BASE + 0x100000, 4 * T0, 6 * T0);
	tap_ok(t, f && f->reason && strstr(f->reason, "another file"),
		"a wait across the change has a reason that names another file");
	f = user_frame(r, 0, 0x1234, 2 * T0, 2 * T0);
	tap_ok(t, f && f->source == FRAME_RAW && !f->module, "an address in no mapping is raw");
	f = user_frame(r, 1, BASE + 0x100000, 2 * T0, 2 * T0);
	tap_ok(t, f && f->source == FRAME_RAW, "an address that only another process has mapped is raw");
	tap_ok(t, !resolve_steady(r, 0, 2 * T0) && resolve_steady(r, 1, 0),
		"only a process whose mappings do not change is steady");
	tap_ok(t, resolve_file(r, 1, &file) && file.problem,
		"resolve_file() reports the problem of a deleted file");
	tap_eq_u64(t, resolve_user(r, 0, BASE + 0x100000, true, 2 * T0, 3 * T0),
		resolve_user(r, 0, BASE + 0x100000, true, 2 * T0 + 1, 3 * T0),
		"the same address is one frame");
}

static void test_vdso(struct tap *t, struct resolve *r, const uint8_t *vdso, uint32_t len)
{
	bool named = false;

	for (uint64_t at = 0; at < len && !named; at += 16) {
		const struct frame *f = user_frame(r, 0, 0x7ffe00000000 + at, 2 * T0, 2 * T0);

		named = f && f->name && strstr(f->name, "vdso") && strcmp(f->module, "[vdso]") == 0;
	}
	tap_ok(t, vdso && named, "the vdso is resolved from the capture's own image");
}

static int test_all(void)
{
	static const char libc[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	char path[] = "/tmp/unit-resolve.XXXXXX";
	struct tap t = { 0 };
	struct elffile *f = NULL;
	struct cap_reader *c = NULL;
	struct resolve *r = NULL;
	const struct resolve_opts o = { .files = { .demangle = true } };
	size_t len = 0;
	const uint8_t *vdso = self_vdso(&len);
	int fd = mkstemp(path);

	if (fd < 0 || elffile_open(AT_FDCWD, libc, false, &f, NULL) != 0) {
		printf("1..0 # SKIP no %s\n", libc);
		return 0;
	}
	close(fd);
	if (tap_ok(&t,
		    write_turns(path, f, libc, vdso, (uint32_t)len) == 0 &&
			    cap_reader_load(path, &c, NULL) == 0,
		    "a capture is written and loaded") &&
		tap_ok(&t, resolve_open(c, &o, &r, NULL) == 0, "the capture is opened for resolving")) {
		test_turns(&t, r);
		test_vdso(&t, r, vdso, (uint32_t)len);
	}
	resolve_close(r);
	cap_reader_free(c);
	elffile_close(f);
	unlink(path);
	return tap_done(&t);
}

int main(int argc, char *argv[])
{
	if (argc == 6 && strcmp(argv[1], "--gen") == 0)
		return generate(argv[2], argv[3], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
	if (argc == 5 && strcmp(argv[1], "--list") == 0)
		return list(argv[2], argv[3], argv[4]);
	if (argc >= 5 && strcmp(argv[1], "--many") == 0)
		return many(argv[2], strtoull(argv[3], NULL, 10), argv + 4, argc - 4);
	if (argc >= 6 && strcmp(argv[1], "--kernel") == 0)
		return kernel(argv + 2, argc - 2);
	if (argc >= 8 && strcmp(argv[1], "--make") == 0)
		return make(argv + 2, argc - 2);
	return test_all();
}
