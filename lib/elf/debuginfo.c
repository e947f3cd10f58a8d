/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/debuginfo.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/text.h"
#include "elf/section.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define SECTION_MAX (DEBUGLINK_NAME_MAX + 256)
#define PIECE (256 << 10)
#define STOP_EVERY (4 << 20) /* bytes between two calls of STOP */

/* Read NAME and its NUL. */
static int read_name(struct rd *r, struct debuglink *ret, struct err *e)
{
	const char *name = (const char *)r->p;
	size_t n = strnlen(name, MIN(rd_left(r), sizeof(ret->name)));

	*ret = (struct debuglink){ 0 };
	if (n == 0)
		return err_set(e, -EINVAL, "has no name");
	if (n == sizeof(ret->name))
		return err_set(e, -EINVAL, "has a name of %zu bytes or more", sizeof(ret->name));
	if (n == rd_left(r))
		return err_set(e, -EINVAL, "has a name without an end");
	memcpy(ret->name, name, n);
	rd_bytes(r, n + 1);
	return 0;
}

/* Does NAME stay below the directory that it is appended to? */
static bool is_below(const char *name)
{
	if (name[0] == '/')
		return false;
	for (const char *p = name; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
			return false;
	}
	return strcmp(name, ".") != 0;
}

int debuglink_parse(const void *bytes, size_t len, struct debuglink *ret, struct err *e)
{
	struct rd r = rd_init(bytes, len);
	int rc = read_name(&r, ret, e);

	if (rc)
		return rc;
	if (!is_below(ret->name))
		return err_set(e, -EINVAL, "has '%s', which is not a plain file name", ret->name);
	rd_bytes(&r, -(len - rd_left(&r)) & 3);
	ret->crc = rd_u32(&r);
	return r.bad ? err_set(e, -EINVAL, "has no CRC") : 0;
}

int debuglink_parse_alt(const void *bytes, size_t len, struct debuglink *ret, struct err *e)
{
	struct rd r = rd_init(bytes, len);
	int rc = read_name(&r, ret, e);
	size_t n;

	if (rc)
		return rc;
	n = rd_left(&r);
	if (n == 0 || n > CAPTURE_BUILD_ID_MAX)
		return err_set(e, -EINVAL, "has a build ID of %zu bytes", n);
	ret->build_id.len = (uint8_t)n;
	memcpy(ret->build_id.bytes, r.p, n);
	return 0;
}

static int read_section(const struct elffile *f, const char *name, struct debuglink *ret, struct err *e,
	int (*parse)(const void *, size_t, struct debuglink *, struct err *))
{
	struct elfsection_names names;
	struct elfsection s = { 0 };
	int rc = elfsection_names(f, &names, e);

	*ret = (struct debuglink){ 0 };
	if (rc)
		return rc;
	rc = elfsection_load(f, &names, name, SECTION_MAX, &s, e);
	if (rc > 0) {
		rc = parse(s.bytes, s.len, ret, e);
		if (rc)
			err_prefix(e, "its %s", name);
		else
			rc = 1;
	}
	elfsection_free(&s);
	elfsection_names_free(&names);
	return rc;
}

int debuglink_read(const struct elffile *f, struct debuglink *ret, struct err *e)
{
	return read_section(f, ".gnu_debuglink", ret, e, debuglink_parse);
}

int debuglink_alt(const struct elffile *f, struct debuglink *ret, struct err *e)
{
	return read_section(f, ".gnu_debugaltlink", ret, e, debuglink_parse_alt);
}

/* Read up to PIECE bytes at AT. Returns their number, 0 at the end, or -errno. */
static ssize_t piece(const struct elffile *f, uint64_t at, uint8_t *own, const uint8_t **ret)
{
	size_t n = MIN(PIECE, f->size - at);
	ssize_t got;

	*ret = f->fd < 0 ? f->image + at : own;
	if (f->fd < 0)
		return (ssize_t)n;
	do
		got = pread(f->fd, own, n, (off_t)at);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

int debuglink_crc(const struct elffile *f, int (*stop)(void *ctx, uint64_t done, uint64_t total), void *ctx,
	uint32_t *ret, struct err *e)
{
	_cleanup_free_ uint8_t *own = malloc(PIECE);
	uLong crc = crc32(0, NULL, 0);
	uint64_t reported = 0;
	const uint8_t *p;
	ssize_t n;

	if (!own)
		return err_nomem(e, "a checksum");
	for (uint64_t at = 0; at < f->size; at += (uint64_t)n) {
		n = piece(f, at, own, &p);
		if (n < 0)
			return err_sys(e, (int)n, "cannot be read");
		if (n == 0)
			return err_set(e, -EIO, "became shorter while it was read");
		crc = crc32(crc, p, (uInt)n);
		if (stop && at - reported >= STOP_EVERY) {
			reported = at;
			if (stop(ctx, at, f->size))
				return err_set(e, -ECANCELED, "was not checked to its end");
		}
	}
	*ret = (uint32_t)crc;
	return 0;
}

DEFINE_CLEANUP(struct elffile *, elffile_close);

/* O_PATH does not touch what is there. */
static int find(int root, const char *path)
{
	int fd;

	if (root >= 0)
		return open_in_root(root, path, O_PATH | O_CLOEXEC);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The path of FD according to the kernel. */
static bool name_of(int fd, char *ret, size_t cap)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, cap);
	if (n <= 0 || (size_t)n >= cap || ret[0] != '/')
		return false;
	ret[n] = 0;
	return true;
}

int debugplace_open(int root, const char *path, struct elffile **ret, struct err *e)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	_cleanup_close_ int fd = find(root, path);
	struct stat st;
	char link[64];
	int rc;

	if (fd < 0)
		return err_sys(e, fd, "cannot be opened");
	if (fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "is not a regular file");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	rc = elffile_open(AT_FDCWD, link, false, &f, e);
	if (rc)
		return rc;
	*ret = TAKE_PTR(f);
	return 0;
}

bool debugplace_real(int root, const char *path, char *ret, size_t cap)
{
	_cleanup_close_ int fd = find(root, path);
	char top[PATH_MAX];
	size_t n;

	if (fd < 0 || !name_of(fd, ret, cap))
		return false;
	if (root < 0)
		return true;
	if (!name_of(root, top, sizeof(top)))
		return false;
	n = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (strncmp(ret, top, n) != 0 || ret[n] != '/')
		return false;
	memmove(ret, ret + n, strlen(ret + n) + 1);
	return true;
}

/* Format PATH for display: with the path of ROOT on this machine before it. */
static void debugplace_show(int root, const char *path, char *ret, size_t cap)
{
	char top[PATH_MAX] = "";

	if (root >= 0 && (!name_of(root, top, sizeof(top)) || strcmp(top, "/") == 0))
		top[0] = 0;
	snprintf(ret, cap, "%s%s", top, path);
}

/* Are both the same file by device and inode? */
static bool debugplace_same(const struct elffile *a, const struct elffile *b)
{
	struct stat x, y;

	return a->fd >= 0 && b->fd >= 0 && fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/*
 * debugsearch - one search for a file that must be verified.
 *
 * The caller chooses the places; this part decides whether a file there is the
 * right one. Set the known fields, zero the rest, try places until a call
 * returns true, then take `found` (elffile_close()).
 */

#define DEBUGSEARCH_MESSAGE 512

struct debugsearch {
	int symfs; /* searched before this machine; -1 = none */
	const struct elffile *of; /* the file must be for the same machine, and not be this one; NULL = any */
	const struct cap_build_id *build_id; /* the file must have it; NULL or len 0 = any */
	const uint32_t *crc; /* of the whole file; NULL = any */
	const char *const *sections; /* the file must have one of these; ends with NULL; NULL = any content */
	const char *lacks; /* message for a file that has none of them: "holds no ..." */
	/* For the CRC of large files: called now and then, nonzero cancels. NULL is fine. */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
	unsigned int seconds; /* for all CRCs of the search together */

	struct elffile *found;
	int root; /* where it was found: DEBUGPLACE_HERE or symfs */
	char path[PATH_MAX]; /* relative to that */
	int stop; /* -ENOMEM or -ECANCELED: no more places are tried */
	char missed[DEBUGSEARCH_MESSAGE]; /* why the closest candidate was not used; "" = there was none */
	int weight; /* of `missed` */
	uint64_t until_ns; /* deadline of the CRCs; 0 = none was begun */
};

/* Priority of a failure: the highest is reported. A missing file is never reported. */
static int weight(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
	case -ENAMETOOLONG:
		return 0;
	case -EACCES:
	case -EPERM:
	case -ELOOP:
		return 1;
	case -EXDEV: /* another build ID */
		return 3;
	case -EBADMSG: /* the right build ID, but another CRC */
		return 4;
	default:
		return 2;
	}
}

static void miss(struct debugsearch *s, int root, const char *path, const struct err *e)
{
	char shown[PATH_MAX + PATH_MAX];

	if (e->code == -ENOMEM || e->code == -ECANCELED)
		s->stop = e->code;
	if (weight(e->code) <= s->weight)
		return;
	s->weight = weight(e->code);
	debugplace_show(root, path, shown, sizeof(shown));
	snprintf(s->missed, sizeof(s->missed), "'%.350s' %.150s", shown, e->msg);
}

static int check_build_id(const struct debugsearch *s, const struct elffile *f, struct err *e)
{
	char want[2 * CAPTURE_BUILD_ID_MAX + 1], is[2 * CAPTURE_BUILD_ID_MAX + 1];
	const struct cap_build_id *id = s->build_id;

	if (!id || !id->len || cap_build_id_same(id, &f->build_id))
		return 0;
	text_hex(want, id->bytes, MIN(id->len, CAPTURE_BUILD_ID_MAX));
	text_hex(is, f->build_id.bytes, MIN(f->build_id.len, CAPTURE_BUILD_ID_MAX));
	if (!*is)
		return err_set(e, -EXDEV, "has no build ID, which should be %s", want);
	return err_set(e, -EXDEV, "has build ID %s instead of %s", is, want);
}

static int stop_crc(void *ctx, uint64_t done, uint64_t total)
{
	struct debugsearch *s = ctx;

	if (now_ns() > s->until_ns)
		return 1;
	if (!s->progress || s->progress(s->progress_ctx, s->path, done, total) == 0)
		return 0;
	s->stop = -ECANCELED;
	return 1;
}

static int check_crc(struct debugsearch *s, const struct elffile *f, struct err *e)
{
	uint32_t is;
	int rc;

	if (!s->crc)
		return 0;
	if (!s->until_ns)
		s->until_ns = now_ns() + (uint64_t)s->seconds * 1000000000;
	rc = debuglink_crc(f, stop_crc, s, &is, e);
	if (rc == -ECANCELED && !s->stop)
		return err_set(e, -ETIMEDOUT, "could not be checked within %u s", s->seconds);
	if (rc || is == *s->crc)
		return rc;
	return err_set(e, -EBADMSG, "has CRC %08x instead of %08x", is, *s->crc);
}

static int check_content(const struct debugsearch *s, const struct elffile *f, struct err *e)
{
	struct elfsection_names names;
	int rc = s->sections ? elfsection_names(f, &names, e) : 0;
	bool has = false;

	if (rc || !s->sections)
		return rc;
	for (const char *const *name = s->sections; *name && !has; name++)
		has = elfsection_has(f, &names, *name);
	elfsection_names_free(&names);
	return has ? 0 : err_set(e, -EINVAL, "%s", s->lacks);
}

/* Cheap checks first. The whole file is read only if all others pass. */
static int prove(struct debugsearch *s, const struct elffile *f, struct err *e)
{
	int rc;

	if (s->of && debugplace_same(s->of, f))
		return err_set(e, -ENOENT, "is the file itself");
	if (s->of && (s->of->machine != f->machine || s->of->is64 != f->is64))
		return err_set(e, -EINVAL, "is of another machine");
	rc = check_build_id(s, f, e);
	rc = rc ? rc : check_content(s, f, e);
	return rc ? rc : check_crc(s, f, e);
}

/* Try PATH under ROOT. Returns true if the search is over. */
static bool debugsearch_try_at(struct debugsearch *s, int root, const char *path)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	struct err e = { 0 };
	int rc;

	if (s->stop || s->found)
		return true;
	snprintf(s->path, sizeof(s->path), "%s", path);
	rc = debugplace_open(root, path, &f, &e);
	rc = rc ? rc : prove(s, f, &e);
	if (rc) {
		miss(s, root, path, &e);
		return s->stop != 0;
	}
	s->found = TAKE_PTR(f);
	s->root = root;
	return true;
}

/* Try PATH under SYMFS if it is absolute, then on this machine. Returns true if the search is over. */
static bool debugsearch_try(struct debugsearch *s, const char *path)
{
	return (s->symfs >= 0 && path[0] == '/' && debugsearch_try_at(s, s->symfs, path)) ||
	       debugsearch_try_at(s, DEBUGPLACE_HERE, path);
}

/* The same for the open file FD. Closes FD. */
static bool debugsearch_try_fd(struct debugsearch *s, int fd)
{
	char link[64];
	bool over;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	over = debugsearch_try_at(s, DEBUGPLACE_HERE, link);
	if (s->found && !debugplace_real(DEBUGPLACE_HERE, link, s->path, sizeof(s->path)))
		s->path[0] = 0;
	close(fd);
	return over;
}

#define SYSTEM_DIR "/usr/lib/debug"
#define SECONDS_DEFAULT 30u

static const char *const DEBUG_SECTIONS[] = { ".debug_info", ".symtab", NULL };
static const char *const DWP_SECTIONS[] = { ".debug_cu_index", ".debug_tu_index", NULL };
static const char *const DWO_SECTIONS[] = { ".debug_info.dwo", NULL };

/* The directories in which to search for the name in a link: that of the path, and of what it links to. */
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

/* Debug directory I; NULL behind the last. */
static const char *debug_dir(const struct debugfile_opts *o, size_t i)
{
	if (i < o->n_dirs)
		return o->dirs[i];
	return i == o->n_dirs ? SYSTEM_DIR : NULL;
}

/* A path that is too long is skipped. */
static bool try_joined(struct debugsearch *s, const char *a, const char *b, const char *c)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s%s", a, b, c);

	return n > 0 && (size_t)n < sizeof(path) && debugsearch_try(s, path);
}

/* DIR has no slash at its end: "" is the root, "." if PATH has no directory. */
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
	char hex[2 * CAPTURE_BUILD_ID_MAX + 1], name[2 * CAPTURE_BUILD_ID_MAX + 32];
	const char *dir;

	if (s->build_id->len < 2)
		return false;
	text_hex(hex, s->build_id->bytes, MIN(s->build_id->len, CAPTURE_BUILD_ID_MAX));
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

/* Append the failure of a server to that of a file. */
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

/*
 * Try an absolute name as it is, a relative one from the real directory of the
 * file that has it; then below each --debug-dir.
 */
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

/* Find the alternate file of F, which was found at the path HOLDER. */
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

/* Search beside the file, the file its path links to and its debug file, then below the debug directories. */
static int find_dwp(const struct debugfile_opts *o, const struct elffile *elf, const char *path,
	const struct debugsearch *debug, struct debugfile *ret)
{
	struct debugsearch s = begin(o, elf);
	char real[PATH_MAX];
	const char *dir;

	s.sections = DWP_SECTIONS;
	s.lacks = "is not a package of split debug information";
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
