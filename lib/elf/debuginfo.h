/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * debuginfo - the search for the debug information of a file.
 *
 * Searches these places in gdb's order, each first under SYMFS if one is given
 * (links are resolved inside it, so that nothing outside is ever opened), then
 * on this machine:
 *
 *	.build-id/xx/yyyy.debug under each --debug-dir, then /usr/lib/debug
 *	.gnu_debuglink NAME, CRC checked: DIR/NAME, DIR/.debug/NAME,
 *		DEBUGDIR/DIR/NAME, where DIR is the directory of the mapped file, and
 *		of the file that its path links to (NAME may have directories, but
 *		no "..")
 *	debuginfod (libdebuginfod), if DEBUGINFOD_URLS is set and the caller permits it
 *
 * If a file has a build ID, its debug file must have the same one; a file that
 * differs is reported and not used. Without a build ID only the CRC of the link
 * is checked. Only regular files are opened. For a file that has .debug_info
 * itself no debug file is searched.
 *
 * The alternate file of dwz: by NAME, relative to the real directory of the
 * file that names it; a NAME below /usr/lib/debug also below each --debug-dir;
 * then by its build ID, as above.
 *
 * Formats: "Separate Debug Files" of gdb's manual; .gnu_debugaltlink as in
 * dwz(1): NAME, NUL, build ID.
 */
#ifndef STACKTOOLS_ELF_DEBUGINFO_H
#define STACKTOOLS_ELF_DEBUGINFO_H

#include "elf/debugserver.h"
#include "elf/file.h"

/*
 * debuglink - the sections of a file that name its debug file.
 *
 * .gnu_debuglink: NAME, NUL, padding to a multiple of 4, CRC32 of the whole
 * debug file in the file's byte order; see "Separate Debug Files" of gdb's
 * manual. .gnu_debugaltlink, of dwz(1): NAME, NUL, build ID.
 */

#define DEBUGLINK_NAME_MAX 4096 /* with the NUL */

struct debuglink {
	char name[DEBUGLINK_NAME_MAX];
	uint32_t crc; /* of .gnu_debuglink */
	struct cap_build_id build_id; /* of .gnu_debugaltlink */
};

/*
 * Read .gnu_debuglink. Returns 1 and sets *RET, or 0 if there is none. -EINVAL
 * if it is malformed: no name, a name that is not below a directory (absolute,
 * or with ".."), or no CRC.
 */
int debuglink_read(const struct elffile *f, struct debuglink *ret, struct err *e);

/* The same for .gnu_debugaltlink, whose name may be absolute and have "..". It always has a build ID. */
int debuglink_alt(const struct elffile *f, struct debuglink *ret, struct err *e);

/* The parsers of both for LEN bytes of untrusted input; 0 or -EINVAL. */
int debuglink_parse(const void *bytes, size_t len, struct debuglink *ret, struct err *e);
int debuglink_parse_alt(const void *bytes, size_t len, struct debuglink *ret, struct err *e);

/*
 * Compute the CRC32 of all of F into *RET. STOP (may be NULL) is called every
 * few MiB; nonzero cancels with -ECANCELED. -EIO if the file became shorter.
 */
int debuglink_crc(const struct elffile *f, int (*stop)(void *ctx, uint64_t done, uint64_t total), void *ctx,
	uint32_t *ret, struct err *e);

/*
 * debugplace - an ELF file at a place where one may be.
 *
 * A place is a path on this machine or inside a directory. In a directory,
 * absolute paths, ".." and symbolic links are resolved inside it, and nothing
 * outside is ever opened (openat2(2)). Only regular files are opened: a FIFO
 * does not block and a device is not touched.
 */

#define DEBUGPLACE_HERE (-1) /* for ROOT: this machine */

/*
 * Open the file at PATH relative to the directory descriptor ROOT. -ENOENT etc.
 * as open(2), -EINVAL if it is not a regular file or not an ELF file. Needs
 * /proc. Release *RET with elffile_close().
 */
int debugplace_open(int root, const char *path, struct elffile **ret, struct err *e);

/*
 * Store the path of the file at PATH with all links resolved, relative to ROOT,
 * in the CAP bytes at RET. Returns false if there is no such file, if it lies
 * outside ROOT or if the path does not fit.
 */
bool debugplace_real(int root, const char *path, char *ret, size_t cap);

struct debugfile_opts {
	int symfs; /* directory descriptor, -1 = none */
	const char *const *dirs; /* --debug-dir, before /usr/lib/debug */
	size_t n_dirs;
	bool debuginfod; /* use the servers in DEBUGINFOD_URLS */
	/* kept from file to file, so that servers that do not answer are waited for only once; may be NULL */
	struct debugserver *server;
	/*
	 * limit without a new byte from a server: 0 = DEBUGINFOD_TIMEOUT, else
	 * 30; for CRCs of one file: 0 = 30
	 */
	unsigned int seconds;
	/* called while waiting for a server or computing a CRC; nonzero cancels. NULL is fine. */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

struct debugfile {
	struct elffile *debug; /* NULL = no file other than the one itself */
	struct elffile *alt; /* dwz's alternate file of the file with .debug_info, NULL = none */
	struct elffile *dwp; /* "<file>.dwp", NULL = none */
	char where[512]; /* path of `debug` on this machine, for display; "" = none */
	/*
	 * why the closest candidate for the debug file was not used (CRC, build
	 * ID), or why there is no alternate file; "" = there was no candidate
	 */
	char missed[512];
};

/*
 * Find the debug files of ELF, which was opened as PATH relative to SYMFS or on
 * this machine. Finding nothing is not an error: 0 with NULLs. Fails only if
 * memory runs out. Release with debugfile_close().
 */
int debugfile_find(const struct debugfile_opts *o, const struct elffile *elf, const char *path,
	struct debugfile *ret, struct err *e);
void debugfile_close(struct debugfile *d); /* a zeroed one is fine */

/*
 * Open a .dwo file by the path that sym_answer_want() recorded, absolute or
 * relative to the directory of PATH. Else by its last component in that
 * directory, for programs that were moved. -ENOENT, with a message about the
 * file that was found there, if any. The caller must check the ID of its unit.
 */
int debugfile_dwo(const struct debugfile_opts *o, const char *path, const char *dwo, struct elffile **ret,
	struct err *e);

/* Does F itself hold .debug_info (or .zdebug_info)? O(sections). */
bool debugfile_has_info(const struct elffile *f);

#endif
