/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/kmodfile.h"
#include "base/text.h"
#include "elf/elfcode.h"
#include "elf/elfnote.h"
#include "elf/elfrel.h"
#include "elf/elfsection.h"

#include <errno.h>
#include <fcntl.h>

#define MODINFO_MAX (1u << 20)
#define NAME_LEN_MAX 1024 /* the kernel allows 512 */

/* --- the right one --- */

static int check_release(
	const struct elffile *f, const struct elfsection_names *names, const char *release, struct err *e)
{
	static const char key[] = "vermagic=";
	const size_t len = strlen(release);
	struct elfsection s = { 0 };
	bool packed = false;
	const char *p, *end;
	int rc;

	elfsection_find(f, names, ".modinfo", &packed);
	if (packed) /* unpacking is for the sandbox */
		return err_set(e, -EINVAL, "its .modinfo is compressed, as no module's is");
	rc = elfsection_load(f, names, ".modinfo", MODINFO_MAX, &s, e);
	if (rc <= 0)
		return rc;
	p = (const char *)s.bytes;
	end = p + s.len;
	for (rc = 0; p < end; p += strlen(p) + 1) { /* one NUL is behind them */
		if (strncmp(p, key, sizeof(key) - 1) != 0)
			continue;
		p += sizeof(key) - 1;
		if (strncmp(p, release, len) != 0 || (p[len] != ' ' && p[len] != '\0'))
			rc = err_set(e, -EINVAL, "is of release %.*s", (int)strcspn(p, " "), p);
		break;
	}
	elfsection_free(&s);
	return rc;
}

/* The build ID of MODULE as it is loaded; false where that is not to be known. */
static bool loaded_id(const struct root *root, const char *module, struct cap_build_id *ret)
{
	_cleanup_free_ char *notes = NULL;
	char path[256];
	size_t len = 0;
	int n = snprintf(path, sizeof(path), "sys/module/%s/notes/.note.gnu.build-id", module);

	if (!root || strchr(module, '/') || *module == '.' || n < 0 || (size_t)n >= sizeof(path))
		return false;
	return root_read(root, path, ELFNOTE_BYTES_MAX, &notes, &len, NULL) == 0 &&
	       elfnote_build_id(notes, len, 4, ret);
}

static int check_id(
	const struct elffile *f, const struct root *root, const char *module, bool *proven, struct err *e)
{
	char has[2 * CAP_BUILD_ID_MAX + 1], wants[2 * CAP_BUILD_ID_MAX + 1];
	struct cap_build_id id = { 0 };

	*proven = false;
	if (!f->build_id.len || !loaded_id(root, module, &id))
		return 0;
	*proven = id.len == f->build_id.len && memcmp(id.bytes, f->build_id.bytes, id.len) == 0;
	if (*proven)
		return 0;
	text_hex(has, f->build_id.bytes, f->build_id.len);
	text_hex(wants, id.bytes, id.len);
	return err_set(
		e, -EINVAL, "is another build: its build ID is %s, the loaded module's %s", has, wants);
}

static int check_kind(const struct elffile *f, const struct elfsection_names *names, struct err *e)
{
	if (!elfrel_is(f))
		return err_set(e, -EINVAL, "is no kernel module");
	return elfsection_has(f, names, ".debug_info") ? 0 : err_set(e, -ENODATA, "has no debug information");
}

/* --- its functions --- */

static int by_name(const void *a, const void *b)
{
	const struct kmodfile_symbol *x = a, *y = b;
	int c = strcmp(x->k->name, y->k->name);

	return c ? c : CMP(x->k->start, y->k->start);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct kmodfile_symbol *x = a, *y = b;

	return CMP(x->vaddr, y->vaddr);
}

static int by_address(const void *a, const void *b)
{
	const struct kmodfile_symbol *x = a, *y = b;

	return CMP(x->k->start, y->k->start);
}

struct functions {
	const struct elffile *f;
	uint64_t *layout;
	uint8_t *syms, *strings;
	size_t syms_len, strings_len;
	struct kmodfile_symbol *wanted;
	size_t n;
};

/* A function of the file at its laid out address: false for what is none. */
static bool function_at(const struct functions *fs, size_t at, struct elfcode_symbol *y, const char **name)
{
	*y = elfcode_symbol(true, fs->syms + at);
	if (!elfcode_names_code(fs->f, y, fs->strings_len) || y->shndx >= fs->f->n_sections ||
		!fs->layout[y->shndx] || y->value > fs->f->sections[y->shndx].size)
		return false;
	y->value += fs->layout[y->shndx];
	*name = (const char *)fs->strings + y->name;
	return true;
}

/* The first that is wanted under NAME from START on, as they are sorted; NULL = none has that name. */
static struct kmodfile_symbol *find_name(const struct functions *fs, const char *name, uint64_t start)
{
	size_t lo = 0, hi = fs->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strcmp(fs->wanted[mid].k->name, name);

		if (c < 0 || (c == 0 && fs->wanted[mid].k->start < start))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < fs->n && strcmp(fs->wanted[lo].k->name, name) == 0 ? &fs->wanted[lo] : NULL;
}

static void set(struct kmodfile_symbol *s, const struct elfcode_symbol *y)
{
	s->vaddr = y->value;
	s->size = y->size;
	s->section = y->shndx;
}

/* Of several that were recorded under one name none is certain yet. */
static void by_names(struct functions *fs)
{
	struct elfcode_symbol y;
	const char *name;

	for (size_t at = 0; at + sizeof(Elf64_Sym) <= fs->syms_len; at += sizeof(Elf64_Sym)) {
		struct kmodfile_symbol *s = function_at(fs, at, &y, &name) ? find_name(fs, name, 0) : NULL;

		if (!s)
			continue;
		s->times += s->times < 2;
		set(s, &y);
	}
	for (size_t i = 1; i < fs->n; i++)
		if (strcmp(fs->wanted[i].k->name, fs->wanted[i - 1].k->name) == 0)
			fs->wanted[i].times = fs->wanted[i - 1].times = 2;
}

/* By how much each section was moved, as its certain functions say: -EINVAL where they disagree. */
static int find_moves(const struct functions *fs, uint64_t *moves, bool *known, struct err *e)
{
	for (size_t i = 0; i < fs->n; i++) {
		const struct kmodfile_symbol *s = &fs->wanted[i];
		const uint64_t move = s->k->start - s->vaddr;

		if (s->times != 1)
			continue;
		if (known[s->section] && moves[s->section] != move)
			return err_set(e, -EINVAL, "is another build: '%s' was elsewhere", s->k->name);
		known[s->section] = true;
		moves[s->section] = move;
	}
	return 0;
}

/* Of several functions of one name, that which was where the recorded one was. */
static void by_places(struct functions *fs, const uint64_t *moves, const bool *known)
{
	struct elfcode_symbol y;
	const char *name;

	for (size_t at = 0; at + sizeof(Elf64_Sym) <= fs->syms_len; at += sizeof(Elf64_Sym)) {
		struct kmodfile_symbol *s;

		if (!function_at(fs, at, &y, &name) || !known[y.shndx])
			continue;
		s = find_name(fs, name, y.value + moves[y.shndx]);
		if (!s || s->times < 2 || s->k->start != y.value + moves[y.shndx])
			continue;
		set(s, &y);
		s->times = 1;
	}
}

/* Where the next function begins behind each that is certain. */
static void find_ends(struct functions *fs)
{
	struct elfcode_symbol y;
	const char *name;

	qsort(fs->wanted, fs->n, sizeof(*fs->wanted), by_vaddr);
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= fs->syms_len; at += sizeof(Elf64_Sym)) {
		size_t lo = 0, hi = fs->n;

		if (!function_at(fs, at, &y, &name) || y.type != STT_FUNC)
			continue;
		while (lo < hi) { /* behind the last one below it */
			size_t mid = lo + (hi - lo) / 2;

			if (fs->wanted[mid].vaddr < y.value)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo && fs->wanted[lo - 1].section == y.shndx)
			fs->wanted[lo - 1].next = MIN(fs->wanted[lo - 1].next, y.value);
	}
}

/* The kernel knows all functions of a module, so none reaches beyond the next one. */
static int check_ends(const struct functions *fs, struct err *e)
{
	for (size_t i = 0; i < fs->n; i++) {
		const struct kmodfile_symbol *s = &fs->wanted[i];
		const uint64_t room = s->k->end - s->k->start;

		if (s->times == 1 && (s->size > room || room > s->next - s->vaddr))
			return err_set(e, -EINVAL, "is another build: '%s' was not as long", s->k->name);
	}
	return 0;
}

static int match(struct functions *fs, struct err *e)
{
	_cleanup_free_ uint64_t *moves = calloc(fs->f->n_sections + 1, sizeof(*moves));
	_cleanup_free_ bool *known = calloc(fs->f->n_sections + 1, sizeof(*known));
	int rc;

	if (!moves || !known)
		return err_nomem(e, "sections");
	qsort(fs->wanted, fs->n, sizeof(*fs->wanted), by_name);
	by_names(fs);
	rc = find_moves(fs, moves, known, e);
	if (rc)
		return rc;
	by_places(fs, moves, known);
	find_ends(fs);
	return check_ends(fs, e);
}

static int load_functions(struct functions *fs, struct err *e)
{
	struct elfcode code;
	int rc = elfcode_open(fs->f, &code, e);
	const struct elfcode_table *t = &code.tables[0];

	elfcode_spans_free(&code.spans);
	if (rc == 0 && (!fs->f->is64 || !t->syms))
		rc = err_set(e, -EINVAL, "has no symbols");
	rc = rc ? rc : elffile_read(fs->f, t->syms, &fs->syms, &fs->syms_len, e);
	rc = rc ? rc : elffile_read(fs->f, t->strings, &fs->strings, &fs->strings_len, e);
	return rc ? rc : elfrel_layout(fs->f, &fs->layout, e);
}

/* S is set to those of F that are recorded. */
static int find_functions(const struct elffile *f, struct kmodfile_symbol *s, size_t n, struct err *e)
{
	struct functions fs = { .f = f, .wanted = s, .n = n };
	int rc = load_functions(&fs, e);

	rc = rc ? rc : match(&fs, e);
	if (n)
		qsort(s, n, sizeof(*s), by_address);
	free(fs.layout);
	free(fs.syms);
	free(fs.strings);
	return rc;
}

/* --- the places --- */

struct search {
	const struct kmodfile_opts *o;
	const char *module;
	const struct cap_ksym *const *ksyms;
	size_t n;
	struct kmodfile *ret;
};

static int examine(const struct search *s, const struct elffile *f, struct kmodfile *to, struct err *e)
{
	struct elfsection_names names;
	int rc = elfsection_names(f, &names, e);

	rc = rc ? rc : check_kind(f, &names, e);
	rc = rc ? rc : check_release(f, &names, s->o->release, e);
	elfsection_names_free(&names);
	rc = rc ? rc : check_id(f, s->o->root, s->module, &to->proven, e);
	if (rc)
		return rc;
	to->symbols = calloc(s->n + 1, sizeof(*to->symbols));
	if (!to->symbols)
		return err_nomem(e, "functions");
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->ksyms[i]->name) <= NAME_LEN_MAX)
			to->symbols[to->n++] =
				(struct kmodfile_symbol){ .k = s->ksyms[i], .next = UINT64_MAX };
	return find_functions(f, to->symbols, to->n, e);
}

static int open_it(const struct search *s, const struct kmodtree_file *c, struct elffile **ret, struct err *e)
{
	if (c->packed)
		return err_set(e, -EOPNOTSUPP, "is compressed, which is not read");
	return c->in_symfs ? elffile_open(s->o->symfs, c->path, true, ret, e)
			   : elffile_open(AT_FDCWD, c->path, false, ret, e);
}

static int try(const struct search *s, const struct kmodtree_file *c, struct kmodfile *to, struct err *e)
{
	int rc = open_it(s, c, &to->file, e);

	rc = rc ? rc : examine(s, to->file, to, e);
	snprintf(to->where, sizeof(to->where), "%s", c->path);
	if (rc) {
		err_prefix(e, "'%s'", c->path);
		kmodfile_close(to);
	}
	return rc;
}

static void miss(struct kmodfile *ret, const char *why)
{
	if (!ret->missed[0])
		snprintf(ret->missed, sizeof(ret->missed), "%.*s", (int)sizeof(ret->missed) - 1, why);
}

/* The N files of one place: 1 where one fits, 0 where none does, or more than one, for who would know which.
 */
static int try_place(struct search *s, const struct kmodtree_file *files, size_t n, bool *many, struct err *e)
{
	int found = 0;

	for (size_t i = 0; i < n && !*many; i++) {
		struct kmodfile f = { 0 };
		struct err mine = { 0 };
		int rc = try(s, &files[i], &f, &mine);

		if (rc == -ENOMEM)
			return err_nomem(e, "kernel modules");
		if (rc)
			miss(s->ret, mine.msg);
		*many = rc == 0 && found && !f.proven && !s->ret->proven;
		if (rc == 0 && (!found || (f.proven && !s->ret->proven))) {
			memcpy(f.missed, s->ret->missed, sizeof(f.missed));
			kmodfile_close(s->ret);
			*s->ret = f;
			found = 1;
		} else {
			kmodfile_close(&f);
		}
	}
	return found;
}

int kmodfile_find(const struct kmodfile_opts *o, const char *module, const struct cap_ksym *const *ksyms,
	size_t n, struct kmodfile *ret, struct err *e)
{
	struct search s = { .o = o, .module = module, .ksyms = ksyms, .n = n, .ret = ret };
	size_t left;
	const struct kmodtree_file *c = kmodtree_find(o->tree, module, &left);
	bool many = false;
	int rc = 0;

	*ret = (struct kmodfile){ 0 };
	while (left && rc == 0 && !many) {
		size_t same = 1;

		while (same < left && c[same].place == c->place)
			same++;
		rc = try_place(&s, c, same, &many, e);
		c += same;
		left -= same;
	}
	if (many) {
		kmodfile_close(ret);
		miss(ret, "there is more than one that could be it");
	} else if (rc > 0) {
		ret->missed[0] = '\0';
	}
	return MIN(rc, 0);
}

void kmodfile_close(struct kmodfile *f)
{
	elffile_close(f->file);
	free(f->symbols);
	*f = (struct kmodfile){ 0 };
}

bool kmodfile_vaddr(const struct kmodfile *f, uint64_t addr, uint64_t *vaddr)
{
	size_t lo = 0, hi = f->n;
	const struct kmodfile_symbol *s;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->symbols[mid].k->start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	s = lo ? &f->symbols[lo - 1] : NULL;
	if (!s || s->times != 1 || addr - s->k->start >= s->size)
		return false;
	*vaddr = s->vaddr + (addr - s->k->start);
	return true;
}
