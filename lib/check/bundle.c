/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/bundle.h"
#include "base/tarfile.h"
#include "base/text.h"
#include "check/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <time.h>

#define TOP "bpfcheck-bundle/"
#define FILE_MAX (64u << 20) /* bytes of a file; BTF has some six million */

static void note_path(void *ctx, const char *path)
{
	struct bundle *b = ctx;
	char *copy;

	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->paths[i], path) == 0)
			return;
	copy = strdup(path);
	if (!copy || base_grow(&b->paths, &b->cap, b->n + 1, sizeof(*b->paths)) != 0) {
		free(copy);
		b->failed = true;
		return;
	}
	b->paths[b->n++] = copy;
}

void bundle_watch(struct bundle *b, struct root *r)
{
	r->asked = note_path;
	r->asked_ctx = b;
}

void bundle_free(struct bundle *b)
{
	for (size_t i = 0; i < b->n; i++)
		free(b->paths[i]);
	free(b->paths);
	*b = (struct bundle){ 0 };
}

struct writing {
	struct tarfile tar;
	const struct root *root;
	struct buf *list;
	struct err *e;
};

static void list_line(struct buf *list, const char *path, size_t len, const char *note)
{
	size_t at = strlen(path);

	buftext_escaped(list, path, TEXT_LINE);
	for (; at < 44; at++)
		buftext_str(list, " ");
	buftext_printf(list, " %9zu bytes", len);
	buftext_printf(list, "%s%s\n", *note ? ", " : "", note);
}

static void list_left_out(struct buf *list, const char *path, const char *why)
{
	size_t at = strlen(path);

	buftext_escaped(list, path, TEXT_LINE);
	for (; at < 44; at++)
		buftext_str(list, " ");
	buftext_printf(list, " left out: %s\n", why);
}

static int put(struct writing *w, const char *path, const void *bytes, size_t len)
{
	char name[512];

	if (snprintf(name, sizeof(name), TOP "%s", path) >= (int)sizeof(name))
		return err_set(w->e, -ENAMETOOLONG, "the name '%s' is too long for an archive", path);
	return tarfile_put(&w->tar, name, bytes, len, w->e);
}

static int put_link(struct writing *w, const char *path)
{
	char target[128], name[512];
	int rc;

	if (!root_link(w->root, path, target, sizeof(target)))
		return 0;
	snprintf(name, sizeof(name), TOP "%s", path);
	rc = tarfile_link(&w->tar, name, target, w->e);
	if (!rc)
		list_line(w->list, path, strlen(target), "a link");
	return rc;
}

/* What is not there is not in it: that is the same for whoever looks at the tree. */
static int put_file(struct writing *w, const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct buf out = { 0 };
	struct err why = { 0 };
	char note[128], name[512];
	size_t len = 0;
	int rc;

	secrets_path(path, name, sizeof(name));
	if (fnmatch("proc/self/ns/*", path, 0) == 0)
		return put_link(w, path);
	rc = root_read(w->root, path, FILE_MAX, &text, &len, &why);
	if (rc == -ENOENT || rc == -EISDIR)
		return 0;
	if (rc) {
		list_left_out(w->list, name, "it cannot be read");
		return 0;
	}
	if (!secrets_filter(path, text, len, &out, note, sizeof(note))) {
		list_left_out(w->list, name, "nobody has said yet what of it may leave a machine");
		return 0;
	}
	rc = out.failed ? err_nomem(w->e, path) : put(w, name, out.p, out.len);
	if (!rc)
		list_line(w->list, name, out.len, note);
	buf_free(&out);
	return rc;
}

static int put_text(struct writing *w, const struct secrets_names *names, const struct bundle_text *t)
{
	struct buf out = { 0 };
	int rc;

	secrets_scrub(names, t->text, t->len, &out);
	rc = out.failed ? err_nomem(w->e, t->name) : put(w, t->name, out.p, out.len);
	if (!rc)
		list_line(w->list, t->name, out.len, "");
	buf_free(&out);
	return rc;
}

static int put_all(struct writing *w, const struct bundle *b, const struct bundle_text *texts, size_t n)
{
	struct secrets_names names;
	int rc = b->failed ? err_nomem(w->e, "the list of files") : 0;

	secrets_names(&names);
	for (size_t i = 0; i < n && !rc; i++)
		rc = put_text(w, &names, &texts[i]);
	for (size_t i = 0; i < b->n && !rc; i++)
		rc = put_file(w, b->paths[i]);
	if (!rc && w->list->failed)
		rc = err_nomem(w->e, "the list of contents");
	if (!rc)
		rc = put(w, "CONTENTS", w->list->p, w->list->len);
	if (!rc)
		tarfile_end(&w->tar);
	return rc;
}

static int open_new(const char *file, struct err *e)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	fd = err_sys(e, -errno, "cannot create '%s'", file);
	if (fd == -EEXIST)
		err_hint(e, "choose a name that is free: nothing is written over");
	return fd;
}

static int refuse_terminal(struct err *e)
{
	if (!isatty(STDOUT_FILENO))
		return STDOUT_FILENO;
	err_set(e, -EINVAL, "an archive is not written to a terminal");
	return err_hint(e, "give the name of a file");
}

int bundle_write(const struct bundle *b, const struct root *r, const struct bundle_text *texts, size_t n,
	const char *file, struct buf *list, struct err *e)
{
	bool to_stdout = strcmp(file, "-") == 0;
	int fd = to_stdout ? refuse_terminal(e) : open_new(file, e), rc;
	struct out out;
	struct writing w = {
		.tar = { .o = &out, .time = (uint64_t)time(NULL) }, .root = r, .list = list, .e = e
	};

	if (fd < 0)
		return fd;
	rc = out_init(&out, fd, e);
	if (!rc) {
		rc = put_all(&w, b, texts, n);
		if (!rc && out_flush(&out, e) != 0)
			rc = err_prefix(e, "cannot write the bundle");
		out_free(&out);
	}
	if (!to_stdout && close(fd) != 0 && !rc)
		rc = err_sys(e, -errno, "cannot write '%s'", file);
	if (rc && !to_stdout)
		unlink(file);
	return rc;
}
