/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/progprobe.h"
#include "record/kernel_btf.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <linux/btf.h>
#include <string.h>
#include <sys/mman.h>

#define LOG_CAP 4096

#define MOV_R0(k) ((struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = (k) })
#define CALL(id) ((struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = (int)(id) })
#define EXIT ((struct bpf_insn){ .code = BPF_JMP | BPF_EXIT })

#define TP (1U << PROGPROBE_TP_BTF)
#define IT (1U << PROGPROBE_ITER)
#define SL (1U << PROGPROBE_SLEEPABLE)
#define RAW (1U << PROGPROBE_RAW_TP)

#define HELPER(name, kinds)                                                                                  \
	{                                                                                                    \
		BPF_FUNC_##name, #name, kinds                                                                \
	}

static const struct progprobe_helper helpers[] = {
	HELPER(map_lookup_elem, TP | IT | SL | RAW),
	HELPER(map_update_elem, TP | IT | SL | RAW),
	HELPER(map_delete_elem, TP | RAW),
	HELPER(probe_read_user, TP | RAW),
	HELPER(probe_read_kernel, TP | IT | SL | RAW),
	HELPER(probe_read_kernel_str, TP | IT | SL | RAW),
	HELPER(ktime_get_ns, TP | IT | SL | RAW),
	HELPER(tail_call, TP | RAW),
	HELPER(get_current_pid_tgid, RAW),
	HELPER(get_current_task, TP | IT | RAW),
	HELPER(get_stack, TP | RAW),
	HELPER(get_task_stack, TP | IT | SL),
	HELPER(task_storage_get, TP | IT | SL),
	HELPER(task_pt_regs, TP | IT | SL),
	HELPER(copy_from_user_task, SL),
	HELPER(ringbuf_output, TP | IT | SL | RAW),
	HELPER(ringbuf_reserve, TP | IT | SL | RAW),
	HELPER(ringbuf_submit, TP | IT | SL | RAW),
	HELPER(ringbuf_query, TP | IT | SL | RAW),
	HELPER(seq_write, IT | SL),
	HELPER(loop, SL),
};

const struct progprobe_helper *progprobe_helpers(size_t *n)
{
	*n = ARRAY_LEN(helpers);
	return helpers;
}

static const char *const kind_names[] = { "tp_btf", "iter/task", "iter.s/task", "raw_tp" };

/* Of the kernel's BTF: what the programs attach to, and functions. */
enum { SWITCH, TASK_ITER, FIRST_KFUNC };

static const char *const kfuncs[] = { "bpf_rcu_read_lock", "bpf_task_from_pid", "bpf_task_under_cgroup",
	"bpf_iter_task_vma_new", "bpf_get_task_exe_file" };

struct hooks {
	struct kerntypes_name names[FIRST_KFUNC + ARRAY_LEN(kfuncs)];
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
			(struct kerntypes_name){ .name = kfuncs[i], .kind = BTF_KIND_FUNC };
	return fd < 0 ? err_sys(e, -errno, "cannot create a file in memory")
		      : kerntypes_read(NULL, h->names, ARRAY_LEN(h->names), fd, e);
}

/* A program of KIND; the verifier's complaint in LOG (NULL: nobody asks). */
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

/* Where nothing can be loaded, nothing is known about helpers. */
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

/* Those of the list that KIND may not call, appended to MISSING; how many it calls. */
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
	for (enum progprobe_kind kind = PROGPROBE_TP_BTF; kind <= PROGPROBE_SLEEPABLE; kind++)
		n[kind] = try_kind(&h, kind, missing, sizeof(missing));
	if (missing[0])
		return err_set(e, -EOPNOTSUPP, "the kernel lets programs not call: %s", missing);
	snprintf(found, cap, "helpers may be called: %zu at tp_btf, %zu in iter/task, %zu in iter.s/task",
		n[PROGPROBE_TP_BTF], n[PROGPROBE_ITER], n[PROGPROBE_SLEEPABLE]);
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
		return err_set(e, -EOPNOTSUPP, "the kernel lets programs not call: %s", missing);
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

/* One program that tail-calls another, which gives 42: by really running it. */
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
	/* such programs can be run so since 5.10 */
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
