/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lookwire - what a recorder by /proc asks of the process that kept the
 * privileges to look, and the answers.
 *
 * One message of a SEQPACKET socket each, by asker.h. Both ends are one program,
 * forked; the answering end checks every request all the same (lookchild.h).
 */
#ifndef STACKTOOLS_LOOKWIRE_H
#define STACKTOOLS_LOOKWIRE_H

#include "procfs/ptquiet.h"
#include "procfs/ptstop.h"
#include "system/procfile.h"

#include <stddef.h>

#define LOOKWIRE_BYTES (64u << 10) /* of memory, in one answer */
#define LOOKWIRE_NUMBERS (LOOKWIRE_BYTES / 4) /* of a list */
#define LOOKWIRE_WANTED (PTCOPY_AREAS - 1)

enum lookwire_kind {
	LOOKWIRE_FILES = 1, /* the text of files of a thread: ARG has a bit for each enum procfile */
	LOOKWIRE_FORGET, /* its files need not be kept open any more */
	LOOKWIRE_LIST, /* the processes that there are (PID 0), or the threads of PID, from the ARG-th on */
	/* refused unless it was asked for when the process was begun: */
	LOOKWIRE_QUIET, /* ptquiet_take() with N areas at WANTED */
	LOOKWIRE_STOP, /* ptstop_take() */
	LOOKWIRE_AREA, /* the bytes of area ARG of the last copy */
	LOOKWIRE_MEMORY, /* N bytes of the memory of PID from WANTED[0] on */
	LOOKWIRE_KINDS
};

struct lookwire_request {
	uint32_t number; /* the asker's */
	uint32_t kind, pid, tid, arg, n;
	uint64_t wanted[LOOKWIRE_WANTED];
	uint32_t keep; /* FILES: keep them open for the next time */
	uint32_t pad;
};

/* FILES. A text that was not read, as nothing of it is needed, has length 0. */
struct lookwire_files {
	int32_t len[PROCFILE_COUNT]; /* or -errno */
	char text[PROCFILE_COUNT * PROCFILE_TEXT]; /* one after the other; sent as far as it is used */
};

/* QUIET and STOP: `call` is of the one, `told` of the other. */
struct lookwire_copy {
	struct ptcopy_head head;
	struct ptquiet_call call;
	struct ptstop_told told;
};

struct lookwire_answer {
	uint32_t number;
	int32_t error; /* 0 or -errno; -EPERM: this is nothing that it does */
	union {
		struct lookwire_files files;
		uint32_t numbers[LOOKWIRE_NUMBERS]; /* sent as far as it is used, as is the next */
		uint8_t bytes[LOOKWIRE_BYTES];
		struct lookwire_copy copy;
	};
};

#define LOOKWIRE_HEAD offsetof(struct lookwire_answer, files)

#endif
