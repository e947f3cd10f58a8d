/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/diskcache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define TEMP_PREFIX "new-"
#define DIGITS "0123456789abcdef"
#define TEMP_CAP (sizeof(TEMP_PREFIX) + 16)
#define ENTRY_MAX (1 << 30) /* bytes; a larger entry is damaged */
#define STALE_SECONDS 3600 /* an older temporary file has no writer any more */

struct diskcache {
	const struct diskcache_kind *kind;
	int dir;
	uint64_t limit;
	uint64_t total; /* bytes, as far as known */
	uint64_t added; /* bytes since the last count */
	bool counted;
	struct diskcache_stats stats;
	char path[PATH_MAX];
};

/* --- the directory --- */

static int join(char *path, const char *dir, const char *rest, struct err *e)
{
	if ((size_t)snprintf(path, PATH_MAX, "%s%s", dir, rest) >= PATH_MAX)
		return err_sys(e, -ENAMETOOLONG, "the cache '%.64s...'", dir);
	return 0;
}

int diskcache_place(const char *what, char path[PATH_MAX], struct err *e)
{
	const char *own = getenv("STACKTOOLS_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (own && !*own)
		return err_set(e, -ENOENT, "the cache of %ss is turned off (STACKTOOLS_CACHE)", what);
	if (own)
		return join(path, own, "", e);
	if (geteuid() == 0)
		return join(path, "/var/cache/stacktools", "", e);
	/* the XDG Base Directory Specification: ignore a path that is not absolute */
	if (xdg && *xdg == '/')
		return join(path, xdg, "/stacktools", e);
	if (home && *home == '/')
		return join(path, home, "/.cache/stacktools", e);
	err_set(e, -ENXIO, "no place for a cache of %ss: HOME is not set", what);
	err_hint(e, "set HOME, or STACKTOOLS_CACHE to a directory");
	return -ENXIO;
}

/* Create the directory and its missing parents. One that exists is checked when it is opened. */
static int make_dirs(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
		if (rc && access(path, F_OK) == 0)
			rc = 0; /* exists: an automounter's, or where nothing can be created */
		*slash = '/';
		if (rc)
			return rc;
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

/* Report CODE. ENOENT is reserved for a cache that is turned off, so it becomes ENOTDIR. */
static int refuse(const char *path, int code, struct err *e)
{
	err_sys(e, code, "cannot use the cache '%s'", path);
	code = code == -ENOENT ? -ENOTDIR : code;
	if (e)
		e->code = code;
	err_hint(e, "set STACKTOOLS_CACHE to a directory of your own, or to nothing to do without");
	return code;
}

static int check_dir(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return refuse(path, -errno, e);
	if (st.st_uid != geteuid())
		err_set(e, -EPERM, "the cache '%s' belongs to user %u", path, st.st_uid);
	else if (st.st_mode & 022)
		err_set(e, -EPERM, "others can write to the cache '%s'", path);
	else
		return 0;
	err_hint(e, "chown and chmod go-w the directory, or set STACKTOOLS_CACHE to another one");
	return -EPERM;
}

int diskcache_open(const struct diskcache_kind *kind, uint64_t limit, struct diskcache **ret, struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	_cleanup_free_ struct diskcache *c = calloc(1, sizeof(*c));
	_cleanup_close_ int dir = -1;
	int rc;

	if (!c)
		return err_nomem(e, "a cache");
	rc = diskcache_place(kind->what, c->path, e);
	if (rc)
		return rc;
	dir = open(c->path, flags);
	if (dir < 0 && errno == ENOENT) {
		rc = make_dirs(c->path);
		if (rc)
			return refuse(c->path, rc, e);
		dir = open(c->path, flags);
	}
	if (dir < 0)
		return refuse(c->path, -errno, e);
	rc = check_dir(dir, c->path, e);
	if (rc)
		return rc;
	c->kind = kind;
	c->limit = limit;
	c->dir = TAKE_FD(dir);
	*ret = TAKE_PTR(c);
	return 0;
}

void diskcache_close(struct diskcache *c)
{
	if (!c)
		return;
	close(c->dir);
	free(c);
}

void diskcache_stats(const struct diskcache *c, struct diskcache_stats *ret)
{
	*ret = c->stats;
}

/* --- names --- */

static bool is_entry(const struct diskcache *c, const char *name)
{
	size_t len = strlen(name), tail = strlen(c->kind->suffix);

	return len > tail && len < DISKCACHE_NAME_CAP && strcmp(name + len - tail, c->kind->suffix) == 0 &&
	       strspn(name, DIGITS "-") >= len - tail && name[0] != '-';
}

static bool is_temp(const char *name)
{
	const size_t before = sizeof(TEMP_PREFIX) - 1;

	return strncmp(name, TEMP_PREFIX, before) == 0 && strspn(name + before, DIGITS) == 16 &&
	       !name[before + 16];
}

/* --- reading --- */

/* Read all LEN bytes of a file; -EINVAL if it is shorter. */
static int read_all(int fd, uint8_t *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, bytes + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EINVAL;
		done += (size_t)n;
	}
	return 0;
}

/*
 * Open an entry that is a regular file and ours alone. -ENOENT if there is none;
 * -EMFILE, -ENFILE or -ENOMEM; -EINVAL for anything else.
 */
static int open_entry(const struct diskcache *c, const char *name, struct stat *st, struct err *e)
{
	_cleanup_close_ int fd =
		openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return err_sys(e, -ENOENT, "'%s' in the cache '%s'", name, c->path);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return err_sys(e, -errno, "cannot open '%s' in the cache '%s'", name, c->path);
	if (fd < 0)
		return err_set(
			e, -EINVAL, "'%s' in the cache '%s' is not used: %s", name, c->path, strerror(errno));
	if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode) || st->st_uid != geteuid() || (st->st_mode & 022))
		return err_set(e, -EINVAL, "'%s' in the cache '%s' is not used: it is not ours alone", name,
			c->path);
	return TAKE_FD(fd);
}

/* Remove an entry, unless another file has replaced it meanwhile. */
static void remove_damaged(const struct diskcache *c, const char *name, const struct stat *was)
{
	struct stat now;

	if (fstatat(c->dir, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == was->st_ino &&
		now.st_dev == was->st_dev)
		unlinkat(c->dir, name, 0);
}

int diskcache_read_entry(const struct diskcache_kind *kind, int fd, uint8_t **ret, size_t *len, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat st;
	int rc;

	if (fstat(fd, &st) != 0)
		return err_sys(e, -errno, "cannot be examined");
	if (st.st_size <= 0 || st.st_size > ENTRY_MAX)
		return err_set(e, -EINVAL, "no %s has %lld bytes", kind->what, (long long)st.st_size);
	*len = (size_t)st.st_size;
	bytes = malloc(*len);
	if (!bytes)
		return err_nomem(e, kind->what);
	rc = read_all(fd, bytes, *len);
	if (rc && rc != -EINVAL)
		return err_sys(e, rc, "cannot be read");
	rc = rc ? err_set(e, rc, "became shorter") : kind->check(bytes, *len, e);
	if (!rc)
		*ret = TAKE_PTR(bytes);
	return rc ? -EINVAL : 0;
}

static int read_entry(
	struct diskcache *c, const char *name, uint8_t **ret, size_t *len, struct stat *st, struct err *e)
{
	_cleanup_close_ int fd = open_entry(c, name, st, e);
	int rc = fd < 0 ? fd : diskcache_read_entry(c->kind, fd, ret, len, e);

	if (fd < 0)
		return fd;
	if (rc == -EINVAL) {
		remove_damaged(c, name, st);
		err_prefix(e, "'%s' in the cache '%s' is damaged", name, c->path);
	} else if (rc) {
		err_prefix(e, "'%s' in the cache '%s'", name, c->path);
	} else {
		futimens(fd, NULL); /* used now; if this fails, the entry is removed earlier */
	}
	return rc;
}

int diskcache_open_entry(struct diskcache *c, const char *name, struct err *e)
{
	struct stat st;
	int fd;

	if (!is_entry(c, name))
		return err_set(e, -EINVAL, "'%s' is not a name in the cache '%s'", name, c->path);
	fd = open_entry(c, name, &st, e);
	if (fd >= 0)
		futimens(fd, NULL);
	return fd;
}

void diskcache_remove(struct diskcache *c, const char *name)
{
	if (is_entry(c, name))
		unlinkat(c->dir, name, 0);
}

int diskcache_get(struct diskcache *c, const char *name, uint8_t **ret, size_t *len, struct err *e)
{
	struct stat st;
	int rc = read_entry(c, name, ret, len, &st, e);

	if (rc == 0)
		c->stats.hits++;
	else if (rc == -EINVAL)
		c->stats.bad++;
	else
		c->stats.misses++;
	return rc;
}

/* --- the limit --- */

struct entry {
	char name[DISKCACHE_NAME_CAP];
	uint64_t bytes;
	struct timespec used;
};

struct listing {
	struct entry *entries;
	size_t n, cap;
	uint64_t bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;

	return x->tv_sec != y->tv_sec ? CMP(x->tv_sec, y->tv_sec) : CMP(x->tv_nsec, y->tv_nsec);
}

static int list_one(const struct diskcache *c, const char *name, struct listing *l)
{
	struct stat st;

	if (fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
		return 0;
	if (is_temp(name)) {
		if (st.st_mtim.tv_sec < time(NULL) - STALE_SECONDS)
			unlinkat(c->dir, name, 0);
		return 0;
	}
	if (base_grow(&l->entries, &l->cap, l->n + 1, sizeof(*l->entries)) != 0)
		return -ENOMEM;
	l->entries[l->n] = (struct entry){ .bytes = (uint64_t)st.st_size, .used = st.st_mtim };
	memcpy(l->entries[l->n++].name, name, strlen(name) + 1);
	l->bytes += (uint64_t)st.st_size;
	return 0;
}

/* List the entries of our kind and version. Removes stale temporary files. */
static int list(const struct diskcache *c, struct listing *l)
{
	int fd = openat(c->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;

	if (!dir) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (!rc && (d = readdir(dir)))
		if (is_entry(c, d->d_name) || is_temp(d->d_name))
			rc = list_one(c, d->d_name, l);
	closedir(dir);
	return rc;
}

/*
 * Remove the least recently used entries until an eighth of the limit is free.
 * Other processes may be doing the same.
 */
static void make_room(struct diskcache *c, struct listing *l)
{
	const uint64_t aim = c->limit - c->limit / 8;

	qsort(l->entries, l->n, sizeof(*l->entries), by_use);
	for (size_t i = 0; i < l->n && l->bytes > aim; i++) {
		if (unlinkat(c->dir, l->entries[i].name, 0) == 0)
			c->stats.removed++;
		else if (errno != ENOENT)
			continue;
		l->bytes -= l->entries[i].bytes;
	}
}

/*
 * Enforce the limit after LEN bytes were added. Entries of other processes are
 * counted each time we have added a sixteenth of the limit.
 */
static void keep_limit(struct diskcache *c, uint64_t len)
{
	struct listing l = { 0 };

	c->total += len;
	c->added += len;
	if (c->counted && c->total <= c->limit && c->added <= c->limit / 16)
		return;
	if (list(c, &l) == 0) {
		if (l.bytes > c->limit)
			make_room(c, &l);
		c->total = l.bytes;
		c->added = 0;
		c->counted = true;
	}
	free(l.entries);
}

/* --- writing --- */

/* Write all bytes and close FD: some file systems report only on close that they are full. */
static int write_all(int fd, const uint8_t *bytes, size_t len)
{
	size_t done = 0;
	int rc = 0;

	while (!rc && done < len) {
		ssize_t n = write(fd, bytes + done, len - done);

		if (n < 0 && errno != EINTR)
			rc = -errno;
		else if (n == 0)
			rc = -EIO;
		done += n > 0 ? (size_t)n : 0;
	}
	if (close(fd) != 0 && !rc)
		rc = -errno;
	return rc;
}

static int new_temp(const struct diskcache *c, char name[TEMP_CAP])
{
	uint64_t random;
	int fd;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, TEMP_CAP, TEMP_PREFIX "%016llx", (unsigned long long)random);
	fd = openat(c->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd >= 0 ? fd : -errno;
}

static int store(const struct diskcache *c, const char *name, const uint8_t *bytes, size_t len)
{
	char temp[TEMP_CAP];
	int fd = new_temp(c, temp), rc;

	if (fd < 0)
		return fd;
	rc = write_all(fd, bytes, len);
	if (!rc && renameat(c->dir, temp, c->dir, name) != 0)
		rc = -errno;
	if (rc)
		unlinkat(c->dir, temp, 0);
	return rc;
}

int diskcache_put(struct diskcache *c, const char *name, const uint8_t *bytes, size_t len, struct err *e)
{
	int rc;

	if (!is_entry(c, name))
		return err_set(e, -EINVAL, "'%s' is not a name in the cache '%s'", name, c->path);
	if (len > c->limit)
		return err_sys(e, -EFBIG, "%zu bytes (%s) in the cache '%s'", len, c->kind->what, c->path);
	rc = store(c, name, bytes, len);
	if (rc)
		return err_sys(e, rc, "cannot keep '%s' in the cache '%s'", name, c->path);
	c->stats.puts++;
	keep_limit(c, len);
	return 0;
}
