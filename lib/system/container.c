/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/container.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define DEPTH_MAX 32 /* of the search */
#define CGROUPS_MAX 200000
#define SHOWN 8 /* in a hint */
#define NAME_SHOWN 40 /* bytes of a name in a hint */

static const char digits[] = "0123456789abcdef";

/* --- names --- */

static bool begins(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

static bool ends(const char *s, size_t len, const char *with)
{
	size_t n = strlen(with);

	return len > n && memcmp(s + len - n, with, n) == 0;
}

static const char *hex_id(const char *name)
{
	static const char *const prefixes[] = { "docker-", "cri-containerd-", "libpod-", "crio-" };
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		if (begins(name, prefixes[i])) {
			name += strlen(prefixes[i]);
			break;
		}
	}
	n = strspn(name, digits);
	return n == CONTAINER_ID_LEN && (!name[n] || strcmp(name + n, ".scope") == 0) ? name : NULL;
}

const char *container_id(const char *name, size_t *len)
{
	static const struct {
		const char *before, *after;
	} forms[] = { { "lxc.payload.", "" }, { "machine-", ".scope" }, { "systemd-nspawn@", ".service" } };
	const char *id = hex_id(name);

	*len = CONTAINER_ID_LEN;
	if (id)
		return id;
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (!begins(name, forms[i].before))
			continue;
		id = name + strlen(forms[i].before);
		*len = strlen(id);
		if (*forms[i].after && !ends(id, *len, forms[i].after))
			continue;
		*len -= strlen(forms[i].after);
		return *len ? id : NULL;
	}
	return NULL;
}

/* Whether NAME is that of a systemd unit, which is not a container. */
static bool is_unit(const char *name)
{
	static const char *const kinds[] = { ".slice", ".scope", ".service", ".socket", ".mount", ".swap" };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (ends(name, strlen(name), kinds[i]))
			return true;
	return false;
}

/* --- search --- */

struct search {
	const char *id;
	size_t id_len;
	bool abbreviated; /* `id` may be the start of a longer one */
	char *path; /* of the directory that is searched now: PATH_MAX bytes */
	char *found; /* path of the first match */
	char hits[SHOWN][PATH_MAX]; /* paths of the first matches, for the hint */
	char seen[SHOWN][NAME_SHOWN + 1]; /* other containers */
	size_t n_hits, n_seen;
	size_t cgroups;
	bool cut; /* the search stopped at a limit */
};

static bool fits(const struct search *s, const char *name)
{
	size_t len;
	const char *id = container_id(name, &len);

	if (id && len == s->id_len && memcmp(id, s->id, len) == 0)
		return true;
	if (id && len == CONTAINER_ID_LEN && s->abbreviated && memcmp(id, s->id, s->id_len) == 0)
		return true;
	return !id && strcmp(name, s->id) == 0 && !is_unit(name);
}

/* A cgroup that a container created below its own is not another container. */
static bool is_inside(const struct search *s)
{
	size_t len = s->found ? strlen(s->found) : 0;

	return len && strncmp(s->path, s->found, len) == 0 && s->path[len] == '/';
}

static void note_hit(struct search *s)
{
	if (is_inside(s))
		return;
	if (s->n_hits < SHOWN)
		snprintf(s->hits[s->n_hits], PATH_MAX, "%s", s->path);
	if (!s->n_hits++)
		s->found = strdup(s->path);
}

static void note_other(struct search *s, const char *name)
{
	size_t len, shown;
	const char *id = container_id(name, &len);

	if (!id)
		return;
	shown = len == CONTAINER_ID_LEN ? CONTAINER_ABBREVIATED : MIN(len, NAME_SHOWN);
	for (size_t i = 0; i < MIN(s->n_seen, SHOWN); i++)
		if (strlen(s->seen[i]) == shown && memcmp(s->seen[i], id, shown) == 0)
			return;
	if (s->n_seen < SHOWN)
		snprintf(s->seen[s->n_seen], sizeof(s->seen[0]), "%.*s", (int)shown, id);
	s->n_seen++;
}

static void walk(struct search *s, int dir, dev_t dev, int depth);

static void match_entry(struct search *s, int dir, const char *name, dev_t dev, int depth)
{
	size_t len = strlen(s->path), more = strlen(name);
	struct stat st;
	int fd;

	if (s->cgroups >= CGROUPS_MAX || depth >= DEPTH_MAX || len + more + 2 > PATH_MAX) {
		s->cut = true;
		return;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* gone meanwhile, or not readable */
	if (fd < 0)
		return;
	if (fstat(fd, &st) != 0 || st.st_dev != dev) {
		close(fd);
		return;
	}
	s->cgroups++;
	snprintf(s->path + len, PATH_MAX - len, "/%s", name);
	if (fits(s, name))
		note_hit(s);
	else
		note_other(s, name);
	walk(s, fd, dev, depth + 1);
	s->path[len] = '\0';
}

/* Closes DIR. */
static void walk(struct search *s, int dir, dev_t dev, int depth)
{
	DIR *d = fdopendir(dir);

	if (!d) {
		close(dir);
		return;
	}
	for (struct dirent *de; (de = readdir(d));)
		if (de->d_type == DT_DIR && strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			match_entry(s, dirfd(d), de->d_name, dev, depth);
	closedir(d);
}

struct pass {
	struct search *s;
	bool v2;
	bool searched; /* a hierarchy was searched */
};

static int search_mount(void *ctx, const struct cgroup_mount *m)
{
	struct pass *p = ctx;
	struct stat st;
	int fd;

	/* BPF programs do not see a hierarchy without controllers */
	if (m->v2 != p->v2 || (!m->v2 && !m->controller[0]) || p->s->n_hits || strlen(m->point) >= PATH_MAX)
		return 0;
	fd = open(m->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) != 0) {
		close(fd);
		return 0;
	}
	p->searched = true;
	snprintf(p->s->path, PATH_MAX, "%s", strcmp(m->point, "/") == 0 ? "" : m->point);
	p->s->cgroups = 0;
	walk(p->s, fd, st.st_dev, 0);
	return 0;
}

/* --- the result --- */

static void append(char *to, size_t cap, const char *what, size_t before)
{
	size_t len = strlen(to);

	snprintf(to + len, cap - len, "%s%s", before ? ", " : "", what);
}

static int none(const struct search *s, bool searched, struct err *e)
{
	char list[SHOWN * (NAME_SHOWN + 2) + 1] = "", more[48] = "";

	if (!searched) {
		err_set(e, -ENOENT, "no container '%s': no cgroup file system can be read here", s->id);
		err_hint(e, "mount one: 'mount -t cgroup2 none /sys/fs/cgroup'");
		return -ENOENT;
	}
	err_set(e, -ENOENT, "no container '%s'%s", s->id,
		s->cut ? ", as far as cgroups were searched: there are too many" : "");
	for (size_t i = 0; i < MIN(s->n_seen, SHOWN); i++)
		append(list, sizeof(list), s->seen[i], i);
	if (s->n_seen > SHOWN)
		snprintf(more, sizeof(more), " and others");
	if (s->id_len < CONTAINER_ABBREVIATED && strspn(s->id, digits) == s->id_len)
		err_hint(e, "give %d digits of the id at least%s%s%s", CONTAINER_ABBREVIATED,
			*list ? "; there are: " : "", list, more);
	else if (*list)
		err_hint(e, "there are: %s%s", list, more);
	else
		err_hint(e,
			"no cgroup here has a container's name; --cgroup takes the directory of any cgroup");
	return -ENOENT;
}

static int several(const struct search *s, struct err *e)
{
	char list[512] = "";

	for (size_t i = 0; i < MIN(s->n_hits, SHOWN); i++)
		append(list, sizeof(list), s->hits[i], i);
	err_set(e, -ENOTUNIQ, "'%s' is more than one container: %zu cgroups", s->id, s->n_hits);
	err_hint(e, "give more digits, or one of them with --cgroup: %s", list);
	return -ENOTUNIQ;
}

static int take(const struct search *s, struct cgroup **ret, struct err *e)
{
	int rc;

	if (s->n_hits > 1)
		return several(s, e);
	if (!s->found)
		return err_nomem(e, "the search for a container");
	rc = cgroup_open(s->found, ret, e);
	return rc ? err_prefix(e, "container '%s'", s->id), rc : 0;
}

int container_open(const char *id, struct cgroup **ret, struct err *e)
{
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	_cleanup_free_ char *path = malloc(PATH_MAX);
	struct pass p = { .s = s, .v2 = true };
	int rc;

	if (!s || !path)
		return err_nomem(e, "the search for a container");
	if (!*id || strchr(id, '/'))
		return err_set(e, -EINVAL, "'%s' is not a container id; --cgroup takes a path", id);
	s->id = id;
	s->path = path;
	s->id_len = strlen(id);
	s->abbreviated = s->id_len >= CONTAINER_ABBREVIATED && s->id_len < CONTAINER_ID_LEN &&
			 strspn(id, digits) == s->id_len;
	rc = cgroup_mounts(search_mount, &p, e);
	p.v2 = false;
	if (!rc && !s->n_hits)
		rc = cgroup_mounts(search_mount, &p, e);
	if (!rc)
		rc = s->n_hits ? take(s, ret, e) : none(s, p.searched, e);
	free(s->found);
	return rc;
}
