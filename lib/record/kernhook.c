/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/kernhook.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define TP "kern_tp"
#define ITER "kern_iter"
#define SLEEPING_ITER "kern_iter.s"

/*
 * libbpf would parse the kernel's BTF for any tracing program that names no
 * program to attach to, so kernhook_set() leaves the id in that program's
 * place; here it moves to its own.
 */
static int prepare(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long sleeps)
{
	const char *hook = strchr(bpf_program__section_name(prog), '/');
	int id = (int)opts->attach_prog_fd;

	opts->attach_prog_fd = 0;
	if (!id && hook)
		id = libbpf_find_vmlinux_btf_id(hook + 1, opts->expected_attach_type);
	if (id <= 0)
		return id ? id : -ESRCH;
	opts->attach_btf_id = (uint32_t)id;
	if (sleeps)
		opts->prog_flags |= BPF_F_SLEEPABLE;
	return 0;
}

static int attach(const struct bpf_program *prog, long cookie, struct bpf_link **link)
{
	(void)cookie;
	*link = bpf_program__attach_trace(prog);
	return *link ? 0 : -errno;
}

/* Iterators are attached when they are run. */
static void register_sections(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, tp, .prog_prepare_load_fn = prepare, .prog_attach_fn = attach);
	LIBBPF_OPTS(libbpf_prog_handler_opts, iter, .prog_prepare_load_fn = prepare);
	LIBBPF_OPTS(libbpf_prog_handler_opts, sleeping, .prog_prepare_load_fn = prepare, .cookie = 1);

	libbpf_register_prog_handler(TP "+", BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, &tp);
	libbpf_register_prog_handler(ITER "+", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, &iter);
	libbpf_register_prog_handler(SLEEPING_ITER "+", BPF_PROG_TYPE_TRACING, BPF_TRACE_ITER, &sleeping);
}

int kernhook_open(struct kernhook *h, const char *btf_file, struct err *e)
{
	/* libbpf keeps its sections for the whole process, too */
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	*h = (struct kernhook){
		.btf_file = btf_file, .fd = memfd_create("kernel types", MFD_CLOEXEC), .known = true
	};
	if (h->fd < 0)
		return err_sys(e, -errno, "cannot create a file in memory");
	snprintf(h->path, sizeof(h->path), "/proc/self/fd/%d", h->fd);
	pthread_once(&once, register_sections);
	return 0;
}

void kernhook_close(struct kernhook *h)
{
	for (size_t i = 0; i < h->n; i++)
		free((void *)(uintptr_t)h->names[i].name);
	free(h->names);
	if (h->path[0])
		close(h->fd);
	*h = (struct kernhook){ 0 };
}

const char *kernhook_path(const struct kernhook *h)
{
	return h->known ? h->path : NULL;
}

static int add_name(struct kernhook *h, char *name, uint32_t kind)
{
	if (!name || base_grow(&h->names, &h->cap, h->n + 1, sizeof(*h->names)) != 0) {
		free(name);
		return -ENOMEM;
	}
	h->names[h->n++] = (struct kerntypes_name){ .name = name, .kind = kind };
	return 0;
}

/* As the kernel's BTF has the hook of PROG. */
static char *hook_name(const struct bpf_program *prog)
{
	const char *hook = strchr(bpf_program__section_name(prog), '/');
	char *name = NULL;

	if (!hook ||
		asprintf(&name, "%s%s", kernhook_is_iter(prog) ? "bpf_iter_" : "btf_trace_", hook + 1) < 0)
		return NULL;
	return name;
}

static uint32_t hook_kind(const struct bpf_program *prog)
{
	return kernhook_is_iter(prog) ? BTF_KIND_FUNC : BTF_KIND_TYPEDEF;
}

/* Every struct that OBJ knows may be one of the kernel's; "___" begins what is not part of its name. */
static int add_structs(struct kernhook *h, const struct btf *btf)
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

int kernhook_read(struct kernhook *h, struct bpf_object *obj, struct err *e)
{
	struct bpf_program *prog;
	int rc = add_structs(h, bpf_object__btf(obj));

	bpf_object__for_each_program(prog, obj) rc = rc ? rc : add_name(h, hook_name(prog), hook_kind(prog));
	if (rc)
		return err_nomem(e, "the names of kernel types");
	h->known = kerntypes_read(h->btf_file, h->names, h->n, h->fd, NULL) == 0;
	return 0;
}

static const struct kerntypes_name *find(const struct kernhook *h, const char *name, uint32_t kind)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->names[i].kind == kind && strcmp(h->names[i].name, name) == 0)
			return &h->names[i];
	return NULL;
}

int kernhook_args(const struct kernhook *h, const char *event)
{
	const struct kerntypes_name *name;
	char typedef_name[64];

	snprintf(typedef_name, sizeof(typedef_name), "btf_trace_%s", event);
	name = h->known ? find(h, typedef_name, BTF_KIND_TYPEDEF) : NULL;
	return name ? (int)name->args - 1 : -1; /* less the one of who attaches */
}

void kernhook_set(const struct kernhook *h, struct bpf_object *obj)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, obj)
	{
		_cleanup_free_ char *name = hook_name(prog);
		const struct kerntypes_name *hook = name ? find(h, name, hook_kind(prog)) : NULL;

		if (h->known && name)
			bpf_program__set_attach_target(prog, hook ? (int)hook->id : 0, NULL);
	}
}

bool kernhook_is_iter(const struct bpf_program *prog)
{
	return strncmp(bpf_program__section_name(prog), ITER, strlen(ITER)) == 0;
}
