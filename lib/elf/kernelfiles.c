/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/kernelfiles.h"
#include "base/search.h"
#include "base/text.h"
#include "elf/reloc.h"
#include "elf/section.h"
#include "elf/symbols.h"

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

struct search_tree {
	struct kmodtree *t;
	bool in_symfs;
	unsigned int place;
	char path[PATH_MAX];
	size_t len;
	/* to search only one of them if /lib is /usr/lib */
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

/* Store the module name for FILE in new memory. Returns 1, 0 if it is not a module file, or -ENOMEM. */
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

/* Add the file at S's path, whose last component is NAME. */
static int add(struct search_tree *s, const char *name)
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

/* Search the directory FD at S's path. Closes FD. A directory that cannot be read is treated as empty. */
static int walk(struct search_tree *s, int fd, unsigned int depth)
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

static int search_below(struct search_tree *s, int symfs, const char *dir, const char *release)
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

static int search(struct search_tree *s, const struct kmodtree_opts *o, int symfs, const char *release)
{
	int rc = 0;

	s->in_symfs = symfs >= 0;
	for (size_t i = 0; i < o->n_dirs && rc == 0; i++)
		rc = search_below(s, symfs, o->dirs[i], release);
	rc = rc ? rc : search_below(s, symfs, DEBUG_DIR, release);
	return rc ? rc : search_below(s, symfs, "", release);
}

static int by_file_name(const void *a, const void *b)
{
	const struct kmodtree_file *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	c = c ? c : CMP(x->place, y->place);
	return c ? c : strcmp(x->path, y->path);
}

int kmodtree_load(const struct kmodtree_opts *o, const char *release, struct kmodtree *ret, struct err *e)
{
	struct search_tree s = { .t = ret };
	int rc = 0;

	*ret = (struct kmodtree){ 0 };
	if (!release || !*release || *release == '.' || strchr(release, '/') || strlen(release) > NAME_MAX)
		return 0;
	if (o->symfs >= 0)
		rc = search(&s, o, o->symfs, release);
	rc = rc ? rc : search(&s, o, -1, release);
	if (rc) {
		kmodtree_free(ret);
		return err_nomem(e, "kernel modules");
	}
	if (ret->n)
		qsort(ret->files, ret->n, sizeof(*ret->files), by_file_name);
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
	size_t lo = PARTITION_POINT(0, t->n, mid, strcmp(t->files[mid].name, module) < 0);

	*n = 0;
	while (lo + *n < t->n && strcmp(t->files[lo + *n].name, module) == 0)
		++*n;
	return *n ? &t->files[lo] : NULL;
}

#define MODINFO_MAX (1u << 20)
#define NAME_LEN_MAX 1024 /* the kernel allows 512 */

/* --- checks of a module file --- */

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
	if (packed) /* only the sandbox decompresses */
		return err_set(e, -EINVAL, "its .modinfo is compressed, as no module's is");
	rc = elfsection_load(f, names, ".modinfo", MODINFO_MAX, &s, e);
	if (rc <= 0)
		return rc;
	p = (const char *)s.bytes;
	end = p + s.len;
	for (rc = 0; p < end; p += strlen(p) + 1) { /* one NUL follows the bytes */
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

/* The build ID of the loaded MODULE; false if it is not known. */
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

static int check_module_id(
	const struct elffile *f, const struct root *root, const char *module, bool *proven, struct err *e)
{
	char has[2 * CAPTURE_BUILD_ID_MAX + 1], wants[2 * CAPTURE_BUILD_ID_MAX + 1];
	struct cap_build_id id = { 0 };

	*proven = false;
	if (!f->build_id.len || !loaded_id(root, module, &id))
		return 0;
	*proven = cap_build_id_same(&id, &f->build_id);
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
		return err_set(e, -EINVAL, "is not a kernel module");
	return elfsection_has(f, names, ".debug_info") ? 0 : err_set(e, -ENODATA, "has no debug information");
}

/* --- its functions --- */

static int by_symbol_name(const void *a, const void *b)
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

/* The function of the symbol at offset AT, at its assigned address; false if it is not a function. */
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

static int name_cmp(const struct cap_ksym *k, const char *name, uint64_t start)
{
	int c = strcmp(k->name, name);

	return c ? c : CMP(k->start, start);
}

/* The first recorded function NAME at START or above, in sort order; NULL = none. */
static struct kmodfile_symbol *find_name(const struct functions *fs, const char *name, uint64_t start)
{
	size_t lo = PARTITION_POINT(0, fs->n, mid, name_cmp(fs->wanted[mid].k, name, start) < 0);

	return lo < fs->n && strcmp(fs->wanted[lo].k->name, name) == 0 ? &fs->wanted[lo] : NULL;
}

static void set(struct kmodfile_symbol *s, const struct elfcode_symbol *y)
{
	s->vaddr = y->value;
	s->size = y->size;
	s->section = y->shndx;
}

/* Find the functions by name. If several were recorded under one name, none of them is certain yet. */
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

/* Compute by how much each section was moved, from its certain functions. -EINVAL if they disagree. */
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

/* Of several functions with one name, select the one that is where the recorded one was. */
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

/* Find where the next function begins behind each certain one. */
static void find_ends(struct functions *fs)
{
	struct elfcode_symbol y;
	const char *name;

	qsort(fs->wanted, fs->n, sizeof(*fs->wanted), by_vaddr);
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= fs->syms_len; at += sizeof(Elf64_Sym)) {
		size_t lo;

		if (!function_at(fs, at, &y, &name) || y.type != STT_FUNC)
			continue;
		lo = PARTITION_POINT(0, fs->n, mid, fs->wanted[mid].vaddr < y.value);
		if (lo && fs->wanted[lo - 1].section == y.shndx)
			fs->wanted[lo - 1].next = MIN(fs->wanted[lo - 1].next, y.value);
	}
}

/* The kernel knows all functions of a module, so none extends beyond the next one. */
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
	qsort(fs->wanted, fs->n, sizeof(*fs->wanted), by_symbol_name);
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

/* Set S to the functions of F that were recorded. */
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

/* --- the places of a module --- */

struct search_module {
	const struct kmodfile_opts *o;
	const char *module;
	const struct cap_ksym *const *ksyms;
	size_t n;
	struct kmodfile *ret;
};

static int examine(const struct search_module *s, const struct elffile *f, struct kmodfile *to, struct err *e)
{
	struct elfsection_names names;
	int rc = elfsection_names(f, &names, e);

	rc = rc ? rc : check_kind(f, &names, e);
	rc = rc ? rc : check_release(f, &names, s->o->release, e);
	elfsection_names_free(&names);
	rc = rc ? rc : check_module_id(f, s->o->root, s->module, &to->proven, e);
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

static int open_it(
	const struct search_module *s, const struct kmodtree_file *c, struct elffile **ret, struct err *e)
{
	if (c->packed)
		return err_set(e, -EOPNOTSUPP, "is compressed, which is not read");
	return c->in_symfs ? elffile_open(s->o->symfs, c->path, true, ret, e)
			   : elffile_open(AT_FDCWD, c->path, false, ret, e);
}

static int try_module(
	const struct search_module *s, const struct kmodtree_file *c, struct kmodfile *to, struct err *e)
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

/*
 * Try the N files of one place. Returns 1 if one fits, 0 if none does, or
 * -ENOMEM. Sets *MANY if more than one fits and no build ID proves which one is
 * right.
 */
static int try_place(
	struct search_module *s, const struct kmodtree_file *files, size_t n, bool *many, struct err *e)
{
	int found = 0;

	for (size_t i = 0; i < n && !*many; i++) {
		struct kmodfile f = { 0 };
		struct err mine = { 0 };
		int rc = try_module(s, &files[i], &f, &mine);

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
	struct search_module s = { .o = o, .module = module, .ksyms = ksyms, .n = n, .ret = ret };
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
	size_t lo;
	const struct kmodfile_symbol *s;

	lo = PARTITION_POINT(0, f->n, mid, f->symbols[mid].k->start <= addr);
	s = lo ? &f->symbols[lo - 1] : NULL;
	if (!s || s->times != 1 || addr - s->k->start >= s->size)
		return false;
	*vaddr = s->vaddr + (addr - s->k->start);
	return true;
}

static const char *const places[] = {
	DEBUG_DIR "/boot/vmlinux-%s",
	DEBUG_DIR "/lib/modules/%s/vmlinux",
	DEBUG_DIR "/usr/lib/modules/%s/vmlinux",
	"/lib/modules/%s/build/vmlinux",
	"/lib/modules/%s/vmlinux",
	"/boot/vmlinux-%s",
};

/* --- the link address --- */

/* Find the symbol NAME in .symtab. Returns 1 and sets *RET to its value, or 0 if there is none. */
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

/* --- checks of a vmlinux --- */

static int check_vmlinux_id(const struct elffile *f, const struct cap_host *host, struct err *e)
{
	char has[2 * CAPTURE_BUILD_ID_MAX + 1] = "none", wants[2 * CAPTURE_BUILD_ID_MAX + 1];

	if (cap_build_id_same(&f->build_id, &host->kernel_build_id))
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

	rc = rc ? rc : check_vmlinux_id(f, host, e);
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

/* --- the places of a vmlinux --- */

struct search_vmlinux {
	const struct vmlinux_opts *o;
	const struct cap_host *host;
	struct vmlinux *v;
};

/* Try PATH under symfs, then on this machine. Keeps the reason why the first existing file was not used. */
static bool try_vmlinux(struct search_vmlinux *s, const char *path)
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

static bool by_build_id(struct search_vmlinux *s)
{
	const struct cap_build_id *id = &s->host->kernel_build_id;
	char hex[2 * CAPTURE_BUILD_ID_MAX + 1], path[PATH_MAX];

	text_hex(hex, id->bytes, id->len);
	for (size_t i = 0; i <= s->o->n_dirs; i++) {
		const char *dir = i < s->o->n_dirs ? s->o->dirs[i] : DEBUG_DIR;
		int n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", dir, hex, hex + 2);

		if (n > 0 && (size_t)n < sizeof(path) && try_vmlinux(s, path))
			return true;
	}
	return false;
}

/* The release comes from the capture: a slash in it would lead elsewhere. */
static bool by_release(struct search_vmlinux *s)
{
	const char *release = s->host->release;
	char path[PATH_MAX];

	if (!release || !*release || strchr(release, '/') || strlen(release) > NAME_MAX)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t before = (size_t)(strchr(places[i], '%') - places[i]);

		snprintf(path, sizeof(path), "%.*s%s%s", (int)before, places[i], release,
			places[i] + before + 2);
		if (try_vmlinux(s, path))
			return true;
	}
	return false;
}

/* Check that the capture has what is needed to verify a file. */
static int check_host(const struct cap_host *host, struct err *e)
{
	if (host->kernel_build_id.len < 2)
		return err_set(e, -EINVAL, "the capture does not have the build ID of its kernel");
	if (!host->stext)
		return err_set(e, -EINVAL,
			"the capture does not have the address of its kernel: kernel.kptr_restrict hid it");
	return 0;
}

int vmlinux_find(
	const struct vmlinux_opts *o, const struct cap_host *host, struct vmlinux *ret, struct err *e)
{
	struct search_vmlinux s = { o, host, ret };
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
