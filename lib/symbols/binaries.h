/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * binaries - the ELF files of a capture with whatever holds their debug
 * information: found again, proven, open.
 */
#ifndef STACKTOOLS_BINARIES_H
#define STACKTOOLS_BINARIES_H

#include "capture/reader.h"
#include "elf/debuginfo.h"
#include "symbols/symanswer.h"
#include "symbols/symfile.h"

#define BINARIES_DWOS_MAX 1024 /* of one file: what is beyond stays missing */

struct binaries_opts {
	const char *symfs; /* directory with another machine's files, NULL = none */
	const char *const *debug_dirs; /* searched for debug files before /usr/lib/debug */
	size_t n_debug_dirs;
	bool debuginfod; /* ask the servers of DEBUGINFOD_URLS for debug files */
	/* as in debugfile.h */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

struct binaries {
	const struct capread *c;
	struct symfile where;
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

/* C and O's strings must stay, and so must B's place. On failure, too, it is released with binaries_close().
 */
int binaries_open(struct binaries *b, const struct capread *c, const struct binaries_opts *o, struct err *e);
void binaries_close(struct binaries *b);

/*
 * File FILE (a cap_file id) as a process TGID mapped it, and its debug files. Bytes
 * that the capture has come before a file. -errno with why there is none, after "it".
 */
int binary_find(struct binaries *b, uint32_t file, uint32_t tgid, struct binary *ret, struct err *e);
void binary_close(struct binary *f);

/* The .dwo files that A wants (symanswer.h), as far as they are there. 0 or -ENOMEM. */
int binary_find_dwos(
	struct binaries *b, uint32_t file, const struct symanswer *a, struct binary *f, struct err *e);

#endif
