/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/tabfiles.h"

void tabfiles_free(struct tabfiles *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->files[i].loads);
		free(t->files[i].bytes);
	}
	free(t->files);
	idmap_free(&t->by_key);
	*t = (struct tabfiles){ 0 };
}

struct tabcache_key tabfiles_key(const struct stat *st)
{
	return (struct tabcache_key){
		.dev = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
		.ctime_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000u + (uint64_t)st->st_ctim.tv_nsec,
	};
}

static bool same_file(const struct tabcache_key *a, const struct tabcache_key *b)
{
	return a->dev == b->dev && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	       a->ctime_ns == b->ctime_ns;
}

static uint64_t key_hi(const struct tabcache_key *key)
{
	return key->dev << 48 ^ key->inode;
}

static uint64_t key_lo(const struct tabcache_key *key)
{
	return key->mtime_ns ^ key->ctime_ns << 1 ^ key->size << 40;
}

/* Whoever owns a file chooses its size and times, and can make hashes meet: all of the key is compared. */
uint32_t tabfiles_find(const struct tabfiles *t, const struct tabcache_key *key)
{
	const struct idmap_slot *slot = idmap_find(&t->by_key, key_hi(key), key_lo(key));
	uint32_t file = slot ? slot->value : UINT32_MAX;

	while (file != UINT32_MAX && !same_file(&t->files[file].key, key))
		file = t->files[file].next;
	return file;
}

uint32_t tabfiles_add_nameless(struct tabfiles *t)
{
	if (base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0)
		return UINT32_MAX;
	t->files[t->n].next = UINT32_MAX;
	return (uint32_t)t->n++;
}

uint32_t tabfiles_add(struct tabfiles *t, const struct tabcache_key *key)
{
	struct idmap_slot *slot;
	uint32_t file = (uint32_t)t->n;

	/* first what may fail: a slot without its file would become another one's */
	if (base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0)
		return UINT32_MAX;
	slot = idmap_find(&t->by_key, key_hi(key), key_lo(key));
	if (!slot && idmap_put(&t->by_key, key_hi(key), key_lo(key), file, NULL) != file)
		return UINT32_MAX;
	tabfiles_add_nameless(t);
	t->files[file].key = *key;
	if (slot) {
		t->files[file].next = slot->value;
		slot->value = file;
	}
	return file;
}

struct tabfile *tabfiles_get(const struct tabfiles *t, uint32_t file)
{
	return file < t->n ? &t->files[file] : NULL;
}

void tabfiles_change(struct tabfiles *t, struct tabfile *f, enum tabfile_state state)
{
	f->state = state;
	f->changed = true;
	t->any_changed = true;
}
