/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/sandbox.h"
#include "base/fs.h"
#include "base/text.h"
#include "system/maps.h"
#include "system/private_user.h"
#include "system/privilege_sets.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The rights that can be denied, by Landlock version: a kernel refuses bits that it does not know. */
static const uint64_t known[] = { 0, (1 << 13) - 1, (1 << 14) - 1, (1 << 15) - 1, (1 << 15) - 1,
	(1 << 16) - 1 };

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define OF_FILES                                                                                             \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | (1 << 14) /* truncate */) /* rights that a single file can have */

int pathlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version > 0 ? (int)version : 0;
}

/* A descriptor of a ruleset that denies all rights in WHAT that the kernel knows, or -1. */
static int new_rules(uint64_t what, uint64_t *handled)
{
	int version = pathlock_version();
	struct landlock_ruleset_attr attr = { 0 };

	if (!version)
		return -1;
	*handled = attr.handled_access_fs = known[MIN((size_t)version, ARRAY_LEN(known) - 1)] & what;
	return (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
}

static void permit(int rules, const char *path, uint64_t handled)
{
	_cleanup_close_ int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
	struct landlock_path_beneath_attr rule = { .parent_fd = fd };
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return;
	rule.allowed_access =
		handled & (S_ISDIR(st.st_mode) ? ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE : OF_FILES);
	syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

bool pathlock_all(const char *folder)
{
	uint64_t handled;
	_cleanup_close_ int rules = new_rules(UINT64_MAX, &handled);

	if (rules < 0)
		return false;
	permit(rules, folder, handled);
	return syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

bool pathlock_writing(const char *const *paths, size_t n)
{
	uint64_t handled;
	_cleanup_close_ int rules = new_rules(~(uint64_t)READS, &handled);

	if (rules < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		permit(rules, paths[i], handled);
	return syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

#define MAPS_MAX (64u << 20)

static void reset_signals(void)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGXFSZ };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* First move all descriptors out of the way: one may have the number that another one will get. */
static int move_up(const struct sandbox_opts *o, int *up, struct err *e)
{
	const int above = SANDBOX_FD + 1 + (int)o->n_more;
	struct rlimit files;

	if (o->n_more && getrlimit(RLIMIT_NOFILE, &files) == 0) { /* twice as many are open for a moment */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	up[0] = fcntl(o->keep_fd, F_DUPFD, above);
	if (up[0] < 0)
		return err_sys(e, -EMFILE, "cannot keep a descriptor");
	for (size_t i = 0; i < o->n_more; i++) {
		up[i + 1] = fcntl(o->more_fds[i], F_DUPFD, above);
		if (up[i + 1] < 0)
			return err_sys(e, -EMFILE, "cannot keep a descriptor");
	}
	return 0;
}

static int keep_only(const struct sandbox_opts *o, struct err *e)
{
	_cleanup_free_ int *up = calloc(o->n_more + 1, sizeof(*up));
	int rc = up ? move_up(o, up, e) : err_nomem(e, "descriptors");
	/* stray output must not go to a file that was passed to the process; a parent with a filter may open
	 * for reading alone */
	int null = open("/dev/null", O_RDONLY);

	for (int i = 0; i < SANDBOX_FD; i++) {
		if (null < 0)
			close(i);
		else if (null != i)
			dup2(null, i);
	}
	if (rc)
		return rc;
	for (size_t i = 0; i <= o->n_more; i++)
		if (dup2(up[i], SANDBOX_FD + (int)i) < 0)
			return err_sys(e, -EMFILE, "cannot keep a descriptor");
	closefrom(SANDBOX_FD + 1 + (int)o->n_more);
	return 0;
}

/* Unmap BPF maps and ring buffers of the parent, which this process must not write to. */
static int unmap_shared(struct err *e)
{
	_cleanup_free_ char *text = NULL;
	struct root root;
	int rc = root_open(NULL, &root, e);

	rc = rc ? rc : root_read(&root, "proc/self/maps", MAPS_MAX, &text, NULL, e);
	root_close(&root);
	for (char *save, *line = rc ? NULL : strtok_r(text, "\n", &save); line;
		line = strtok_r(NULL, "\n", &save)) {
		const char *perms = strchr(line, ' ');
		struct procmap m;

		/* few are shared and writable: check for 'w' and 's' in the permissions first */
		if (perms && strlen(perms) > 4 && perms[2] == 'w' && perms[4] == 's' &&
			procmaps_parse(line, &m) && (m.flags & MAP_SHARED) && (m.prot & PROT_WRITE))
			munmap((void *)(uintptr_t)m.start, m.end - m.start);
	}
	return rc;
}

static void go_first_without_memory(void)
{
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, SANDBOX_OOM, strlen(SANDBOX_OOM)) < 0)
		return; /* as likely to be killed as any process */
}

/* In bytes; 0 = unknown. */
static uint64_t address_space(void)
{
	_cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int limit(int what, uint64_t to)
{
	struct rlimit now;

	if (getrlimit((__rlimit_resource_t)what, &now) != 0)
		return -errno;
	if (to < now.rlim_max)
		now.rlim_max = to;
	now.rlim_cur = now.rlim_max;
	return setrlimit((__rlimit_resource_t)what, &now) == 0 ? 0 : -errno;
}

static int set_limits(const struct sandbox_opts *o, struct err *e)
{
	uint64_t has = address_space();
	int rc = has ? limit(RLIMIT_AS, has + o->memory_bytes) : -ENOENT;

	rc = rc ? rc : limit(RLIMIT_FSIZE, o->file_bytes);
	/* the kernel also applies this limit to all descriptors of the user that are being sent over sockets
	 */
	if (!o->keep_caps)
		rc = rc ? rc
			: limit(RLIMIT_NOFILE, SANDBOX_FD + 1 + o->n_more + MAX(o->n_received, SANDBOX_FDS));
	rc = rc ? rc : limit(RLIMIT_CORE, 0);
	return rc ? err_sys(e, rc, "cannot limit a process's resources") : 0;
}

/*
 * Become the private user of the parent, or expose this process to it. Not where
 * the user namespace has none: the capabilities are given up anyway.
 */
static int drop_user(const struct sandbox_opts *o)
{
	const uint64_t reads_all = PRIV_BIT(CAP_SYS_PTRACE) | PRIV_BIT(CAP_DAC_READ_SEARCH);
	struct private_user u;
	uint64_t have = 0;

	priv_sets_get(NULL, &have);
	if (!private_user_possible() || !private_user_of(o->parent, &u))
		return 0;
	if (o->folder && setgroups(0, NULL) != 0)
		return -errno;
	if (o->folder || (o->keep_caps && (o->keep_caps & reads_all) != reads_all)) {
		private_user_expose(o->parent);
		return 0;
	}
	if (o->keep_caps && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
		return -errno;
	if (have & PRIV_BIT(CAP_KILL) || o->keep_caps)
		return private_user_become(&u, false);
	if (setgroups(0, NULL) != 0 || setresgid(u.gid, u.gid, u.gid) != 0 || setresuid(u.uid, u.uid, 0) != 0)
		return -errno;
	return 0;
}

/* The bounding set comes first, because emptying it needs a capability. */
static int drop_privileges(const struct sandbox_opts *o, struct err *e)
{
	int rc;

	for (unsigned long cap = 0; prctl(PR_CAPBSET_DROP, cap) == 0;
		cap++) /* if the first is refused, all are */
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	rc = drop_user(o);
	if (rc)
		return err_sys(e, rc, "cannot become another user");
	rc = priv_sets_set(o->keep_caps, o->keep_caps);
	if (rc)
		return err_sys(e, rc, "cannot give up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_sys(e, -errno, "cannot give up new privileges");
	return 0;
}

int child_bind(pid_t parent, struct err *e)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return err_sys(e, -errno, "cannot bind a process to its parent");
	return getppid() == parent ? 0 : err_sys(e, -ESRCH, "the parent has ended");
}

int child_begin(pid_t parent, struct err *e)
{
	reset_signals();
	return child_bind(parent, e);
}

/* The system calls of a process without privileges that parses. */
static const struct syscall_rule usual[] = {
	SYSCALL_ALLOW(pread64),
	SYSCALL_ALLOW(pwrite64),
	SYSCALL_ALLOW(fstat),
	SYSCALL_ALLOW(ftruncate),
	SYSCALL_ALLOW(close),
	SYSCALL_ALLOW(recvmsg),
	SYSCALL_ALLOW(sendmsg),
	/* made by the C library on its own */
	SYSCALL_ALLOW(futex),
	SYSCALL_ALLOW(sched_yield),
	SYSCALL_ALLOW(getrandom),
	SYSCALL_ALLOW(clock_gettime),
	SYSCALL_ALLOW(sysinfo),
	SYSCALL_ALLOW(sched_getaffinity),
	SYSCALL_ALLOW(rt_sigprocmask),
	SYSCALL_ALLOW(rt_sigreturn),
	SYSCALL_ALLOW(exit),
	SYSCALL_ALLOW(exit_group),
	/* private memory, not executable */
	SYSCALL_ALLOW(brk),
	SYSCALL_ALLOW(munmap),
	SYSCALL_ALLOW(mremap),
	SYSCALL_ALLOW(madvise),
	SYSCALL_ALLOW_IF(mprotect, SYSCALL_BITS(2, PROT_EXEC, 0)),
	SYSCALL_ALLOW_IF_BOTH(mmap, SYSCALL_BITS(2, PROT_EXEC, 0),
		SYSCALL_BITS(3, MAP_TYPE | MAP_ANONYMOUS, MAP_PRIVATE | MAP_ANONYMOUS)),
};

int sandbox_filter(const struct sandbox_opts *o, struct sock_fprog *ret, struct err *e)
{
	struct syscall_rule all[ARRAY_LEN(usual) + SANDBOX_RULES];

	if (o->keep_caps)
		return syscall_filter_make(o->rules, o->n_rules, 0, ret, e);
	if (o->n_rules > SANDBOX_RULES)
		return err_set(e, -E2BIG, "too many rules for a filter of system calls");
	memcpy(all, usual, sizeof(usual));
	if (o->n_rules)
		memcpy(all + ARRAY_LEN(usual), o->rules, o->n_rules * sizeof(*o->rules));
	return syscall_filter_make(all, ARRAY_LEN(usual) + o->n_rules, 0, ret, e);
}

/* Larger blocks are mapped: their memory returns to the kernel when they are freed. */
#define KEPT_BLOCK (32 << 20)

/*
 * A process that was forked by a thread allocates from the arena of that thread.
 * Before glibc returns memory of such an arena to the kernel, it opens a file in
 * /proc, and this system call kills the process. So no memory of an arena is
 * returned before the end. Without a limit of ours, blocks of 128 KiB would be
 * mapped and unmapped each time: for a process that compiles one table after the
 * other, page faults would take more time than the work (make bench, unwind-compile).
 */
static void keep_memory(void)
{
#ifdef __GLIBC__
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK);
#endif
}

int sandbox_enter(const struct sandbox_opts *o, struct err *e)
{
	struct sock_fprog own = { 0 }; /* lives as long as the process */
	int rc = o->filter ? 0 : sandbox_filter(o, &own, e);

	if (rc)
		return rc;
	keep_memory();
	setsid();
	reset_signals();
	prctl(PR_SET_NAME, o->comm);
	rc = keep_only(o, e);
	if (rc)
		return rc;
	rc = unmap_shared(e);
	if (rc)
		return rc;
	if (!o->keep_caps)
		go_first_without_memory();
	rc = set_limits(o, e);
	rc = rc ? rc : drop_privileges(o, e);
	if (!rc && !o->keep_caps)
		pathlock_all(o->folder); /* without Landlock, the system call filter still denies open(2) */
	/* a change of the user resets both */
	if (!rc && prctl(PR_SET_DUMPABLE, 0) != 0)
		rc = err_sys(e, -errno, "cannot hide a process from others");
	rc = rc ? rc : child_bind(o->parent, e);
	return rc ? rc : syscall_filter_install(o->filter ? o->filter : &own, e);
}

void sandbox_put(struct buf *b)
{
	int version = pathlock_version();

	buftext_str(b, "files are read under ");
	buftext_str(b, prctl(PR_GET_SECCOMP) >= 0 ? "seccomp" : "no seccomp");
	if (version)
		buftext_printf(b, " and Landlock %d", version);
}
