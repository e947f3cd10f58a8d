/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/pack.h"
#include "base/out.h"
#include "base/result.h"
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

#define IMAGE_MAX (CAPTURE_WRITER_RECORD_MAX - 64) /* the rest of its record takes less */

struct pack {
	const struct cap_reader *c;
	const struct cap_pack_opts *o;
	struct cap_pack_stats *stats;
	struct sym_file where;
	struct out out;
	uint32_t seq; /* of the next block */
	struct buf image, record, payload;
};

static bool has_image(const struct cap_reader *c, uint32_t file)
{
	for (size_t i = 0; i < c->n_images; i++)
		if (c->images[i].file == file)
			return true;
	return false;
}

static void put_block(struct pack *p, unsigned int type, const void *payload, size_t len)
{
	uint8_t header[CAPTURE_BLOCK_HEAD_LEN];

	cap_block_put(header, type, p->seq++, payload, len);
	out_put(&p->out, header, sizeof(header));
	out_put(&p->out, payload, len);
	p->stats->bytes += sizeof(header) + len;
}

/* A block of one record, because images are large. */
static int put_image(struct pack *p, uint32_t file, struct err *e)
{
	const struct cap_image image = { file, (uint32_t)p->image.len, p->image.p };

	buf_reset(&p->record);
	buf_reset(&p->payload);
	cap_record_put_image(&p->record, &image);
	buf_uleb(&p->payload, p->record.len);
	buf_put(&p->payload, p->record.p, p->record.len);
	if (p->record.failed || p->payload.failed)
		return err_nomem(e, "an image");
	put_block(p, CAPTURE_RECORD_IMAGE, p->payload.p, p->payload.len);
	return 0;
}

/* Make the image of FILE in p->image. 0 or -errno. */
static int make_image(struct pack *p, const struct cap_file *file, uint32_t proc, struct err *e)
{
	const struct debugfile_opts local = { .symfs = -1 };
	struct debugfile debug = { 0 };
	struct elffile *elf = NULL;
	int rc;

	if (file->flags & CAPTURE_FILE_PSEUDO)
		return err_set(e, -ENOENT, "is not a file, and its bytes are not in the recording");
	rc = sym_file_open(&p->where, file, p->c->procs[proc].tgid, &elf, e);
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

static int put_images(struct pack *p, const struct cap_stack_files *files, struct err *e)
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

/* The start of the trailer, or the end if there is none. */
static size_t find_trailer(const struct cap_bytes *s, const struct cap_reader *c)
{
	struct cap_block_version v;
	struct cap_block b;
	size_t at;

	if (!c->complete || cap_block_get_header(s->bytes, s->len, &v) != CAPTURE_BLOCK_OK)
		return (size_t)c->good_bytes;
	for (at = v.header_len; cap_block_get(s->bytes + at, &b); at += CAPTURE_BLOCK_HEAD_LEN + b.len)
		if (at + CAPTURE_BLOCK_HEAD_LEN + b.len >= c->good_bytes)
			break;
	return at;
}

static int put_all(
	struct pack *p, const struct cap_bytes *s, const struct cap_stack_files *files, struct err *e)
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
		put_block(p, CAPTURE_RECORD_TRAILER, s->bytes + trailer + CAPTURE_BLOCK_HEAD_LEN,
			end - trailer - CAPTURE_BLOCK_HEAD_LEN);
	return out_flush(&p->out, e);
}

static int open_out(const struct cap_pack_opts *o, struct result_file *f, struct err *e)
{
	if (strcmp(o->out, "-") != 0)
		return result_file_begin(o->out, o->force, &cap_writer_type, f, e);
	f->fd = result_file_stdout(&cap_writer_type, e);
	return MIN(f->fd, 0);
}

static int write_to(
	struct pack *p, const struct cap_bytes *s, const struct cap_stack_files *files, struct err *e)
{
	struct result_file f = { .fd = -1 };
	int rc = open_out(p->o, &f, e);

	rc = rc ? rc : out_init(&p->out, f.fd, e);
	rc = rc ? rc : put_all(p, s, files, e);
	rc = rc ? rc : result_file_commit(&f, p->o->out, e);
	result_file_close(&f);
	out_free(&p->out);
	return rc;
}

static int write_parsed(struct pack *p, const struct cap_bytes *s, struct err *e)
{
	struct cap_stack_files files = { 0 };
	int rc = sym_file_init(&p->where, NULL, p->c->host.boot_id, e);

	if (!rc && cap_stack_files_make(p->c, &files) != 0)
		rc = err_nomem(e, "files");
	rc = rc ? rc : write_to(p, s, &files, e);
	cap_stack_files_free(&files);
	sym_file_close(&p->where);
	buf_free(&p->image);
	buf_free(&p->record);
	buf_free(&p->payload);
	return rc;
}

int cap_pack_write(const char *path, const struct cap_pack_opts *o, struct cap_pack_stats *ret, struct err *e)
{
	struct pack p = { .o = o, .stats = ret };
	struct cap_reader *c;
	struct cap_bytes s;
	int rc = cap_bytes_read(path, &s, e);

	*ret = (struct cap_pack_stats){ 0 };
	if (rc)
		return rc;
	rc = cap_reader_parse(s.bytes, s.len, &c, e);
	if (rc) {
		err_prefix(e, "'%s'", path);
	} else {
		p.c = c;
		memcpy(ret->damage, c->damage, sizeof(ret->damage));
		rc = write_parsed(&p, &s, e);
		cap_reader_free(c);
	}
	free(s.bytes);
	return rc;
}
