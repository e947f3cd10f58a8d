/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/shot.h"
#include "stackmap-btf.skel.h"
#include "stackmap.skel.h"
#include "system/kernel_btf.h"
#include "system/privileges.h"
#include "system/tracefs.h"
#include "system/verifier.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

struct query {
	uint64_t addr;
	struct loaded *ret;
	bool found;
};

/* Find the GNU build ID among the notes, LEN bytes at P. */
static void read_notes(const uint8_t *p, size_t len, struct loaded *ret)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, desc, whole;

		memcpy(&note, p, sizeof(note));
		name = (note.n_namesz + 3UL) & ~3UL;
		desc = (note.n_descsz + 3UL) & ~3UL;
		whole = sizeof(note) + name + desc;
		if (whole > len)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
			memcmp(p + sizeof(note), "GNU", 4) == 0) {
			ret->build_id = p + sizeof(note) + name;
			ret->build_id_len = note.n_descsz;
			return;
		}
		p += whole;
		len -= whole;
	}
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct query *q = data;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || q->addr < start || q->addr >= start + ph->p_memsz)
			continue;
		*q->ret = (struct loaded){
			.path = info->dlpi_name,
			.vaddr = q->addr - info->dlpi_addr,
			.offset = q->addr - start + ph->p_offset,
		};
		q->found = true;
	}
	for (size_t i = 0; q->found && !q->ret->build_id && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_NOTE)
			read_notes((const uint8_t *)at, ph->p_memsz, q->ret);
	}
	return q->found;
}

bool loaded_find(uint64_t addr, struct loaded *ret)
{
	struct query q = { .addr = addr, .ret = ret };

	dl_iterate_phdr(visit_object, &q);
	return q.found;
}

#define SYS_ENTER "raw_syscalls/sys_enter" /* the tracepoint */
#define DEFAULT_ENTRIES 1024
#define DEFAULT_DEPTH 127
#define PERIOD_NS 500000
#define TRIES 10

static const struct {
	const char *name, *program;
	enum chain_trigger trigger;
} types[STACKSHOT_TYPES] = {
	[STACKSHOT_RAW_TP] = { "raw_tp/sys_enter", "at_raw_tp", CHAIN_GETPGID },
	[STACKSHOT_TRACEPOINT] = { "tracepoint/raw_syscalls/sys_enter", "at_tracepoint", CHAIN_GETPGID },
	[STACKSHOT_TP_BTF] = { "tp_btf/sys_enter", "at_tp_btf", CHAIN_GETPGID },
	[STACKSHOT_SWITCH] = { "tp_btf/sched_switch", "at_sched_switch", CHAIN_SLEEP },
	[STACKSHOT_PERF] = { "perf_event (software cpu-clock)", "at_perf_event", CHAIN_SPIN },
	[STACKSHOT_UPROBE] = { "uprobe", "at_uprobe", CHAIN_PROBE },
	[STACKSHOT_KPROBE] = { "kprobe", "at_kprobe", CHAIN_GETPGID },
};

struct stackshot {
	enum stackshot_type type;
	struct stackmap_bpf *plain; /* either this or btf is set */
	struct stackmap_btf_bpf *btf;
	struct bpf_hooks hooks; /* of btf */
	struct bpf_object *obj;
	struct stackmap_state *state;
	struct bpf_link *link;
	int stacks_fd, counts_fd, taken_fd;
};

struct stackmap_state *stackshot_state(struct stackshot *s)
{
	return s->state;
}

int stackshot_map_fd(const struct stackshot *s)
{
	return s->stacks_fd;
}

int stackshot_counts_fd(const struct stackshot *s)
{
	return s->counts_fd;
}

void stackshot_close(struct stackshot *s)
{
	if (!s)
		return;
	bpf_link__destroy(s->link);
	stackmap_bpf__destroy(s->plain);
	stackmap_btf_bpf__destroy(s->btf);
	bpf_hooks_close(&s->hooks);
	free(s);
}

DEFINE_CLEANUP(struct stackshot *, stackshot_close);

/*
 * Set the message for CODE of STEP; if the kernel refused it, with the missing privilege or kernel feature. A
 * uprobe through perf_event_open() requires CAP_SYS_ADMIN, even with CAP_PERFMON.
 */
static int refused(const struct stackshot *s, const char *step, int code, struct err *e)
{
	static const int needed[] = { CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN };
	bool probe = s->type == STACKSHOT_UPROBE || s->type == STACKSHOT_KPROBE;
	bool attaching = strcmp(step, "attach") == 0;
	char what[128];

	snprintf(what, sizeof(what), "%s a %s program", step, types[s->type].name);
	if (code == -EPERM || code == -EACCES)
		return priv_explain(what, code, needed, ARRAY_LEN(needed) - !(probe && attaching), e);
	if (s->type == STACKSHOT_KPROBE && access("/sys/bus/event_source/devices/kprobe", F_OK) != 0)
		return err_set(e, code,
			"this kernel has no kprobes (CONFIG_KPROBE_EVENTS): "
			"/sys/bus/event_source/devices/kprobe is absent");
	if (s->type == STACKSHOT_UPROBE && access("/sys/bus/event_source/devices/uprobe", F_OK) != 0)
		return err_set(e, code,
			"this kernel has no uprobes (CONFIG_UPROBE_EVENTS): "
			"/sys/bus/event_source/devices/uprobe is absent");
	if (s->btf && access("/sys/kernel/btf/vmlinux", F_OK) != 0)
		return err_set(e, code,
			"this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): "
			"/sys/kernel/btf/vmlinux is absent");
	return err_set(e, code, "cannot %s: %s (%s)", what, strerror(-code), err_name(code));
}

static struct bpf_prog_info program_info(const struct stackshot *s)
{
	struct bpf_program *p = bpf_object__find_program_by_name(s->obj, types[s->type].program);
	struct bpf_prog_info info = { .type = 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len) != 0)
		info = (struct bpf_prog_info){ .type = 0 };
	return info;
}

uint32_t stackshot_program_bytes(const struct stackshot *s)
{
	return program_info(s).jited_prog_len;
}

uint64_t stackshot_misses(const struct stackshot *s)
{
	return program_info(s).recursion_misses;
}

static struct stackmap_btf_bpf *open_skeleton(const struct stackshot *s)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = bpf_hooks_path(&s->hooks));

	return stackmap_btf_bpf__open_opts(&opts);
}

static int open_btf(struct stackshot *s, struct err *e)
{
	int code = bpf_hooks_open(&s->hooks, NULL, e);

	if (code)
		return code;
	s->btf = open_skeleton(s);
	if (s->btf)
		code = bpf_hooks_read(&s->hooks, s->btf->obj, e);
	if (code)
		return code;
	if (s->btf && !s->hooks.known) {
		stackmap_btf_bpf__destroy(s->btf);
		s->btf = open_skeleton(s);
	}
	if (!s->btf)
		return err_sys(e, -errno, "cannot open the BPF object");
	s->obj = s->btf->obj;
	bpf_hooks_set(&s->hooks, s->obj);
	return 0;
}

/* Open the object that contains the program of this type. */
static int open_object(struct stackshot *s, struct err *e)
{
	if (s->type == STACKSHOT_TP_BTF || s->type == STACKSHOT_SWITCH)
		return open_btf(s, e);
	s->plain = stackmap_bpf__open();
	s->obj = s->plain ? s->plain->obj : NULL;
	return s->obj ? 0 : err_sys(e, -errno, "cannot open the BPF object");
}

/* Errors are ignored: if tracefs cannot be read, attaching fails with the reason. */
static void find_fields(struct stackshot *s)
{
	struct tracefs_field id = { "id", sizeof(long), 0 };

	if (s->type == STACKSHOT_TRACEPOINT && tracefs_fields(SYS_ENTER, &id, 1, NULL) == 0)
		s->plain->rodata->id_offset = id.offset;
}

static int configure(struct stackshot *s, const struct stackshot_opts *o, struct err *e)
{
	struct bpf_map *stacks = bpf_object__find_map_by_name(s->obj, "stacks");
	uint32_t frame = o->build_id ? sizeof(struct bpf_stack_build_id) : sizeof(uint64_t);
	struct bpf_program *p = NULL;
	int code;

	while ((p = bpf_object__next_program(s->obj, p)))
		bpf_program__set_autoload(p, strcmp(bpf_program__name(p), types[s->type].program) == 0);
	find_fields(s);
	code = bpf_map__set_max_entries(stacks, o->entries ? o->entries : DEFAULT_ENTRIES);
	if (!code)
		code = bpf_map__set_value_size(stacks, (o->depth ? o->depth : DEFAULT_DEPTH) * frame);
	if (!code && o->build_id)
		code = bpf_map__set_map_flags(stacks, BPF_F_STACK_BUILD_ID);
	return code ? err_sys(e, code, "cannot size the stack-trace map") : 0;
}

static struct bpf_link *attach_uprobe(const struct bpf_program *p)
{
	struct loaded at;

	if (!loaded_find(chain_probe_address(), &at)) {
		errno = ENOENT;
		return NULL;
	}
	return bpf_program__attach_uprobe(p, false, 0, "/proc/self/exe", at.offset);
}

/* Attach P to the event described by ATTR, for thread PID (0 = this one; -1 = all, on CPU 0). */
static struct bpf_link *attach_event(const struct bpf_program *p, struct perf_event_attr *attr, int pid)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, pid, pid < 0 ? 0 : -1, -1, PERF_FLAG_FD_CLOEXEC);
	struct bpf_link *link;

	if (fd < 0)
		return NULL;
	link = bpf_program__attach_perf_event(p, fd); /* the link owns the descriptor from here on */
	if (!link) {
		int code = errno;

		close(fd);
		errno = code;
	}
	return link;
}

static struct bpf_link *attach_clock(const struct bpf_program *p)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
		.exclude_kernel = 1,
	};

	return attach_event(p, &attr, 0);
}

/*
 * Does not use libbpf for this, since libbpf looks for tracefs only at its mount points. A program on a
 * tracepoint runs on all CPUs, whatever the CPU of the event.
 */
static int attach_tracepoint(struct stackshot *s, const struct bpf_program *p, struct err *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.sample_period = 1,
	};
	static const int needed[] = { CAP_SYS_ADMIN };
	int id = tracefs_event_id(SYS_ENTER, e);

	if (id == -EPERM)
		return priv_explain("mount tracefs, which is not mounted", id, needed, 1, e);
	if (id < 0)
		return id;
	attr.config = (unsigned int)id;
	errno = 0;
	s->link = attach_event(p, &attr, -1);
	return s->link ? 0 : refused(s, "attach", errno ? -errno : -EINVAL, e);
}

static int attach(struct stackshot *s, struct err *e)
{
	struct bpf_program *p = bpf_object__find_program_by_name(s->obj, types[s->type].program);

	if (s->type == STACKSHOT_TRACEPOINT)
		return attach_tracepoint(s, p, e);
	errno = 0;
	if (s->type == STACKSHOT_PERF)
		s->link = attach_clock(p);
	else if (s->type == STACKSHOT_UPROBE)
		s->link = attach_uprobe(p);
	else if (s->type == STACKSHOT_KPROBE)
		s->link = bpf_program__attach_ksyscall(p, "getpgid", NULL);
	else
		s->link = bpf_program__attach(p);
	return s->link ? 0 : refused(s, "attach", errno ? -errno : -EINVAL, e);
}

/* Select this process, by its PID in its own PID namespace, and set the defaults of the request. */
static int aim(struct stackshot *s, struct err *e)
{
	struct stat st;

	s->state = s->btf ? &s->btf->bss->state : &s->plain->bss->state;
	s->stacks_fd = bpf_object__find_map_fd_by_name(s->obj, "stacks");
	s->counts_fd = bpf_object__find_map_fd_by_name(s->obj, "counts");
	s->taken_fd = bpf_object__find_map_fd_by_name(s->obj, "taken");
	if (stat("/proc/self/ns/pid", &st) != 0)
		return err_sys(e, -errno, "cannot examine '/proc/self/ns/pid'");
	s->state->ns_dev = st.st_dev;
	s->state->ns_ino = st.st_ino;
	s->state->tgid = (uint32_t)getpid();
	s->state->nr = chain_syscall_nr(types[s->type].trigger);
	s->state->get_bytes = DEFAULT_DEPTH * sizeof(uint64_t);
	s->state->id_flags[STACKMAP_USER] = s->state->get_flags[STACKMAP_USER] = BPF_F_USER_STACK;
	return 0;
}

static int load(struct stackshot *s, struct err *e)
{
	struct verifier_log log;
	int code = verifier_log_open(&log, s->obj, e);

	if (code)
		return code;
	code = s->btf ? stackmap_btf_bpf__load(s->btf) : stackmap_bpf__load(s->plain);
	if (code && verifier_log_refused(&log, code, 0, e))
		err_hint(e, "no privilege changes that");
	else if (code)
		refused(s, "load", code, e);
	verifier_log_close(&log);
	return code;
}

int stackshot_open(const struct stackshot_opts *opts, struct stackshot **ret, struct err *e)
{
	CLEANUP(stackshot_close_p) struct stackshot *s = calloc(1, sizeof(*s));
	int code;

	if (!s)
		return err_nomem(e, "a BPF program");
	s->type = opts->type;
	code = open_object(s, e);
	if (!code)
		code = configure(s, opts, e);
	if (code)
		return code;
	code = load(s, e);
	if (!code)
		code = aim(s, e);
	if (!code)
		code = attach(s, e);
	if (code)
		return code;
	*ret = TAKE_PTR(s);
	return 0;
}

static void disarm(struct stackshot *s)
{
	volatile struct stackmap_state *st = s->state;
	uint32_t zero = 0;

	st->armed = STACKMAP_OFF;
	st->hits = 0;
	bpf_map_delete_elem(s->taken_fd, &zero);
}

/* Run W once with the program armed. True if the program saw it. */
static bool fire_once(struct stackshot *s, struct chain_walk *w)
{
	volatile struct stackmap_state *st = s->state;

	disarm(s);
	if (w->trigger == CHAIN_SPIN) {
		/* the sample must fall into the loop, so the trigger arms the program itself */
		w->spin.stop = (volatile uint64_t *)&s->state->hits;
		w->spin.armed = &s->state->armed;
		w->spin.arm = STACKMAP_ONCE;
	} else {
		st->armed = STACKMAP_ONCE;
	}
	chain_run(w);
	st->armed = STACKMAP_OFF;
	return st->hits == 1;
}

/*
 * Repeats a run that the program did not see. On a busy machine, a sleep can be over before the thread leaves
 * its CPU, and a loop can end without a sample. Also, the kernel does not run a program on a CPU where it or
 * another one is interrupted before its end, as happens in preemptible kernels.
 */
int stackshot_fire(struct stackshot *s, struct chain_walk *w, struct err *e)
{
	s->state->tid = (uint32_t)gettid();
	w->trigger = types[s->type].trigger;
	for (int tries = TRIES; tries > 0; tries--)
		if (fire_once(s, w))
			return 0;
	return err_set(e, -ENODATA, "the %s program did not see the call chain", types[s->type].name);
}

int stackshot_kthread(struct stackshot *s, struct err *e)
{
	volatile struct stackmap_state *st = s->state;
	struct timespec ms = { .tv_nsec = 1000000 };

	disarm(s);
	st->armed = STACKMAP_KTHREAD;
	for (int i = 0; i < 5000 && !st->hits; i++)
		nanosleep(&ms, NULL);
	st->armed = STACKMAP_OFF;
	return st->hits ? 0 : err_set(e, -ENODATA, "no kernel thread ran within 5 s");
}

void stackshot_count_start(struct stackshot *s)
{
	volatile struct stackmap_state *st = s->state;

	st->tid = 0;
	st->armed = STACKMAP_COUNT;
}

void stackshot_count_stop(struct stackshot *s)
{
	volatile struct stackmap_state *st = s->state;

	st->armed = STACKMAP_OFF;
}
