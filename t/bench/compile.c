/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compile - the cost of compiling unwind tables, and of reading the same rows
 * with libdw.
 *
 *	compile FILE N		compiles it N times, from open to sealed table; prints the best time
 *	compile --libdw FILE	reads the CFA, rbp and the return address of each row of the table with libdw
 *	compile --all <LIST	compiles every file of the list once; prints sums of rows, size and CPU time
 */
#include "unwind/compile.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <string.h>
#include <time.h>

struct sum {
	uint64_t files, rows, bytes;
};

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Set *RET to the table of PATH; release it with free(3). Returns false for a file without a table. */
static bool table_of(const char *path, uint8_t **ret, size_t *len)
{
	struct elffile *f = NULL;
	bool good = elffile_open(AT_FDCWD, path, false, &f, NULL) == 0 && unwindcomp(f, ret, len, NULL) == 0;

	elffile_close(f);
	return good;
}

static bool add(const char *path, struct sum *s)
{
	uint8_t *bytes;
	size_t len;

	if (!table_of(path, &bytes, &len))
		return false;
	s->files++;
	s->rows += ((const struct unwindtab_head *)bytes)->n_rows;
	s->bytes += len;
	free(bytes);
	return true;
}

static void report(const struct sum *s, double ms)
{
	printf("%" PRIu64 " files, %" PRIu64 " rows, %.2f bytes a row, %.0f ms of CPU, %.1f million rows/s\n",
		s->files, s->rows, (double)s->bytes / (double)s->rows, ms, (double)s->rows / ms / 1e3);
}

/* As in the worker: see keep_memory() of system/sandbox.c. */
static void keep_memory(void)
{
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

static int repeat(const char *path, int n)
{
	struct sum s = { 0 };
	double best = 0;

	for (int i = 0; i < n; i++) {
		struct sum one = { 0 };
		double from = cpu_ms();

		if (!add(path, &one))
			return 1;
		s = one;
		from = cpu_ms() - from;
		best = i == 0 || from < best ? from : best;
	}
	report(&s, best);
	return 0;
}

static int all(void)
{
	struct sum s = { 0 };
	char line[4096];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		add(line, &s);
	}
	report(&s, cpu_ms());
	return s.files == 0;
}

/* Read what a walk needs of the row at PC. Returns false if libdw has no row. */
static bool read_row(Dwarf_CFI *cfi, uint64_t pc)
{
	Dwarf_Frame *frame;
	Dwarf_Addr start, end;
	Dwarf_Op *ops, mem[3];
	size_t n;
	bool signal;
	int ra;

	if (dwarf_cfi_addrframe(cfi, pc, &frame))
		return false;
	ra = dwarf_frame_info(frame, &start, &end, &signal);
	dwarf_frame_cfa(frame, &ops, &n);
	dwarf_frame_register(frame, 6, mem, &ops, &n);
	dwarf_frame_register(frame, ra, mem, &ops, &n);
	free(frame);
	return true;
}

/* The addresses come from the table. The time to compile it is not measured. */
static int libdw(const char *path)
{
	struct unwindtab t;
	uint8_t *bytes;
	uint64_t rows = 0, end = 0;
	const struct unwind_rule *r;
	size_t len;
	double from;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf_CFI *cfi;
	Elf *elf;

	if (!table_of(path, &bytes, &len) || unwindtab_view(bytes, len, &t, NULL))
		return 1;
	from = cpu_ms();
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	if (!cfi)
		return 1;
	for (uint64_t pc = t.head->vaddr; (r = unwindtab_find(&t, pc, NULL, &end)) != NULL; pc = end)
		rows += r->cfa != UNWIND_CFA_NONE && read_row(cfi, pc);
	from = cpu_ms() - from;
	printf("libdw: %" PRIu64 " rows, %.0f ms of CPU, %.1f million rows/s\n", rows, from,
		(double)rows / from / 1e3);
	return 0;
}

int main(int argc, char *argv[])
{
	keep_memory();
	if (argc == 2 && strcmp(argv[1], "--all") == 0)
		return all();
	if (argc == 3 && strcmp(argv[1], "--libdw") == 0)
		return libdw(argv[2]);
	if (argc == 3)
		return repeat(argv[1], atoi(argv[2]));
	return 64;
}
