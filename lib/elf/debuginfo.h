/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfo - where the debug information of a file is.
 *
 * Places, in gdb's order, each under SYMFS first where one is given (links
 * resolved inside it: nothing outside is ever opened), then on this machine:
 *
 *   .build-id/xx/yyyy.debug under each --debug-dir, then /usr/lib/debug
 *   .gnu_debuglink NAME, CRC checked: DIR/NAME, DIR/.debug/NAME,
 *	DEBUGDIR/DIR/NAME, where DIR is that of the mapped file, and of the file its path links to
 *	(NAME may have directories, but no "..")
 *   debuginfod (libdebuginfod), if DEBUGINFOD_URLS is set and the caller permits it
 *
 * A file with a build ID wants the same one in its debug file; one that
 * differs is not used, and that is told. A file without one is believed by
 * the link's CRC alone. What is no regular file is not opened. A file that
 * has .debug_info itself is not given another.
 *
 * dwz's alternate: its NAME, from the directory where the file that names it
 * really is; the same below each --debug-dir; its build ID, as above.
 *
 * Formats: "Separate Debug Files" of gdb's manual; .gnu_debugaltlink as in
 * dwz(1): NAME, NUL, build ID.
 */
#ifndef STACKTOOLS_ELF_DEBUGINFO_H
#define STACKTOOLS_ELF_DEBUGINFO_H

#include "elf/debugserver.h"
#include "elf/file.h"

/*
 * debuglink - what a file says of the file that has its debug information.
 *
 * .gnu_debuglink: NAME, NUL, padding to a multiple of 4, CRC32 of the whole
 * debug file (in the file's byte order), as "Separate Debug Files" of gdb's
 * manual has it. .gnu_debugaltlink, as of dwz(1): NAME, NUL, build ID.
 */

#define DEBUGLINK_NAME_MAX 4096 /* with the NUL */

struct debuglink {
	char name[DEBUGLINK_NAME_MAX];
	uint32_t crc; /* of .gnu_debuglink */
	struct cap_build_id build_id; /* of .gnu_debugaltlink */
};

/*
 * The section's contents into *RET. 1, or 0 where there is none; -EINVAL for
 * one that is malformed: no name, a name that is no place below a directory
 * (absolute, or with ".."), no CRC.
 */
int debuglink_read(const struct elffile *f, struct debuglink *ret, struct err *e);

/* The same of .gnu_debugaltlink; its name may be absolute and have "..". A build ID is never missing. */
int debuglink_alt(const struct elffile *f, struct debuglink *ret, struct err *e);

/* The parts of both that take LEN bytes which nobody vouches for; 0 or -EINVAL. */
int debuglink_parse(const void *bytes, size_t len, struct debuglink *ret, struct err *e);
int debuglink_parse_alt(const void *bytes, size_t len, struct debuglink *ret, struct err *e);

/*
 * The CRC32 of all of F into *RET. STOP (may be NULL) is called every few
 * MiB: nonzero ends it with -ECANCELED. -EIO where the file became shorter.
 */
int debuglink_crc(const struct elffile *f, int (*stop)(void *ctx, uint64_t done, uint64_t total), void *ctx,
	uint32_t *ret, struct err *e);

/*
 * debugplace - an ELF file at a place where one may be.
 *
 * A place is a path on this machine, or inside a directory: then absolute
 * paths, "..", and symbolic links are resolved inside it, and nothing outside
 * is ever opened (openat2(2)). What is no regular file is not opened at all:
 * no FIFO waits for a writer and no device sees that it was looked at.
 */

#define DEBUGPLACE_HERE (-1) /* for ROOT: this machine */

/*
 * The file at PATH as seen from the directory descriptor ROOT. -ENOENT and
 * the like as open(2); -EINVAL for what is no regular file or no ELF file.
 * Needs /proc. Release *RET with elffile_close().
 */
int debugplace_open(int root, const char *path, struct elffile **ret, struct err *e);

/*
 * The path of what is at PATH with all links resolved, as seen from ROOT,
 * into RET of CAP bytes. False where nothing is there, it lies outside of ROOT
 * or does not fit.
 */
bool debugplace_real(int root, const char *path, char *ret, size_t cap);

struct debugfile_opts {
	int symfs; /* directory descriptor, -1 = none */
	const char *const *dirs; /* --debug-dir, before /usr/lib/debug */
	size_t n_dirs;
	bool debuginfod; /* ask servers of DEBUGINFOD_URLS */
	/* kept from file to file, so that servers that do not answer are waited for once; may be NULL */
	struct debugserver *server;
	/* without a byte more from a server: 0 = DEBUGINFOD_TIMEOUT, else 30; for CRCs of one file: 0 = 30 */
	unsigned int seconds;
	/* called while a server is waited for or a CRC is made; nonzero gives up. NULL is fine. */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

struct debugfile {
	struct elffile *debug; /* NULL = none but what is in the file itself */
	struct elffile *alt; /* dwz's alternate of the file that holds .debug_info, NULL = none */
	struct elffile *dwp; /* "<file>.dwp", NULL = none */
	char where[512]; /* the path of `debug` on this machine, to be shown; "" = none */
	/* why the closest candidate for the debug file was not used (CRC, build ID), or there is no
	 * alternate; "" = nothing was there */
	char missed[512];
};

/*
 * For ELF, which was opened as PATH seen from SYMFS or this machine. Finding
 * nothing is no error: 0 with NULLs. -errno only where memory runs out.
 * Release with debugfile_close().
 */
int debugfile_find(const struct debugfile_opts *o, const struct elffile *elf, const char *path,
	struct debugfile *ret, struct err *e);
void debugfile_close(struct debugfile *d); /* a zeroed one is fine */

/*
 * A .dwo by the path that sym_answer_want() told, absolute or relative to the
 * directory of PATH; else its last component there, for programs that were
 * moved. -ENOENT, with the message of what was there. That it is the unit's is for
 * the caller to see: by its ID.
 */
int debugfile_dwo(const struct debugfile_opts *o, const char *path, const char *dwo, struct elffile **ret,
	struct err *e);

/* Does F itself hold .debug_info (or .zdebug_info)? O(sections). */
bool debugfile_has_info(const struct elffile *f);

#endif
