/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/probes.h"
#include "system/kernel_btf.h"
#include "system/privileges.h"
#include "system/worker.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define UNKNOWN_CMD 0x7fff
#define UNKNOWN_FLAG (1UL << 31)

static int call_bpf(void *arg)
{
	(void)arg;
	return syscall(SYS_bpf, UNKNOWN_CMD, (void *)1, 8) < 0 ? errno : 0;
}

/* A dummy event for this process in user space: needs no privilege up to perf_event_paranoid=2. */
static int call_own_event(void *arg)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.exclude_hv = 1 };

	(void)arg;
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? errno : 0;
}

static int call_perf(void *arg)
{
	(void)arg;
	return syscall(SYS_perf_event_open, NULL, 0, -1, -1, UNKNOWN_FLAG) < 0 ? errno : 0;
}

static bool filtered(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");
	int mode = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Seccomp: %d", &mode) == 1)
			break;
	if (f)
		fclose(f);
	return mode > 0;
}

static int forbidden(const char *name, int code, struct err *e)
{
	if (code < 0)
		err_set(e, -EPERM, "%s is forbidden: who calls it is killed by signal %d (%s)", name, -code,
			sigabbrev_np(-code) ? sigabbrev_np(-code) : "unknown");
	else
		err_set(e, -EPERM,
			"%s is forbidden%s: a call that the kernel would answer otherwise gives %s", name,
			filtered() ? " by a seccomp filter" : ", perhaps by a security module",
			err_name(-code));
	err_hint(e, "docker run --security-opt seccomp=unconfined ..., or a profile that permits bpf and "
		    "perf_event_open; in Kubernetes: seccompProfile: {type: Unconfined}");
	return -EPERM;
}

static int unprivileged_disabled(void)
{
	FILE *f = fopen("/proc/sys/kernel/unprivileged_bpf_disabled", "re");
	int value = 0;

	if (f) {
		if (fscanf(f, "%d", &value) != 1)
			value = 0;
		fclose(f);
	}
	return value;
}

int callprobe_bpf(char *found, size_t cap, struct err *e)
{
	int code = worker_try(call_bpf, NULL);

	if (code == EFAULT || code == EINVAL || code == E2BIG) {
		snprintf(found, cap, "no filter refuses bpf()");
		return 0;
	}
	if (code == ENOSYS && !filtered()) {
		err_set(e, -ENOSYS, "the kernel has no bpf() system call");
		err_hint(e, "boot a kernel built with CONFIG_BPF_SYSCALL=y");
		return -ENOSYS;
	}
	if (code == EPERM && unprivileged_disabled() && !priv_allow(CAP_BPF)) {
		snprintf(found, cap, "bpf() is closed without CAP_BPF, so a filter on it cannot be detected");
		return 0;
	}
	return forbidden("bpf()", code, e);
}

int callprobe_perf(char *found, size_t cap, struct err *e)
{
	int code = worker_try(call_perf, NULL);

	if (code == EINVAL) {
		snprintf(found, cap, "no filter refuses perf_event_open()");
		return 0;
	}
	if (code == ENOSYS && !filtered()) {
		err_set(e, -ENOSYS, "the kernel has no perf_event_open() system call");
		err_hint(e, "boot a kernel built with CONFIG_PERF_EVENTS=y");
		return -ENOSYS;
	}
	return forbidden("perf_event_open()", code, e);
}

int callprobe_own_event(void)
{
	return worker_try(call_own_event, NULL);
}

static int read_task_file(const char *name)
{
	char path[64], buf[256];
	ssize_t n;
	int fd, rc = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)gettid(), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	if (n < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int callprobe_task_files(char *found, size_t cap, struct err *e)
{
	static const char *const names[] = { "status", "syscall", "wchan", "schedstat", "stack", "maps" };
	char yes[128] = "stat", no[128] = "";
	int rc = read_task_file("stat");

	if (rc) {
		err_sys(e, rc, "cannot read '/proc/self/task/TID/stat': not even procfs mode can record");
		err_hint(e, "mount -t proc proc /proc");
		return rc;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		bool can = read_task_file(names[i]) == 0;
		char *list = can ? yes : no;
		size_t len = strlen(list);

		snprintf(list + len, sizeof(yes) - len, "%s%s", len ? ", " : "", names[i]);
	}
	snprintf(found, cap, "of own threads %s can be read%s%s", yes, no[0] ? ", but not " : "", no);
	return 0;
}

static int refused(const char *what, int code, struct err *e)
{
	return err_sys(e, code, "cannot %s", what);
}

int mapprobe_plain(char *found, size_t cap, struct err *e)
{
	static const struct {
		enum bpf_map_type type;
		const char *name;
		uint32_t value;
	} kinds[] = { { BPF_MAP_TYPE_ARRAY, "array", 8 }, { BPF_MAP_TYPE_PERCPU_ARRAY, "per-CPU array", 8 },
		{ BPF_MAP_TYPE_HASH, "hash", 8 }, { BPF_MAP_TYPE_LRU_HASH, "LRU hash", 8 },
		{ BPF_MAP_TYPE_PROG_ARRAY, "program array", 4 } };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		int fd = bpf_map_create(kinds[i].type, "probe", sizeof(uint32_t), kinds[i].value, 1, NULL);

		if (fd < 0)
			return err_sys(e, fd, "cannot create a map of type %s", kinds[i].name);
		close(fd);
	}
	snprintf(found, cap, "arrays, hashes and program arrays can be created");
	return 0;
}

int mapprobe_ring(char *found, size_t cap, struct err *e)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "probe", 0, 0, (uint32_t)page, NULL);
	void *consumer, *data;

	if (fd < 0)
		return refused("create a ring buffer", fd, e);
	consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	/* the producer's page, then the data twice, so that a record that wraps around is contiguous */
	data = mmap(NULL, 3 * page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (consumer == MAP_FAILED || data == MAP_FAILED)
		return refused("map a ring buffer into memory", -errno, e);
	snprintf(found, cap, "a ring buffer can be created and mapped");
	close(fd);
	return 0;
}

int mapprobe_mmapable(char *found, size_t cap, struct err *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(uint32_t), sizeof(uint64_t), 1, &opts);
	uint64_t *mapped, value = 0;
	uint32_t zero = 0;

	if (fd < 0)
		return refused("create an array that can be mapped", fd, e);
	mapped = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return refused("map an array into memory", -errno, e);
	*mapped = 0x5ca1ab1e;
	if (bpf_map_lookup_elem(fd, &zero, &value) != 0 || value != 0x5ca1ab1e)
		return err_set(e, -EIO, "what is written into a mapped array is not seen in it");
	snprintf(found, cap, "an array that is written through memory works");
	close(fd);
	return 0;
}

int mapprobe_map_in_map(char *found, size_t cap, struct err *e)
{
	_cleanup_close_ int inner =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(uint32_t), sizeof(uint64_t), 1, NULL);
	_cleanup_close_ int outer = -1;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)inner);
	uint32_t zero = 0;
	int rc;

	if (inner < 0)
		return refused("create an array", inner, e);
	outer = bpf_map_create(
		BPF_MAP_TYPE_ARRAY_OF_MAPS, "probe", sizeof(uint32_t), sizeof(uint32_t), 1, &opts);
	if (outer < 0)
		return refused("create an array of maps", outer, e);
	rc = bpf_map_update_elem(outer, &zero, &inner, BPF_ANY);
	if (rc)
		return refused("put a map into an array of maps", rc, e);
	snprintf(found, cap, "a map can be put into another");
	return 0;
}

/* Load BTF with the type of keys and values, which task storage requires. Returns its descriptor. */
static int load_int(uint32_t *id, struct err *e)
{
	struct btf *btf = btf__new_empty();
	int rc = btf ? btf__add_int(btf, "int", 4, BTF_INT_SIGNED) : -errno;

	if (rc > 0) {
		*id = (uint32_t)rc;
		rc = btf__load_into_kernel(btf);
	}
	/* btf__free() closes the descriptor: keep a duplicate */
	rc = rc ? rc : dup(btf__fd(btf));
	btf__free(btf);
	return rc < 0 ? refused("load BTF into the kernel", rc, e) : rc;
}

int mapprobe_task_storage(char *found, size_t cap, struct err *e)
{
	uint32_t id = 0, want = 42, got = 0;
	_cleanup_close_ int btf = load_int(&id, e), fd = -1, self = -1;
	int rc;

	if (btf < 0)
		return btf;
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC, .btf_fd = (uint32_t)btf,
		.btf_key_type_id = id, .btf_value_type_id = id);
	fd = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "probe", sizeof(int), sizeof(int), 0, &opts);
	if (fd < 0)
		return refused("create task storage", fd, e);
	self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (self < 0)
		return refused("open a process by pidfd_open()", -errno, e);
	rc = bpf_map_update_elem(fd, &self, &want, BPF_ANY);
	rc = rc ? rc : bpf_map_lookup_elem(fd, &self, &got);
	if (rc || got != want)
		return refused("use task storage", rc ? rc : -EIO, e);
	snprintf(found, cap, "task storage keeps what is put there");
	return 0;
}

int mapprobe_memlock(char *found, size_t cap, struct err *e)
{
	const struct rlimit none = { 0 };
	int fd;

	if (setrlimit(RLIMIT_MEMLOCK, &none) != 0)
		return refused("lower RLIMIT_MEMLOCK", -errno, e);
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", sizeof(uint32_t), sizeof(uint64_t), 1024, NULL);
	if (fd < 0 && fd != -EPERM)
		return refused("create an array", fd, e);
	snprintf(found, cap, "maps %s against RLIMIT_MEMLOCK", fd < 0 ? "count" : "do not count");
	if (fd >= 0)
		close(fd);
	return 0;
}

#define LOG_CAP 4096

#define MOV_R0(k) ((struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = (k) })
#define CALL(id) ((struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = (int)(id) })
#define EXIT ((struct bpf_insn){ .code = BPF_JMP | BPF_EXIT })

#define TP (1U << PROGPROBE_TP_BTF)
#define IT (1U << PROGPROBE_ITER)
#define SL (1U << PROGPROBE_SLEEPABLE)
#define CK (1U << PROGPROBE_CLOCK)
#define RAW (1U << PROGPROBE_RAW_TP)

#define HELPER(name, kinds)                                                                                  \
	{                                                                                                    \
		BPF_FUNC_##name, #name, kinds                                                                \
	}

static const struct progprobe_helper helpers[] = {
	HELPER(map_lookup_elem, TP | IT | SL | CK | RAW),
	HELPER(map_update_elem, TP | IT | SL | CK | RAW),
	HELPER(map_delete_elem, TP | RAW),
	HELPER(probe_read_user, TP | CK | RAW),
	HELPER(probe_read_kernel, TP | IT | SL | CK | RAW),
	HELPER(probe_read_kernel_str, TP | IT | SL | CK | RAW),
	HELPER(ktime_get_ns, TP | IT | SL | CK | RAW),
	HELPER(tail_call, TP | RAW),
	HELPER(get_current_pid_tgid, RAW),
	HELPER(get_current_task, TP | IT | RAW),
	HELPER(get_current_task_btf, TP | CK),
	HELPER(get_stack, TP | CK | RAW),
	HELPER(get_task_stack, TP | IT | SL),
	HELPER(task_storage_get, TP | IT | SL | CK),
	HELPER(task_pt_regs, TP | IT | SL | CK),
	HELPER(copy_from_user_task, SL),
	HELPER(ringbuf_output, TP | IT | SL | CK | RAW),
	HELPER(ringbuf_reserve, TP | IT | SL | CK | RAW),
	HELPER(ringbuf_submit, TP | IT | SL | CK | RAW),
	HELPER(ringbuf_discard, TP | IT | SL | CK),
	HELPER(ringbuf_query, TP | IT | SL | CK | RAW),
	HELPER(get_prandom_u32, TP | RAW),
	HELPER(seq_write, IT | SL),
	HELPER(loop, SL),
};

const struct progprobe_helper *progprobe_helpers(size_t *n)
{
	*n = ARRAY_LEN(helpers);
	return helpers;
}

static const char *const kind_names[] = { "tp_btf", "iter/task", "iter.s/task", "perf_event", "raw_tp" };

/* Indices into names[] of struct hooks: what programs attach to, then kernel functions. */
enum { SWITCH, TASK_ITER, FIRST_KFUNC };

static const char *const kfuncs[] = { "bpf_rcu_read_lock", "bpf_task_from_pid", "bpf_task_under_cgroup",
	"bpf_iter_task_vma_new", "bpf_get_task_exe_file" };

struct hooks {
	struct kernel_types_name names[FIRST_KFUNC + ARRAY_LEN(kfuncs)];
};

static int find_hooks(struct hooks *h, struct err *e)
{
	_cleanup_close_ int fd = memfd_create("hooks", MFD_CLOEXEC);

	*h = (struct hooks){ .names = {
				     [SWITCH] = { "btf_trace_sched_switch", BTF_KIND_TYPEDEF, 0 },
				     [TASK_ITER] = { "bpf_iter_task", BTF_KIND_FUNC, 0 },
			     } };
	for (size_t i = 0; i < ARRAY_LEN(kfuncs); i++)
		h->names[FIRST_KFUNC + i] =
			(struct kernel_types_name){ .name = kfuncs[i], .kind = BTF_KIND_FUNC };
	return fd < 0 ? err_sys(e, -errno, "cannot create a file in memory")
		      : kernel_types_read(NULL, h->names, ARRAY_LEN(h->names), fd, e);
}

/* Load a program of KIND. Writes the verifier's log to LOG (LOG_CAP bytes; NULL = not needed). */
static int load(
	const struct hooks *h, enum progprobe_kind kind, const struct bpf_insn *code, size_t n, char *log)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = log ? LOG_CAP : 0,
		.log_level = log ? 1 : 0);
	enum bpf_prog_type type = BPF_PROG_TYPE_TRACING;

	if (log)
		log[0] = '\0';
	if (kind == PROGPROBE_RAW_TP) {
		type = BPF_PROG_TYPE_RAW_TRACEPOINT;
	} else if (kind == PROGPROBE_CLOCK) {
		type = BPF_PROG_TYPE_PERF_EVENT;
	} else if (kind == PROGPROBE_TP_BTF) {
		opts.expected_attach_type = BPF_TRACE_RAW_TP;
		opts.attach_btf_id = h->names[SWITCH].id;
	} else {
		opts.expected_attach_type = BPF_TRACE_ITER;
		opts.attach_btf_id = h->names[TASK_ITER].id;
		opts.prog_flags = kind == PROGPROBE_SLEEPABLE ? BPF_F_SLEEPABLE : 0;
	}
	return bpf_prog_load(type, "probe", "GPL", code, n, &opts);
}

/* Try a program without calls: if it cannot be loaded, refused calls say nothing about the helpers. */
static int load_any(const struct hooks *h, enum progprobe_kind kind, struct err *e)
{
	struct bpf_insn code[] = { MOV_R0(0), EXIT };
	int fd = load(h, kind, code, ARRAY_LEN(code), NULL);

	if (fd < 0)
		return err_sys(e, fd, "cannot load a program at %s", kind_names[kind]);
	close(fd);
	return 0;
}

static bool may_call(const struct hooks *h, enum progprobe_kind kind, uint32_t id)
{
	struct bpf_insn code[] = { CALL(id), EXIT };
	char log[LOG_CAP];
	int fd = load(h, kind, code, ARRAY_LEN(code), log);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (log[0] && !strstr(log, "invalid func ") && !strstr(log, "unknown func ") &&
				  !strstr(log, "cannot use helper "));
}

/* Append the listed helpers that KIND may not call to MISSING. Returns how many of the list KIND uses. */
static size_t try_kind(const struct hooks *h, enum progprobe_kind kind, char *missing, size_t cap)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(helpers); i++) {
		size_t len = strlen(missing);

		if (!(helpers[i].kinds & 1U << kind))
			continue;
		n++;
		if (!may_call(h, kind, helpers[i].id))
			snprintf(missing + len, cap - len, "%s%s (%s)", len ? ", " : "", helpers[i].name,
				kind_names[kind]);
	}
	return n;
}

int progprobe_helper_calls(char *found, size_t cap, struct err *e)
{
	char missing[300] = "";
	size_t n[PROGPROBE_KINDS];
	struct hooks h;
	int rc = find_hooks(&h, e);

	if (!rc)
		rc = load_any(&h, PROGPROBE_TP_BTF, e);
	if (rc)
		return rc;
	for (enum progprobe_kind kind = PROGPROBE_TP_BTF; kind <= PROGPROBE_CLOCK; kind++)
		n[kind] = try_kind(&h, kind, missing, sizeof(missing));
	if (missing[0])
		return err_set(e, -EOPNOTSUPP, "the kernel does not let programs call: %s", missing);
	snprintf(found, cap,
		"helpers may be called: %zu at tp_btf, %zu in iter/task, %zu in iter.s/task, %zu at "
		"perf_event",
		n[PROGPROBE_TP_BTF], n[PROGPROBE_ITER], n[PROGPROBE_SLEEPABLE], n[PROGPROBE_CLOCK]);
	return 0;
}

int progprobe_raw_calls(char *found, size_t cap, struct err *e)
{
	char missing[300] = "";
	int rc = load_any(NULL, PROGPROBE_RAW_TP, e);
	size_t n;

	if (rc)
		return rc;
	n = try_kind(NULL, PROGPROBE_RAW_TP, missing, sizeof(missing));
	if (missing[0])
		return err_set(e, -EOPNOTSUPP, "the kernel does not let programs call: %s", missing);
	snprintf(found, cap, "helpers may be called: %zu at raw_tp", n);
	return 0;
}

static bool may_call_kfunc(const struct hooks *h, uint32_t id)
{
	struct bpf_insn code[] = { CALL(id), EXIT };
	char log[LOG_CAP];
	int fd;

	code[0].src_reg = BPF_PSEUDO_KFUNC_CALL;
	fd = load(h, PROGPROBE_ITER, code, ARRAY_LEN(code), log);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || (log[0] && !strstr(log, "is not allowed") && !strstr(log, "does not support"));
}

int progprobe_kfuncs(char *found, size_t cap, struct err *e)
{
	char yes[160] = "", no[160] = "";
	struct hooks h;
	int rc = find_hooks(&h, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < ARRAY_LEN(kfuncs); i++) {
		uint32_t id = h.names[FIRST_KFUNC + i].id;
		char *list = id && may_call_kfunc(&h, id) ? yes : no;
		size_t len = strlen(list);

		snprintf(list + len, sizeof(yes) - len, "%s%s", len ? ", " : "", kfuncs[i]);
	}
	snprintf(found, cap, "kernel functions, which no tool needs: %s may be called%s%s",
		yes[0] ? yes : "none", no[0] ? ", not " : "", no);
	return 0;
}

int progprobe_raw_run(char *found, size_t cap, struct err *e)
{
	struct bpf_insn code[] = { MOV_R0(42), EXIT };
	int prog = load(NULL, PROGPROBE_RAW_TP, code, ARRAY_LEN(code), NULL), rc;
	LIBBPF_OPTS(bpf_test_run_opts, run);

	if (prog < 0)
		return err_sys(e, prog, "cannot load a program for raw tracepoints");
	rc = bpf_prog_test_run_opts(prog, &run);
	close(prog);
	if (rc || run.retval != 42)
		return err_sys(e, rc ? rc : -EIO, "cannot run a program without attaching it (Linux 5.10)");
	snprintf(found, cap, "a program for raw tracepoints runs without being attached");
	return 0;
}

/* Run a program that tail-calls another, which returns 42. */
int progprobe_tail_call(char *found, size_t cap, struct err *e)
{
	int array =
		bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "probe", sizeof(uint32_t), sizeof(uint32_t), 1, NULL);
	struct bpf_insn callee[] = { MOV_R0(42), EXIT };
	struct bpf_insn caller[] = {
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
			.dst_reg = BPF_REG_2,
			.src_reg = BPF_PSEUDO_MAP_FD,
			.imm = array },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3 },
		CALL(BPF_FUNC_tail_call),
		MOV_R0(1),
		EXIT,
	};
	LIBBPF_OPTS(bpf_test_run_opts, run);
	uint32_t zero = 0;
	int to, from, rc;

	if (array < 0)
		return err_sys(e, array, "cannot create a program array");
	to = load(NULL, PROGPROBE_RAW_TP, callee, ARRAY_LEN(callee), NULL);
	from = load(NULL, PROGPROBE_RAW_TP, caller, ARRAY_LEN(caller), NULL);
	if (to < 0 || from < 0)
		return err_sys(e, to < 0 ? to : from, "cannot load a program that tail-calls another");
	rc = bpf_map_update_elem(array, &zero, &to, BPF_ANY);
	if (rc)
		return err_sys(e, rc, "cannot put a program into a program array");
	rc = bpf_prog_test_run_opts(from, &run);
	if (!rc && run.retval != 42)
		return err_set(e, -EIO, "a tail call does not arrive");
	/* before 5.10, raw tracepoint programs cannot be run without being attached */
	snprintf(found, cap, "%s", rc ? "a tail call can be loaded" : "a tail call arrives");
	close(from);
	close(to);
	close(array);
	return 0;
}

static int read_iterator(int prog, struct err *e)
{
	int link = bpf_link_create(prog, 0, BPF_TRACE_ITER, NULL), iter;
	char buf[64];
	ssize_t n;

	if (link < 0)
		return err_sys(e, link, "cannot attach a task iterator");
	iter = bpf_iter_create(link);
	if (iter < 0)
		return err_sys(e, iter, "cannot create a task iterator");
	while ((n = read(iter, buf, sizeof(buf))) > 0)
		;
	if (n < 0)
		return err_sys(e, -errno, "cannot read a task iterator");
	close(iter);
	close(link);
	return 0;
}

static int try_iterator(enum progprobe_kind kind, char *found, size_t cap, struct err *e)
{
	struct bpf_insn code[] = { MOV_R0(0), EXIT };
	struct hooks h;
	int rc = find_hooks(&h, e), prog;

	if (rc)
		return rc;
	if (!h.names[TASK_ITER].id)
		return err_set(e, -ENOENT, "the kernel has no task iterator (Linux 5.8)");
	prog = load(&h, kind, code, ARRAY_LEN(code), NULL);
	if (prog < 0)
		return err_sys(e, prog, "cannot load a task iterator%s",
			kind == PROGPROBE_SLEEPABLE ? " that may sleep" : "");
	rc = read_iterator(prog, e);
	close(prog);
	if (!rc)
		snprintf(found, cap, "a task iterator%s goes through all tasks",
			kind == PROGPROBE_SLEEPABLE ? " that may sleep" : "");
	return rc;
}

int progprobe_iterator(char *found, size_t cap, struct err *e)
{
	return try_iterator(PROGPROBE_ITER, found, cap, e);
}

int progprobe_sleepable_iterator(char *found, size_t cap, struct err *e)
{
	return try_iterator(PROGPROBE_SLEEPABLE, found, cap, e);
}

int progprobe_sleepable(char *found, size_t cap, struct err *e)
{
	struct bpf_insn code[] = { MOV_R0(42), EXIT };
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int prog = bpf_prog_load(BPF_PROG_TYPE_SYSCALL, "probe", "GPL", code, ARRAY_LEN(code), &opts), rc;

	if (prog < 0)
		return err_sys(e, prog, "cannot load a program that may sleep");
	rc = bpf_prog_test_run_opts(prog, &run);
	close(prog);
	if (rc || run.retval != 42)
		return err_sys(e, rc ? rc : -EIO, "cannot run a program that may sleep");
	snprintf(found, cap, "a program that may sleep runs");
	return 0;
}

static void describe(int fd, const char *mode, int to)
{
	struct progprobe_program p = { .insns = 0 };
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len) != 0)
		return;
	snprintf(p.mode, sizeof(p.mode), "%s", mode);
	snprintf(p.name, sizeof(p.name), "%s", info.name);
	p.insns = info.verified_insns;
	p.compiled = info.jited_prog_len != 0;
	if (write(to, &p, sizeof(p)) != (ssize_t)sizeof(p))
		return;
}

int progprobe_programs(const char *mode, int to, struct err *e)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char link[64];

	if (!dir)
		return err_sys(e, -errno, "cannot read '/proc/self/fd'");
	while ((entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strstr(link, "bpf-prog"))
			describe(atoi(entry->d_name), mode, to);
	}
	closedir(dir);
	return 0;
}
