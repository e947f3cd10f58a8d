/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tabfiles - the files that processes map, by identity, and how far the unwind
 * table of each has come.
 *
 * A file is (device, inode, size, times): renamed or deleted it is the same
 * one, changed it is another. Files are never forgotten: numbers stay valid as
 * long as the table lives, pointers until the next add.
 */
#ifndef STACKTOOLS_TABFILES_H
#define STACKTOOLS_TABFILES_H

#include "base/intern.h"
#include "unwind/table.h"

#include <sys/stat.h>

enum tabfile_state {
	TABFILE_ASKED, /* the table is being compiled */
	TABFILE_READY, /* it is in the kernel's sight */
	TABFILE_BARE, /* there is none, and will be none */
	TABFILE_WAITING, /* it waits for memory that was given up for it */
	TABFILE_DROPPED /* it was given up, or there was no room */
};

struct tabfile {
	enum tabfile_state state;
	bool changed; /* what BPF is to see of it, since somebody last set this to false */
	uint8_t quiets, rounds; /* WAITING: since memory was last given up for it, and how often it was */
	uint8_t refused; /* how often there was no room for it, in a row */
	uint32_t refs; /* mappings */
	uint32_t next; /* another file with the same hash, UINT32_MAX = none */
	uint64_t idle_since_ns; /* when refs became 0 */
	uint64_t again_ns; /* DROPPED: not to be asked for before; UINT64_MAX = it never fits */
	struct tabcache_key key;
	uint32_t table, seg; /* READY: numbers of unwindspace */
	uint16_t segs;
	uint8_t n_loads;
	uint64_t vaddr; /* of the first segment */
	struct unwindtab_load *loads; /* READY */
	uint8_t *bytes; /* WAITING: the table */
	size_t len; /* WAITING, READY: of the table */
};

/* A zeroed one is an empty table. */
struct tabfiles {
	struct tabfile *files;
	size_t n, cap;
	struct idmap by_key;
	bool any_changed; /* of a file, since somebody last set this to false */
};

/* The identity of a file of status ST; its build ID is left empty. */
struct tabcache_key tabfiles_key(const struct stat *st);

/* The number of the file with this identity, whatever its build ID; UINT32_MAX = none. */
uint32_t tabfiles_find(const struct tabfiles *t, const struct tabcache_key *key);

/* A new file, which must not be there yet; UINT32_MAX without memory. */
uint32_t tabfiles_add(struct tabfiles *t, const struct tabcache_key *key);

/* One that is found by its number alone. */
uint32_t tabfiles_add_nameless(struct tabfiles *t);

/* File number FILE; NULL = there is none. */
struct tabfile *tabfiles_get(const struct tabfiles *t, uint32_t file);

/* F is in STATE from now on, and has changed. */
void tabfiles_change(struct tabfiles *t, struct tabfile *f, enum tabfile_state state);

void tabfiles_free(struct tabfiles *t); /* releases what it holds */

#endif
