/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/privilege_steps.h"
#include "offcpu.skel.h"
#include "stackmap/shot.h"
#include "system/events.h"
#include "system/tracefs.h"
#include "unwind_abi.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096

/* The maps of bpf/offcpu*.bpf.[ch] and bpf/stackmap-take.h, in small sizes. */
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

static const char *priv_bpf_map_name(size_t i)
{
	return i < ARRAY_LEN(kinds) ? kinds[i].name : NULL;
}

static const char *priv_bpf_stackshot_name(size_t i)
{
	return i < ARRAY_LEN(shots) ? shots[i].name : NULL;
}

/* Load the BTF of one int, which the key and the value of a task storage map must have. */
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

static int priv_bpf_btf(struct priv_bpf *b, const char *arg, struct err *e)
{
	_cleanup_close_ int fd = -1;
	uint32_t type;
	int rc = load_int(&fd, &type);

	(void)b, (void)arg;
	return rc ? err_sys(e, rc, "cannot load type information (BTF)") : 0;
}

/* Create what a map of this kind needs besides its sizes. */
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

/* Map its memory into this process, as the tools do. */
static int map_memory(const struct kind *k, int fd)
{
	void *p;

	if (k->type != BPF_MAP_TYPE_RINGBUF && !(k->flags & BPF_F_MMAPABLE))
		return 0;
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED || munmap(p, PAGE) != 0 ? -errno : 0;
}

/* Create a map of the kind ARG: one of the names of priv_bpf_map_name(). */
static int priv_bpf_map(struct priv_bpf *b, const char *arg, struct err *e)
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

static int make_maps(struct priv_bpf *b, struct err *e)
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
	rc = aggmap_open(&b->agg, 1024, false, e);
	return rc ? rc : offprogs_load_maps(&b->progs, &opts, b->agg.outer_fd, e);
}

/* Create the recorder's maps, those of the unwind tables included, unless this was tried before. */
static int need_maps(struct priv_bpf *b, struct err *e)
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

static struct bpf_program *find_kept(const struct priv_bpf *b, const char *name)
{
	for (size_t i = 0; i < b->n_kept; i++)
		if (strcmp(b->kept[i].name, name) == 0)
			return bpf_object__find_program_by_name(b->kept[i].skel->obj, name);
	return NULL;
}

/* Load the program NAME, unless an earlier step did. */
static int need_program(struct priv_bpf *b, const char *name, struct bpf_program **ret, struct err *e)
{
	struct offcpu_bpf *skel = NULL;
	int rc;

	*ret = find_kept(b, name);
	if (*ret)
		return 0;
	rc = need_maps(b, e);
	if (!rc && b->n_kept == PRIV_BPF_KEPT)
		rc = err_set(e, -ENOSPC, "there are more than %d programs", PRIV_BPF_KEPT);
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

/* Load the recorder's program ARG with the recorder's own maps. */
static int priv_bpf_load(struct priv_bpf *b, const char *arg, struct err *e)
{
	struct bpf_program *prog;

	return need_program(b, arg, &prog, e);
}

static int priv_bpf_attach(struct priv_bpf *b, const char *arg, struct err *e)
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

static int priv_bpf_place(struct priv_bpf *b, const char *arg, struct err *e)
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

static int priv_bpf_iterate(struct priv_bpf *b, const char *arg, struct err *e)
{
	struct bpf_program *prog;
	int rc = need_program(b, arg, &prog, e);

	return rc ? rc : taskiter_run(prog, (uint32_t)getpid(), 1, NULL, NULL, e);
}

/*
 * Call FN with the name of each program of the recorder, until it fails. -errno
 * also if they cannot be opened, which takes no privilege.
 */
static int priv_bpf_programs(int (*fn)(void *ctx, const char *name), void *ctx, struct err *e)
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

/* Load and attach stackmap-test's program of the type named ARG. */
static int priv_bpf_stackshot(struct priv_bpf *b, const char *arg, struct err *e)
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

#define PRIV_TARGETS_OTHER 65533 /* a third user */
#define PRIV_TARGETS_MAGIC UINT64_C(0x5354414b544f4f4c) /* the first bytes of a process's own file */

extern char **environ;

/* The first mapping of libc in /proc/self/maps, else that of the first file, the program itself. */
static int find_common(struct priv_targets_map *m, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/maps", "re");
	char line[512], path[256];

	if (!f)
		return err_sys(e, -errno, "cannot read '/proc/self/maps'");
	while (fgets(line, sizeof(line), f)) {
		uintptr_t start, end;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %255[^\n]", &start, &end, path) !=
				3 ||
			path[0] != '/')
			continue;
		if (m->end && !strstr(path, "/libc.so"))
			continue;
		*m = (struct priv_targets_map){ .start = start, .end = end };
		memcpy(m->path, path, sizeof(path));
		if (strstr(path, "/libc.so"))
			break;
	}
	return m->end ? 0 : err_set(e, -ENOENT, "no file is mapped in '/proc/self/maps'");
}

/* Reserve a page, at whose address each process maps its own file. */
static int reserve(struct priv_targets_map *m, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return err_sys(e, -errno, "cannot map a page");
	*m = (struct priv_targets_map){ .start = (uintptr_t)p, .end = (uintptr_t)p + page };
	return 0;
}

static bool become(uid_t uid)
{
	cap_t none = cap_init();
	bool ok = none;

	if (uid != geteuid() || getuid() != geteuid())
		ok = ok && setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
		     setresuid(uid, uid, uid) == 0;
	ok = ok && cap_set_proc(none) == 0;
	if (none)
		cap_free(none);
	return ok;
}

/* Other users may be able to read this process: do not expose our environment to them. */
static void forget_environment(void)
{
	for (char **p = environ; p && *p; p++)
		memset(*p, 0, strlen(*p));
}

static bool map_own(const struct priv_targets_map *m)
{
	const uint64_t magic = PRIV_TARGETS_MAGIC;
	int fd = memfd_create("own", MFD_CLOEXEC);
	size_t len = m->end - m->start;
	void *at = (void *)m->start;

	return fd >= 0 && fchmod(fd, 0600) == 0 && ftruncate(fd, (off_t)len) == 0 &&
	       pwrite(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       mmap(at, len, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == at && close(fd) == 0;
}

struct life {
	const struct priv_targets *world;
	enum priv_targets_process kind;
	uid_t uid;
};

/* In the child: change user, drop all capabilities, map its own file. */
static int become_it(void *arg, struct err *e)
{
	const struct life *l = arg;

	forget_environment();
	if (!become(l->uid) || !map_own(&l->world->own) ||
		prctl(PR_SET_DUMPABLE, l->kind != PRIV_TARGETS_HIDDEN, 0, 0, 0) != 0)
		return err_sys(e, -EPERM, "cannot become user %u", l->uid);
	return 0;
}

/* Do nothing until the parent closes its end of SOCK. */
static int live(void *arg, int sock)
{
	(void)arg;
	/* hold nothing else open */
	if (sock > 3)
		close_range(3, (unsigned int)sock - 1, 0);
	close_range((unsigned int)sock + 1, ~0U, 0);
	worker_serve(sock, NULL, 0, NULL, NULL);
	return 0;
}

static int start(struct priv_targets *w, enum priv_targets_process kind, uid_t uid, struct err *e)
{
	struct life life = { .world = w, .kind = kind, .uid = uid };
	const struct worker_opts opts = {
		.who = "a process to try privileges on", .prepare = become_it, .run = live, .arg = &life
	};
	int rc = worker_start(&opts, &w->process[kind], e);

	if (rc || worker_ready(w->process[kind], NULL) == 0)
		return rc;
	worker_free(w->process[kind]);
	w->process[kind] = NULL;
	return 0;
}

int priv_targets_open(uid_t user, struct priv_targets *ret, struct err *e)
{
	const uid_t uids[PRIV_TARGETS_PROCESSES] = { 0, user, PRIV_TARGETS_OTHER, PRIV_TARGETS_OTHER };
	int rc;

	*ret = (struct priv_targets){ .user = user };
	rc = find_common(&ret->common, e);
	rc = rc ? rc : reserve(&ret->own, e);
	for (enum priv_targets_process kind = 0; kind < PRIV_TARGETS_PROCESSES && !rc; kind++)
		rc = start(ret, kind, uids[kind], e);
	if (rc)
		priv_targets_close(ret);
	return rc;
}

void priv_targets_leave(const struct priv_targets *w)
{
	for (enum priv_targets_process kind = 0; kind < PRIV_TARGETS_PROCESSES; kind++)
		if (w->process[kind])
			close(worker_fd(w->process[kind]));
}

void priv_targets_close(struct priv_targets *w)
{
	for (enum priv_targets_process kind = 0; kind < PRIV_TARGETS_PROCESSES; kind++)
		worker_free(w->process[kind]);
	if (w->own.start)
		munmap((void *)w->own.start, w->own.end - w->own.start);
	*w = (struct priv_targets){ 0 };
}

#define KALLSYMS_LINES 5000 /* many of the first may be per-CPU symbols, which are zero for everyone */

/* Read up to LEN of the first bytes of PATH; -ENODATA if it is empty. */
static int read_some(const char *path, void *to, size_t len, struct err *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(e, -errno, "cannot open '%s'", path);
	n = read(fd, to, len);
	if (n < 0)
		return err_sys(e, -errno, "cannot read '%s'", path);
	return n ? 0 : err_set(e, -ENODATA, "'%s' is empty", path);
}

static int read_of(pid_t pid, const char *what, struct err *e)
{
	char path[64], some[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	rc = read_some(path, some, sizeof(some), e);
	return rc == -ENODATA ? 0 : rc; /* the stack of a process that is running is empty */
}

static int priv_proc_maps(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w;
	return read_of(pid, "maps", e);
}

static int priv_proc_syscall(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w;
	return read_of(pid, "syscall", e);
}

static int priv_proc_stack(const struct priv_targets *w, pid_t pid, struct err *e)
{
	(void)w;
	return read_of(pid, "stack", e);
}

static int priv_proc_root(const struct priv_targets *w, pid_t pid, struct err *e)
{
	char path[sizeof(w->common.path) + 32], some[4];

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, w->common.path);
	return read_some(path, some, sizeof(some), e);
}

static void map_files_path(const struct priv_targets_map *m, pid_t pid, char path[96])
{
	snprintf(path, 96, "/proc/%d/map_files/%zx-%zx", (int)pid, (size_t)m->start, (size_t)m->end);
}

static int priv_proc_map_files(const struct priv_targets *w, pid_t pid, struct err *e)
{
	char path[96], some[4];

	map_files_path(&w->common, pid, path);
	return read_some(path, some, sizeof(some), e);
}

static int is_magic(uint64_t got, const char *how, struct err *e)
{
	return got == PRIV_TARGETS_MAGIC ? 0 : err_set(e, -EBADMSG, "something else is read by %s", how);
}

static int priv_proc_own_file(const struct priv_targets *w, pid_t pid, struct err *e)
{
	uint64_t got = 0;
	char path[96];
	int rc;

	map_files_path(&w->own, pid, path);
	rc = read_some(path, &got, sizeof(got), e);
	return rc ? rc : is_magic(got, "map_files", e);
}

static int priv_proc_memory(const struct priv_targets *w, pid_t pid, struct err *e)
{
	uint64_t got = 0;
	struct iovec here = { &got, sizeof(got) }, there = { (void *)w->own.start, sizeof(got) };

	if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0)
		return err_sys(e, -errno, "cannot read the memory of process %d", (int)pid);
	return is_magic(got, "process_vm_readv", e);
}

static int priv_proc_mem_file(const struct priv_targets *w, pid_t pid, struct err *e)
{
	_cleanup_close_ int fd = -1;
	uint64_t got = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, &got, sizeof(got), (off_t)w->own.start) < 0)
		return err_sys(e, -errno, "cannot read '%s'", path);
	return is_magic(got, path, e);
}

static int priv_proc_ptrace(const struct priv_targets *w, pid_t pid, struct err *e)
{
	int status;

	(void)w;
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
		return err_sys(e, -errno, "cannot trace process %d", (int)pid);
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) != 0 || waitpid(pid, &status, __WALL) != pid ||
		ptrace(PTRACE_DETACH, pid, NULL, NULL) != 0)
		return err_sys(e, -errno, "cannot stop process %d", (int)pid);
	return 0;
}

static int priv_proc_event(const struct priv_targets *w, pid_t pid, struct err *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.task = 1,
	};
	_cleanup_close_ int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	(void)w;
	return fd < 0 ? err_sys(e, -errno, "cannot open a perf event for process %d", (int)pid) : 0;
}

static int priv_proc_events(const struct priv_targets *w, pid_t pid, struct err *e)
{
	struct procevents *p = NULL;
	int rc = procevents_open(&(struct procevents_opts){ 0 }, &p, e);

	(void)w, (void)pid;
	procevents_close(p);
	return rc;
}

static int priv_proc_kallsyms(const struct priv_targets *w, pid_t pid, struct err *e)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	char line[512];

	(void)w, (void)pid;
	if (!f)
		return err_sys(e, -errno, "cannot open '/proc/kallsyms'");
	for (int i = 0; i < KALLSYMS_LINES && fgets(line, sizeof(line), f); i++)
		if (strtoull(line, NULL, 16))
			return 0;
	return err_set(e, -EACCES, "every address in '/proc/kallsyms' is zero");
}

static int priv_proc_btf(const struct priv_targets *w, pid_t pid, struct err *e)
{
	char some[24];

	(void)w, (void)pid;
	return read_some("/sys/kernel/btf/vmlinux", some, sizeof(some), e);
}

static int priv_proc_tracefs(const struct priv_targets *w, pid_t pid, struct err *e)
{
	int id = tracefs_event_id("raw_syscalls/sys_enter", e);

	(void)w, (void)pid;
	return MIN(id, 0);
}

int priv_proc_memlock(const struct priv_targets *w, pid_t pid, struct err *e)
{
	struct rlimit low = { 65536, 65536 }, had;

	(void)w, (void)pid;
	if (getrlimit(RLIMIT_MEMLOCK, &had) != 0)
		return err_sys(e, -errno, "cannot get RLIMIT_MEMLOCK");
	if (had.rlim_max < low.rlim_max)
		low = (struct rlimit){ had.rlim_max, had.rlim_max };
	if (setrlimit(RLIMIT_MEMLOCK, &low) != 0)
		return err_sys(e, -errno, "cannot lower RLIMIT_MEMLOCK");
	low.rlim_max++;
	return setrlimit(RLIMIT_MEMLOCK, &low) ? err_sys(e, -errno, "cannot raise RLIMIT_MEMLOCK") : 0;
}

static const struct {
	const char *title, *reason;
} groups[] = {
	[PRIV_STEP_MAPS] = { "create a BPF map", "create BPF maps and load type information" },
	[PRIV_STEP_PROGRAMS] = { "load a program of offcpu-record", "load the recorder's BPF programs" },
	[PRIV_STEP_ATTACH] = { "attach", "attach BPF programs to the scheduler's tracepoints" },
	[PRIV_STEP_ITERATORS] = { "create and read a task iterator",
		"go through all tasks by BPF iterators" },
	[PRIV_STEP_RAW] = { "record without the kernel's BTF", "record by raw tracepoints" },
	[PRIV_STEP_STACKMAP] = { "load and attach one of stackmap-test", "load and attach BPF programs" },
	[PRIV_STEP_PERF] = { "open perf dummy events", "open perf events" },
	[PRIV_STEP_KERNEL] = { "read of the kernel", "read of the kernel" },
	[PRIV_STEP_OWN] = { "of a process of one's own", "read your own processes" },
	[PRIV_STEP_OTHER] = { "of another user's process", "read other users' processes" },
	[PRIV_STEP_LIMITS] = { "limits", "raise limits" },
};

/* After the BPF steps. */
static const struct priv_step procs[] = {
	{ "proc.own.maps", "read its maps", PRIV_STEP_OWN, priv_proc_maps, NULL, PRIV_TARGETS_OF_USER, "",
		false },
	{ "proc.own.map_files", "open a mapped file by map_files", PRIV_STEP_OWN, priv_proc_map_files, NULL,
		PRIV_TARGETS_OF_USER, "", false },
	{ "proc.own.memory", "read its memory", PRIV_STEP_OWN, priv_proc_memory, NULL, PRIV_TARGETS_OF_USER,
		"", false },
	{ "proc.own.ptrace", "trace and stop it", PRIV_STEP_OWN, priv_proc_ptrace, NULL, PRIV_TARGETS_OF_USER,
		"", false },
	{ "proc.own.stack", "read its kernel stack in /proc", PRIV_STEP_OWN, priv_proc_stack, NULL,
		PRIV_TARGETS_OF_USER, "", false },
	{ "proc.other.maps", "read its maps", PRIV_STEP_OTHER, priv_proc_maps, NULL, PRIV_TARGETS_OF_OTHER,
		"", false },
	{ "proc.other.maps_hidden", "the same, not dumpable", PRIV_STEP_OTHER, priv_proc_maps, NULL,
		PRIV_TARGETS_HIDDEN, "", false },
	{ "proc.other.root", "open a mapped file by its root", PRIV_STEP_OTHER, priv_proc_root, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.map_files", "open a mapped file by map_files", PRIV_STEP_OTHER, priv_proc_map_files,
		NULL, PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.private_file", "the same, a file of mode 0600", PRIV_STEP_OTHER, priv_proc_own_file,
		NULL, PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.memory", "read its memory, process_vm_readv", PRIV_STEP_OTHER, priv_proc_memory, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.mem_file", "read its memory, /proc/PID/mem", PRIV_STEP_OTHER, priv_proc_mem_file, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.ptrace", "trace and stop it", PRIV_STEP_OTHER, priv_proc_ptrace, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.syscall", "read its system call in /proc", PRIV_STEP_OTHER, priv_proc_syscall, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "proc.other.stack", "read its kernel stack in /proc", PRIV_STEP_OTHER, priv_proc_stack, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "perf.own", "for a process of one's own", PRIV_STEP_PERF, priv_proc_event, NULL,
		PRIV_TARGETS_OF_USER, "", false },
	{ "perf.other", "for another user's process", PRIV_STEP_PERF, priv_proc_event, NULL,
		PRIV_TARGETS_OF_OTHER, "", false },
	{ "perf.system", "on every CPU, with their buffers", PRIV_STEP_PERF, priv_proc_events, NULL,
		PRIV_TARGETS_OF_USER, "", false },
	{ "kernel.kallsyms", "addresses of symbols (kallsyms)", PRIV_STEP_KERNEL, priv_proc_kallsyms, NULL,
		PRIV_TARGETS_OF_USER, "", false },
	{ "kernel.btf", "type information (BTF)", PRIV_STEP_KERNEL, priv_proc_btf, NULL, PRIV_TARGETS_OF_USER,
		"", false },
	{ "kernel.tracefs", "the id of a tracepoint (tracefs)", PRIV_STEP_KERNEL, priv_proc_tracefs, NULL,
		PRIV_TARGETS_OF_USER, "", false },
};

static const struct priv_step limits[] = {
	{ "limit.memlock", "raise RLIMIT_MEMLOCK", PRIV_STEP_LIMITS, priv_proc_memlock, NULL,
		PRIV_TARGETS_OF_USER, "", false },
};

const char *priv_step_title(enum priv_step_group group)
{
	return groups[group].title;
}

const char *priv_step_reason(enum priv_step_group group)
{
	return groups[group].reason;
}

/* Add the BPF step PREFIX.NAME, which calls FN with ARG. */
static int add(struct priv_step_list *list, enum priv_step_group group, const char *prefix, const char *name,
	priv_bpf_fn fn, const char *arg)
{
	struct priv_step *s = &list->list[list->n];

	if (list->n == PRIV_STEP_MAX)
		return -ENOSPC;
	*s = (struct priv_step){ .group = group, .bpf = fn, .kernel_memory = group != PRIV_STEP_MAPS };
	snprintf(s->id, sizeof(s->id), "%s.%s", prefix, name);
	snprintf(s->does, sizeof(s->does), "%s", name);
	snprintf(s->arg, sizeof(s->arg), "%s", arg);
	list->n++;
	return 0;
}

static int add_all(struct priv_step_list *list, const struct priv_step *steps, size_t n)
{
	if (n > PRIV_STEP_MAX - list->n)
		return -ENOSPC;
	for (size_t i = 0; i < n; i++)
		list->list[list->n++] = steps[i];
	return 0;
}

static int add_program(void *ctx, const char *name)
{
	return add(ctx, PRIV_STEP_PROGRAMS, "record", name, priv_bpf_load, name);
}

/* Mode raw as a whole: find the members of a task, load the programs and attach them. */
static int try_raw(struct priv_bpf *b, const char *arg, struct err *e)
{
	const struct offcpu_opts opts = { .raw = true, .follow = true };
	struct offcpu *o = NULL;
	int rc;

	(void)b, (void)arg;
	/* the change of user cleared it; a recorder started as this user can read its own /proc files */
	prctl(PR_SET_DUMPABLE, 1);
	rc = offcpu_load(&opts, &o, e);
	if (!rc)
		rc = offcpu_attach(o, e);
	offcpu_close(o);
	return rc;
}

static int add_recorder(struct priv_step_list *list, struct err *e)
{
	int rc = priv_bpf_programs(add_program, list, e);

	if (!rc)
		rc = add(list, PRIV_STEP_ATTACH, "attach", "tp_btf", priv_bpf_attach, "sched_switch");
	if (!rc)
		rc = add(list, PRIV_STEP_ATTACH, "attach", "prog_array", priv_bpf_place, "sched_switch");
	if (!rc)
		rc = add(list, PRIV_STEP_ITERATORS, "iterator", "task", priv_bpf_iterate, "open_waits");
	if (!rc)
		rc = add(
			list, PRIV_STEP_ITERATORS, "iterator", "task_sleepable", priv_bpf_iterate, "waiting");
	return rc ? rc : add(list, PRIV_STEP_RAW, "raw", "load_and_attach", try_raw, "");
}

int priv_step_all(struct priv_step_list *ret, struct err *e)
{
	const char *name;
	int rc = 0;

	ret->n = 0;
	for (size_t i = 0; !rc && (name = priv_bpf_map_name(i)); i++)
		rc = add(ret, PRIV_STEP_MAPS, "map", name, priv_bpf_map, name);
	if (!rc)
		rc = add(ret, PRIV_STEP_MAPS, "map", "btf", priv_bpf_btf, "");
	if (!rc)
		rc = add_recorder(ret, e);
	for (size_t i = 0; !rc && (name = priv_bpf_stackshot_name(i)); i++)
		rc = add(ret, PRIV_STEP_STACKMAP, "stackmap", name, priv_bpf_stackshot, name);
	if (!rc)
		rc = add_all(ret, procs, ARRAY_LEN(procs));
	if (!rc)
		rc = add_all(ret, limits, ARRAY_LEN(limits));
	return rc == -ENOSPC ? err_set(e, rc, "there are more than %d steps to try", PRIV_STEP_MAX) : rc;
}

int priv_step_do(
	const struct priv_step *s, const struct priv_targets *w, uid_t uid, struct priv_bpf *b, struct err *e)
{
	enum priv_targets_process whose =
		s->whose == PRIV_TARGETS_OF_USER && uid == 0 ? PRIV_TARGETS_OF_ROOT : s->whose;
	pid_t pid;

	if (s->bpf)
		return s->bpf(b, s->arg, e);
	pid = (pid_t)worker_pid(w->process[whose]);
	if (!pid)
		return err_set(e, PRIV_STEP_UNTRIED, "a process of another user cannot be made here");
	return s->proc(w, pid, e);
}
