/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * openchild - the process that keeps the privileges, and only opens.
 *
 * Forked before there is any thread. It keeps, of what the recorder has,
 * CAP_SYS_PTRACE (other users' /proc/PID), CAP_DAC_READ_SEARCH (files in
 * folders of other users), CAP_CHECKPOINT_RESTORE, or CAP_SYS_ADMIN where that
 * is not there (the files of mappings), CAP_BPF (maps); it is in a sandbox
 * otherwise (sandbox.h), under a filter of system calls of its own, and ends
 * with the recorder. It parses nothing but the fixed requests of openwire.h.
 *
 * What a recorder that was taken over could have of it, beyond its own
 * rights: the maps, the status and the path of the executable of any process;
 * regular files that a process has mapped, at the very addresses; ELF
 * programs and libraries by path; files named perf-N.map in a /tmp; size,
 * times and inode of regular files; BPF maps of two shapes. No other file's contents,
 * nothing to write, no process's memory.
 */
#ifndef STACKTOOLS_OPENCHILD_H
#define STACKTOOLS_OPENCHILD_H

#include "system/opener.h"

struct openchild_opts {
	/*
	 * Only what the caller could look at without any capability: the two that
	 * reach other users' processes are not kept.
	 */
	bool owner_only;
	bool no_bpf; /* no BPF map will be asked for, and CAP_BPF is not kept */
};

/*
 * Start one, before there is any thread; *RET is the caller's, who asks it
 * with opener_ready() whether it is there. NULL where there is no capability
 * to be kept: then everything is opened directly.
 */
int openchild_start(const struct openchild_opts *o, struct opener **ret, struct err *e);

/* The capabilities that it keeps, as a bit set, of those that this process has. */
uint64_t openchild_caps(const struct openchild_opts *o);

#endif
