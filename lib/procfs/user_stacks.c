/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/user_stacks.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/search.h"
#include "procfs/thread_copy.h"
#include "record/files.h"
#include "system/broker.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "unwind/walk.h"
#include "unwind/host.h"
#include "unwind_code.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

_Static_assert(THREAD_COPY_REGS == OFFCPU_SNAPSHOT_REGS, "what snapwalk() takes");

/*
 * ptmaps - the mappings of a process, and their unwind tables.
 *
 * A file that can no longer be opened (deleted, or on a mount that is not visible
 * here) is rebuilt in a memfd from what the process has mapped of it: its headers
 * and unwind tables are in segments that are loaded.
 */

struct ptmap {
	struct procmap m;
	uint32_t file; /* of struct walktables, or WALKTABLES_NONE; */
	bool file_known; /* set once `file` was looked up */
};

/* A file that could not be opened, by the first of its mappings that a walk reached, and its replacement. */
struct remade {
	struct procmap m; /* without a path */
	uint32_t file;
};

struct ptmaps {
	char *text; /* of /proc/PID/maps; holds the paths */
	uint64_t hash; /* of that, as it was read; 0 = not yet */
	uint64_t read_ns; /* when it was last read */
	bool narrow; /* of an i386 program */
	struct ptmap *maps; /* by address */
	size_t n, cap;
	struct remade *remade;
	size_t n_remade, max_remade;
};

#define MAPS_NS UINT64_C(10000000) /* how long maps are trusted, if they cover all that a walk needs */
#define FILE_BYTES_MAX (UINT64_C(256) << 20) /* of a file that is rebuilt from its mappings */
#define CHUNK (64u << 10)
#define MAPS_MAX (64u << 20)

static void ptmaps_free(struct ptmaps *s)
{
	free(s->text);
	free(s->maps);
	free(s->remade);
}

/* EM_386 if process PID runs an i386 program, EM_X86_64 for x32, EM_ARM for another one of 32 bits; 0 = none
 * of these. */
static uint16_t machine_of_32_bit(const struct thread_memory *r, uint32_t pid)
{
	char head[PROCFILE_EXE_BYTES];
	uint16_t machine;

	if (proc_view_text(r->helper, pid, pid, PROCFILE_EXE, head, sizeof(head)) != sizeof(head) ||
		memcmp(head, ELFMAG, SELFMAG) != 0 || head[EI_CLASS] != ELFCLASS32)
		return 0;
	memcpy(&machine, head + offsetof(Elf32_Ehdr, e_machine), sizeof(machine));
	return machine;
}

/* Parse the mappings of TEXT, which S owns from now on. */
static int take_text(struct ptmaps *s, char *text, struct err *e)
{
	free(s->text);
	s->text = text;
	s->n = 0;
	for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct procmap m;

		if (!procmaps_parse(line, &m))
			continue;
		if (base_grow(&s->maps, &s->cap, s->n + 1, sizeof(*s->maps)) != 0)
			return err_nomem(e, "the mappings of a process");
		s->maps[s->n++] = (struct ptmap){ .m = m, .file = WALKTABLES_NONE };
	}
	return 0;
}

/* Read the mappings. -ENOEXEC for an x32 program, and a 32-bit one of arm64; -ESRCH, -EACCES and the like,
 * with the message. */
static int ptmaps_read(struct ptmaps *s, const struct thread_memory *r, uint32_t pid, struct err *e)
{
	_cleanup_close_ int fd = procaccess_open(r->broker, BROKER_MAPS, pid);
	_cleanup_free_ char *text = NULL;
	uint16_t machine;
	uint64_t hash;
	size_t len;
	int rc = fd < 0 ? fd : base_read(fd, MAPS_MAX, &text, &len);

	if (rc)
		return err_sys(e, rc == -ENOENT ? -ESRCH : rc, "cannot read '/proc/%u/maps'", pid);
	s->read_ns = now_ns();
	hash = hash_bytes(text, len, HASH_K0) | 1;
	if (hash == s->hash)
		return 0;
	s->hash = 0;
	machine = machine_of_32_bit(r, pid);
	if (machine && machine != EM_386)
		return err_set(e, -ENOEXEC, "process %u runs %s program", pid,
			machine == EM_X86_64 ? "an x32" : "a 32-bit");
	s->narrow = machine == EM_386;
	rc = take_text(s, TAKE_PTR(text), e);
	s->hash = rc ? 0 : hash;
	return rc;
}

static struct ptmap *ptmaps_at(const struct ptmaps *s, uint64_t pc)
{
	size_t at = PARTITION_POINT(0, s->n, mid, s->maps[mid].m.end <= pc);
	struct ptmap *m = at < s->n ? &s->maps[at] : NULL;

	return m && m->m.start <= pc && (m->m.prot & PROT_EXEC) ? m : NULL;
}

/* --- a file rebuilt from its mappings --- */

static bool same_inode(const struct procmap *a, const struct procmap *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Copy mapping M to FD. True if that includes the beginning of the file. */
static bool copy_mapping(const struct thread_memory *r, uint32_t pid, const struct procmap *m, int fd)
{
	_cleanup_free_ uint8_t *bytes = malloc(CHUNK);
	uint64_t len = m->end - m->start;

	if (!bytes || m->offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - m->offset)
		return false;
	for (uint64_t done = 0; done < len; done += CHUNK) {
		size_t take = (size_t)MIN(len - done, CHUNK);
		ssize_t n = thread_memory_memory(r, (pid_t)pid, m->start + done, bytes, take);

		if (n <= 0 || pwrite(fd, bytes, (size_t)n, (off_t)(m->offset + done)) != n)
			return done && !m->offset;
	}
	return !m->offset;
}

/* Sections are not mapped, so clear the header's references to them. */
static bool forget_sections(int fd)
{
	union {
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} h = { 0 };

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.wide.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (h.wide.e_ident[EI_CLASS] == ELFCLASS32) {
		h.narrow.e_shoff = 0;
		h.narrow.e_shnum = h.narrow.e_shstrndx = 0;
	} else {
		h.wide.e_shoff = 0;
		h.wide.e_shnum = h.wide.e_shstrndx = 0;
	}
	return pwrite(fd, &h, sizeof(h), 0) == sizeof(h);
}

/* Rebuild the file of LIKE. Writable mappings are skipped: they may differ from the file. */
static int remake(
	const struct ptmaps *s, const struct thread_memory *r, uint32_t pid, const struct procmap *like)
{
	_cleanup_close_ int fd = memfd_create("remade", MFD_CLOEXEC);
	bool any = false;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i < s->n; i++) {
		const struct procmap *m = &s->maps[i].m;

		if (same_inode(m, like) && (m->prot & PROT_READ) && !(m->prot & PROT_WRITE))
			any |= copy_mapping(r, pid, m, fd);
	}
	return any && forget_sections(fd) ? TAKE_FD(fd) : -ENOENT;
}

/* CODE says why M's file cannot be opened. It is rebuilt once, however often the mappings are read. */
static uint32_t remade_file(struct ptmaps *s, const struct thread_memory *r, uint32_t pid,
	const struct procmap *m, int code, struct walktables *t)
{
	_cleanup_close_ int fd = -1;
	uint32_t file = WALKTABLES_NONE;

	for (size_t i = 0; i < s->n_remade; i++) {
		const struct procmap *was = &s->remade[i].m;

		if (same_inode(was, m) && was->start == m->start && was->end == m->end &&
			was->offset == m->offset)
			return s->remade[i].file;
	}
	if (base_grow(&s->remade, &s->max_remade, s->n_remade + 1, sizeof(*s->remade)) != 0)
		return WALKTABLES_NONE;
	fd = remake(s, r, pid, m);
	if (fd >= 0)
		file = walktables_add(t, NULL, fd);
	else
		walktables_miss(t, code);
	s->remade[s->n_remade] = (struct remade){ .m = *m, .file = file };
	s->remade[s->n_remade++].m.path = NULL;
	return file;
}

/* --- the tables --- */

/* A file is identified by the status of what was opened. */
static uint32_t file_of(struct ptmaps *s, const struct thread_memory *r, uint32_t pid,
	const struct procmap *m, struct walktables *t)
{
	_cleanup_close_ int fd = -1;
	uint32_t file;
	struct stat st;

	if (vdso_kind(m))
		return walktables_vdso(t, vdso_kind(m));
	if (!m->inode || mapfile_is_pseudo(m->path))
		return WALKTABLES_NONE;
	if (mapfile_stat(r->broker, pid, m, &st) == 0) {
		file = walktables_find(t, &st);
		if (file != WALKTABLES_NONE)
			return file;
	}
	fd = mapfile_open(r->broker, pid, m, &st);
	if (fd == -EMEDIUMTYPE)
		return WALKTABLES_NONE;
	if (fd < 0)
		return remade_file(s, r, pid, m, fd, t);
	file = walktables_find(t, &st);
	return file != WALKTABLES_NONE ? file : walktables_add(t, &st, fd);
}

#define STATUS_MAX (64u << 10)

struct facts {
	bool there;
	unsigned int tracer, uid, yama;
	bool kthread, undumpable, more_caps;
	bool hidden, others; /* it exists, but not in /proc (hidepid); by kill(2), it is another user's */
};

const char *thread_refusal_name(enum thread_refusal why)
{
	static const char *const names[THREAD_REFUSAL_COUNT] = { "gone", "kernel-thread", "32-bit", "traced",
		"other-user", "privileged", "undumpable", "yama", "forbidden", "late", "other" };

	return why < THREAD_REFUSAL_COUNT ? names[why] : "";
}

/* 0 if it is missing. */
static unsigned int field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? (unsigned int)strtoul(at + strlen(name), NULL, 10) : 0;
}

static uint64_t own_caps(const struct root *root)
{
	_cleanup_free_ char *text = NULL;
	struct priv_status s;

	if (root_read(root, "proc/self/status", STATUS_MAX, &text, NULL, NULL) != 0 ||
		priv_status_parse(text, &s) != 0)
		return UINT64_MAX;
	return s.permitted;
}

static void read_limits(pid_t pid, pid_t tid, struct facts *f)
{
	_cleanup_free_ char *text = NULL;
	char path[64], yama[16] = "";
	struct priv_status s;
	struct stat st;
	struct root root;

	*f = (struct facts){ 0 };
	if (root_open(NULL, &root, NULL) != 0)
		return;
	snprintf(path, sizeof(path), "proc/%d/task/%d/status", pid, tid);
	if (root_read(&root, path, STATUS_MAX, &text, NULL, NULL) == 0) {
		f->there = strstr(text, "\nState:\tZ") == NULL && strstr(text, "\nState:\tX") == NULL;
		f->kthread = f->there && !strstr(text, "\nVmSize:") && strstr(text, "\nThreads:");
		f->tracer = field(text, "\nTracerPid:\t");
		f->uid = field(text, "\nUid:\t");
		f->more_caps = priv_status_parse(text, &s) == 0 && (s.permitted & ~own_caps(&root));
	} else {
		snprintf(path, sizeof(path), "/proc/%d", pid);
		f->others = kill(pid, 0) != 0 && errno == EPERM;
		f->hidden = access(path, F_OK) != 0 && (f->others || kill(pid, 0) == 0);
	}
	/* in /proc, the files of an undumpable process belong to root */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f->undumpable = stat(path, &st) == 0 && st.st_uid != f->uid;
	if (root_line(&root, "proc/sys/kernel/yama/ptrace_scope", yama, sizeof(yama), NULL) == 0)
		f->yama = (unsigned int)strtoul(yama, NULL, 10);
	root_close(&root);
}

static enum thread_refusal refused(const struct facts *f, bool privileged)
{
	if (f->tracer)
		return THREAD_REFUSAL_TRACED;
	if (!privileged) {
		if (f->uid != getuid())
			return THREAD_REFUSAL_OTHERS;
		if (f->undumpable)
			return THREAD_REFUSAL_UNDUMPABLE;
		if (f->more_caps)
			return THREAD_REFUSAL_PRIVILEGED;
	}
	if (f->yama >= (privileged ? 3 : 1))
		return THREAD_REFUSAL_YAMA;
	return THREAD_REFUSAL_FORBIDDEN;
}

static enum thread_refusal classify(int code, const struct facts *f, bool privileged)
{
	if (f->hidden)
		return f->others ? THREAD_REFUSAL_OTHERS : THREAD_REFUSAL_UNDUMPABLE;
	if (!f->there || code == -ESRCH || code == -ENOENT)
		return THREAD_REFUSAL_GONE;
	if (f->kthread)
		return THREAD_REFUSAL_KTHREAD;
	if (code == -ENOEXEC)
		return THREAD_REFUSAL_COMPAT;
	if (code == -ETIMEDOUT)
		return THREAD_REFUSAL_LATE;
	return code == -EPERM || code == -EACCES ? refused(f, privileged) : THREAD_REFUSAL_OTHER;
}

static void explain_yama(unsigned int scope, struct err *e)
{
	if (scope >= 3)
		err_hint(e, "kernel.yama.ptrace_scope=%u forbids it to everybody until the next boot", scope);
	else if (scope == 2)
		err_hint(e, "kernel.yama.ptrace_scope=2 asks for CAP_SYS_PTRACE");
	else
		err_hint(e, "kernel.yama.ptrace_scope=1 allows only descendants: start the program by "
			    "'offcpu-record -- COMMAND', or: sysctl kernel.yama.ptrace_scope=0");
}

enum thread_refusal thread_refusal_explain(pid_t pid, pid_t tid, int code, bool privileged, struct err *e)
{
	struct facts f;
	enum thread_refusal why;

	read_limits(pid, tid, &f);
	why = classify(code, &f, privileged || priv_have(CAP_SYS_PTRACE));
	switch (why) {
	case THREAD_REFUSAL_GONE:
		err_set(e, -ESRCH, "thread %d of process %d has ended", tid, pid);
		break;
	case THREAD_REFUSAL_KTHREAD:
		err_set(e, code, "thread %d is the kernel's: it has no user stack", tid);
		break;
	case THREAD_REFUSAL_COMPAT:
		err_set(e, code, "process %d runs an x32 program, whose stacks cannot be walked", pid);
		break;
	case THREAD_REFUSAL_TRACED:
		err_set(e, code, "thread %d of process %d is traced by process %u already", tid, pid,
			f.tracer);
		err_hint(e, "a thread has one tracer: end gdb, strace, or whatever process %u is", f.tracer);
		break;
	case THREAD_REFUSAL_OTHERS:
		if (f.hidden)
			err_set(e, code, "process %d belongs to somebody else, and /proc hides it (hidepid)",
				pid);
		else
			err_set(e, code, "process %d belongs to user %u", pid, f.uid);
		err_hint(e, "other users' stacks need CAP_SYS_PTRACE: run as root, or as that user");
		break;
	case THREAD_REFUSAL_PRIVILEGED:
		err_set(e, code, "process %d has capabilities that this process has not", pid);
		err_hint(e, "stacks of such processes take CAP_SYS_PTRACE: run as root");
		break;
	case THREAD_REFUSAL_UNDUMPABLE:
		err_set(e, code, "process %d does not allow itself to be traced", pid);
		err_hint(e, "it changed its user, or its program may not be read, or it called "
			    "prctl(PR_SET_DUMPABLE): run as root");
		break;
	case THREAD_REFUSAL_YAMA:
		err_set(e, code, "thread %d of process %d may not be traced", tid, pid);
		explain_yama(f.yama, e);
		break;
	case THREAD_REFUSAL_FORBIDDEN:
		err_sys(e, code, "thread %d of process %d may not be traced", tid, pid);
		err_hint(e, "a seccomp filter (containers have one), a user namespace or a security module "
			    "forbids ptrace(2)");
		break;
	case THREAD_REFUSAL_LATE:
		err_set(e, code, "thread %d of process %d did not stop", tid, pid);
		err_hint(e, "it waits for something that cannot be interrupted (state D), vfork(2)'s child "
			    "among it");
		break;
	case THREAD_REFUSAL_OTHER:
	case THREAD_REFUSAL_COUNT:
		err_sys(e, code, "cannot read thread %d of process %d", tid, pid);
		break;
	}
	return why;
}

#define FRAMES 512 /* at most, in a stack */
#define LEARNED_MAX 64
#define PATIENCE_NS UINT64_C(3000000000) /* how long the walks of one process may wait for tables, in all */

/* A system call, by number and first argument, that was restarted after a stop. */
struct learned {
	int64_t number;
	uint64_t arg;
};

struct user_stacks {
	struct thread_memory reach;
	struct walktables *tables;
	pid_t pid;
	int pidfd;
	struct thread_copy *copy;
	struct ptmaps maps;
	uint64_t patience_ns; /* what is left of PATIENCE_NS */
	struct learned learned[LEARNED_MAX];
	size_t n_learned;
	struct snapwalk_end end; /* of the last walk, and its results: */
	__u64 frames[FRAMES];
	uint64_t pcs[FRAMES];
	uint32_t exact[FRAMES];
	struct user_stacks_stats stats;
};

/* --- open and close --- */

int user_stacks_open(const struct thread_memory *r, struct walktables *t, uint32_t pid,
	struct user_stacks **ret, struct err *e)
{
	struct user_stacks *p = calloc(1, sizeof(*p));
	int rc = 0;

	if (!p)
		return err_nomem(e, "stacks");
	p->reach = *r;
	p->tables = t;
	p->pid = (pid_t)pid;
	p->patience_ns = PATIENCE_NS;
	p->copy = calloc(1, sizeof(*p->copy));
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	/* ENOSYS: before Linux 5.3, where nothing protects from a reused PID */
	if (p->pidfd < 0 && errno != ENOSYS)
		rc = errno == ESRCH ? err_set(e, -ESRCH, "there is no process %u", pid)
				    : err_sys(e, -errno, "cannot read process %u", pid);
	else if (!p->copy)
		rc = err_nomem(e, "copies of stacks");
	if (rc)
		user_stacks_close(p);
	else
		*ret = p;
	return rc;
}

void user_stacks_close(struct user_stacks *p)
{
	if (!p)
		return;
	ptmaps_free(&p->maps);
	free(p->copy);
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p);
}

/* --- a walk --- */

/* The mapping of PC. If the maps lack it, they are read again, unless they were since SINCE_NS. */
static struct ptmap *map_of(struct user_stacks *p, uint64_t pc, uint64_t since_ns)
{
	struct ptmap *m = ptmaps_at(&p->maps, pc);

	if (m || p->maps.read_ns >= since_ns || ptmaps_read(&p->maps, &p->reach, (uint32_t)p->pid, NULL) != 0)
		return m;
	return ptmaps_at(&p->maps, pc);
}

struct walking {
	struct user_stacks *p;
	uint64_t began_ns;
};

static enum snapwalk_code find(void *ctx, uint64_t pc, const struct unwind_rule **rule)
{
	const struct walking *w = ctx;
	struct user_stacks *p = w->p;
	struct ptmap *m = map_of(p, pc, w->began_ns);

	if (!m)
		return SNAPWALK_NO_MAPPING;
	if (!m->file_known)
		m->file = file_of(&p->maps, &p->reach, (uint32_t)p->pid, &m->m, p->tables);
	m->file_known = true;
	return walktables_rule(p->tables, m->file, pc - m->m.start + m->m.offset, &p->patience_ns, rule);
}

static bool code(void *ctx, uint64_t addr, uint64_t *word)
{
	const struct walking *w = ctx;

	return thread_memory_word(&w->p->reach, w->p->pid, addr, word);
}

/* Walk the copy, into `end` and `frames`. */
static int walk(struct user_stacks *p, struct err *e)
{
	const uint32_t quiet = ~(1u << HOST_SP); /* but for SP and PC */
	const struct thread_copy_head *c = &p->copy->head;
	struct walking w = { .p = p, .began_ns = now_ns() };
	const struct snapwalk_opts opts = { .depth = FRAMES,
		.tls = c->tls,
		.unknown = c->all ? 0 : quiet,
		.find = find,
		.code = code,
		.ctx = &w };
	struct snapwalk_area areas[THREAD_COPY_AREAS];
	const struct snapwalk_memory memory = { .areas = areas,
		.n = MIN(c->n_areas, (uint32_t)THREAD_COPY_AREAS) };
	__u64 regs[THREAD_COPY_REGS];
	uint64_t before;
	int rc = 0;

	if (w.began_ns - p->maps.read_ns > MAPS_NS)
		rc = ptmaps_read(&p->maps, &p->reach, (uint32_t)p->pid, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < memory.n; i++)
		areas[i] = (struct snapwalk_area){
			.bytes = p->copy->bytes[i], .from = c->areas[i].from, .len = c->areas[i].len
		};
	memcpy(regs, c->regs, sizeof(regs));
	/* a program of either kind may contain code of the other: the system call says which it is in */
	if (!c->all && p->maps.narrow &&
		(!code(&w, regs[THREAD_COPY_PC] - 8, &before) || !code_after_syscall(before, false)))
		HOST(set_narrow)(regs);
	snapwalk(&opts, regs, &memory, p->frames, &p->end);
	return 0;
}

static int refuse(struct user_stacks *p, enum thread_refusal why, int rc)
{
	p->stats.refused[why]++;
	return rc;
}

/* The PID may belong to another process by now. */
static bool is_gone(const struct user_stacks *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return p->pidfd >= 0 && poll(&fd, 1, 0) == 1;
}

/* --- two ways to make a copy --- */

static bool spares(const struct user_stacks *p, const struct quiet_copy_call *call)
{
	for (size_t i = 0; i < p->n_learned; i++)
		if (p->learned[i].number == call->number && p->learned[i].arg == call->args[0])
			return true;
	return quiet_copy_is_timed(call, p->maps.narrow);
}

static void learn(struct user_stacks *p, const struct stop_copy_report *reported)
{
	p->stats.stops++;
	p->stats.stopped_ns += reported->stopped_ns;
	p->stats.longest_ns = MAX(p->stats.longest_ns, reported->stopped_ns);
	if (reported->again < 0)
		return;
	p->learned[p->stats.again++ % LEARNED_MAX] =
		(struct learned){ .number = reported->again, .arg = reported->again_arg };
	p->n_learned = MIN(p->n_learned + 1, LEARNED_MAX);
}

struct way {
	pid_t tid;
	bool stop; /* the thread is stopped: all registers are known */
	uint64_t wanted[THREAD_COPY_AREAS - 1];
	size_t n;
	struct quiet_copy_call call;
	const struct user_stacks_copy *made; /* the first copy, if it was made before; else NULL */
	char state; /* the letter of stat that came with it; else 0 */
};

/* Take the copy that was made before. */
static void copy_made(struct user_stacks *p, struct way *w)
{
	const size_t len = MIN(w->made->len, (size_t)THREAD_COPY_AREA_BYTES);

	w->call = w->made->call;
	w->state = w->made->state;
	quiet_copy_begin(p->copy, &w->call);
	p->copy->head.n_areas = len != 0;
	p->copy->head.areas[0] = (struct thread_copy_area){ .from = w->made->from, .len = len };
	if (len)
		memcpy(p->copy->bytes[0], w->made->bytes, len);
	w->made = NULL;
}

static int copy_now(struct user_stacks *p, struct way *w)
{
	struct stop_copy_report reported;
	int rc;

	if (w->made) {
		copy_made(p, w);
		return 0;
	}
	if (!w->stop)
		return thread_memory_quiet(&p->reach, p->pid, w->tid, w->wanted, w->n, p->copy, &w->call);
	rc = thread_memory_stop(&p->reach, w->tid, w->wanted, w->n, p->copy, &reported);
	if (!rc)
		learn(p, &reported);
	return rc;
}

/* Does the walk lack memory that exists? Then the next copy has it. */
static bool wants_more(struct user_stacks *p, struct way *w)
{
	uint64_t word;

	if (!p->end.reason || !p->end.missed || w->n >= ARRAY_LEN(w->wanted) ||
		!thread_memory_word(&p->reach, p->pid, p->end.wanted, &word))
		return false;
	/* registers are saved below a return address: the first missing word need not be the lowest */
	w->wanted[w->n++] = p->end.wanted & ~UINT64_C(255);
	return true;
}

/* A walk that ended for lack of memory that exists is truncated. */
static void finish_refusal(struct user_stacks *p)
{
	uint64_t word;

	if (!p->end.reason || !p->end.missed || !thread_memory_word(&p->reach, p->pid, p->end.wanted, &word))
		return;
	p->end.stop_pc = 0;
	p->end.reason = p->end.verdict == VERDICT_UNVERIFIED ? REASON_DEPTH : REASON_NONE;
	if (p->end.verdict == VERDICT_STOPPED)
		p->end.verdict = VERDICT_TRUNCATED;
}

/*
 * Copy in one way, and walk, until no memory is missing. *WHY is what a failure is
 * counted as.
 */
static int go(struct user_stacks *p, struct way *w, enum thread_refusal *why, struct err *e)
{
	const bool made = w->made;
	bool walked = false;
	int rc;

	do {
		rc = copy_now(p, w);
		/* it ran after the copy that was made before: what was found in that is the result */
		if (rc == -EAGAIN && made && walked)
			break;
		/* not a failure: the caller tries the other way */
		if (rc == -EAGAIN || rc == -ENODATA)
			return rc;
		walked = true;
		rc = rc ? rc : walk(p, e);
		if (rc) {
			*why = thread_refusal_explain(
				p->pid, w->tid, rc, helper_pid(p->reach.helper) != 0, e);
			return *why == THREAD_REFUSAL_GONE ? -ESRCH : rc;
		}
	} while (wants_more(p, w));
	finish_refusal(p);
	return 0;
}

/* Would the thread stop at all? In state D, it stops only when the wait is over. */
static bool can_stop(const struct user_stacks *p, const struct way *w)
{
	char text[512], *state;
	ssize_t n;

	if (w->state)
		return w->state != 'D';
	n = proc_view_text(
		p->reach.helper, (uint32_t)p->pid, (uint32_t)w->tid, PROCFILE_STAT, text, sizeof(text) - 1);
	if (n <= 0)
		return true;
	text[n] = '\0';
	state = strrchr(text, ')');
	return !state || strncmp(state, ") D", 3) != 0;
}

/* Stop the thread if that does no harm. Otherwise, what was found without a stop stays the result. */
static int take_stopped(
	struct user_stacks *p, const struct way *quiet, bool found, enum thread_refusal *why, struct err *e)
{
	struct way stop = { .tid = quiet->tid, .stop = true };
	int rc;

	if (found && spares(p, &quiet->call)) {
		p->stats.spared++;
		return 0;
	}
	if (found && !can_stop(p, quiet)) {
		p->stats.refused[THREAD_REFUSAL_LATE]++;
		return 0;
	}
	rc = go(p, &stop, why, e);
	if (!rc || !found)
		return rc;
	p->stats.refused[*why]++;
	return 0;
}

static int take(struct user_stacks *p, pid_t tid, const struct user_stacks_copy *made,
	enum thread_refusal *why, struct err *e)
{
	struct way quiet = { .tid = tid, .made = made };
	int rc = go(p, &quiet, why, e);

	/* arm64: what is stopped must be known to be in no call that ends with EINTR */
	if (rc && (HOST_LR || (rc != -EAGAIN && rc != -ENODATA)))
		return rc;
	/*
	 * If SP does not point to memory, a stop adds nothing and may do harm: x86-64 cannot return to a
	 * program whose SP is not canonical, so the kernel would kill it.
	 */
	if (rc || (p->end.reason == REASON_REGISTER && p->copy->head.n_areas))
		return take_stopped(p, &quiet, !rc, why, e);
	p->stats.quiet++;
	return 0;
}

/* --- the result --- */

static void give(struct user_stacks *p, struct cap_stack *ret)
{
	const struct snapwalk_end *end = &p->end;

	*ret = (struct cap_stack){ .kind = CAPTURE_STACK_USER,
		.verdict = end->len ? end->verdict : VERDICT_FAILED,
		.reason = end->reason,
		.stop_pc = end->len ? end->stop_pc : 0,
		.len = end->len,
		.frames = p->pcs,
		.exact = p->exact };
	for (uint32_t i = 0; i < end->len; i++) {
		p->pcs[i] = p->frames[i] & ~OFFCPU_EXACT;
		if (i && ((p->frames[i] & OFFCPU_EXACT) || (end->last_exact && i == end->len - 1)))
			p->exact[ret->n_exact++] = i;
	}
}

int user_stacks_take(struct user_stacks *p, uint32_t tid, struct cap_stack *ret, struct err *e)
{
	return user_stacks_take_copied(p, tid, NULL, ret, e);
}

int user_stacks_take_copied(struct user_stacks *p, uint32_t tid, const struct user_stacks_copy *copy,
	struct cap_stack *ret, struct err *e)
{
	enum thread_refusal why = THREAD_REFUSAL_OTHER;
	int rc;

	if (is_gone(p)) {
		p->stats.refused[THREAD_REFUSAL_GONE]++;
		return err_set(e, -ESRCH, "process %d has ended", p->pid);
	}
	rc = take(p, (pid_t)tid, copy, &why, e);
	if (rc)
		return refuse(p, why, rc);
	give(p, ret);
	p->stats.stacks++;
	return 0;
}

void user_stacks_stats(const struct user_stacks *p, struct user_stacks_stats *ret)
{
	*ret = p->stats;
}
