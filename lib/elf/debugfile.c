/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/debugfile.h"
#include "base/text.h"
#include "elf/debuglink.h"
#include "elf/debugsearch.h"
#include "elf/elfsection.h"

#include <errno.h>
#include <string.h>

#define SYSTEM_DIR "/usr/lib/debug"
#define SECONDS_DEFAULT 30u

static const char *const DEBUG_SECTIONS[] = { ".debug_info", ".symtab", NULL };
static const char *const DWP_SECTIONS[] = { ".debug_cu_index", ".debug_tu_index", NULL };
static const char *const DWO_SECTIONS[] = { ".debug_info.dwo", NULL };

/* The directories that a link's name is looked for in: of the path, and of what it links to. */
struct dirs {
	char dir[3][PATH_MAX];
	size_t n;
};

static struct debugsearch begin(const struct debugfile_opts *o, const struct elffile *of)
{
	return (struct debugsearch){ .symfs = o->symfs,
		.of = of,
		.progress = o->progress,
		.progress_ctx = o->progress_ctx,
		.seconds = o->seconds ? o->seconds : SECONDS_DEFAULT };
}

/* The debug directories in turn; NULL behind the last. */
static const char *debug_dir(const struct debugfile_opts *o, size_t i)
{
	if (i < o->n_dirs)
		return o->dirs[i];
	return i == o->n_dirs ? SYSTEM_DIR : NULL;
}

/* What does not fit into a path is no place. */
static bool try_joined(struct debugsearch *s, const char *a, const char *b, const char *c)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s%s", a, b, c);

	return n > 0 && (size_t)n < sizeof(path) && debugsearch_try(s, path);
}

/* DIR has no slash at its end: "" is the root, "." where PATH has no directory. */
static void dir_of(char *dir, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(dir, PATH_MAX, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
}

static void add_dir(struct dirs *d, const char *path)
{
	dir_of(d->dir[d->n], path);
	for (size_t i = 0; i < d->n; i++)
		if (strcmp(d->dir[i], d->dir[d->n]) == 0)
			return;
	d->n++;
}

static void dirs_of(const struct debugfile_opts *o, const char *path, struct dirs *d)
{
	char real[PATH_MAX];

	d->n = 0;
	add_dir(d, path);
	if (o->symfs >= 0 && debugplace_real(o->symfs, path, real, sizeof(real)))
		add_dir(d, real);
	if (debugplace_real(DEBUGPLACE_HERE, path, real, sizeof(real)))
		add_dir(d, real);
}

static bool by_build_id(const struct debugfile_opts *o, struct debugsearch *s)
{
	char hex[2 * CAP_BUILD_ID_MAX + 1], name[2 * CAP_BUILD_ID_MAX + 32];
	const char *dir;

	if (s->build_id->len < 2)
		return false;
	text_hex(hex, s->build_id->bytes, MIN(s->build_id->len, CAP_BUILD_ID_MAX));
	snprintf(name, sizeof(name), "/.build-id/%.2s/%s.debug", hex, hex + 2);
	for (size_t i = 0; (dir = debug_dir(o, i)); i++)
		if (try_joined(s, dir, name, ""))
			return true;
	return false;
}

static bool by_name_in(
	const struct debugfile_opts *o, struct debugsearch *s, const char *dir, const char *name)
{
	char below[PATH_MAX];
	const char *debug;

	if (try_joined(s, dir, "/", name) || try_joined(s, dir, "/.debug/", name))
		return true;
	if (dir[0] != '/' && dir[0])
		return false;
	if ((size_t)snprintf(below, sizeof(below), "%s/", dir) >= sizeof(below))
		return false;
	for (size_t i = 0; (debug = debug_dir(o, i)); i++)
		if (try_joined(s, debug, below, name))
			return true;
	return false;
}

static void note(struct debugsearch *s, const char *what, const char *path)
{
	if (!s->missed[0])
		snprintf(s->missed, sizeof(s->missed), "'%.300s': %.200s", path, what);
}

static bool by_link(const struct debugfile_opts *o, struct debugsearch *s, const char *path)
{
	struct debuglink link;
	struct dirs d;
	struct err e;
	int rc = debuglink_read(s->of, &link, &e);

	if (rc < 0)
		note(s, e.msg, path);
	if (rc <= 0)
		return rc == -ENOMEM;
	dirs_of(o, path, &d);
	s->crc = &link.crc;
	for (size_t i = 0; i < d.n && !s->found && !s->stop; i++)
		by_name_in(o, s, d.dir[i], link.name);
	s->crc = NULL;
	return s->found || s->stop;
}

/* A server's failure is told beside that of a file. */
static void note_server(struct debugsearch *s, const struct err *e)
{
	size_t n = strlen(s->missed);

	if (e->code == -ECANCELED)
		s->stop = e->code;
	snprintf(s->missed + n, sizeof(s->missed) - n, "%s%s%s%s", n ? "; " : "", e->msg,
		*e->hint ? "; " : "", e->hint);
}

static bool by_server(const struct debugfile_opts *o, struct debugsearch *s, const char *path)
{
	const struct debugserver_opts ask = { .seconds = o->seconds,
		.progress = o->progress,
		.progress_ctx = o->progress_ctx,
		.what = path,
		.server = o->server };
	struct err e;
	int fd, rc;

	if (!o->debuginfod || !s->build_id->len || !debugserver_wanted())
		return false;
	rc = debugserver_find(&ask, s->build_id, &fd, &e);
	if (rc == 0)
		return debugsearch_try_fd(s, fd);
	if (rc != -ENOENT)
		note_server(s, &e);
	return false;
}

static int find_debug(const struct debugfile_opts *o, const struct elffile *elf, const char *path,
	struct debugsearch *s, struct debugfile *ret)
{
	s->build_id = &elf->build_id;
	s->sections = DEBUG_SECTIONS;
	s->lacks = "holds neither debug information nor symbols";
	if (!by_build_id(o, s) && !by_link(o, s, path))
		by_server(o, s, path);
	if (s->found)
		debugplace_show(s->root, s->path, ret->where, sizeof(ret->where));
	else
		snprintf(ret->missed, sizeof(ret->missed), "%s", s->missed);
	ret->debug = s->found;
	return s->stop == -ENOMEM ? s->stop : 0;
}

/* The name as it is, or from where the file that has it really is; then below each --debug-dir. */
static bool alt_by_name(
	const struct debugfile_opts *o, struct debugsearch *s, const char *holder, const char *name)
{
	static const char system[] = SYSTEM_DIR "/";
	struct dirs d;

	if (name[0] == '/' && debugsearch_try(s, name))
		return true;
	dirs_of(o, holder, &d);
	for (size_t i = d.n; name[0] != '/' && i > 0; i--)
		if (try_joined(s, d.dir[i - 1], "/", name))
			return true;
	for (size_t i = 0; strncmp(name, system, sizeof(system) - 1) == 0 && i < o->n_dirs; i++)
		if (try_joined(s, o->dirs[i], "/", name + sizeof(system) - 1))
			return true;
	return false;
}

/* The alternate of F, which was found at the path HOLDER. */
static int find_alt(const struct debugfile_opts *o, const struct elffile *f, const char *holder,
	const char *path, struct debugfile *ret)
{
	struct debugsearch s = begin(o, f);
	struct debuglink link;
	struct err e;
	int rc = debuglink_alt(f, &link, &e);

	if (rc == 0)
		return 0;
	if (rc < 0) {
		snprintf(ret->missed, sizeof(ret->missed), "'%.300s': %.200s", holder, e.msg);
		return rc == -ENOMEM ? rc : 0;
	}
	s.build_id = &link.build_id;
	if (!alt_by_name(o, &s, holder, link.name) && !by_build_id(o, &s))
		by_server(o, &s, path);
	ret->alt = s.found;
	if (!s.found && *s.missed)
		snprintf(ret->missed, sizeof(ret->missed), "alternate file: %.480s", s.missed);
	else if (!s.found)
		snprintf(ret->missed, sizeof(ret->missed), "alternate file '%.400s' is not there", link.name);
	return s.stop == -ENOMEM ? s.stop : 0;
}

/* Beside the file, beside what its path links to, beside its debug file; below the debug directories. */
static int find_dwp(const struct debugfile_opts *o, const struct elffile *elf, const char *path,
	const struct debugsearch *debug, struct debugfile *ret)
{
	struct debugsearch s = begin(o, elf);
	char real[PATH_MAX];
	const char *dir;

	s.sections = DWP_SECTIONS;
	s.lacks = "is no package of split debug information";
	try_joined(&s, path, ".dwp", "");
	if (o->symfs >= 0 && debugplace_real(o->symfs, path, real, sizeof(real)))
		try_joined(&s, real, ".dwp", "");
	if (debugplace_real(DEBUGPLACE_HERE, path, real, sizeof(real)))
		try_joined(&s, real, ".dwp", "");
	if (debug->found)
		try_joined(&s, debug->path, ".dwp", "");
	for (size_t i = 0; path[0] == '/' && (dir = debug_dir(o, i)); i++)
		try_joined(&s, dir, path, ".dwp");
	ret->dwp = s.found;
	if (!s.found && *s.missed && !*ret->missed)
		snprintf(ret->missed, sizeof(ret->missed), "%s", s.missed);
	return s.stop == -ENOMEM ? s.stop : 0;
}

int debugfile_find(const struct debugfile_opts *o, const struct elffile *elf, const char *path,
	struct debugfile *ret, struct err *e)
{
	struct debugsearch s = begin(o, elf);
	bool own = debugfile_has_info(elf);
	int rc;

	*ret = (struct debugfile){ 0 };
	rc = own ? 0 : find_debug(o, elf, path, &s, ret);
	if (!rc && own)
		rc = find_alt(o, elf, path, path, ret);
	else if (!rc && ret->debug && s.stop == 0)
		rc = find_alt(o, ret->debug, s.path, path, ret);
	if (!rc && s.stop == 0)
		rc = find_dwp(o, elf, path, &s, ret);
	if (rc == 0)
		return 0;
	debugfile_close(ret);
	return err_nomem(e, "a debug file");
}

void debugfile_close(struct debugfile *d)
{
	elffile_close(d->debug);
	elffile_close(d->alt);
	elffile_close(d->dwp);
	d->debug = d->alt = d->dwp = NULL;
}

int debugfile_dwo(const struct debugfile_opts *o, const char *path, const char *dwo, struct elffile **ret,
	struct err *e)
{
	struct debugsearch s = begin(o, NULL);
	const char *slash = strrchr(dwo, '/'), *last = slash ? slash + 1 : dwo;
	struct dirs d;

	s.sections = DWO_SECTIONS;
	s.lacks = "holds no split debug information";
	if (dwo[0] == '/')
		debugsearch_try(&s, dwo);
	dirs_of(o, path, &d);
	for (size_t i = 0; dwo[0] != '/' && i < d.n; i++)
		try_joined(&s, d.dir[i], "/", dwo);
	for (size_t i = 0; slash && i < d.n; i++)
		try_joined(&s, d.dir[i], "/", last);
	*ret = s.found;
	if (s.found)
		return 0;
	if (s.stop == -ENOMEM)
		return err_nomem(e, "a .dwo file");
	return err_set(e, -ENOENT, "%s%s%s", *s.missed ? s.missed : "'", *s.missed ? "" : dwo,
		*s.missed ? "" : "' is not there");
}

bool debugfile_has_info(const struct elffile *f)
{
	struct elfsection_names names;
	bool has;

	if (elfsection_names(f, &names, NULL) != 0)
		return false;
	has = elfsection_has(f, &names, ".debug_info");
	elfsection_names_free(&names);
	return has;
}
