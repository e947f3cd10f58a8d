/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stackerr - what an error of the stack helpers and of the stack map means.
 *
 * An errno's own text ("Bad address") says nothing about stacks. Source:
 * bpf-helpers(7), kernel/bpf/stackmap.c.
 */
#ifndef STACKTOOLS_STACKERR_H
#define STACKTOOLS_STACKERR_H

#include "base/err.h"

enum stackerr_call {
	STACKERR_CREATE, /* BPF_MAP_CREATE of a stack-trace map */
	STACKERR_GET_ID, /* bpf_get_stackid() */
	STACKERR_GET, /* bpf_get_stack() */
	STACKERR_LOOKUP, /* look-up of an id from user space */
	STACKERR_DELETE,
	STACKERR_UPDATE,
	STACKERR_NEXT, /* get_next_key */
};

/* What CODE (-errno) of CALL means, "" where there is nothing to add to its name. Never NULL. */
const char *stackerr_meaning(enum stackerr_call call, int code);

/*
 * RESULT of CALL as a person reads it, into BUF (returned): "-14 EFAULT: no
 * stack to take ...", or the number alone where it is no error.
 */
const char *stackerr_text(enum stackerr_call call, int64_t result, char *buf, size_t cap);

#endif
