/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * openwire - what the recorder asks of its opener, and the answers.
 *
 * One message of a SEQPACKET socket each. Both ends are one program, forked;
 * the answering end checks every request all the same (openchild.h).
 */
#ifndef STACKTOOLS_OPENWIRE_H
#define STACKTOOLS_OPENWIRE_H

#include <stdint.h>
#include <sys/stat.h>

#define OPENWIRE_PATH_MAX 4096 /* with NUL */

/* "STATUS only": the answer has the file's status and no descriptor. */
enum openwire_kind {
	OPENWIRE_MAPS = 1, /* /proc/PID/maps; ARG: and what /proc/PID/exe names, in `path` */
	OPENWIRE_STATUS, /* /proc/PID/status */
	OPENWIRE_MAPPING, /* the regular file that PID maps at START-END */
	OPENWIRE_PATH, /* the ELF program or library `path` below the root of PID, 0 = ours; no links */
	OPENWIRE_TMP, /* /tmp below the root of PID, 0 = ours; STATUS only */
	OPENWIRE_PERF_MAP, /* perf-ARG.map there, a regular file, itself no link */
	OPENWIRE_AGG_MAP, /* a BPF map to sum waits in, of ARG elements */
	OPENWIRE_CHUNK_MAP, /* a BPF map for unwind tables */
	OPENWIRE_KINDS
};

struct openwire_request {
	uint32_t number; /* the answer has the same */
	uint32_t kind;
	uint32_t pid;
	uint32_t arg;
	uint32_t status_only; /* MAPPING, PATH: any regular file's status, without opening it */
	uint32_t pad;
	uint64_t start, end;
	char path[OPENWIRE_PATH_MAX]; /* sent as far as its NUL */
};

struct openwire_answer {
	uint32_t number;
	int32_t error; /* 0 or -errno; -EPERM: this is nothing that it does */
	struct stat st; /* MAPPING, PATH, TMP, PERF_MAP */
	char path[OPENWIRE_PATH_MAX]; /* MAPS; sent as far as its NUL */
};

_Static_assert(sizeof(struct openwire_request) == 40 + OPENWIRE_PATH_MAX, "no hidden padding");

#endif
