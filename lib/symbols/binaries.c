/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/binaries.h"

#include <errno.h>
#include <string.h>

int binaries_open(struct binaries *b, const struct capread *c, const struct binaries_opts *o, struct err *e)
{
	int rc;

	*b = (struct binaries){ .c = c, .where.symfs = -1 };
	b->images = calloc(c->n_files + 1, sizeof(*b->images));
	if (!b->images)
		return err_nomem(e, "files");
	for (size_t i = c->n_images; i-- > 0;)
		b->images[c->images[i].file] = &c->images[i];
	rc = symfile_init(&b->where, o->symfs, c->host.boot_id, e);
	b->debug = (struct debugfile_opts){ .symfs = b->where.symfs,
		.dirs = o->debug_dirs,
		.n_dirs = o->n_debug_dirs,
		.debuginfod = o->debuginfod,
		.server = &b->server,
		.progress = o->progress,
		.progress_ctx = o->progress_ctx };
	return rc;
}

void binaries_close(struct binaries *b)
{
	symfile_close(&b->where);
	free(b->images);
	b->images = NULL;
}

static int open_elf(struct binaries *b, uint32_t id, uint32_t tgid, struct elffile **ret, struct err *e)
{
	const struct cap_file *file = &b->c->files[id];
	const struct cap_image *image = b->images[id];
	int rc;

	if (image)
		return elffile_image(image->bytes, image->len, ret, e);
	if (file->flags & CAP_FILE_PSEUDO)
		return err_set(e, -ENOENT, "is no file, and its bytes are not in the recording");
	rc = symfile_open(&b->where, file, tgid, ret, e);
	if (rc == -ENOENT && (file->flags & CAP_FILE_DELETED))
		return err_set(e, rc, "was deleted or replaced before it could be kept");
	return rc;
}

int binary_find(struct binaries *b, uint32_t file, uint32_t tgid, struct binary *ret, struct err *e)
{
	int rc;

	*ret = (struct binary){ 0 };
	rc = open_elf(b, file, tgid, &ret->elf, e);
	rc = rc ? rc : debugfile_find(&b->debug, ret->elf, b->c->files[file].path, &ret->debug, e);
	if (rc)
		binary_close(ret);
	return rc;
}

void binary_close(struct binary *f)
{
	for (size_t i = 0; i < f->n_dwos; i++)
		elffile_close(f->dwos[i]);
	free(f->dwos);
	free(f->dwo_ids);
	debugfile_close(&f->debug);
	elffile_close(f->elf);
	*f = (struct binary){ 0 };
}

int binary_find_dwos(
	struct binaries *b, uint32_t file, const struct symanswer *a, struct binary *f, struct err *e)
{
	size_t n = MIN(a->head->n_wants, BINARIES_DWOS_MAX);
	const char *want;

	f->dwos = calloc(n + 1, sizeof(struct elffile *));
	f->dwo_ids = calloc(n + 1, sizeof(*f->dwo_ids));
	if (!f->dwos || !f->dwo_ids)
		return err_nomem(e, "files");
	want = n ? symanswer_want_at(a, 0) : NULL;
	/* one behind the other: to count from the first each time is quadratic in what a hostile answer holds
	 */
	for (size_t i = 0; i < n; i++, want += strlen(want) + 1) {
		char *path;
		uint64_t id = strtoull(want, &path, 16);

		if (*path++ != ' ' || debugfile_dwo(&b->debug, b->c->files[file].path, path,
					      &f->dwos[f->n_dwos], NULL) != 0)
			continue;
		f->dwo_ids[f->n_dwos++] = id;
	}
	return 0;
}
