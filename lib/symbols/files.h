/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files - the files of a capture, and what is asked of them: finding each
 * file, proving it, finding its debug file, and reading the symbols of
 * all addresses of all files at once.
 *
 * Addresses are put first (modules_ask()); modules_run() then finds the files
 * (symfile_*(), elf/debuginfo.h), has their symbols read side by side
 * (symbols/pool.h), and tells what became of each address, in an order that does not
 * depend on how many processes there were.
 */
#ifndef STACKTOOLS_SYMBOLS_FILES_H
#define STACKTOOLS_SYMBOLS_FILES_H

#include "capture/reader.h"
#include "elf/debuginfo.h"
#include "elf/file.h"
#include "symbols/answer.h"
#include "symbols/frame.h"

/*
 * modhits - answers about a file handed to those who asked: the frames of
 * addresses, from what was read of the file and from what the capture itself has
 * stored.
 */

/* What became of an ask. */
struct modules_hit {
	uint64_t offset; /* as asked for */
	const struct sym_answer_addr *addr; /* NULL: nothing is known */
	const struct frame_call *calls; /* of ADDR: n_frames of them, innermost first */
	const char *reason; /* why there is no name, or why it is less certain; NULL = all is well */
	bool stored; /* by the recorder; the file here does not know as much */
};

typedef void modules_sink(void *ctx, uint32_t frame, const struct modules_hit *hit);

/*
 * sym_file - the file that a mapping mapped: found again, and proven.
 *
 * A path is only a place to look: the file there is used if its build ID is
 * the one in the capture, or, for a file without one, if size and time of
 * last modification are. Another file under that name (replaced, upgraded,
 * another machine's) is never used. Looked at in turn:
 *
 *   PATH
 *   SYMFS/PATH, links resolved inside SYMFS
 *   PATH inside /proc/TGID/root: a process of another mount namespace, while
 *   it lives and the capture is of this boot
 */

struct sym_file {
	int symfs; /* directory descriptor, -1 = none */
	bool same_boot; /* the processes of the capture may still be there */
};

/* SYMFS (NULL = none) must be a directory. BOOT_ID is the capture's. */
int sym_file_init(struct sym_file *s, const char *symfs, const char *boot_id, struct err *e);
void sym_file_close(struct sym_file *s);

/*
 * The ELF file that FILE describes, as a process TGID mapped it. On failure
 * the message is of the place that came closest: a file that is there but is
 * another one (-ESTALE), is broken, or cannot be opened, before one that is
 * not there (-ENOENT).
 */
int sym_file_open(const struct sym_file *s, const struct cap_file *file, uint32_t tgid, struct elffile **ret,
	struct err *e);

/*
 * binaries - the ELF files of a capture with whatever holds their debug
 * information: found again, proven, open.
 */

struct binaries {
	const struct cap_reader *c;
	struct sym_file where;
	struct debugserver server;
	struct debugfile_opts debug;
	const struct cap_image **images; /* by cap_file id, NULL = none */
};

/* A file. Release with binary_close(); a zeroed one is fine. */
struct binary {
	struct elffile *elf;
	struct debugfile debug;
	struct elffile **dwos; /* what binary_find_dwos() found, and their IDs */
	uint64_t *dwo_ids;
	size_t n_dwos;
};

struct modules;

struct modules_opts {
	const char *symfs; /* directory with another machine's files, NULL = none */
	const char *const *debug_dirs; /* searched for debug files before /usr/lib/debug */
	size_t n_debug_dirs;
	bool debuginfod; /* ask the servers of DEBUGINFOD_URLS for debug files */
	const char *vmlinux; /* the kernel's file with its debug information; NULL = searched for */
	bool demangle, inlines, lines;
	bool no_cache; /* neither use nor keep answers on disk (symbols/cache.h) */
	unsigned int jobs; /* processes at the same time; 0 = one for each CPU that is online */
	uint64_t memory_bytes; /* of all of them together; 0 = 2 GiB */
	unsigned int seconds; /* for each file; 0 = 60 */
	/* told of each file, and a few times a second where one takes long: files that are done, TOTAL 0 =
	 * WHAT says it all; NULL is fine */
	void (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total);
	void *progress_ctx;
};

/* C must stay, and the strings of O. On success *RET is the caller's. */
int modules_open(
	const struct cap_reader *c, const struct modules_opts *o, struct modules **ret, struct err *e);
void modules_close(struct modules *m); /* NULL is fine */

/* Are bytes of FILE (a cap_file id) in the capture itself? */
bool modules_has_image(const struct modules *m, uint32_t file);

/*
 * The byte at OFFSET of FILE, as process PROC mapped it, is to be named: for frame
 * number FRAME. 0 or -ENOMEM.
 */
int modules_ask(struct modules *m, uint32_t file, uint32_t proc, uint64_t offset, uint32_t frame);

/*
 * The same of the kernel's address ADDR, which MODULE has ("" = the kernel itself), for inlined calls and
 * lines (kernparts_*()). The kernel counts as the file with the number capread's n_files, and its modules as
 * those behind it. Where there is no such file, that is no problem, unless it was named: then modules_run()
 * fails.
 */
int modules_ask_kernel(struct modules *m, const char *module, uint64_t addr, uint32_t frame);

/* The name of the I'th of them, which stays: "" for the first, which is the kernel; NULL behind the last. */
const char *modules_kernel_part(const struct modules *m, size_t i);

/*
 * Read what was asked for since the last run, and tell SINK of each; what it is told of stays until the
 * close. What the recorder stored counts where it knows more than the file here. 0, -ENOMEM, or
 * why the named kernel file is not used.
 */
int modules_run(struct modules *m, modules_sink *sink, void *ctx, struct err *e);

/* What became of a file. Strings stay until the close. */
struct modules_file {
	const char *problem; /* why it was not used, after "it"; NULL = it was */
	const char *debug; /* its debug file, NULL = none */
	const char *missed; /* why a debug file that was there was not used, NULL = nothing to say */
	const char *message; /* what is wrong with its symbols although they were used, NULL = nothing */
	bool proven; /* of a kernel module: by its build ID, not just by its release and functions */
	uint64_t symbols; /* in the tables that were read */
	uint64_t addresses; /* distinct ones that were asked for */
};

/* False when nothing was asked of FILE. */
bool modules_file(const struct modules *m, uint32_t file, struct modules_file *ret);

/* Of all runs; times are of CPUs, but ns_find and ns_wall. */
struct modules_stats {
	uint64_t files, addresses; /* asked for, distinct ones */
	uint64_t units, units_read; /* of debug information */
	uint64_t ns_find; /* finding files and debug files */
	uint64_t ns_wall; /* while symbols were read */
	uint64_t ns_symbols, ns_units, ns_lines, ns_names; /* what the processes did */
	uint64_t ns_processes; /* all that they took for files */
	uint64_t memory_bytes; /* the most that one process had */
	uint64_t cache_hits,
		cache_misses; /* answers of files with much debug information, looked for on disk */
	uint64_t cache_kept, cache_bad; /* new ones; entries that could not be used */
};

void modules_stats(const struct modules *m, struct modules_stats *ret);

#endif
