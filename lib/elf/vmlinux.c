/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/vmlinux.h"

#include "base/text.h"
#include "elf/elfcode.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define DEBUG_DIR "/usr/lib/debug"

static const char *const places[] = {
	DEBUG_DIR "/boot/vmlinux-%s",
	DEBUG_DIR "/lib/modules/%s/vmlinux",
	DEBUG_DIR "/usr/lib/modules/%s/vmlinux",
	"/lib/modules/%s/build/vmlinux",
	"/lib/modules/%s/vmlinux",
	"/boot/vmlinux-%s",
};

/* --- where it was linked to --- */

/* The value of the symbol NAME in .symtab; 1 and *RET, 0 when there is none. */
static int find_symbol(const struct elffile *f, const char *name, uint64_t *ret, struct err *e)
{
	_cleanup_free_ uint8_t *syms = NULL, *strings = NULL;
	const size_t size = elfcode_symbol_size(f->is64), name_size = strlen(name) + 1;
	struct elfcode code = { 0 };
	size_t len = 0, strings_len = 0;
	int rc = elfcode_open(f, &code, e);

	elfcode_spans_free(&code.spans);
	if (rc || !code.tables[0].n)
		return rc;
	rc = elffile_read(f, code.tables[0].syms, &syms, &len, e);
	rc = rc ? rc : elffile_read(f, code.tables[0].strings, &strings, &strings_len, e);
	if (rc)
		return err_prefix(e, "its symbols"), rc;
	for (size_t at = 0; at + size <= len; at += size) {
		struct elfcode_symbol y = elfcode_symbol(f->is64, syms + at);

		if (y.shndx == SHN_UNDEF || y.name >= strings_len || strings_len - y.name < name_size ||
			memcmp(strings + y.name, name, name_size) != 0)
			continue;
		*ret = y.value;
		return 1;
	}
	return 0;
}

static int find_slide(const struct elffile *f, const struct cap_host *host, uint64_t *ret, struct err *e)
{
	uint64_t stext = 0;
	int rc = find_symbol(f, "_stext", &stext, e);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, -EINVAL, "has no symbol _stext, so where the kernel was is not known");
	*ret = host->stext - stext;
	return 0;
}

/* --- the right one --- */

static bool same_id(const struct cap_build_id *a, const struct cap_build_id *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static int check_id(const struct elffile *f, const struct cap_host *host, struct err *e)
{
	char has[2 * CAP_BUILD_ID_MAX + 1] = "none", wants[2 * CAP_BUILD_ID_MAX + 1];

	if (same_id(&f->build_id, &host->kernel_build_id))
		return 0;
	if (f->build_id.len)
		text_hex(has, f->build_id.bytes, f->build_id.len);
	text_hex(wants, host->kernel_build_id.bytes, host->kernel_build_id.len);
	return err_set(
		e, -EINVAL, "is another kernel's: its build ID is %s, the recorded one %s", has, wants);
}

static int take(const char *path, int symfs, const struct cap_host *host, struct vmlinux *v, struct err *e)
{
	struct elffile *f = NULL;
	int rc = symfs >= 0 ? elffile_open(symfs, path, true, &f, e)
			    : elffile_open(AT_FDCWD, path, false, &f, e);

	rc = rc ? rc : check_id(f, host, e);
	rc = rc ? rc : find_slide(f, host, &v->slide, e);
	if (rc) {
		err_prefix(e, "'%s'", path);
		elffile_close(f);
		return rc;
	}
	v->file = f;
	snprintf(v->where, sizeof(v->where), "%s", path);
	return 0;
}

/* --- the places --- */

struct search {
	const struct vmlinux_opts *o;
	const struct cap_host *host;
	struct vmlinux *v;
};

/* Under symfs, then on this machine; the first that was there and is not used is told. */
static bool try(struct search *s, const char *path)
{
	for (int round = s->o->symfs >= 0 ? 0 : 1; round < 2; round++) {
		struct err e = { 0 };
		int rc = take(path, round == 0 ? s->o->symfs : -1, s->host, s->v, &e);

		if (rc == 0)
			return true;
		if (rc != -ENOENT && rc != -ENOTDIR && !s->v->missed[0])
			snprintf(s->v->missed, sizeof(s->v->missed), "%.*s", (int)sizeof(s->v->missed) - 1,
				e.msg);
	}
	return false;
}

static bool by_build_id(struct search *s)
{
	const struct cap_build_id *id = &s->host->kernel_build_id;
	char hex[2 * CAP_BUILD_ID_MAX + 1], path[PATH_MAX];

	text_hex(hex, id->bytes, id->len);
	for (size_t i = 0; i <= s->o->n_dirs; i++) {
		const char *dir = i < s->o->n_dirs ? s->o->dirs[i] : DEBUG_DIR;
		int n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2);

		if (n > 0 && (size_t)n < sizeof(path) && try(s, path))
			return true;
	}
	return false;
}

/* The release is of the capture: one with a slash would lead elsewhere. */
static bool by_release(struct search *s)
{
	const char *release = s->host->release;
	char path[PATH_MAX];

	if (!release || !*release || strchr(release, '/') || strlen(release) > NAME_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t before = (size_t)(strchr(places[i], '%') - places[i]);

		snprintf(path, sizeof(path), "%.*s%s%s", (int)before, places[i], release,
			places[i] + before + 2);
		if (try(s, path))
			return true;
	}
	return false;
}

/* What the capture has to tell before any file can be believed. */
static int check_host(const struct cap_host *host, struct err *e)
{
	if (host->kernel_build_id.len < 2)
		return err_set(e, -EINVAL, "the capture does not tell the build ID of its kernel");
	if (!host->stext)
		return err_set(e, -EINVAL,
			"the capture does not tell where its kernel was: kernel.kptr_restrict hid it");
	return 0;
}

int vmlinux_find(
	const struct vmlinux_opts *o, const struct cap_host *host, struct vmlinux *ret, struct err *e)
{
	struct search s = { o, host, ret };
	struct err why = { 0 };
	int rc;

	*ret = (struct vmlinux){ 0 };
	rc = check_host(host, &why);
	if (rc && o->file)
		return err_set(e, rc, "'%s' cannot be used: %s", o->file, why.msg);
	if (rc) {
		snprintf(ret->missed, sizeof(ret->missed), "%.*s", (int)sizeof(ret->missed) - 1, why.msg);
		return 0;
	}
	if (o->file)
		return take(o->file, -1, host, ret, e);
	if (by_build_id(&s) || by_release(&s))
		ret->missed[0] = '\0';
	return 0;
}

void vmlinux_close(struct vmlinux *v)
{
	elffile_close(v->file);
	*v = (struct vmlinux){ 0 };
}

bool vmlinux_vaddr(const struct vmlinux *v, uint64_t addr, uint64_t *vaddr)
{
	const uint64_t at = addr - v->slide;

	if (!v->file)
		return false;
	for (size_t i = 0; i < v->file->n_loads; i++) {
		const struct elffile_load *l = &v->file->loads[i];

		if (l->exec && at >= l->vaddr && at - l->vaddr < l->memsz) {
			*vaddr = at;
			return true;
		}
	}
	return false;
}
