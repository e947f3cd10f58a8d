/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/pack.h"
#include "base/out.h"
#include "capture/format.h"
#include "capture/reader.h"
#include "capture/stats.h"
#include "capture/writer.h"
#include "elf/debuginfo.h"
#include "elf/pack.h"
#include "symbols/files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define IMAGE_MAX (CAPWRITE_RECORD_MAX - 64) /* what is around it in its record takes less */

struct pack {
	const struct capread *c;
	const struct cappack_opts *o;
	struct cappack_stats *stats;
	struct symfile where;
	struct out out;
	uint32_t seq; /* of the next block */
	struct buf image, record, payload;
};

static bool has_image(const struct capread *c, uint32_t file)
{
	for (size_t i = 0; i < c->n_images; i++)
		if (c->images[i].file == file)
			return true;
	return false;
}

static void put_block(struct pack *p, unsigned int type, const void *payload, size_t len)
{
	uint8_t header[CAPBLOCK_HEAD_LEN];

	capblock_put(header, type, p->seq++, payload, len);
	out_put(&p->out, header, sizeof(header));
	out_put(&p->out, payload, len);
	p->stats->bytes += sizeof(header) + len;
}

/* A block of one record: images are large. */
static int put_image(struct pack *p, uint32_t file, struct err *e)
{
	const struct cap_image image = { file, (uint32_t)p->image.len, p->image.p };

	buf_reset(&p->record);
	buf_reset(&p->payload);
	capcodec_put_image(&p->record, &image);
	buf_uleb(&p->payload, p->record.len);
	buf_put(&p->payload, p->record.p, p->record.len);
	if (p->record.failed || p->payload.failed)
		return err_nomem(e, "an image");
	put_block(p, CAPCODEC_IMAGE, p->payload.p, p->payload.len);
	return 0;
}

/* 0 with the image of FILE in p->image. */
static int make_image(struct pack *p, const struct cap_file *file, uint32_t proc, struct err *e)
{
	const struct debugfile_opts local = { .symfs = -1 };
	struct debugfile debug = { 0 };
	struct elffile *elf = NULL;
	int rc;

	if (file->flags & CAP_FILE_PSEUDO)
		return err_set(e, -ENOENT, "is no file, and its bytes are not in the recording");
	rc = symfile_open(&p->where, file, p->c->procs[proc].tgid, &elf, e);
	if (rc)
		return rc;
	buf_reset(&p->image);
	rc = debugfile_find(&local, elf, file->path, &debug, e);
	rc = rc ? rc : elfpack_make(elf, debug.debug, IMAGE_MAX, &p->image, e);
	if (!rc && p->image.len > IMAGE_MAX)
		rc = err_set(e, -EFBIG, "has too many sections");
	debugfile_close(&debug);
	elffile_close(elf);
	return rc;
}

static int put_images(struct pack *p, const struct capfiles *files, struct err *e)
{
	p->stats->files = files->n;
	for (size_t i = 0; i < files->n && !p->out.code; i++) {
		const struct cap_file *file = &p->c->files[files->files[i]];
		struct err why = { 0 };
		int rc;

		if (has_image(p->c, file->id)) {
			p->stats->known++;
			continue;
		}
		rc = make_image(p, file, files->procs[i], &why);
		if (rc == -ENOMEM)
			return err_nomem(e, "an image");
		if (rc) {
			p->o->missing(p->o->ctx, file->path, why.msg);
			continue;
		}
		p->stats->packed++;
		rc = put_image(p, file->id, e);
		if (rc)
			return rc;
	}
	return 0;
}

/* Where the trailer begins, or the end where there is none. */
static size_t find_trailer(const struct capslurp *s, const struct capread *c)
{
	struct capblock_version v;
	struct capblock b;
	size_t at;

	if (!c->complete || capblock_get_header(s->bytes, s->len, &v) != CAPBLOCK_OK)
		return (size_t)c->good_bytes;
	for (at = v.header_len; capblock_get(s->bytes + at, &b); at += CAPBLOCK_HEAD_LEN + b.len)
		if (at + CAPBLOCK_HEAD_LEN + b.len >= c->good_bytes)
			break;
	return at;
}

static int put_all(struct pack *p, const struct capslurp *s, const struct capfiles *files, struct err *e)
{
	size_t trailer = find_trailer(s, p->c), end = (size_t)p->c->good_bytes;
	int rc;

	p->seq = (uint32_t)p->c->blocks - (trailer < end);
	out_put(&p->out, s->bytes, trailer);
	p->stats->bytes = trailer;
	rc = put_images(p, files, e);
	if (rc)
		return rc;
	if (trailer < end)
		put_block(p, CAPCODEC_TRAILER, s->bytes + trailer + CAPBLOCK_HEAD_LEN,
			end - trailer - CAPBLOCK_HEAD_LEN);
	return out_flush(&p->out, e);
}

static int open_out(const struct cappack_opts *o, struct capfile *f, struct err *e)
{
	if (strcmp(o->out, "-") != 0)
		return capfile_begin(o->out, o->force, CAPBLOCK_MAGIC, CAPBLOCK_MAGIC_LEN, f, e);
	f->fd = capfile_stdout(e);
	return MIN(f->fd, 0);
}

static int write_to(struct pack *p, const struct capslurp *s, const struct capfiles *files, struct err *e)
{
	struct capfile f = { .fd = -1 };
	int rc = open_out(p->o, &f, e);

	rc = rc ? rc : out_init(&p->out, f.fd, e);
	rc = rc ? rc : put_all(p, s, files, e);
	rc = rc ? rc : capfile_commit(&f, p->o->out, e);
	capfile_close(&f);
	out_free(&p->out);
	return rc;
}

static int write_parsed(struct pack *p, const struct capslurp *s, struct err *e)
{
	struct capfiles files = { 0 };
	int rc = symfile_init(&p->where, NULL, p->c->host.boot_id, e);

	if (!rc && capfiles_make(p->c, &files) != 0)
		rc = err_nomem(e, "files");
	rc = rc ? rc : write_to(p, s, &files, e);
	capfiles_free(&files);
	symfile_close(&p->where);
	buf_free(&p->image);
	buf_free(&p->record);
	buf_free(&p->payload);
	return rc;
}

int cappack_write(const char *path, const struct cappack_opts *o, struct cappack_stats *ret, struct err *e)
{
	struct pack p = { .o = o, .stats = ret };
	struct capread *c;
	struct capslurp s;
	int rc = capslurp_read(path, &s, e);

	*ret = (struct cappack_stats){ 0 };
	if (rc)
		return rc;
	rc = capread_parse(s.bytes, s.len, &c, e);
	if (rc) {
		err_prefix(e, "'%s'", path);
	} else {
		p.c = c;
		memcpy(ret->damage, c->damage, sizeof(ret->damage));
		rc = write_parsed(&p, &s, e);
		capread_free(c);
	}
	free(s.bytes);
	return rc;
}
