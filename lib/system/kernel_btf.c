/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/kernel_btf.h"
#include "base/bytes.h"
#include "base/fs.h"
#include "kernel_cast.h"
#include "system/btf.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define MODIFIERS_MAX 64 /* in a row: more would be a loop */

/* The types to be copied, in the order of their new ids. */
struct copy {
	const struct btf_image *from;
	uint32_t *new_id; /* by old id; 0 = not copied */
	uint32_t *old; /* by new id - 1 */
	size_t n, max_old;
	size_t n_whole; /* the first ones, which were requested */
	struct buf types, strings;
	bool failed;
};

/* The new id of OLD, which is queued to be copied. */
static uint32_t wanted(struct copy *c, uint32_t old)
{
	if (c->new_id[old])
		return c->new_id[old];
	if (base_grow(&c->old, &c->max_old, c->n + 1, sizeof(*c->old)) != 0) {
		c->failed = true;
		return 0;
	}
	c->old[c->n++] = old;
	return c->new_id[old] = (uint32_t)c->n;
}

/* The same for a type that another one refers to: skips typedefs, qualifiers and tags. */
static uint32_t referred(struct copy *c, uint32_t old)
{
	for (int i = 0; old && old < c->from->n && i < MODIFIERS_MAX; i++) {
		const struct btf_type *t = btf_image_type(c->from, old);
		uint32_t kind = BTF_INFO_KIND(t->info);

		if (kind != BTF_KIND_TYPEDEF && kind != BTF_KIND_CONST && kind != BTF_KIND_VOLATILE &&
			kind != BTF_KIND_RESTRICT && kind != BTF_KIND_TYPE_TAG)
			return wanted(c, old);
		old = t->type;
	}
	if (old)
		c->failed = true;
	return 0;
}

static uint32_t put_name(struct copy *c, uint32_t off)
{
	const char *name = c->from->strings + off;
	uint32_t at = (uint32_t)c->strings.len;

	if (!*name)
		return 0;
	buf_put(&c->strings, name, strlen(name) + 1);
	return at;
}

static void put_members(struct copy *c, const struct btf_type *t)
{
	const struct btf_member *m = (const void *)(t + 1);

	for (uint32_t i = 0; i < BTF_INFO_VLEN(t->info); i++) {
		struct btf_member to = m[i];

		if (to.name_off >= c->from->strings_len) {
			c->failed = true;
			return;
		}
		to.name_off = put_name(c, to.name_off);
		to.type = referred(c, to.type);
		buf_put(&c->types, &to, sizeof(to));
	}
}

/* Copy requested structs, and unnamed ones inside them, with members; of others what a reference needs. */
static void put_type(struct copy *c, uint32_t i)
{
	const struct btf_type *t = btf_image_type(c->from, c->old[i]);
	uint32_t kind = BTF_INFO_KIND(t->info);
	struct btf_type to = *t;
	struct btf_array array;

	to.name_off = put_name(c, t->name_off);
	switch (kind) {
	case BTF_KIND_INT:
		buf_put(&c->types, &to, sizeof(to));
		buf_put(&c->types, t + 1, sizeof(uint32_t));
		return;
	case BTF_KIND_PTR:
		to.type = 0;
		break;
	case BTF_KIND_FWD:
	case BTF_KIND_FLOAT:
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		to.info &= ~0xffffu; /* no values */
		break;
	case BTF_KIND_ARRAY:
		memcpy(&array, t + 1, sizeof(array));
		array.type = referred(c, array.type);
		array.index_type = referred(c, array.index_type);
		buf_put(&c->types, &to, sizeof(to));
		buf_put(&c->types, &array, sizeof(array));
		return;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		if (to.name_off && i >= c->n_whole) {
			to.info &= ~0xffffu;
			break;
		}
		buf_put(&c->types, &to, sizeof(to));
		put_members(c, t);
		return;
	default:
		c->failed = true;
		return;
	}
	buf_put(&c->types, &to, sizeof(to));
}

/* A few bits that distinguish most names. */
static uint32_t mark(const char *name)
{
	uint32_t h = 0;

	for (int i = 0; i < 6 && name[i]; i++)
		h = h * 31 + (uint8_t)name[i];
	return h % 1024;
}

static uint32_t count_args(const struct btf_image *b, const struct btf_type *t)
{
	static const uint32_t way[] = { BTF_KIND_PTR, BTF_KIND_FUNC_PROTO };

	for (size_t i = 0; i < ARRAY_LEN(way); i++) {
		if (!t->type || t->type >= b->n)
			return 0;
		t = btf_image_type(b, t->type);
		if (BTF_INFO_KIND(t->info) != way[i])
			return 0;
	}
	return BTF_INFO_VLEN(t->info);
}

/* Set the ids of the names, and queue the structs among them to be copied first. */
static void find_names(struct copy *c, struct kernel_types_name *names, size_t n)
{
	uint8_t marks[1024] = { 0 };
	uint32_t kinds = 0;

	for (size_t i = 0; i < n; i++) {
		names[i].id = 0;
		kinds |= 1u << names[i].kind;
		marks[mark(names[i].name)] = 1;
	}
	for (uint32_t id = 1; id < c->from->n; id++) {
		const struct btf_type *t = btf_image_type(c->from, id);
		const char *name = c->from->strings + t->name_off;
		uint32_t kind = BTF_INFO_KIND(t->info);

		if (!(kinds >> kind & 1) || !marks[mark(name)])
			continue;
		for (size_t i = 0; i < n; i++) {
			if (names[i].kind != kind || strcmp(names[i].name, name) != 0)
				continue;
			names[i].id = names[i].id ? names[i].id : id;
			if (kind == BTF_KIND_STRUCT)
				wanted(c, id);
			else if (kind == BTF_KIND_TYPEDEF)
				names[i].args = count_args(c->from, t);
		}
	}
	c->n_whole = c->n;
}

static int write_all(int fd, const void *p, size_t n)
{
	return write(fd, p, n) == (ssize_t)n ? 0 : -EIO;
}

static int write_copy(const struct copy *c, int fd, struct err *e)
{
	const struct btf_header h = { .magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(h),
		.type_len = (uint32_t)c->types.len,
		.str_off = (uint32_t)c->types.len,
		.str_len = (uint32_t)c->strings.len };

	if (write_all(fd, &h, sizeof(h)) || write_all(fd, c->types.p, c->types.len) ||
		write_all(fd, c->strings.p, c->strings.len))
		return err_set(e, -EIO, "cannot write the kernel's types");
	return 0;
}

static int copy_types(
	const struct btf_image *b, struct kernel_types_name *names, size_t n, int fd, struct err *e)
{
	_cleanup_free_ uint32_t *new_id = calloc(b->n, sizeof(*new_id));
	struct copy c = { .from = b, .new_id = new_id };
	int rc;

	if (!new_id)
		return err_nomem(e, "the kernel's types");
	buf_put(&c.strings, "", 1);
	find_names(&c, names, n);
	for (uint32_t i = 0; i < c.n; i++) /* put_type() can increase c.n */
		put_type(&c, i);
	if (c.types.failed || c.strings.failed)
		rc = err_nomem(e, "the kernel's types");
	else if (c.failed)
		rc = err_set(e, -EINVAL, "the kernel's BTF is not understood");
	else
		rc = write_copy(&c, fd, e);
	buf_free(&c.types);
	buf_free(&c.strings);
	free(c.old);
	return rc;
}

int kernel_types_read(const char *file, struct kernel_types_name *names, size_t n, int fd, struct err *e)
{
	const char *path = file ? file : BTF_VMLINUX;
	_cleanup_close_ int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct btf_image b = { 0 };
	int rc = from < 0 ? err_sys(e, -errno, "cannot read the kernel's BTF, '%s'", path)
			  : btf_image_read(&b, from, path, strcmp(path, BTF_VMLINUX) == 0, e);

	if (!rc) {
		rc = btf_image_parse(&b);
		if (rc)
			err_sys(e, rc, "the kernel's BTF is not understood, '%s'", path);
	}
	if (!rc)
		rc = copy_types(&b, names, n, fd, e);
	btf_image_release(&b);
	return rc;
}

#define KERN "kern_" /* the sections of ours, as the next ones */
#define TP "kern_tp"
#define ITER "kern_iter"
#define SLEEPING_ITER "kern_iter.s"
#define CLOCK "clock"

#define CAST "bpf_rdonly_cast"
#define CAST_TO "pt_regs"

/* Let PROG, complete with the functions that it calls, call function ID of the kernel; 0 = there is none. */
static void call_cast(const struct bpf_program *prog, uint32_t id)
{
	/* libbpf's own copy, which it is about to load */
	struct bpf_insn *insns = (void *)(uintptr_t)bpf_program__insns(prog);

	for (size_t i = 0; id && i < bpf_program__insn_cnt(prog); i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) && !insns[i].src_reg &&
			insns[i].imm == KERNEL_CAST) {
			insns[i].src_reg = BPF_PSEUDO_KFUNC_CALL;
			insns[i].imm = (int32_t)id;
		}
}

/*
 * libbpf would parse the kernel's BTF for any tracing program without a program
 * to attach to. So bpf_hooks_set() stores the hook's id in attach_prog_fd, and the
 * id of the function to call in the flags; this function moves them to where they
 * belong.
 */
static int prepare(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long sleeps)
{
	const char *hook = strchr(bpf_program__section_name(prog), '/');
	int id = (int)opts->attach_prog_fd;

	call_cast(prog, opts->prog_flags);
	opts->prog_flags = sleeps ? BPF_F_SLEEPABLE : 0;
	opts->attach_prog_fd = 0;
	if (!id && hook)
		id = libbpf_find_vmlinux_btf_id(hook + 1, opts->expected_attach_type);
	if (id <= 0)
		return id ? id : -ESRCH;
	opts->attach_btf_id = (uint32_t)id;
	return 0;
}

/* The same for a program at a clock, which attaches to no function of the kernel. */
static int prepare_clock(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	(void)cookie;
	call_cast(prog, opts->prog_flags);
	opts->prog_flags = 0;
	return 0;
}

static int attach(const struct bpf_program *prog, long cookie, struct bpf_link **link)
{
	(void)cookie;
	*link = bpf_program__attach_trace(prog);
	return *link ? 0 : -errno;
}

/* Iterators need no attach function: they are attached when they are run. */
static void register_sections(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, tp, .prog_prepare_load_fn = prepare, .prog_attach_fn = attach);
	LIBBPF_OPTS(libbpf_prog_handler_opts, clock, .prog_prepare_load_fn = prepare_clock);
	LIBBPF_OPTS(libbpf_prog_handler_opts, iter, .prog_prepare_load_fn = prepare);
	LIBBPF_OPTS(libbpf_prog_handler_opts, sleeping, .prog_prepare_load_fn = prepare, .cookie = 1);

	libbpf_register_prog_handler(TP "+", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, &tp);
	libbpf_register_prog_handler(ITER "+", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, &iter);
	libbpf_register_prog_handler(CLOCK, BPF_PROG_TYPE_PERF_EVENT, (enum bpf_attach_type)0, &clock);
	libbpf_register_prog_handler(SLEEPING_ITER "+", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, &sleeping);
}

int bpf_hooks_open(struct bpf_hooks *h, const char *btf_file, struct err *e)
{
	/* libbpf keeps its sections for the whole process, too */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	*h = (struct bpf_hooks){
		.btf_file = btf_file, .fd = memfd_create("kernel types", MFD_CLOEXEC), .known = true
	};
	if (h->fd < 0)
		return err_sys(e, -errno, "cannot create a file in memory");
	snprintf(h->path, sizeof(h->path), "/proc/self/fd/%d", h->fd);
	pthread_once(&once, register_sections);
	return 0;
}

void bpf_hooks_close(struct bpf_hooks *h)
{
	for (size_t i = 0; i < h->n; i++)
		free((void *)(uintptr_t)h->names[i].name);
	free(h->names);
	if (h->path[0])
		close(h->fd);
	*h = (struct bpf_hooks){ 0 };
}

const char *bpf_hooks_path(const struct bpf_hooks *h)
{
	return h->known ? h->path : NULL;
}

static int add_name(struct bpf_hooks *h, char *name, uint32_t kind)
{
	if (!name || base_grow(&h->names, &h->cap, h->n + 1, sizeof(*h->names)) != 0) {
		free(name);
		return -ENOMEM;
	}
	h->names[h->n++] = (struct kernel_types_name){ .name = name, .kind = kind };
	return 0;
}

/* Is PROG in a section of ours? */
static bool is_ours(const struct bpf_program *prog)
{
	const char *section = bpf_program__section_name(prog);

	return strncmp(section, KERN, strlen(KERN)) == 0 || strcmp(section, CLOCK) == 0;
}

/* The name of PROG's hook in the kernel's BTF: free(3) it; NULL without memory. */
static char *hook_name(const struct bpf_program *prog)
{
	const char *hook = strchr(bpf_program__section_name(prog), '/');
	char *name = NULL;

	if (!hook ||
		asprintf(&name, "%s%s", bpf_hooks_is_iter(prog) ? "bpf_iter_" : "btf_trace_", hook + 1) < 0)
		return NULL;
	return name;
}

static uint32_t hook_kind(const struct bpf_program *prog)
{
	return bpf_hooks_is_iter(prog) ? BTF_KIND_FUNC : BTF_KIND_TYPEDEF;
}

/* Any struct in BTF may be one of the kernel's; "___" begins a suffix that is not part of its name. */
static int add_structs(struct bpf_hooks *h, const struct btf *btf)
{
	int rc = 0;

	for (uint32_t id = 1; btf && id < btf__type_cnt(btf) && !rc; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const char *name = btf__name_by_offset(btf, t->name_off), *flavor = strstr(name, "___");

		if (btf_is_struct(t) && btf_vlen(t) && *name)
			rc = add_name(h, strndup(name, flavor ? (size_t)(flavor - name) : strlen(name)),
				BTF_KIND_STRUCT);
	}
	return rc;
}

static const struct kernel_types_name *find(const struct bpf_hooks *h, const char *name, uint32_t kind)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->names[i].kind == kind && strcmp(h->names[i].name, name) == 0)
			return &h->names[i];
	return NULL;
}

/* Only compiled programs can call functions of the kernel. */
static bool compiles_bpf(void)
{
	_cleanup_close_ int fd = open("/proc/sys/net/core/bpf_jit_enable", O_RDONLY | O_CLOEXEC);
	char enabled = 0;

	return fd < 0 || readfd_at(fd, &enabled, 1, 0) != 0 || enabled != '0';
}

static void find_cast(struct bpf_hooks *h)
{
	const struct kernel_types_name *function = find(h, CAST, BTF_KIND_FUNC),
				       *type = find(h, CAST_TO, BTF_KIND_STRUCT);

	if (!function || !function->id || !type || !type->id || !compiles_bpf())
		return;
	h->cast = function->id;
	h->cast_type = type->id;
}

int bpf_hooks_read(struct bpf_hooks *h, struct bpf_object *obj, struct err *e)
{
	struct bpf_program *prog;
	int rc = add_structs(h, bpf_object__btf(obj));

	bpf_object__for_each_program(prog, obj)
	{
		/* others attach to nothing that BTF describes */
		if (!rc && strncmp(bpf_program__section_name(prog), KERN, strlen(KERN)) == 0)
			rc = add_name(h, hook_name(prog), hook_kind(prog));
	}
	if (!rc)
		rc = add_name(h, strdup(CAST), BTF_KIND_FUNC);
	if (!rc)
		rc = add_name(h, strdup(CAST_TO), BTF_KIND_STRUCT);
	if (rc)
		return err_nomem(e, "the names of kernel types");
	h->known = kernel_types_read(h->btf_file, h->names, h->n, h->fd, NULL) == 0;
	if (h->known)
		find_cast(h);
	return 0;
}

int bpf_hooks_args(const struct bpf_hooks *h, const char *event)
{
	const struct kernel_types_name *name;
	char typedef_name[64];

	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", event);
	name = h->known ? find(h, typedef_name, BTF_KIND_TYPEDEF) : NULL;
	return name ? (int)name->args - 1 : -1; /* not counting the one for the attacher */
}

void bpf_hooks_set(const struct bpf_hooks *h, struct bpf_object *obj)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, obj)
	{
		_cleanup_free_ char *name = hook_name(prog);
		const struct kernel_types_name *hook = name ? find(h, name, hook_kind(prog)) : NULL;

		if (h->known && name)
			bpf_program__set_attach_target(prog, hook ? (int)hook->id : 0, NULL);
		if (is_ours(prog))
			bpf_program__set_flags(prog, h->cast);
	}
}

bool bpf_hooks_is_iter(const struct bpf_program *prog)
{
	return strncmp(bpf_program__section_name(prog), ITER, strlen(ITER)) == 0;
}
