/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/kmodtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define DEBUG_DIR "/usr/lib/debug"
#define DEPTH_MAX 24
#define SEEN_MAX (1u << 18) /* a distribution's kernel has some 6000 */

static const char *const below[] = { "/lib/modules/", "/usr/lib/modules/" };

struct search {
	struct kmodtree *t;
	bool in_symfs;
	unsigned int place;
	char path[PATH_MAX];
	size_t len;
	/* /lib is often /usr/lib */
	struct {
		dev_t dev;
		ino_t ino;
	} seen[ARRAY_LEN(below)];
};

static void closedir_p(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The module of a file's name into fresh memory: 1, 0 for what is none's, -ENOMEM. */
static int module_of(const char *file, char **ret, bool *packed)
{
	static const char *const ends[] = { ".ko", ".ko.debug", ".ko.xz", ".ko.zst", ".ko.gz" };
	const size_t len = strlen(file);

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const size_t n = strlen(ends[i]);

		if (len <= n || strcmp(file + len - n, ends[i]) != 0)
			continue;
		*ret = strndup(file, len - n);
		for (char *p = *ret; p && *p; p++)
			*p = *p == '-' ? '_' : *p;
		*packed = i > 1;
		return *ret ? 1 : -ENOMEM;
	}
	return 0;
}

/* The file at S's path, whose last component is NAME. */
static int add(struct search *s, const char *name)
{
	struct kmodtree *t = s->t;
	struct kmodtree_file f = { .place = s->place, .in_symfs = s->in_symfs };
	int rc = module_of(name, &f.name, &f.packed);

	if (rc <= 0)
		return rc;
	f.path = strdup(s->path);
	if (!f.path || base_grow(&t->files, &t->cap, t->n + 1, sizeof(*t->files)) != 0) {
		free(f.name);
		free(f.path);
		return -ENOMEM;
	}
	t->files[t->n++] = f;
	return 0;
}

static int kind_of(int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type;
	if (fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	return S_ISREG(st.st_mode) ? DT_REG : S_ISDIR(st.st_mode) ? DT_DIR : DT_UNKNOWN;
}

/* The directory FD, which is taken, at S's path. What cannot be read has nothing. */
static int walk(struct search *s, int fd, unsigned int depth)
{
	CLEANUP(closedir_p) DIR *dir = fdopendir(fd);
	const size_t len = s->len;
	const struct dirent *d;
	int rc = 0;

	if (!dir) {
		close(fd);
		return 0;
	}
	while (rc == 0 && (d = readdir(dir))) {
		const size_t n = strlen(d->d_name);
		int kind, sub;

		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (s->t->seen++ >= SEEN_MAX || depth > DEPTH_MAX || len + n + 2 > sizeof(s->path)) {
			s->t->cut = true;
			break;
		}
		s->path[len] = '/';
		memcpy(s->path + len + 1, d->d_name, n + 1);
		s->len = len + 1 + n;
		kind = kind_of(dirfd(dir), d);
		if (kind == DT_REG)
			rc = add(s, d->d_name);
		sub = kind == DT_DIR
			      ? openat(dirfd(dir), d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			      : -1;
		if (sub >= 0)
			rc = walk(s, sub, depth + 1);
		s->len = len;
	}
	s->path[len] = '\0';
	return rc;
}

static int open_dir(int symfs, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return symfs < 0 ? open(path, (int)how.flags)
			 : (int)syscall(SYS_openat2, symfs, path, &how, sizeof(how));
}

static int look_below(struct search *s, int symfs, const char *dir, const char *release)
{
	memset(s->seen, 0, sizeof(s->seen));
	for (size_t i = 0; i < ARRAY_LEN(below); i++) {
		const int n = snprintf(s->path, sizeof(s->path), "%s%s%s", dir, below[i], release);
		struct stat st;
		int fd, rc;

		s->place++;
		if (n < 0 || (size_t)n >= sizeof(s->path))
			continue;
		s->len = (size_t)n;
		fd = open_dir(symfs, s->path);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) != 0 ||
			(i && st.st_dev == s->seen[0].dev && st.st_ino == s->seen[0].ino)) {
			close(fd);
			continue;
		}
		s->seen[i].dev = st.st_dev;
		s->seen[i].ino = st.st_ino;
		rc = walk(s, fd, 0);
		if (rc)
			return rc;
	}
	return 0;
}

static int look(struct search *s, const struct kmodtree_opts *o, int symfs, const char *release)
{
	int rc = 0;

	s->in_symfs = symfs >= 0;
	for (size_t i = 0; i < o->n_dirs && rc == 0; i++)
		rc = look_below(s, symfs, o->dirs[i], release);
	rc = rc ? rc : look_below(s, symfs, DEBUG_DIR, release);
	return rc ? rc : look_below(s, symfs, "", release);
}

static int by_name(const void *a, const void *b)
{
	const struct kmodtree_file *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	c = c ? c : CMP(x->place, y->place);
	return c ? c : strcmp(x->path, y->path);
}

int kmodtree_load(const struct kmodtree_opts *o, const char *release, struct kmodtree *ret, struct err *e)
{
	struct search s = { .t = ret };
	int rc = 0;

	*ret = (struct kmodtree){ 0 };
	if (!release || !*release || *release == '.' || strchr(release, '/') || strlen(release) > NAME_MAX)
		return 0;
	if (o->symfs >= 0)
		rc = look(&s, o, o->symfs, release);
	rc = rc ? rc : look(&s, o, -1, release);
	if (rc) {
		kmodtree_free(ret);
		return err_nomem(e, "kernel modules");
	}
	if (ret->n)
		qsort(ret->files, ret->n, sizeof(*ret->files), by_name);
	return 0;
}

void kmodtree_free(struct kmodtree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->files[i].name);
		free(t->files[i].path);
	}
	free(t->files);
	*t = (struct kmodtree){ 0 };
}

const struct kmodtree_file *kmodtree_find(const struct kmodtree *t, const char *module, size_t *n)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(t->files[mid].name, module) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*n = 0;
	while (lo + *n < t->n && strcmp(t->files[lo + *n].name, module) == 0)
		++*n;
	return *n ? &t->files[lo] : NULL;
}
