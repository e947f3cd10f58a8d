/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of resolve.h. With --gen it makes a capture instead, of random code
 * addresses of a real ELF file, for comparing with other symbolizers:
 *
 *   unit-resolve --gen CAPTURE ELF DISTINCT TOTAL
 *
 * writes TOTAL frames, drawn from DISTINCT addresses, as stacks of 100, and
 * prints for each frame the virtual address that is to be looked up.
 */
#include "capwrite.h"
#include "elffile.h"
#include "resolve.h"
#include "tap.h"

#include <elf.h>
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

static void put_process(struct capwrite *w, uint32_t id)
{
	const struct cap_proc p = {
	        .id = id, .tgid = 4242 + id, .ns_tgid = 4242 + id, .comm = "prog", .exe = "/bin/prog"};

	capwrite_proc(w, &p);
}

static void put_host(struct capwrite *w)
{
	const struct cap_host h = {.sysname = "Linux",
	        .release = "6.18.0",
	        .version = "#1",
	        .machine = "x86_64",
	        .hostname = "there",
	        .boot_id = "another",
	        .recorder = "unit-resolve",
	        .stext = UINT64_C(0xffffffff81000000),
	        .start_mono_ns = T0,
	        .start_real_ns = UINT64_C(1700000000000000000),
	        .max_stack = 127,
	        .cpus = 2,
	        .page_size = 4096};

	capwrite_host(w, &h);
}

static struct cap_file file_of(const char *path, const struct elffile *f, uint32_t id)
{
	return (struct cap_file){.id = id,
	        .path = path,
	        .size = f->size,
	        .mtime_ns = f->mtime_ns,
	        .build_id = f->build_id,
	        .inode = 1};
}

/* The executable load of F mapped as the kernel would, at BASE. */
static struct cap_map map_of(const struct elffile *f, uint32_t proc, uint32_t file, uint64_t base)
{
	struct cap_map m = {.proc = proc, .file = file, .prot = PROT_READ | PROT_EXEC, .flags = MAP_PRIVATE};

	for (size_t i = 0; i < f->n_loads; i++) {
		const struct elffile_load *l = &f->loads[i];

		if (!l->exec)
			continue;
		m.start = base + (l->vaddr & ~UINT64_C(4095));
		m.end = base + ((l->vaddr + l->filesz + 4095) & ~UINT64_C(4095));
		m.offset = l->offset & ~UINT64_C(4095);
	}
	return m;
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

static void put_stack(struct capwrite *w, uint32_t id, const uint64_t *frames, uint32_t len)
{
	const struct cap_stack s = {.id = id,
	        .kind = CAP_STACK_USER,
	        .verdict = CAP_COMPLETE,
	        .len = len,
	        .frames = frames};

	capwrite_stack(w, &s);
}

static void put_sample(struct capwrite *w, uint32_t ustack, uint64_t when)
{
	const struct cap_sample s = {.tid = 4242,
	        .kstack = 0,
	        .ustack = ustack,
	        .state = 1,
	        .total_ns = 1000,
	        .count = 1,
	        .max_ns = 1000,
	        .first_ns = when,
	        .last_ns = when};

	capwrite_sample(w, &s);
}

static void gen_stacks(struct capwrite *w, const uint64_t *pool, size_t distinct, size_t total)
{
	const struct cap_stack none = {
	        .kind = CAP_STACK_KERNEL, .verdict = CAP_FAILED, .reason = CAP_R_NOT_ASKED};
	uint64_t frames[DEPTH];
	uint32_t id = 1;

	capwrite_stack(w, &none);
	for (size_t done = 0; done < total; id++) {
		uint32_t len = (uint32_t)MIN(total - done, (size_t)DEPTH);

		for (uint32_t i = 0; i < len; i++, done++) {
			uint64_t at = pool[total == distinct ? done : next_random() % distinct];

			/* a return address is one past the byte that is looked up */
			frames[i] = BASE + at + (i ? 1 : 0);
			printf("0x%" PRIx64 "\n", at);
		}
		put_stack(w, id, frames, len);
		put_sample(w, id, T0 + id);
	}
}

static int generate(const char *out, const char *path, size_t distinct, size_t total)
{
	struct elffile *f = NULL;
	struct capwrite *w = NULL;
	struct err e = {0};
	uint64_t *pool = calloc(distinct + 1, sizeof(*pool)), code = 0;

	if (!pool || elffile_open(AT_FDCWD, path, false, &f, &e) || capwrite_open(out, true, &w, &e)) {
		fprintf(stderr, "unit-resolve: %s\n", e.msg);
		free(pool);
		return 2;
	}
	for (size_t i = 0; i < f->n_sections; i++)
		code += f->sections[i].flags & SHF_EXECINSTR ? f->sections[i].size : 0;
	for (size_t i = 0; i < distinct; i++)
		pool[i] = random_vaddr(f, code);

	struct cap_file file = file_of(path, f, 0);
	struct cap_map map = map_of(f, 0, 0, BASE);

	put_host(w);
	put_process(w, 0);
	capwrite_file(w, &file);
	capwrite_map(w, &map);
	gen_stacks(w, pool, distinct, total);
	int rc = capwrite_finish(w, &(struct cap_trailer){.stop_ns = 2 * T0, .why = "made"}, &e);

	capwrite_close(w);
	elffile_close(f);
	free(pool);
	return rc ? 2 : 0;
}

int main(int argc, char *argv[])
{
	struct tap t = {0};

	if (argc == 6 && strcmp(argv[1], "--gen") == 0)
		return generate(argv[2], argv[3], strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
	return tap_done(&t);
}
