/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/files.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/intern.h"
#include "base/text.h"
#include "elf/kernelfiles.h"
#include "symbols/cache.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* A request to name the byte at OFFSET of a file, for frame number FRAME. */
struct place_request {
	uint64_t offset, vaddr; /* VADDR: the same byte as an address of the file */
	uint32_t file, frame;
	bool lost; /* no segment of the file holds it, so VADDR is not set */
};

/* Keeps the answers, because frames point to their strings. Zero it. */
struct kept_answers {
	void **kept;
	size_t n, cap;
};

/* An answer with its frames. */
struct file_answer {
	struct sym_answer a;
	struct frame_call *calls; /* of all addresses; NULL = there is no answer */
	const char *lost; /* why an address is not in the file; NULL = no segment holds it */
};

static const char no_load[] = "no segment of the file holds this address";

static unsigned int digit(const struct place_request *a, unsigned int k)
{
	return (unsigned int)(k < 8 ? a->offset >> 8 * k : (uint64_t)a->file >> 8 * (k - 8)) & 255;
}

/* One pass of a radix sort. False if all have the same digit: then it only counts. */
static bool scatter(const struct place_request *from, struct place_request *to, size_t n, unsigned int k)
{
	size_t at[257] = { 0 };

	for (size_t i = 0; i < n; i++)
		at[digit(&from[i], k) + 1]++;
	if (at[digit(&from[0], k) + 1] == n)
		return false;
	for (size_t b = 1; b < 257; b++)
		at[b] += at[b - 1];
	for (size_t i = 0; i < n; i++)
		to[at[digit(&from[i], k)]++] = from[i];
	return true;
}

/* Sort by file, then offset; stable. 0 or -ENOMEM. O(n). */
static int sort_requests(struct place_request *requests, size_t n)
{
	_cleanup_free_ struct place_request *room = malloc((n + 1) * sizeof(*room));
	struct place_request *from = requests, *to = room;

	if (!room)
		return -ENOMEM;
	for (unsigned int k = 0; k < 12 && n; k++) {
		struct place_request *full = to;

		if (!scatter(from, to, n, k))
			continue;
		to = from;
		from = full;
	}
	if (from != requests)
		memcpy(requests, from, n * sizeof(*requests));
	return 0;
}

/* Free P with H, or now on failure. */
static int keep(struct kept_answers *h, void *p)
{
	if (p && base_grow(&h->kept, &h->cap, h->n + 1, sizeof(*h->kept)) == 0) {
		h->kept[h->n++] = p;
		return 0;
	}
	free(p);
	return -ENOMEM;
}

static void kept_answers_free(struct kept_answers *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->kept[i]);
	free(h->kept);
	*h = (struct kept_answers){ 0 };
}

/* Convert the frames of an answer: offsets become pointers. */
static void set_calls(const struct sym_answer *a, struct frame_call *calls)
{
	for (uint32_t i = 0; i < a->head->n_frames; i++) {
		const struct sym_answer_frame *f = &a->frames[i];

		calls[i] = (struct frame_call){ .name = sym_answer_text(a, f->name),
			.linkage = sym_answer_text(a, f->linkage),
			.file = sym_answer_text(a, f->file),
			.line = f->line,
			.column = f->column };
	}
}

/* Take BYTES, which are checked (A). H owns them from here on, even on failure. 0 or -ENOMEM. */
static int take_answer_bytes(
	struct kept_answers *h, uint8_t *bytes, const struct sym_answer *a, struct file_answer *ret)
{
	struct frame_call *calls;

	*ret = (struct file_answer){ 0 };
	if (keep(h, bytes) != 0)
		return -ENOMEM;
	calls = malloc((a->head->n_frames + (size_t)1) * sizeof(*calls));
	if (keep(h, calls) != 0)
		return -ENOMEM;
	set_calls(a, calls);
	*ret = (struct file_answer){ .a = *a, .calls = calls };
	return 0;
}

/* What C stored for FILE; an empty answer if it stored nothing. 0 or -ENOMEM. */
static int stored_answer(struct kept_answers *h, const struct cap_reader *c, uint32_t file,
	const struct storednames_opts *o, struct file_answer *ret, struct err *e)
{
	struct sym_answer a;
	uint8_t *bytes;
	size_t len;
	int rc;

	*ret = (struct file_answer){ 0 };
	if (!storednames_any(c, file))
		return 0;
	rc = storednames_answer(c, file, o, &bytes, &len, e);
	if (rc)
		return rc;
	if (sym_answer_view(bytes, len, &a, NULL) != 0) {
		free(bytes);
		return 0;
	}
	return take_answer_bytes(h, bytes, &a, ret) ? err_nomem(e, "stored names") : 0;
}

static int knowledge(const struct sym_answer_addr *a)
{
	return !a || a->source == SYM_NONE ? 0 : a->source == SYM_FDE ? 1 : a->debug ? 3 : 2;
}

/* Does B, which was stored, know more about an address than A, which was read? */
static bool knows_more(const struct sym_answer_addr *b, const struct sym_answer_addr *a)
{
	return knowledge(b) > knowledge(a);
}

/*
 * Report each of N requests to SINK: from READ if it knows the address, or from STORED if that
 * knows more. WHY is the reason if neither does and READ is empty.
 */
static void report_requests(const struct cap_reader *c, const struct place_request *requests, size_t n,
	const struct file_answer *read, const struct file_answer *stored, const char *why, modules_sink *sink,
	void *ctx)
{
	const struct sym_answer_addr *x = read->calls ? read->a.addrs : NULL;
	const struct sym_answer_addr *end = x ? x + read->a.head->n_addrs : NULL;
	const char *lost = !x ? why : read->lost ? read->lost : no_load;

	for (size_t i = 0; i < n; i++) {
		const struct place_request *request = &requests[i];
		struct modules_hit hit = {
			.offset = request->offset, .vaddr = request->offset, .reason = lost
		};
		const struct sym_answer_addr *s;
		const struct cap_name *name;

		if (x && !request->lost) { /* both are in order */
			while (x < end && x->vaddr < request->vaddr)
				x++;
			hit.addr = x < end && x->vaddr == request->vaddr ? x : NULL;
			hit.vaddr = request->vaddr;
			hit.located = true;
		}
		s = stored->calls ? sym_answer_find(&stored->a, request->offset) : NULL;
		if (s && !x && (name = cap_reader_name(c, request->file, request->offset)))
			hit.vaddr = name->vaddr, hit.located = true;
		hit.stored = knows_more(s, hit.addr);
		if (hit.stored)
			hit.addr = s;
		if (hit.addr) {
			hit.calls = (hit.stored ? stored : read)->calls + hit.addr->first;
			hit.reason = sym_answer_reason_text(hit.addr->reason);
		}
		sink(ctx, request->frame, &hit);
	}
}

DEFINE_CLEANUP(struct elffile *, elffile_close);

static bool is_boot_id(const char *boot_id)
{
	struct root r = { .fd = -1 };
	char line[64] = "";

	if (root_open(NULL, &r, NULL) != 0)
		return false;
	root_line(&r, "proc/sys/kernel/random/boot_id", line, sizeof(line), NULL);
	root_close(&r);
	return *line && strcmp(line, boot_id) == 0;
}

int sym_file_init(struct sym_file *s, const char *symfs, const char *boot_id, struct err *e)
{
	s->symfs = -1;
	s->same_boot = boot_id && is_boot_id(boot_id);
	if (!symfs)
		return 0;
	s->symfs = open(symfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->symfs < 0)
		return err_sys(e, -errno, "cannot open the directory '%s'", symfs);
	return 0;
}

void sym_file_close(struct sym_file *s)
{
	if (s->symfs >= 0)
		close(s->symfs);
	s->symfs = -1;
}

/* Is F the file that was mapped? */
static int prove(const struct elffile *f, const struct cap_file *file, struct err *e)
{
	char was[2 * CAPTURE_BUILD_ID_MAX + 1], is[2 * CAPTURE_BUILD_ID_MAX + 1];

	if (file->build_id.len) {
		if (cap_build_id_same(&file->build_id, &f->build_id))
			return 0;
		text_hex(was, file->build_id.bytes, MIN(file->build_id.len, CAPTURE_BUILD_ID_MAX));
		text_hex(is, f->build_id.bytes, f->build_id.len);
		if (!*is)
			return err_set(e, -ESTALE,
				"is another file: build ID %s is recorded, this one has none", was);
		return err_set(
			e, -ESTALE, "is another file: build ID %s is recorded, this one has %s", was, is);
	}
	if (!file->size || !file->mtime_ns)
		return err_set(e, -ESTALE, "cannot be proven: no build ID, size and time are recorded");
	if (file->size != f->size)
		return err_set(e, -ESTALE,
			"is another file: it has no build ID recorded, and another size (%llu, was %llu)",
			(unsigned long long)f->size, (unsigned long long)file->size);
	if (file->mtime_ns != f->mtime_ns)
		return err_set(e, -ESTALE,
			"is another file: it has no build ID recorded, and was modified at another time");
	return 0;
}

/* How much a failure says: the heaviest one is reported. */
static int weight(int code)
{
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return 1;
	case -EACCES:
	case -EPERM:
		return 2;
	case -ESTALE:
		return 4;
	default:
		return 3;
	}
}

static int try_place(int dirfd, const char *path, bool in_root, const struct cap_file *file,
	struct elffile **ret, struct err *worst)
{
	CLEANUP(elffile_close_p) struct elffile *f = NULL;
	struct err e = { 0 };
	int rc = elffile_open(dirfd, path, in_root, &f, &e);

	rc = rc ? rc : prove(f, file, &e);
	if (rc == 0) {
		*ret = TAKE_PTR(f);
		return 0;
	}
	if (!worst->code || weight(rc) > weight(worst->code))
		*worst = e;
	return rc;
}

static int try_proc_root(uint32_t tgid, const struct cap_file *file, struct elffile **ret, struct err *worst)
{
	char dir[64];
	_cleanup_close_ int fd = -1;

	snprintf(dir, sizeof(dir), "/proc/%u/root", tgid);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : try_place(fd, file->path, true, file, ret, worst);
}

int sym_file_open(const struct sym_file *s, const struct cap_file *file, uint32_t tgid, struct elffile **ret,
	struct err *e)
{
	struct err worst = { 0 };
	int rc = -ENOENT;

	if (file->path[0] != '/')
		return err_set(e, -ENOENT, "has no path on disk");
	rc = try_place(AT_FDCWD, file->path, false, file, ret, &worst);
	if (rc && s->symfs >= 0)
		rc = try_place(s->symfs, file->path, true, file, ret, &worst);
	if (rc && s->same_boot && tgid)
		rc = try_proc_root(tgid, file, ret, &worst);
	if (rc && e)
		*e = worst;
	return rc ? worst.code : 0;
}

#define BINARIES_DWOS_MAX 1024 /* of one file; any more stay missing */

struct binaries_opts {
	const char *symfs; /* directory with another machine's files, NULL = none */
	const char *const *debug_dirs; /* searched for debug files before /usr/lib/debug */
	size_t n_debug_dirs;
	bool debuginfod; /* ask the servers of DEBUGINFOD_URLS for debug files */
	/* as in elf/debuginfo.h */
	int (*progress)(void *ctx, const char *what, uint64_t done_bytes, uint64_t total_bytes);
	void *progress_ctx;
};

static void binary_close(struct binary *f);

/*
 * C and the strings of O must outlive B, and B must not move. Release B with binaries_close(), even
 * on failure.
 */
static int binaries_open(
	struct binaries *b, const struct cap_reader *c, const struct binaries_opts *o, struct err *e)
{
	int rc;

	*b = (struct binaries){ .c = c, .where.symfs = -1 };
	b->images = calloc(c->n_files + 1, sizeof(*b->images));
	if (!b->images)
		return err_nomem(e, "files");
	for (size_t i = c->n_images; i-- > 0;)
		b->images[c->images[i].file] = &c->images[i];
	rc = sym_file_init(&b->where, o->symfs, c->host.boot_id, e);
	b->debug = (struct debugfile_opts){ .symfs = b->where.symfs,
		.dirs = o->debug_dirs,
		.n_dirs = o->n_debug_dirs,
		.debuginfod = o->debuginfod,
		.server = &b->server,
		.progress = o->progress,
		.progress_ctx = o->progress_ctx };
	return rc;
}

static void binaries_close(struct binaries *b)
{
	sym_file_close(&b->where);
	free(b->images);
	b->images = NULL;
}

static int open_elf(struct binaries *b, uint32_t id, uint32_t tgid, struct elffile **ret, struct err *e)
{
	const struct cap_file *file = &b->c->files[id];
	const struct cap_image *image = b->images[id];
	int rc;

	if (image)
		return elffile_image(image->bytes, image->len, ret, e);
	if (file->flags & CAPTURE_FILE_PSEUDO)
		return err_set(e, -ENOENT, "is not a file, and its bytes are not in the recording");
	rc = sym_file_open(&b->where, file, tgid, ret, e);
	if (rc == -ENOENT && (file->flags & CAPTURE_FILE_DELETED))
		return err_set(e, rc, "was deleted or replaced before it could be kept");
	return rc;
}

/*
 * Open file FILE (a cap_file id) as process TGID mapped it, and its debug files. An image in the
 * capture takes precedence over a file. -errno with the reason, worded to follow "it".
 */
static int binary_find(struct binaries *b, uint32_t file, uint32_t tgid, struct binary *ret, struct err *e)
{
	int rc;

	*ret = (struct binary){ 0 };
	rc = open_elf(b, file, tgid, &ret->elf, e);
	rc = rc ? rc : debugfile_find(&b->debug, ret->elf, b->c->files[file].path, &ret->debug, e);
	if (rc)
		binary_close(ret);
	return rc;
}

static void binary_close(struct binary *f)
{
	for (size_t i = 0; i < f->n_dwos; i++)
		elffile_close(f->dwos[i]);
	free(f->dwos);
	free(f->dwo_ids);
	debugfile_close(&f->debug);
	elffile_close(f->elf);
	*f = (struct binary){ 0 };
}

/* Find the .dwo files that A wants (symbols/answer.h); missing ones are skipped. 0 or -ENOMEM. */
static int binary_find_dwos(
	struct binaries *b, uint32_t file, const struct sym_answer *a, struct binary *f, struct err *e)
{
	size_t n = MIN(a->head->n_wants, BINARIES_DWOS_MAX);
	const char *want;

	f->dwos = calloc(n + 1, sizeof(struct elffile *));
	f->dwo_ids = calloc(n + 1, sizeof(*f->dwo_ids));
	if (!f->dwos || !f->dwo_ids)
		return err_nomem(e, "files");
	want = n ? sym_answer_want_at(a, 0) : NULL;
	/* Walk the strings: counting from the first one each time would be quadratic for a hostile answer. */
	for (size_t i = 0; i < n; i++, want += strlen(want) + 1) {
		char *path;
		uint64_t id = strtoull(want, &path, 16);

		if (*path++ != ' ' || debugfile_dwo(&b->debug, b->c->files[file].path, path,
					      &f->dwos[f->n_dwos], NULL) != 0)
			continue;
		f->dwo_ids[f->n_dwos++] = id;
	}
	return 0;
}

/*
 * kernel_parts - the files of the recorded kernel: its own and those of its modules
 * (elf/kernelfiles.h), for lines and inlined calls of kernel frames.
 *
 * Parts have numbers: 0 is the kernel itself, the others are modules in the order of their first
 * request.
 */

struct kernel_parts_opts {
	struct vmlinux_opts places;
	bool same_boot; /* this machine still runs the recorded boot: its modules may be loaded */
};

struct kernel_parts {
	const struct cap_reader *c;
	struct kernel_parts_opts o;
	struct intern names; /* of modules: the number of a part is its id + 1 */
	struct kmodtree tree;
	bool loaded; /* kmodtree_load() was called */
};

struct kernel_part {
	struct vmlinux kernel;
	struct kmodfile module; /* at most one of the two has a file */
	char debug[512]; /* path of the file if it has debug information; else "" */
	char missed[640]; /* why there is no debug information; "" = no file was found */
};

static const struct elffile *kernel_part_file(const struct kernel_part *p);

/* C and what O points to must outlive K. Release K with kernel_parts_free(). */
static void kernel_parts_init(
	struct kernel_parts *k, const struct cap_reader *c, const struct kernel_parts_opts *o)
{
	*k = (struct kernel_parts){ .c = c, .o = *o };
}

static void kernel_parts_free(struct kernel_parts *k)
{
	intern_free(&k->names);
	kmodtree_free(&k->tree);
}

/* The number of MODULE, named as in cap_ksym: "" and "bpf" are the kernel. UINT32_MAX when out of memory. */
static uint32_t kernel_parts_id(struct kernel_parts *k, const char *module)
{
	uint32_t id;

	if (!*module || strcmp(module, "bpf") == 0)
		return 0;
	id = intern_put(&k->names, module, strlen(module) + 1);
	return id == INTERN_NONE ? UINT32_MAX : id + 1;
}

static size_t kernel_parts_count(const struct kernel_parts *k)
{
	return k->names.n + 1;
}

static const char *kernel_parts_name(const struct kernel_parts *k, size_t id)
{
	size_t len;

	if (id > k->names.n)
		return NULL;
	return id ? intern_text(&k->names, (uint32_t)id - 1, &len) : "";
}

/* Load the tree once, when the first module needs it. */
static int load_tree(struct kernel_parts *k, struct err *e)
{
	const struct kmodtree_opts o = { k->o.places.symfs, k->o.places.dirs, k->o.places.n_dirs };

	if (k->loaded)
		return 0;
	k->loaded = true;
	return kmodtree_load(&o, k->c->host.release, &k->tree, e);
}

/* The symbols that cover the requests, each once. */
static const struct cap_ksym **symbols_of(
	const struct cap_reader *c, const struct place_request *requests, size_t n, size_t *n_ret)
{
	const struct cap_ksym **p = calloc(n + 1, sizeof(const struct cap_ksym *));
	size_t used = 0;

	for (size_t i = 0; p && i < n; i++) {
		const struct cap_ksym *s = cap_reader_ksym(c, requests[i].offset);

		if (s && (!used || p[used - 1] != s))
			p[used++] = s;
	}
	*n_ret = used;
	return p;
}

static int find_module(struct kernel_parts *k, uint32_t id, const struct place_request *requests, size_t n,
	struct kernel_part *ret, struct err *e)
{
	struct root root = { .fd = -1 };
	struct kmodfile_opts o = {
		.tree = &k->tree, .symfs = k->o.places.symfs, .release = k->c->host.release
	};
	_cleanup_free_ const struct cap_ksym **symbols = NULL;
	size_t n_symbols;
	int rc = load_tree(k, e);

	if (rc)
		return rc;
	symbols = symbols_of(k->c, requests, n, &n_symbols);
	if (!symbols)
		return err_nomem(e, "kernel modules");
	if (k->o.same_boot && root_open(NULL, &root, NULL) == 0)
		o.root = &root;
	rc = kmodfile_find(&o, kernel_parts_name(k, id), symbols, n_symbols, &ret->module, e);
	if (k->tree.cut && !ret->module.file && !*ret->module.missed)
		snprintf(ret->module.missed, sizeof(ret->module.missed),
			"the directories of modules have more files than are searched");
	root_close(&root);
	return rc;
}

static void describe(struct kernel_part *p)
{
	const char *where = p->kernel.file ? p->kernel.where : p->module.where;
	const struct elffile *f = kernel_part_file(p);

	if (f && debugfile_has_info(f))
		snprintf(p->debug, sizeof(p->debug), "%s", where);
	else if (f)
		snprintf(p->missed, sizeof(p->missed), "'%s' has no debug information", where);
	else
		snprintf(p->missed, sizeof(p->missed), "%s",
			*p->kernel.missed ? p->kernel.missed : p->module.missed);
}

/*
 * Find the file of part ID, for N requests in ascending order, whose offsets are addresses. 1, or 0
 * if there is none; -errno as vmlinux_find(), or -ENOMEM. Release RET with kernel_part_close() in
 * any case.
 */
static int kernel_part_find(struct kernel_parts *k, uint32_t id, const struct place_request *requests,
	size_t n, struct kernel_part *ret, struct err *e)
{
	int rc;

	*ret = (struct kernel_part){ 0 };
	rc = id ? find_module(k, id, requests, n, ret, e)
		: vmlinux_find(&k->o.places, &k->c->host, &ret->kernel, e);
	if (rc)
		return rc;
	describe(ret);
	return kernel_part_file(ret) ? 1 : 0;
}

static void kernel_part_close(struct kernel_part *p)
{
	vmlinux_close(&p->kernel);
	kmodfile_close(&p->module);
}

static const struct elffile *kernel_part_file(const struct kernel_part *p)
{
	return p->kernel.file ? p->kernel.file : p->module.file;
}

/* Convert the recorded address ADDR to the file's address; false if the file does not have it. */
static bool kernel_part_vaddr(const struct kernel_part *p, uint64_t addr, uint64_t *vaddr)
{
	return p->kernel.file ? vmlinux_vaddr(&p->kernel, addr, vaddr)
			      : kmodfile_vaddr(&p->module, addr, vaddr);
}

#define BATCH 64 /* files open at the same time */

static const char no_function[] = "the module's file has no function of this name there, or more than one";
static const char no_module[] = "no debug information of its module was found that fits";

struct module {
	bool requested, proven, stripped;
	uint32_t proc; /* the first that requested an address */
	char *problem, *debug, *missed, *message;
	uint64_t symbols, addresses;
};

/* The requests for one file in this run. */
struct part {
	struct place_request *requests;
	size_t n;
	uint64_t *vaddrs;
	struct binary bin;
	struct kernel_part kernel; /* used instead of BIN for the kernel */
	struct sym_lookup_dwo *dwos;
};

struct modules {
	const struct cap_reader *c;
	struct modules_opts o;
	struct binaries binaries;
	struct module *files; /* by cap_file id; the kernel and its modules follow */
	size_t n_files, files_cap;
	struct kernel_parts kernel;
	struct place_request *requests;
	size_t n_requests, requests_max;
	struct kept_answers answers;
	struct sym_store *keep; /* NULL = no cache */
	struct modules_stats stats;
	size_t done, total; /* files of this run, for progress */
};

/* --- open and close --- */

/* Progress in bytes of one file, not in files. */
static int on_bytes(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	const struct modules *m = ctx;
	char text[512];

	if (!m->o.progress)
		return 0;
	snprintf(text, sizeof(text),
		total ? "debug file of %s: %" PRIu64 " of %" PRIu64 " MiB"
		      : "debug file of %s: %" PRIu64 " MiB",
		what, done >> 20, total >> 20);
	m->o.progress(m->o.progress_ctx, text, 0, 0);
	return 0;
}

static int init(struct modules *m, const struct cap_reader *c, const struct modules_opts *o, struct err *e)
{
	const struct binaries_opts bo = { .symfs = o->symfs,
		.debug_dirs = o->debug_dirs,
		.n_debug_dirs = o->n_debug_dirs,
		.debuginfod = o->debuginfod,
		.progress = on_bytes,
		.progress_ctx = m };
	struct kernel_parts_opts ko = {
		.places = { .file = o->vmlinux, .dirs = o->debug_dirs, .n_dirs = o->n_debug_dirs }
	};
	int rc;

	m->c = c;
	m->o = *o;
	m->binaries.where.symfs = -1;
	if (!o->no_cache)
		sym_store_open(&m->keep, NULL); /* without a cache, everything is read */
	rc = base_grow(&m->files, &m->files_cap, c->n_files + 1, sizeof(*m->files));
	if (rc)
		return err_nomem(e, "files");
	m->n_files = c->n_files + 1;
	rc = binaries_open(&m->binaries, c, &bo, e);
	ko.places.symfs = m->binaries.where.symfs;
	ko.same_boot = m->binaries.where.same_boot;
	kernel_parts_init(&m->kernel, c, &ko);
	return rc;
}

int modules_open(
	const struct cap_reader *c, const struct modules_opts *o, struct modules **ret, struct err *e)
{
	struct modules *m = calloc(1, sizeof(*m));
	int rc = m ? init(m, c, o, e) : err_nomem(e, "files");

	if (rc) {
		modules_close(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void modules_close(struct modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_files; i++) {
		free(m->files[i].problem);
		free(m->files[i].debug);
		free(m->files[i].missed);
		free(m->files[i].message);
	}
	kept_answers_free(&m->answers);
	kernel_parts_free(&m->kernel);
	binaries_close(&m->binaries);
	sym_store_close(m->keep);
	free(m->files);
	free(m->requests);
	free(m);
}

bool modules_has_image(const struct modules *m, uint32_t file)
{
	return m->binaries.images[file] != NULL;
}

int modules_ask(struct modules *m, uint32_t file, uint32_t proc, uint64_t offset, uint32_t frame)
{
	struct module *mod = &m->files[file];

	if (base_grow(&m->requests, &m->requests_max, m->n_requests + 1, sizeof(*m->requests)) != 0)
		return -ENOMEM;
	m->requests[m->n_requests++] =
		(struct place_request){ .file = file, .offset = offset, .frame = frame };
	if (!mod->requested)
		mod->proc = proc;
	mod->requested = true;
	return 0;
}

int modules_ask_kernel(struct modules *m, const char *module, uint64_t addr, uint32_t frame)
{
	const uint32_t id = kernel_parts_id(&m->kernel, module);
	const size_t n = m->c->n_files + kernel_parts_count(&m->kernel);

	if (id == UINT32_MAX || n > UINT32_MAX ||
		base_grow(&m->files, &m->files_cap, n, sizeof(*m->files)) != 0)
		return -ENOMEM;
	m->n_files = n;
	return modules_ask(m, (uint32_t)m->c->n_files + id, 0, addr, frame);
}

const char *modules_kernel_part(const struct modules *m, size_t i)
{
	return kernel_parts_name(&m->kernel, i);
}

/* --- before: find the files --- */

static int by_vaddr(const void *a, const void *b)
{
	const struct place_request *x = a, *y = b;
	int c = CMP(x->lost, y->lost);

	return c ? c : CMP(x->vaddr, y->vaddr);
}

static bool is_kernel(const struct modules *m, const struct part *p)
{
	return p->requests->file >= m->c->n_files;
}

static bool vaddr_of(const struct part *p, uint64_t offset, uint64_t *ret)
{
	return p->bin.elf ? elffile_vaddr(p->bin.elf, offset, ret)
			  : kernel_part_vaddr(&p->kernel, offset, ret);
}

/* Convert offsets to addresses of the file, ascending and distinct. They are mostly sorted already. */
static int locate(struct part *p)
{
	bool sorted = true;
	size_t n = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct place_request *a = &p->requests[i];

		a->lost = !vaddr_of(p, a->offset, &a->vaddr);
		sorted = sorted && (!i || by_vaddr(a - 1, a) <= 0);
	}
	if (!sorted)
		qsort(p->requests, p->n, sizeof(*p->requests), by_vaddr);
	p->vaddrs = malloc((p->n + 1) * sizeof(*p->vaddrs));
	if (!p->vaddrs)
		return -ENOMEM;
	for (size_t i = 0; i < p->n && !p->requests[i].lost; i++) /* lost ones come last */
		if (!n || p->vaddrs[n - 1] != p->requests[i].vaddr)
			p->vaddrs[n++] = p->requests[i].vaddr;
	return (int)n;
}

static void set_problem(struct module *mod, const char *context, const char *why)
{
	char text[1200];

	snprintf(text, sizeof(text), "%s%s", context, why);
	if (!mod->problem)
		mod->problem = strdup(text);
}

static void report_progress(struct modules *m, const char *what)
{
	if (m->o.progress)
		m->o.progress(m->o.progress_ctx, what, m->done, m->total);
}

static char *text_or_null(const char *text)
{
	return *text ? strdup(text) : NULL;
}

/* 1 if it was found, 0 if not, or -errno if the user named the file. */
static int find_kernel(struct modules *m, struct part *p, struct err *e)
{
	const uint32_t id = p->requests->file - (uint32_t)m->c->n_files;
	struct module *mod = &m->files[p->requests->file];
	int rc = kernel_part_find(&m->kernel, id, p->requests, p->n, &p->kernel, e);

	mod->missed = mod->missed ? mod->missed : text_or_null(p->kernel.missed);
	mod->debug = mod->debug ? mod->debug : text_or_null(p->kernel.debug);
	mod->proven = mod->proven || p->kernel.module.proven;
	return rc;
}

static int find_part(struct modules *m, struct part *p, struct err *e)
{
	struct module *mod = &m->files[p->requests->file];
	struct err mine = { 0 };

	if (is_kernel(m, p))
		return find_kernel(m, p, e);
	if (binary_find(&m->binaries, p->requests->file, m->c->procs[mod->proc].tgid, &p->bin, &mine) == 0)
		return 1;
	set_problem(mod, "", mine.msg);
	return 0;
}

static bool has_symtab(const struct elffile *f)
{
	for (size_t i = 0; i < f->n_sections; i++)
		if (f->sections[i].type == SHT_SYMTAB)
			return true;
	return false;
}

/* 1 with a JOB to run, 0 if there is no usable file, or -errno. */
static int prepare(struct modules *m, struct part *p, struct sym_reader_job *job, struct err *e)
{
	struct module *mod = &m->files[p->requests->file];
	int n;

	report_progress(m, "finding files");
	n = find_part(m, p, e);
	if (n <= 0)
		return n;
	n = locate(p);
	if (n < 0)
		return err_nomem(e, "symbols");
	mod->debug = mod->debug ? mod->debug : text_or_null(p->bin.debug.where);
	mod->missed = mod->missed ? mod->missed : text_or_null(p->bin.debug.missed);
	*job = (struct sym_reader_job){ .ctx = p,
		.in = { .elf = p->bin.elf ? p->bin.elf : kernel_part_file(&p->kernel),
			.debug = p->bin.debug.debug,
			.alt = p->bin.debug.alt,
			.dwp = p->bin.debug.dwp,
			.vaddrs = p->vaddrs,
			.n_vaddrs = (size_t)n,
			.inlines = m->o.inlines,
			.lines = m->o.lines,
			.demangle = m->o.demangle } };
	mod->stripped = p->bin.elf && !has_symtab(p->bin.elf);
	mod->addresses += (uint64_t)n;
	m->stats.addresses += (uint64_t)n;
	return 1;
}

/* --- after: report each address --- */

static void count(struct modules *m, struct module *mod, const struct sym_reader_job *j)
{
	const struct sym_answer_head *h = j->answer.head;
	struct modules_stats *s = &m->stats;

	if (h->message && !mod->message)
		mod->message = strdup(sym_answer_text(&j->answer, h->message));
	mod->symbols = h->symbols;
	if (!j->ns) /* cached by an earlier run: it took no time in this one */
		return;
	s->units += h->units;
	s->units_read += h->units_read;
	s->ns_symbols += h->ns_symbols;
	s->ns_units += h->ns_units;
	s->ns_lines += h->ns_lines;
	s->ns_names += h->ns_names;
}

/* Report a part from what was read of its file (may be nothing) and what is stored. */
static int report_part(struct modules *m, const struct part *p, const struct file_answer *read,
	modules_sink *sink, void *ctx)
{
	const uint32_t id = p->requests->file;
	const struct storednames_opts o = {
		.demangle = m->o.demangle, .inlines = m->o.inlines, .lines = m->o.lines
	};
	const char *why = m->files[id].problem;
	struct file_answer stored = { 0 };
	int rc = is_kernel(m, p) ? 0 : stored_answer(&m->answers, m->c, id, &o, &stored, NULL);

	if (!why && id > m->c->n_files)
		why = no_module;
	if (rc == 0)
		report_requests(m->c, p->requests, p->n, read, &stored, why, sink, ctx);
	return rc;
}

/* Take the result of a job. */
static int take(struct modules *m, struct sym_reader_job *j, modules_sink *sink, void *ctx)
{
	const struct part *p = j->ctx;
	struct module *mod = &m->files[p->requests->file];
	struct file_answer read = { 0 };

	m->stats.ns_processes += j->ns;
	m->stats.memory_bytes = MAX(m->stats.memory_bytes, j->memory_bytes);
	if (!j->bytes)
		set_problem(mod, "cannot be read: ", j->why);
	else if (take_answer_bytes(&m->answers, j->bytes, &j->answer, &read) != 0)
		return -ENOMEM;
	if (read.calls)
		count(m, mod, j);
	if (p->kernel.module.file)
		read.lost = no_function;
	return report_part(m, p, &read, sink, ctx);
}

/* --- a run --- */

static void on_done(void *ctx, struct sym_reader_job *j)
{
	struct modules *m = ctx;

	(void)j;
	m->done++;
	report_progress(m, "reading symbols");
}

static void on_tick(void *ctx)
{
	report_progress(ctx, "reading symbols");
}

static void read_all(struct modules *m, struct sym_reader_job *jobs, size_t n)
{
	const struct sym_schedule r = { .jobs = m->o.jobs,
		.memory_bytes = m->o.memory_bytes,
		.seconds = m->o.seconds,
		.keep = m->keep,
		.done = on_done,
		.tick = on_tick,
		.ctx = m };
	uint64_t began = now_ns();

	sym_schedule_run(&r, jobs, n);
	m->stats.ns_wall += now_ns() - began;
}

/* Repeat J with the files that its answer lacked; false if none of them was found. */
static bool again(struct modules *m, struct sym_reader_job *j, struct sym_reader_job *to)
{
	struct part *p = j->ctx;

	if (!j->bytes || !j->answer.head->n_wants || is_kernel(m, p) ||
		binary_find_dwos(&m->binaries, p->requests->file, &j->answer, &p->bin, NULL) != 0 ||
		!p->bin.n_dwos)
		return false;
	p->dwos = calloc(p->bin.n_dwos, sizeof(*p->dwos));
	if (!p->dwos)
		return false;
	for (size_t i = 0; i < p->bin.n_dwos; i++)
		p->dwos[i] = (struct sym_lookup_dwo){ p->bin.dwo_ids[i], p->bin.dwos[i] };
	*to = (struct sym_reader_job){ .in = j->in, .ctx = j };
	to->in.dwos = p->dwos;
	to->in.n_dwos = p->bin.n_dwos;
	return true;
}

/* Split debug information can only be read together with the file that refers to it. */
static void read_dwos(struct modules *m, struct sym_reader_job *jobs, size_t n)
{
	_cleanup_free_ struct sym_reader_job *second = calloc(n + 1, sizeof(*second));
	size_t n_second = 0;

	for (size_t i = 0; second && i < n; i++)
		n_second += again(m, &jobs[i], &second[n_second]);
	if (!n_second)
		return;
	m->total += n_second;
	read_all(m, second, n_second);
	for (size_t i = 0; i < n_second; i++) {
		struct sym_reader_job *first = second[i].ctx;

		if (!second[i].bytes) /* keep the first answer */
			continue;
		free(first->bytes);
		second[i].ctx = first->ctx;
		*first = second[i];
	}
}

static void close_part(struct part *p)
{
	free(p->vaddrs);
	free(p->dwos);
	binary_close(&p->bin);
	kernel_part_close(&p->kernel);
}

/* Process the files of N parts. */
static int run_batch(
	struct modules *m, struct part *parts, size_t n, modules_sink *sink, void *ctx, struct err *e)
{
	_cleanup_free_ struct sym_reader_job *jobs = calloc(n, sizeof(*jobs));
	uint64_t began = now_ns();
	size_t n_jobs = 0, taken = 0;
	int rc = jobs ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && rc >= 0; i++) {
		rc = prepare(m, &parts[i], &jobs[n_jobs], e);
		n_jobs += rc > 0;
		if (rc == 0) {
			m->done++;
			rc = report_part(m, &parts[i], &(struct file_answer){ 0 }, sink, ctx);
		}
	}
	m->stats.ns_find += now_ns() - began;
	if (rc >= 0)
		read_all(m, jobs, n_jobs);
	if (rc >= 0)
		read_dwos(m, jobs, n_jobs);
	for (rc = MIN(rc, 0); taken < n_jobs && rc == 0; taken++)
		rc = take(m, &jobs[taken], sink, ctx);
	for (; taken < n_jobs; taken++)
		free(jobs[taken].bytes);
	return rc;
}

/* Split the requests into parts, one for each file; returns how many. */
static size_t split(struct place_request *requests, size_t n, struct part *parts)
{
	size_t n_parts = 0;

	for (size_t i = 0; i < n; i++) {
		if (!i || requests[i].file != requests[i - 1].file)
			parts[n_parts++].requests = &requests[i];
		parts[n_parts - 1].n++;
	}
	return n_parts;
}

int modules_run(struct modules *m, modules_sink *sink, void *ctx, struct err *e)
{
	_cleanup_free_ struct part *parts = calloc(m->n_files + 1, sizeof(*parts));
	size_t n = 0;
	int rc = parts ? 0 : -ENOMEM;

	rc = rc ? rc : sort_requests(m->requests, m->n_requests);
	if (rc == 0)
		n = split(m->requests, m->n_requests, parts);
	m->done = 0;
	m->total = n;
	m->stats.files += n;
	for (size_t i = 0; i < n && rc == 0; i += BATCH) {
		size_t some = MIN(n - i, (size_t)BATCH);

		rc = run_batch(m, parts + i, some, sink, ctx, e);
		for (size_t k = i; k < i + some; k++)
			close_part(&parts[k]);
	}
	m->n_requests = 0;
	return rc == -ENOMEM ? err_nomem(e, "symbols") : rc;
}

bool modules_file(const struct modules *m, uint32_t file, struct modules_file *ret)
{
	const struct module *mod = &m->files[file];

	*ret = (struct modules_file){ .problem = mod->problem,
		.debug = mod->debug,
		.missed = mod->missed,
		.message = mod->message,
		.proven = mod->proven,
		.stripped = mod->stripped,
		.symbols = mod->symbols,
		.addresses = mod->addresses };
	return mod->requested;
}

void modules_stats(const struct modules *m, struct modules_stats *ret)
{
	struct sym_store_stats kept = { 0 };

	if (m->keep)
		sym_store_stats(m->keep, &kept);
	*ret = m->stats;
	ret->cache_hits = kept.hits;
	ret->cache_misses = kept.misses;
	ret->cache_kept = kept.kept;
	ret->cache_bad = kept.bad;
}
