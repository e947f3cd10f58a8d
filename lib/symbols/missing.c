/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/missing.h"

#include <errno.h>
#include <string.h>

/* Is PATH where packages install, and not an administrator? */
static bool is_of_package(const char *path)
{
	static const char *const folders[] = { "/usr/", "/lib", "/bin/", "/sbin/" };

	if (strncmp(path, "/usr/local/", 11) == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (strncmp(path, folders[i], strlen(folders[i])) == 0)
			return true;
	return false;
}

static bool would_help(const struct cap_reader *c, const struct resolve *r, uint32_t file)
{
	const struct cap_file *f = &c->files[file];
	struct modules_file m;

	return f->build_id.len && is_of_package(f->path) && resolve_file(r, file, &m) && !m.problem &&
	       !m.debug && m.stripped;
}

/* Insert FILE with N frames among those with most. */
static void rank(struct missing_names *m, const char *path, uint64_t n)
{
	size_t i = m->n_files < MISSING_FILES_MAX ? m->n_files++ : MISSING_FILES_MAX - 1;

	if (i == MISSING_FILES_MAX - 1 && m->unnamed_in[i] >= n)
		return;
	for (; i && m->unnamed_in[i - 1] < n; i--) {
		m->files[i] = m->files[i - 1];
		m->unnamed_in[i] = m->unnamed_in[i - 1];
	}
	m->files[i] = path;
	m->unnamed_in[i] = n;
}

int missing_names_count(
	const struct cap_reader *c, const struct resolve *r, const uint64_t *times, struct missing_names *ret)
{
	_cleanup_free_ uint64_t *unnamed = calloc(c->n_files + 1, sizeof(*unnamed));

	*ret = (struct missing_names){ 0 };
	if (!unnamed)
		return -ENOMEM;
	for (uint32_t i = 0; i < resolve_count(r); i++) {
		const struct frame *f = resolve_frame(r, i);

		if (!f->in_file)
			continue;
		ret->frames += times[i];
		unnamed[f->in] += f->name ? 0 : times[i];
	}
	for (uint32_t i = 0; i < c->n_files; i++) {
		if (!unnamed[i] || !would_help(c, r, i))
			continue;
		ret->unnamed += unnamed[i];
		rank(ret, c->files[i].path, unnamed[i]);
	}
	return 0;
}

bool missing_names_many(const struct missing_names *m)
{
	return m->unnamed >= MISSING_FRAMES_MIN && m->unnamed * 20 >= m->frames;
}
