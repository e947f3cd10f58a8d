/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/drop.h"
#include "base/text.h"
#include "system/private_user.h"
#include "system/privilege_sets.h"
#include "system/privileges.h"
#include "system/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define WAIT_MS 1000 /* for threads that are about to end */

/* Empty the bounding set. Call it first: it needs a capability. */
static bool empty_bounding(void)
{
	unsigned long cap = 0;

	while (prctl(PR_CAPBSET_DROP, cap) == 0)
		cap++;
	return errno == EINVAL; /* past the last capability */
}

/* The permitted capabilities of our thread TID; 0 if it has ended. */
static uint64_t priv_of(const char *tid)
{
	char path[sizeof("/proc/self/task//status") + NAME_MAX], text[8192];
	struct priv_status st;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return priv_status_parse(text, &st) == 0 ? st.permitted : UINT64_MAX;
}

/* The permitted capabilities of all threads together; all capabilities if unknown. */
static uint64_t priv_of_all(void)
{
	DIR *tasks = opendir("/proc/self/task");
	uint64_t set = tasks ? 0 : UINT64_MAX;
	struct dirent *d;

	while (tasks && (d = readdir(tasks)))
		if (d->d_name[0] != '.')
			set |= priv_of(d->d_name);
	if (tasks)
		closedir(tasks);
	return set;
}

/* Give up the user. Capabilities of KEEP stay permitted. */
static int drop_user(uint64_t keep, struct priv_drop *ret)
{
	struct private_user u;
	int rc;

	if (!private_user_possible() || !private_user_of(getpid(), &u))
		return 0;
	if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
		return -errno;
	rc = private_user_become(&u, true);
	ret->uid = rc ? 0 : u.uid;
	return rc;
}

int priv_drop_now(const struct priv_drop_opts *o, struct priv_drop *ret, struct err *e)
{
	uint64_t have = UINT64_MAX;
	int rc;

	priv_sets_get(&have, NULL);
	*ret = (struct priv_drop){ .bounding = empty_bounding() };
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_sys(e, -errno, "cannot give up new privileges");
	if (!o->paths && pathlock_writing(o->writable, o->n_writable))
		ret->landlock = pathlock_version();
	rc = o->private_user ? drop_user(o->keep, ret) : 0;
	if (rc)
		return err_sys(e, rc, "cannot become another user");
	rc = priv_sets_set(o->keep, o->keep);
	if (rc)
		return err_sys(e, rc, "cannot give up capabilities");
	/* what was opened with privileges must not be taken over by other processes of the user */
	if (have && prctl(PR_SET_DUMPABLE, 0) != 0)
		return err_sys(e, -errno, "cannot hide a process from others");
	ret->kept = priv_of_all();
	for (int i = 0; (ret->kept & ~o->keep) && i < WAIT_MS; i++) {
		usleep(1000);
		ret->kept = priv_of_all();
	}
	rc = o->filter ? syscall_filter_install_all(o->filter, e) : 0;
	ret->filter = !rc && o->filter && o->filter->len;
	return rc;
}

#define NAMESPACES                                                                                           \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |        \
		CLONE_NEWNET | CLONE_NEWTIME)

enum { MAP_VDSO_X32 = 0x2001, MAP_VDSO_I386 = 0x2002 }; /* <asm/prctl.h> */

/* Conditions for the rules below. */
#define BPF(command) SYSCALL_ALLOW_IF(bpf, SYSCALL_INT(0, command))
#define FCNTL(command) SYSCALL_ALLOW_IF(fcntl, SYSCALL_INT(1, command))
#define IOCTL(request) SYSCALL_ALLOW_IF(ioctl, SYSCALL_INT(1, request))
#define PRCTL(option) SYSCALL_ALLOW_IF(prctl, SYSCALL_INT(0, option))
#define PTRACE(request) SYSCALL_ALLOW_IF(ptrace, SYSCALL_INT(0, request))

static const struct syscall_rule recorder_rules[] = {
	/* files that are open */
	SYSCALL_ALLOW(read),
	SYSCALL_ALLOW(readv),
	SYSCALL_ALLOW(pread64),
	SYSCALL_ALLOW(write),
	SYSCALL_ALLOW(writev),
	SYSCALL_ALLOW(pwrite64),
	SYSCALL_ALLOW(lseek),
	SYSCALL_ALLOW(ftruncate),
	SYSCALL_ALLOW(fallocate),
	SYSCALL_ALLOW(fsync),
	SYSCALL_ALLOW(fdatasync),
	SYSCALL_ALLOW(sendfile),
	SYSCALL_ALLOW(copy_file_range),
	SYSCALL_ALLOW(flock),
	SYSCALL_ALLOW(fstat),
	SYSCALL_ALLOW(fstatfs),
	SYSCALL_ALLOW(close),
	SYSCALL_ALLOW(close_range),
	SYSCALL_ALLOW(dup),
	SYSCALL_ALLOW(dup2),
	SYSCALL_ALLOW(dup3),
	/* not F_SETOWN and O_ASYNC, by which the kernel sends signals for a process */
	FCNTL(F_DUPFD),
	FCNTL(F_DUPFD_CLOEXEC),
	FCNTL(F_GETFD),
	FCNTL(F_SETFD),
	FCNTL(F_GETFL),
	SYSCALL_ALLOW_IF_BOTH(fcntl, SYSCALL_INT(1, F_SETFL), SYSCALL_BITS(2, O_ASYNC, 0)),
	FCNTL(F_GETLK),
	FCNTL(F_SETLK),
	FCNTL(F_OFD_GETLK),
	FCNTL(F_OFD_SETLK),
	FCNTL(F_GETPIPE_SZ),
	FCNTL(F_SETPIPE_SZ),
	IOCTL(TCGETS),
	IOCTL(TIOCGWINSZ),
	IOCTL(PERF_EVENT_IOC_ENABLE),
	IOCTL(PERF_EVENT_IOC_DISABLE),
	IOCTL(PERF_EVENT_IOC_SET_OUTPUT),
	IOCTL(PERF_EVENT_IOC_ID),
	IOCTL(PERF_EVENT_IOC_PERIOD),
	/* reading by path */
	SYSCALL_ALLOW_IF(openat, SYSCALL_BITS(2, O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND, O_RDONLY)),
	SYSCALL_ALLOW(newfstatat),
	SYSCALL_ALLOW(stat),
	SYSCALL_ALLOW(lstat),
	SYSCALL_ALLOW(statx),
	SYSCALL_ALLOW(statfs),
	SYSCALL_ALLOW(access),
	SYSCALL_ALLOW(faccessat),
	SYSCALL_ALLOW(faccessat2),
	SYSCALL_ALLOW(readlink),
	SYSCALL_ALLOW(readlinkat),
	SYSCALL_ALLOW(getdents64),
	SYSCALL_ALLOW(getcwd),
	SYSCALL_ALLOW(memfd_create),
	/* memory that is not executable */
	SYSCALL_ALLOW(brk),
	SYSCALL_ALLOW_IF(mmap, SYSCALL_BITS(2, PROT_EXEC, 0)),
	SYSCALL_ALLOW_IF(mprotect, SYSCALL_BITS(2, PROT_EXEC, 0)),
	SYSCALL_ALLOW(munmap),
	SYSCALL_ALLOW(mremap),
	SYSCALL_ALLOW(madvise),
	/* the vdso of i386 programs: record/vdso.c */
	SYSCALL_ALLOW_IF(arch_prctl, SYSCALL_INT(0, MAP_VDSO_X32)),
	SYSCALL_ALLOW_IF(arch_prctl, SYSCALL_INT(0, MAP_VDSO_I386)),
	/* waiting */
	SYSCALL_ALLOW(poll),
	SYSCALL_ALLOW(ppoll),
	SYSCALL_ALLOW(select),
	SYSCALL_ALLOW(pselect6),
	SYSCALL_ALLOW(epoll_create1),
	SYSCALL_ALLOW(epoll_ctl),
	SYSCALL_ALLOW(epoll_wait),
	SYSCALL_ALLOW(epoll_pwait),
	SYSCALL_ALLOW(timerfd_create),
	SYSCALL_ALLOW(timerfd_settime),
	SYSCALL_ALLOW(futex),
	SYSCALL_ALLOW(nanosleep),
	SYSCALL_ALLOW(clock_nanosleep),
	SYSCALL_ALLOW(clock_gettime),
	SYSCALL_ALLOW(clock_getres),
	SYSCALL_ALLOW(gettimeofday),
	SYSCALL_ALLOW(time),
	SYSCALL_ALLOW(restart_syscall),
	SYSCALL_ALLOW(sched_yield),
	/* BPF: maps that are open, and iterators of programs that are loaded */
	BPF(BPF_MAP_LOOKUP_ELEM),
	BPF(BPF_MAP_UPDATE_ELEM),
	BPF(BPF_MAP_DELETE_ELEM),
	BPF(BPF_MAP_GET_NEXT_KEY),
	BPF(BPF_MAP_LOOKUP_AND_DELETE_ELEM),
	BPF(BPF_MAP_LOOKUP_BATCH),
	BPF(BPF_MAP_LOOKUP_AND_DELETE_BATCH),
	BPF(BPF_MAP_UPDATE_BATCH),
	BPF(BPF_MAP_DELETE_BATCH),
	BPF(BPF_MAP_CREATE), /* where no broker does; the kernel asks for CAP_BPF */
	BPF(BPF_OBJ_GET_INFO_BY_FD),
	BPF(BPF_LINK_CREATE),
	BPF(BPF_ITER_CREATE),
	BPF(BPF_PROG_RUN),
	/* messages with workers; a datagram socket could send to others */
	SYSCALL_ALLOW_IF_BOTH(socketpair, SYSCALL_INT(0, AF_UNIX), SYSCALL_BITS(1, 0xf, SOCK_SEQPACKET)),
	SYSCALL_ALLOW_IF_BOTH(setsockopt, SYSCALL_INT(1, SOL_SOCKET), SYSCALL_INT(2, SO_SNDBUF)),
	SYSCALL_ALLOW(sendmsg),
	SYSCALL_ALLOW(sendto),
	SYSCALL_ALLOW(recvmsg),
	SYSCALL_ALLOW(recvfrom),
	/* threads and workers. clone3(2) has its flags in memory: on ENOSYS, the C library uses clone(2) */
	SYSCALL_REFUSE(clone3, ENOSYS),
	SYSCALL_ALLOW_IF(clone, SYSCALL_BITS(0, NAMESPACES, 0)),
	SYSCALL_ALLOW(set_robust_list),
	SYSCALL_ALLOW(rseq),
	SYSCALL_ALLOW(wait4),
	SYSCALL_ALLOW(waitid),
	SYSCALL_ALLOW(exit),
	SYSCALL_ALLOW(exit_group),
	SYSCALL_ALLOW(pidfd_open),
	SYSCALL_ALLOW_IF(kill, SYSCALL_INT(1, 0)),
	SYSCALL_ALLOW_IF(kill, SYSCALL_INT(1, SIGKILL)),
	SYSCALL_ALLOW(rt_sigaction),
	SYSCALL_ALLOW(rt_sigprocmask),
	SYSCALL_ALLOW(rt_sigpending),
	SYSCALL_ALLOW(rt_sigreturn),
	SYSCALL_ALLOW(sigaltstack),
	SYSCALL_ALLOW(getpid),
	SYSCALL_ALLOW(getppid),
	SYSCALL_ALLOW(gettid),
	SYSCALL_ALLOW(setsid),
	SYSCALL_ALLOW_IF_BOTH(setpriority, SYSCALL_INT(0, PRIO_PROCESS), SYSCALL_INT(1, 0)),
	SYSCALL_ALLOW_IF(sched_setattr, SYSCALL_INT(0, 0)),
	SYSCALL_ALLOW(sched_getaffinity),
	SYSCALL_ALLOW(getrusage),
	SYSCALL_ALLOW_IF(prlimit64, SYSCALL_INT(0, 0)),
	SYSCALL_ALLOW(sysinfo),
	SYSCALL_ALLOW(uname),
	SYSCALL_ALLOW(getrandom),
	SYSCALL_ALLOW(getuid),
	SYSCALL_ALLOW(geteuid),
	SYSCALL_ALLOW(getgid),
	SYSCALL_ALLOW(getegid),
	/* the sandbox of a worker */
	SYSCALL_ALLOW(capget),
	SYSCALL_ALLOW(capset),
	SYSCALL_ALLOW(landlock_create_ruleset),
	SYSCALL_ALLOW(landlock_restrict_self),
	PRCTL(PR_SET_NAME),
	PRCTL(PR_SET_PDEATHSIG),
	PRCTL(PR_CAPBSET_DROP),
	PRCTL(PR_CAP_AMBIENT),
	PRCTL(PR_SET_NO_NEW_PRIVS),
	PRCTL(PR_GET_SECCOMP),
	PRCTL(PR_SET_SECCOMP),
	SYSCALL_ALLOW_IF_BOTH(prctl, SYSCALL_INT(0, PR_SET_DUMPABLE), SYSCALL_INT(1, 0)),
	/* a command that waits at its exec is a tracee already; no process becomes one */
	PTRACE(PTRACE_CONT),
	PTRACE(PTRACE_DETACH),
};

/* What procfs/thread_copy.h takes. */
static const struct syscall_rule trace_rules[] = {
	SYSCALL_ALLOW(process_vm_readv),
	PTRACE(PTRACE_SEIZE),
	PTRACE(PTRACE_INTERRUPT),
	PTRACE(DROP_PTRACE_REGISTERS),
	PTRACE(PTRACE_POKEUSER),
};

int drop_filter(const struct drop_filter_opts *o, struct sock_fprog *ret, struct err *e)
{
	const struct syscall_rule own[] = {
		/* abort(3), pthread_cancel(3) */
		SYSCALL_ALLOW_IF(tgkill, SYSCALL_INT(0, (uint32_t)getpid())),
		{ .call = SCMP_SYS(openat2), .error = o->no_openat2 ? ENOSYS : 0 },
	};
	struct syscall_rule all[ARRAY_LEN(recorder_rules) + ARRAY_LEN(own) + ARRAY_LEN(trace_rules)];
	size_t n = ARRAY_LEN(recorder_rules);

	memcpy(all, recorder_rules, sizeof(recorder_rules));
	memcpy(all + n, own, sizeof(own));
	n += ARRAY_LEN(own);
	if (o->trace) {
		memcpy(all + n, trace_rules, sizeof(trace_rules));
		n += ARRAY_LEN(trace_rules);
	}
	return syscall_filter_make(all, n, EPERM, ret, e);
}

int priv_drop_recorder(const struct priv_drop_recorder_opts *o, struct priv_drop *ret, struct err *e)
{
	const bool no_paths = !o->alone && pathlock_version();
	struct sock_fprog filter = { 0 };
	int rc = drop_filter(
		&(struct drop_filter_opts){ .trace = o->trace, .no_openat2 = !no_paths }, &filter, e);

	if (!rc)
		rc = priv_drop_now(&(struct priv_drop_opts){ .keep = o->keep,
					   .paths = o->alone,
					   .private_user = !o->alone,
					   .filter = &filter },
			ret, e);
	syscall_filter_free(&filter);
	return rc;
}

/* The names of the capabilities in SET: "CAP_BPF, CAP_PERFMON" or "none". */
static void priv_drop_put_caps(uint64_t set, struct buf *b)
{
	const char *comma = "";
	char name[32];

	if (!set)
		buftext_str(b, "none");
	for (int cap = 0; cap < 64; cap++) {
		if (!(set >> cap & 1))
			continue;
		buftext_str(b, comma);
		buftext_str(b, priv_name(cap, name, sizeof(name)));
		comma = ", ";
	}
}

void priv_drop_put_child(const char *who, uint64_t caps, struct buf *b)
{
	buftext_printf(b, "; %s keeps ", who);
	priv_drop_put_caps(caps, b);
}

void priv_drop_put(const struct priv_drop *d, struct buf *b)
{
	if (d->kept) {
		buftext_str(b, "kept: ");
		priv_drop_put_caps(d->kept, b);
	} else {
		buftext_str(b, "no capabilities");
	}
	buftext_str(b, d->bounding ? ", none to be had" : ", no new ones");
	if (d->uid)
		buftext_printf(b, ", user %u", d->uid);
	else if (geteuid() == 0)
		buftext_str(b, ", still root's files and processes");
	buftext_str(b, d->filter ? ", few system calls (seccomp)" : ", all system calls");
	if (d->landlock)
		buftext_printf(b, ", Landlock %d (no file is opened for writing)", d->landlock);
	else
		buftext_str(b, ", no Landlock");
}
