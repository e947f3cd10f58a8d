/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * opener - asking the process that kept the privileges to open things.
 *
 * The recorder gives its privileges up before it reads what a traced process
 * can have written. What it has to open later it asks of a process of its own
 * that opens and does nothing else (openchild.h). Every call is for any
 * thread, and takes O NULL: no opener; then, and once the opener has
 * ended, the result is -ENOTCONN, and the caller opens what its own rights
 * allow.
 */
#ifndef STACKTOOLS_OPENER_H
#define STACKTOOLS_OPENER_H

#include "system/asker.h"
#include "system/openwire.h"

#include <sys/types.h>

struct opener;

/*
 * Over SOCK, the opener's from now on, to its process PID (0 = none of ours,
 * for tests). *RET is the caller's.
 */
int opener_new(int sock, pid_t pid, struct opener **ret, struct err *e);

/* Wait until it is in its sandbox and has what it keeps. Before anything else is asked. */
int opener_ready(struct opener *o, struct err *e);
void opener_free(struct opener *o); /* ends the process; NULL is fine */
uint32_t opener_pid(const struct opener *o); /* 0 = none, or it has ended */

/*
 * As asker_ask(). Returns 0 with *A, and *FD a descriptor or -1; else -errno,
 * that of the answer, or -ENOTCONN.
 */
int opener_ask(struct opener *o, struct openwire_request *q, struct openwire_answer *a, int *fd);

/* A descriptor of that file of process PID (OPENWIRE_MAPS, OPENWIRE_STATUS), or -errno. */
int opener_proc(struct opener *o, enum openwire_kind kind, uint32_t pid);

/* The maps, and in *EXE where the executable is, as readlink(2) tells it: free(3) it; NULL = it cannot be
 * told. */
int opener_maps_exe(struct opener *o, uint32_t pid, char **exe);

/*
 * The file that PID maps at START-END; the ELF file PATH below the root of
 * PID (0 = ours). A descriptor for reading, the caller's, and its status;
 * -EMEDIUMTYPE: no regular file; -ENOEXEC: no ELF program or library. The
 * _stat calls do not open it, and return 0.
 */
int opener_mapping(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st);
int opener_mapping_stat(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st);
int opener_path(struct opener *o, uint32_t pid, const char *path, struct stat *st);
int opener_path_stat(struct opener *o, uint32_t pid, const char *path, struct stat *st);

/* /tmp below the root of PID (0 = ours), and the file perf-NUMBER.map in it, as above. */
int opener_tmp_stat(struct opener *o, uint32_t pid, struct stat *st);
int opener_perf_map(struct opener *o, uint32_t pid, uint32_t number, struct stat *st);

/* A BPF map: OPENWIRE_AGG_MAP of N elements, OPENWIRE_CHUNK_MAP. */
int opener_bpf_map(struct opener *o, enum openwire_kind kind, uint32_t n);

void opener_stats(struct opener *o, struct asker_stats *ret); /* O NULL: all zero */

#endif
