/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files - finding and proving the files of a capture, and naming their addresses.
 *
 * modules_ask() collects addresses. modules_run() then finds the files (sym_file_*(),
 * elf/debuginfo.h), has their symbols read in parallel (symbols/pool.h) and reports each address,
 * in an order that does not depend on the number of processes.
 */
#ifndef STACKTOOLS_SYMBOLS_FILES_H
#define STACKTOOLS_SYMBOLS_FILES_H

#include "capture/reader.h"
#include "elf/debuginfo.h"
#include "elf/file.h"
#include "symbols/answer.h"
#include "symbols/frame.h"

/*
 * modules_hit - the result for a requested address, from what was read of the file and from what the
 * capture stored.
 */

/* The result of a request. */
struct modules_hit {
	uint64_t offset; /* the requested offset */
	uint64_t vaddr; /* the same byte as an address of the file; OFFSET if the file is not known */
	const struct sym_answer_addr *addr; /* NULL: nothing is known */
	const struct frame_call *calls; /* the n_frames calls of ADDR, innermost first */
	const char *reason; /* why there is no name or line; NULL = all is well */
	bool located; /* VADDR is known */
	bool stored; /* the name comes from the recorder; the file here knows less */
};

typedef void modules_sink(void *ctx, uint32_t frame, const struct modules_hit *hit);

/*
 * sym_file - the file behind a mapping: found again, and proven.
 *
 * A path only says where to look. The file there is used if it has the recorded build ID or, if
 * none was recorded, the recorded size and time of last modification. Another file under that name
 * (replaced, upgraded, from another machine) is never used. Places, in order:
 *
 *   PATH
 *   SYMFS/PATH, links resolved inside SYMFS
 *   PATH inside /proc/TGID/root: for a process of another mount namespace, if
 *   it is still alive and the capture is of this boot
 */

struct sym_file {
	int symfs; /* directory descriptor, -1 = none */
	bool same_boot; /* processes of the capture may still be alive */
};

/* SYMFS (NULL = none) must be a directory. BOOT_ID is the capture's. */
int sym_file_init(struct sym_file *s, const char *symfs, const char *boot_id, struct err *e);
void sym_file_close(struct sym_file *s);

/*
 * Open the ELF file that FILE describes, as process TGID mapped it. On failure the message is about
 * the place that came closest: first a different file (-ESTALE), then a broken file, then one that
 * cannot be opened, then a missing one (-ENOENT).
 */
int sym_file_open(const struct sym_file *s, const struct cap_file *file, uint32_t tgid, struct elffile **ret,
	struct err *e);

/*
 * binaries - the ELF files of a capture and the files with their debug information: found again,
 * proven, open.
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
	struct elffile **dwos; /* found by binary_find_dwos(), with their IDs */
	uint64_t *dwo_ids;
	size_t n_dwos;
};

struct modules;

struct modules_opts {
	const char *symfs; /* directory with another machine's files, NULL = none */
	const char *const *debug_dirs; /* searched for debug files before /usr/lib/debug */
	size_t n_debug_dirs;
	bool debuginfod; /* ask the servers of DEBUGINFOD_URLS for debug files */
	const char *vmlinux; /* the kernel's file with debug information; NULL = search for it */
	bool demangle, inlines, lines;
	bool no_cache; /* neither use nor store answers on disk (symbols/cache.h) */
	unsigned int jobs; /* processes at the same time; 0 = one for each CPU that is online */
	uint64_t memory_bytes; /* of all of them together; 0 = 2 GiB */
	unsigned int seconds; /* for each file; 0 = 60 */
	/*
	 * Called for each file, and a few times a second if one takes long. DONE counts files;
	 * TOTAL 0: only WHAT matters. May be NULL.
	 */
	void (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total);
	void *progress_ctx;
};

/* C and the strings of O must outlive *RET. On success *RET is the caller's. */
int modules_open(
	const struct cap_reader *c, const struct modules_opts *o, struct modules **ret, struct err *e);
void modules_close(struct modules *m); /* NULL is fine */

/* Does the capture itself hold an image of FILE (a cap_file id)? */
bool modules_has_image(const struct modules *m, uint32_t file);

/*
 * Request a name for the byte at OFFSET of FILE, as process PROC mapped it, for frame number FRAME.
 * 0 or -ENOMEM.
 */
int modules_ask(struct modules *m, uint32_t file, uint32_t proc, uint64_t offset, uint32_t frame);

/*
 * Request inlined calls and lines for the kernel address ADDR in MODULE ("" = the kernel itself).
 * The kernel has the file number n_files of the cap_reader; its modules follow. A missing kernel
 * file is not an error unless the user named it: then modules_run() fails.
 */
int modules_ask_kernel(struct modules *m, const char *module, uint64_t addr, uint32_t frame);

/* The name of kernel part I, which stays valid: "" for 0, the kernel; NULL after the last one. */
const char *modules_kernel_part(const struct modules *m, size_t i);

/*
 * Read what was requested since the last run, and report each address to SINK; the reported data
 * stays valid until modules_close(). A stored name is used if the recorder knew more than the file
 * here. 0, -ENOMEM, or the reason why the named kernel file is not used.
 */
int modules_run(struct modules *m, modules_sink *sink, void *ctx, struct err *e);

/* The result for a file. Strings stay valid until modules_close(). */
struct modules_file {
	const char *problem; /* why it was not used, worded to follow "it"; NULL = it was used */
	const char *debug; /* its debug file, NULL = none */
	const char *missed; /* why an existing debug file was not used, NULL = nothing to say */
	const char *message; /* what is wrong with its symbols although they were used, NULL = nothing */
	bool proven; /* of a kernel module: proven by build ID, not just by release and functions */
	bool stripped; /* the file has no .symtab */
	uint64_t symbols; /* in the tables read */
	uint64_t addresses; /* distinct requested ones */
};

/* False if nothing was requested of FILE. */
bool modules_file(const struct modules *m, uint32_t file, struct modules_file *ret);

/* Totals of all runs. ns_processes is CPU time, the others are elapsed time. */
struct modules_stats {
	uint64_t files, addresses; /* requested, distinct */
	uint64_t units, units_read; /* of debug information: all, and those read */
	uint64_t ns_find; /* finding files and debug files */
	uint64_t ns_wall; /* reading symbols */
	uint64_t ns_symbols, ns_units, ns_lines, ns_names; /* by stage, summed over the processes */
	uint64_t ns_processes; /* of all processes */
	uint64_t memory_bytes; /* peak of one process */
	uint64_t cache_hits, cache_misses; /* look-ups on disk, for files with much debug information */
	uint64_t cache_kept, cache_bad; /* stored answers; unusable entries */
};

void modules_stats(const struct modules *m, struct modules_stats *ret);

#endif
