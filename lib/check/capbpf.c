/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/capbpf.h"
#include "record/bpf.h"
#include "stackmap/stackshot.h"
#include "unwind_abi.h"

#include "offcpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

/* As bpf/offcpu*.bpf.[ch] and bpf/stackmap-take.h have them, but small. */
static const struct kind {
	const char *name;
	enum bpf_map_type type;
	uint32_t key, value, entries, flags;
} kinds[] = {
	{ "array", BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 },
	{ "mmapable_array", BPF_MAP_TYPE_ARRAY, 4, 8, 1, BPF_F_MMAPABLE },
	{ "hash", BPF_MAP_TYPE_HASH, 4, 8, 16, 0 },
	{ "percpu_array", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 1, 0 },
	{ "lru_hash", BPF_MAP_TYPE_LRU_HASH, 16, 1, 16, 0 },
	{ "ring_buffer", BPF_MAP_TYPE_RINGBUF, 0, 0, PAGE, 0 },
	{ "array_of_maps", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0 },
	{ "task_storage", BPF_MAP_TYPE_TASK_STORAGE, 4, 4, 0, BPF_F_NO_PREALLOC },
	{ "prog_array", BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 1, 0 },
	{ "stack_trace", BPF_MAP_TYPE_STACK_TRACE, 4, 64, 16, 0 },
};

static const struct {
	const char *name;
	enum stackshot_type type;
} shots[] = {
	{ "raw_tp", STACKSHOT_RAW_TP },
	{ "tracepoint", STACKSHOT_TRACEPOINT },
	{ "tp_btf", STACKSHOT_TP_BTF },
	{ "sched_switch", STACKSHOT_SWITCH },
	{ "perf_event", STACKSHOT_PERF },
	{ "uprobe", STACKSHOT_UPROBE },
	{ "kprobe", STACKSHOT_KPROBE },
};

_Static_assert(ARRAY_LEN(shots) == STACKSHOT_TYPES, "every type");

const char *capbpf_map_name(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i].name : NULL;
}

const char *capbpf_stackshot_name(size_t i)
{
	return i < ARRAY_LEN(shots) ? shots[i].name : NULL;
}

/* Type information of one int: what a task storage has to know of its key and value. */
static int load_int(int *ret, uint32_t *type)
{
	struct btf *btf = btf__new_empty();
	int id = btf ? btf__add_int(btf, "int", 4, BTF_INT_SIGNED) : -errno, rc = id < 0 ? id : 0;

	if (!rc)
		rc = btf__load_into_kernel(btf);
	if (!rc) {
		*ret = fcntl(btf__fd(btf), F_DUPFD_CLOEXEC, 3);
		*type = (uint32_t)id;
	}
	btf__free(btf);
	return rc;
}

int capbpf_btf(struct capbpf *b, const char *arg, struct err *e)
{
	_cleanup_close_ int fd = -1;
	uint32_t type;
	int rc = load_int(&fd, &type);

	(void)b, (void)arg;
	return rc ? err_sys(e, rc, "cannot load type information (BTF)") : 0;
}

/* What maps of this kind need besides their sizes. */
static int prepare(const struct kind *k, struct bpf_map_create_opts *opts, int *with)
{
	if (k->type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
		*with = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, 8, 1, NULL);
		opts->inner_map_fd = (uint32_t)*with;
		return MIN(*with, 0);
	}
	if (k->type == BPF_MAP_TYPE_TASK_STORAGE) {
		int rc = load_int(with, &opts->btf_key_type_id);

		opts->btf_fd = (uint32_t)*with;
		opts->btf_value_type_id = opts->btf_key_type_id;
		return rc;
	}
	return 0;
}

/* Its memory seen from here, as the tools see it. */
static int map_memory(const struct kind *k, int fd)
{
	void *p;

	if (k->type != BPF_MAP_TYPE_RINGBUF && !(k->flags & BPF_F_MMAPABLE))
		return 0;
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED || munmap(p, PAGE) != 0 ? -errno : 0;
}

int capbpf_map(struct capbpf *b, const char *arg, struct err *e)
{
	const struct kind *k = kinds;
	_cleanup_close_ int with = -1, fd = -1;
	int rc;

	(void)b;
	while (k < kinds + ARRAY_LEN(kinds) && strcmp(k->name, arg) != 0)
		k++;
	if (k == kinds + ARRAY_LEN(kinds))
		return err_set(e, -ENOENT, "no kind of map is called '%s'", arg);
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = k->flags);
	rc = prepare(k, &opts, &with);
	if (!rc) {
		fd = bpf_map_create(k->type, "caps", k->key, k->value, k->entries, &opts);
		rc = fd < 0 ? fd : map_memory(k, fd);
	}
	return rc ? err_sys(e, rc, "cannot create a map, %s", arg) : 0;
}

static int make_maps(struct capbpf *b, struct err *e)
{
	const struct unwindspace_opts space = {
		.bytes = 2 * UNWIND_CHUNK_BYTES, .first_chunks = 1, .procs_at_once = true
	};
	struct offcpu_opts opts = {
		.follow = true, .use_tids = true, .use_comms = true, .use_exec = true, .tables = &b->fds
	};
	int rc = unwindspace_open(&space, &b->space, e);

	if (rc)
		return rc;
	unwindspace_fds(b->space, &b->fds);
	rc = aggmap_open(&b->agg, 1024, e);
	return rc ? rc : offprogs_load_maps(&b->progs, &opts, b->agg.outer_fd, e);
}

/* The recorder's maps, once; those of the stack tables among them. */
static int need_maps(struct capbpf *b, struct err *e)
{
	if (!b->maps) {
		int rc = make_maps(b, &b->why);

		b->maps = rc ? rc : 1;
	}
	if (b->maps > 0)
		return 0;
	if (e)
		*e = b->why;
	return b->maps;
}

static struct bpf_program *find_kept(const struct capbpf *b, const char *name)
{
	for (size_t i = 0; i < b->n_kept; i++)
		if (strcmp(b->kept[i].name, name) == 0)
			return bpf_object__find_program_by_name(b->kept[i].skel->obj, name);
	return NULL;
}

/* The program NAME, loaded: now, or by an earlier step. */
static int need_program(struct capbpf *b, const char *name, struct bpf_program **ret, struct err *e)
{
	struct offcpu_bpf *skel = NULL;
	int rc;

	*ret = find_kept(b, name);
	if (*ret)
		return 0;
	rc = need_maps(b, e);
	if (!rc && b->n_kept == CAPBPF_KEPT)
		rc = err_set(e, -ENOSPC, "there are more than %d programs", CAPBPF_KEPT);
	if (!rc)
		rc = offprogs_load_one(&b->progs, name, &skel, e);
	if (rc) {
		offcpu_bpf__destroy(skel);
		return rc;
	}
	snprintf(b->kept[b->n_kept].name, sizeof(b->kept[0].name), "%s", name);
	b->kept[b->n_kept++].skel = skel;
	*ret = find_kept(b, name);
	return *ret ? 0 : err_set(e, -ENOENT, "the program '%s' is gone", name);
}

int capbpf_load(struct capbpf *b, const char *arg, struct err *e)
{
	struct bpf_program *prog;

	return need_program(b, arg, &prog, e);
}

int capbpf_attach(struct capbpf *b, const char *arg, struct err *e)
{
	struct bpf_program *prog;
	struct bpf_link *link;
	int rc = need_program(b, arg, &prog, e);

	if (rc)
		return rc;
	link = bpf_program__attach(prog);
	if (!link)
		return err_sys(e, -errno, "cannot attach the program '%s'", arg);
	bpf_link__destroy(link);
	return 0;
}

int capbpf_place(struct capbpf *b, const char *arg, struct err *e)
{
	struct bpf_program *prog;
	uint32_t zero = 0;
	int rc = need_program(b, arg, &prog, e), fd;

	if (rc)
		return rc;
	fd = bpf_program__fd(prog);
	rc = bpf_map_update_elem(bpf_map__fd(b->progs.base->maps.recording), &zero, &fd, BPF_ANY);
	return rc ? err_sys(e, rc, "cannot put the program '%s' into the program array", arg) : 0;
}

int capbpf_iterate(struct capbpf *b, const char *arg, struct err *e)
{
	struct bpf_program *prog;
	int rc = need_program(b, arg, &prog, e);

	return rc ? rc : taskiter_run(prog, (uint32_t)getpid(), 1, NULL, NULL, e);
}

int capbpf_programs(int (*fn)(void *ctx, const char *name), void *ctx, struct err *e)
{
	struct offcpu_bpf *skel;
	struct bpf_program *prog;
	int rc = 0;

	libbpf_set_print(NULL);
	skel = offcpu_bpf__open();
	if (!skel)
		return err_sys(e, -errno, "cannot open the recorder's BPF programs");
	bpf_object__for_each_program(prog, skel->obj) rc = rc ? rc : fn(ctx, bpf_program__name(prog));
	offcpu_bpf__destroy(skel);
	return rc;
}

int capbpf_stackshot(struct capbpf *b, const char *arg, struct err *e)
{
	struct stackshot *s = NULL;
	int rc = -ENOENT;

	(void)b;
	for (size_t i = 0; i < ARRAY_LEN(shots); i++)
		if (strcmp(shots[i].name, arg) == 0)
			rc = stackshot_open(&(struct stackshot_opts){ .type = shots[i].type }, &s, e);
	stackshot_close(s);
	return rc;
}
