/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/capread.h"
#include "capture/capblock.h"
#include "capture/capcodec.h"
#include "capture/capdamage.h"
#include "capture/capmaps.h"
#include "capture/capslurp.h"
#include "capture/capstore.h"

#include <errno.h>
#include <string.h>

struct load {
	struct capread c; /* what the caller sees: first, so that one pointer is both */
	struct capstore store; /* owns the arrays */
	struct capmaps *maps;
	uint8_t *owned; /* the file's bytes, where capread_load() read them */
};

static int check_header(const void *bytes, size_t len, struct capblock_version *v, struct err *e)
{
	switch (capblock_get_header(bytes, len, v)) {
	case CAPBLOCK_OK:
		return 0;
	case CAPBLOCK_SHORT:
		return err_set(
			e, -EINVAL, "cut at byte %zu, inside the file header: nothing can be read", len);
	case CAPBLOCK_BYTE_ORDER:
		return err_set(e, -EINVAL, "a capture in the other byte order, which is not read here");
	case CAPBLOCK_DAMAGED:
		return err_set(e, -EINVAL, "the file header is damaged: nothing can be read");
	case CAPBLOCK_NEWER:
		err_set(e, -EINVAL, "a capture of format %u.%u; this reads formats up to %u", v->major,
			v->minor, CAPBLOCK_MAJOR);
		err_hint(e, "use a newer stacktools");
		return -EINVAL;
	default:
		err_set(e, -EINVAL, len ? "not a capture" : "empty, not a capture");
		err_hint(e, "a capture is what offcpu-record -o FILE writes");
		return -EINVAL;
	}
}

/* Is the block at HEADER, with LEFT bytes to the end of the file, the one that is due? */
static bool due(struct load *l, const uint8_t *header, size_t left, struct capdamage *d)
{
	d->block = (struct capblock){ 0 };
	if (l->store.has_trailer)
		d->kind = CAPDAMAGE_REST;
	else if (left < CAPBLOCK_HEAD_LEN)
		d->kind = CAPDAMAGE_CUT;
	else if (!capblock_get(header, &d->block))
		d->kind = CAPDAMAGE_NO_BLOCK;
	else if (left - CAPBLOCK_HEAD_LEN < d->block.len)
		d->kind = CAPDAMAGE_CUT;
	else if (!capblock_intact(header, &d->block))
		d->kind = CAPDAMAGE_CHECKSUM;
	else if (d->block.seq != (uint32_t)l->c.blocks)
		d->kind = CAPDAMAGE_SEQUENCE;
	return d->kind == CAPDAMAGE_END;
}

/* Take blocks from good_bytes on until the end or the first that is not right. */
static int take_blocks(struct load *l, const uint8_t *bytes, size_t len, struct capdamage *d)
{
	struct capread *c = &l->c;
	int code;

	while (c->good_bytes < len) {
		const uint8_t *header = bytes + c->good_bytes;
		const struct capblock *b = &d->block;

		if (!due(l, header, len - (size_t)c->good_bytes, d))
			return 0;
		if (!b->type || b->type >= CAPCODEC_TYPES || b->flags) {
			c->unknown_blocks++;
		} else {
			code = capstore_take(&l->store, b, header + CAPBLOCK_HEAD_LEN, &d->wrong);
			d->kind = code ? CAPDAMAGE_RECORD : d->kind;
			if (code)
				return code == -ENOMEM ? code : 0;
		}
		c->good_bytes += CAPBLOCK_HEAD_LEN + b->len;
		c->blocks++;
	}
	return 0;
}

/* Show what the store holds; it keeps owning it. */
static void show(struct load *l)
{
	const struct capstore *s = &l->store;
	struct capread *c = &l->c;

	c->host = s->host;
	c->trailer = s->trailer;
	c->last_flush_ns = s->last_flush_ns;
	c->options = s->options, c->n_options = s->n.options;
	c->procs = s->procs, c->n_procs = s->n.procs;
	c->threads = s->threads, c->n_threads = s->n.threads;
	c->files = s->files, c->n_files = s->n.files;
	c->maps = s->maps, c->n_maps = s->n.maps;
	c->images = s->images, c->n_images = s->n.images;
	c->ksyms = s->ksyms, c->n_ksyms = s->n.ksyms;
	c->stacks = s->stacks, c->n_stacks = s->n.stacks;
	c->samples = s->samples, c->n_samples = s->n.samples;
	c->counters = s->counters, c->n_counters = s->n.counters;
	c->jits = s->names.jits, c->n_jits = s->names.n.jits;
	c->names = s->names.names, c->n_names = s->names.n.names;
}

static void judge(struct load *l, struct capdamage *d, const uint8_t *bytes, size_t len)
{
	struct capread *c = &l->c;

	c->complete = d->kind == CAPDAMAGE_END && l->store.has_trailer;
	if (c->complete)
		return;
	d->at = c->good_bytes;
	d->total = c->total_bytes;
	d->blocks = c->blocks;
	d->start_ns = c->host.start_mono_ns;
	d->last_flush_ns = c->last_flush_ns;
	capdamage_describe(
		d, bytes + c->good_bytes, len - (size_t)c->good_bytes, c->damage, sizeof(c->damage));
}

/* TOTAL is the file's length, where fewer than all its bytes were read. */
static int parse(const void *bytes, size_t len, uint64_t total, struct load *l, struct err *e)
{
	struct capdamage d = { .kind = CAPDAMAGE_END };
	struct capblock_version v;
	int code = check_header(bytes, len, &v, e);

	if (code)
		return code;
	capstore_init(&l->store);
	l->c.total_bytes = total;
	l->c.good_bytes = v.header_len;
	if (take_blocks(l, bytes, len, &d) != 0 || capstore_settle(&l->store) != 0)
		return err_nomem(e, "the capture");
	show(l);
	if (capmaps_new(l->c.maps, l->c.n_maps, l->c.n_procs, &l->maps) != 0)
		return err_nomem(e, "the capture");
	judge(l, &d, bytes, len);
	return 0;
}

static void prefix_name(struct err *e, const char *path)
{
	if (path && strcmp(path, "-") != 0)
		err_prefix(e, "'%s'", path);
	else
		err_prefix(e, "standard input");
}

/* OWNED (may be NULL) goes with *RET, or is freed. */
static int make(
	const void *bytes, size_t len, uint64_t total, uint8_t *owned, struct capread **ret, struct err *e)
{
	struct load *l = calloc(1, sizeof(*l));
	int code;

	if (!l) {
		free(owned);
		return err_nomem(e, "the capture");
	}
	l->owned = owned;
	code = parse(bytes, len, total, l, e);
	if (code)
		capread_free(&l->c);
	else
		*ret = &l->c;
	return code;
}

int capread_parse(const void *bytes, size_t len, struct capread **ret, struct err *e)
{
	return make(bytes, len, len, NULL, ret, e);
}

int capread_load(const char *path, struct capread **ret, struct err *e)
{
	struct capslurp s;
	int code = capslurp_read(path, &s, e);

	if (code)
		return code;
	code = make(s.bytes, s.len, s.total, s.bytes, ret, e);
	if (code == -EINVAL)
		prefix_name(e, path);
	return code;
}

void capread_free(struct capread *c)
{
	struct load *l = (struct load *)c;

	if (!l)
		return;
	capstore_free(&l->store);
	capmaps_free(l->maps);
	free(l->owned);
	free(l);
}

/* --- looking things up --- */

const struct cap_ksym *capread_ksym(const struct capread *c, uint64_t addr)
{
	size_t lo = 0, hi = c->n_ksyms;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->ksyms[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < c->ksyms[lo - 1].end ? &c->ksyms[lo - 1] : NULL;
}

const struct cap_name *capread_name(const struct capread *c, uint32_t file, uint64_t offset)
{
	size_t lo = 0, hi = c->n_names;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct cap_name *n = &c->names[mid];

		if (n->file < file || (n->file == file && n->offset < offset))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->n_names || c->names[lo].file != file || c->names[lo].offset != offset)
		return NULL;
	return &c->names[lo];
}

static int thread_cmp(const struct cap_thread *t, uint32_t proc, uint32_t tid)
{
	return t->proc != proc ? CMP(t->proc, proc) : CMP(t->tid, tid);
}

const struct cap_thread *capread_thread(const struct capread *c, uint32_t proc, uint32_t tid)
{
	size_t lo = 0, hi = c->n_threads;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (thread_cmp(&c->threads[mid], proc, tid) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n_threads && thread_cmp(&c->threads[lo], proc, tid) == 0 ? &c->threads[lo] : NULL;
}

uint64_t capread_counter(const struct capread *c, const char *name)
{
	for (size_t i = 0; i < c->n_counters; i++)
		if (strcmp(c->counters[i].name, name) == 0)
			return c->counters[i].value;
	return 0;
}

const struct cap_map *capread_map(const struct capread *c, uint32_t proc, uint64_t addr, uint64_t first_ns,
	uint64_t last_ns, bool *unsure)
{
	return capmaps_find(((const struct load *)c)->maps, proc, addr, first_ns, last_ns, unsure);
}
