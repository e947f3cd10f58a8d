/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a recorder that was taken over cannot do: each attack is tried after the
 * same confinement as in a recording (priv_drop_recorder()), by a process of its
 * own, and must be refused. The same attacks succeed before it, as far as they
 * leave no trace, so that none is refused for another reason.
 */
#include "base/tap.h"
#include "system/drop.h"
#include "system/private_user.h"
#include "system/privileges.h"
#include "system/sandbox.h"
#include "system/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static char dir[] = "/tmp/unit-attacks.XXXXXX";
static char file[64]; /* of root, readable by all */
static char own[64]; /* of the user who attacks */
static pid_t victim; /* a process of the same user */
static int open_file = -1; /* FILE, for writing: as a recorder has its output */

static int result(long rc)
{
	return rc < 0 ? -errno : 0;
}

/* --- files --- */

static int do_chmod(void)
{
	return result(chmod(file, 04755));
}

static int do_fchmod(void)
{
	return result(fchmod(open_file, 04755));
}

static int do_fchmodat(void)
{
	return result(syscall(SYS_fchmodat, AT_FDCWD, file, 04755));
}

static int do_chown(void)
{
	return result(chown(file, 1, 1));
}

static int do_fchown(void)
{
	return result(fchown(open_file, getuid(), getgid()));
}

static int do_setxattr(void)
{
	return result(setxattr(file, "user.x", "x", 1, 0));
}

static int do_fsetxattr(void)
{
	return result(fsetxattr(open_file, "user.x", "x", 1, 0));
}

static int do_write(void)
{
	return result(open(file, O_WRONLY | O_CLOEXEC));
}

static int do_write_own(void)
{
	return result(open(own, O_WRONLY | O_CLOEXEC));
}

static int do_create(void)
{
	char path[96];

	snprintf(path, sizeof(path), "%s/new", dir);
	return result(open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int do_create_tmp(void)
{
	return result(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
}

static int do_truncate_open(void)
{
	return result(open(own, O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int do_openat2(void)
{
	const struct open_how how = { .flags = O_WRONLY | O_CLOEXEC };

	return result(syscall(SYS_openat2, AT_FDCWD, own, &how, sizeof(how)));
}

static int do_reopen(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", open_file);
	return result(open(path, O_RDWR | O_CLOEXEC));
}

static int do_shadow(void)
{
	return result(open("/etc/shadow", O_RDONLY | O_CLOEXEC));
}

static int do_truncate(void)
{
	return result(truncate(own, 0));
}

static int do_rename(void)
{
	char to[80];

	snprintf(to, sizeof(to), "%s.moved", own);
	return result(rename(own, to));
}

static int do_unlink(void)
{
	return result(unlink(own));
}

static int do_link(void)
{
	char to[80];

	snprintf(to, sizeof(to), "%s.link", own);
	return result(link(own, to));
}

static int do_symlink(void)
{
	char to[80];

	snprintf(to, sizeof(to), "%s.symlink", own);
	return result(symlink(own, to));
}

static int do_mkdir(void)
{
	char to[80];

	snprintf(to, sizeof(to), "%s.dir", own);
	return result(mkdir(to, 0700));
}

static int do_mknod(void)
{
	char to[80];

	snprintf(to, sizeof(to), "%s.node", own);
	return result(mknod(to, S_IFIFO | 0600, 0));
}

static int do_utimes(void)
{
	return result(utimensat(AT_FDCWD, own, NULL, 0));
}

/* --- programs, memory --- */

static int do_execve(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };

	return result(execve("/bin/true", argv, argv + 1));
}

static int do_execveat(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	int fd = open("/bin/true", O_RDONLY | O_CLOEXEC);

	return result(syscall(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH));
}

static int do_code(void)
{
	return result((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			      -1, 0) == -1
			      ? -1
			      : 0);
}

static int do_make_code(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return result(mprotect(at, 4096, PROT_READ | PROT_EXEC));
}

/* --- network, messages --- */

static int do_inet(void)
{
	return result(socket(AF_INET, SOCK_STREAM, 0));
}

static int do_unix(void)
{
	return result(socket(AF_UNIX, SOCK_STREAM, 0));
}

static int do_netlink(void)
{
	return result(socket(AF_NETLINK, SOCK_RAW, 0));
}

/* A datagram socket, even one of a pair, can send to any other: to that of the service manager. */
static int do_datagram(void)
{
	int pair[2];

	return result(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
}

/* --- other processes --- */

static int do_kill(void)
{
	return result(kill(victim, SIGKILL));
}

static int do_stop(void)
{
	return result(kill(victim, SIGSTOP));
}

static int do_tgkill(void)
{
	return result(syscall(SYS_tgkill, victim, victim, SIGSTOP));
}

static int do_queue(void)
{
	return result(sigqueue(victim, SIGSTOP, (union sigval){ .sival_int = 0 }));
}

static int do_pidfd_signal(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim, 0);

	return result(syscall(SYS_pidfd_send_signal, fd, SIGSTOP, NULL, 0));
}

/* By asking the kernel to send a signal when there is something to read. */
static int do_own(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return -EIO;
	return result(fcntl(pair[0], F_SETOWN, victim));
}

static int do_own_ioctl(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return -EIO;
	return result(ioctl(pair[0], FIOSETOWN, &victim));
}

static int do_async(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) != 0)
		return -EIO;
	return result(fcntl(pair[0], F_SETFL, O_ASYNC));
}

static int do_attach(void)
{
	return result(ptrace(PTRACE_ATTACH, victim, NULL, NULL));
}

static int do_seize(void)
{
	return result(ptrace(PTRACE_SEIZE, victim, NULL, NULL));
}

static int do_traceme(void)
{
	return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int do_read_memory(void)
{
	char byte;
	struct iovec own_part = { &byte, 1 }, theirs = { &byte, 1 };

	return result(process_vm_readv(victim, &own_part, 1, &theirs, 1, 0));
}

static int do_write_memory(void)
{
	char byte = 1;
	struct iovec own_part = { &byte, 1 }, theirs = { &byte, 1 };

	return result(process_vm_writev(victim, &own_part, 1, &theirs, 1, 0));
}

static int do_open_memory(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", victim);
	return result(open(path, O_RDONLY | O_CLOEXEC));
}

static int do_steal(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim, 0);

	return result(syscall(SYS_pidfd_getfd, fd, 0, 0));
}

static int do_limit(void)
{
	const struct rlimit none = { 0, 0 };

	return result(prlimit(victim, RLIMIT_CPU, &none, NULL));
}

static int do_slow(void)
{
	return result(setpriority(PRIO_PROCESS, (id_t)victim, 19));
}

/* --- the system --- */

static int do_mount(void)
{
	return result(mount("none", dir, "tmpfs", 0, NULL));
}

static int do_umount(void)
{
	return result(umount2("/proc", MNT_DETACH));
}

static int do_chroot(void)
{
	return result(chroot("/"));
}

static int do_unshare(void)
{
	return result(unshare(CLONE_NEWUSER));
}

static int do_clone(void)
{
	return result(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0));
}

static int do_setns(void)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	return result(setns(fd, 0));
}

static int do_prog_load(void)
{
	const struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uintptr_t)code,
		.insn_cnt = 2,
		.license = (uintptr_t) "GPL" };

	return result(syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr)));
}

static int do_map_of_others(void)
{
	union bpf_attr attr = { .start_id = 0 };

	return result(syscall(SYS_bpf, BPF_MAP_GET_NEXT_ID, &attr, sizeof(attr)));
}

static int do_perf(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr) };

	return result(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static int do_io_uring(void)
{
	char params[256] = { 0 };

	return result(syscall(SYS_io_uring_setup, 1, params));
}

static int do_keys(void)
{
	return result(syscall(SYS_add_key, "user", "x", "x", 1, -2));
}

static int do_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return result(clock_settime(CLOCK_REALTIME, &now));
}

static int do_name(void)
{
	char name[65];

	gethostname(name, sizeof(name));
	return result(sethostname(name, strlen(name)));
}

static int do_type(void)
{
	return result(ioctl(0, TIOCSTI, "x"));
}

/* --- its own rights --- */

static int do_root(void)
{
	return result(syscall(SYS_setresuid, 0, 0, 0));
}

static int do_caps(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .permitted = 1, .effective = 1 } };

	return result(syscall(SYS_capset, &head, data));
}

static int do_dumpable(void)
{
	return result(prctl(PR_SET_DUMPABLE, 1));
}

static int do_tracer(void)
{
	return result(prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY));
}

enum who {
	ANYONE, /* refused to a recorder of any user */
	ROOT, /* refused because a recorder of root is another user afterwards: an ordinary user stays who it
		 is */
	TOGETHER /* refused unless the recorder is alone, which stops threads by itself */
};

static const struct {
	const char *name;
	int (*fn)(void);
	enum who who;
	bool harmless; /* succeeds before the drop, as root */
} attacks[] = {
	{ "chmod 04755 of a file of root", do_chmod, ANYONE, true },
	{ "fchmodat 04755", do_fchmodat, ANYONE, true },
	{ "fchmod 04755 of the output", do_fchmod, ANYONE, true },
	{ "chown", do_chown, ANYONE, false },
	{ "fchown of the output", do_fchown, ANYONE, true },
	{ "setxattr", do_setxattr, ANYONE, false },
	{ "fsetxattr of the output", do_fsetxattr, ANYONE, false },
	{ "opening a file of root for writing", do_write, ANYONE, true },
	{ "opening a file of the user for writing", do_write_own, ANYONE, true },
	{ "creating a file", do_create, ANYONE, true },
	{ "creating a file without a name", do_create_tmp, ANYONE, true },
	{ "emptying a file by open(2)", do_truncate_open, ANYONE, true },
	{ "openat2(2) for writing", do_openat2, ANYONE, true },
	{ "opening the output again", do_reopen, ANYONE, true },
	{ "reading /etc/shadow", do_shadow, ANYONE, true },
	{ "truncate", do_truncate, ANYONE, true },
	{ "rename", do_rename, ANYONE, false },
	{ "unlink", do_unlink, ANYONE, false },
	{ "link", do_link, ANYONE, false },
	{ "symlink", do_symlink, ANYONE, false },
	{ "mkdir", do_mkdir, ANYONE, false },
	{ "mknod", do_mknod, ANYONE, false },
	{ "changing a file's times", do_utimes, ANYONE, true },
	{ "execve", do_execve, ANYONE, false },
	{ "execveat", do_execveat, ANYONE, false },
	{ "memory that is executable", do_code, ANYONE, true },
	{ "memory that becomes executable", do_make_code, ANYONE, true },
	{ "a socket of the network", do_inet, ANYONE, true },
	{ "a socket of the machine", do_unix, ANYONE, true },
	{ "a netlink socket", do_netlink, ANYONE, true },
	{ "a datagram socket", do_datagram, ANYONE, true },
	{ "SIGKILL to another process", do_kill, ROOT, false },
	{ "SIGSTOP to another process", do_stop, ANYONE, false },
	{ "tgkill", do_tgkill, ANYONE, false },
	{ "sigqueue", do_queue, ANYONE, false },
	{ "pidfd_send_signal", do_pidfd_signal, ANYONE, false },
	{ "a signal by F_SETOWN", do_own, ANYONE, true },
	{ "a signal by FIOSETOWN", do_own_ioctl, ANYONE, true },
	{ "a signal by O_ASYNC", do_async, ANYONE, true },
	{ "PTRACE_ATTACH", do_attach, ANYONE, false },
	{ "PTRACE_SEIZE", do_seize, TOGETHER, true },
	{ "PTRACE_TRACEME", do_traceme, ANYONE, true },
	{ "process_vm_readv", do_read_memory, TOGETHER, false },
	{ "process_vm_writev", do_write_memory, ANYONE, false },
	{ "/proc/PID/mem", do_open_memory, TOGETHER, true },
	{ "pidfd_getfd", do_steal, ANYONE, true },
	{ "prlimit of another process", do_limit, ANYONE, false },
	{ "setpriority of another process", do_slow, ANYONE, true },
	{ "mount", do_mount, ANYONE, false },
	{ "umount", do_umount, ANYONE, false },
	{ "chroot", do_chroot, ANYONE, true },
	{ "a user namespace by unshare", do_unshare, ANYONE, false },
	{ "a user namespace by clone", do_clone, ANYONE, false },
	{ "setns", do_setns, ANYONE, true },
	{ "BPF_PROG_LOAD", do_prog_load, ANYONE, true },
	{ "BPF_MAP_GET_NEXT_ID", do_map_of_others, ANYONE, false },
	{ "perf_event_open", do_perf, ANYONE, true },
	{ "io_uring_setup", do_io_uring, ANYONE, false },
	{ "add_key", do_keys, ANYONE, false },
	{ "clock_settime", do_clock, ANYONE, false },
	{ "sethostname", do_name, ANYONE, false },
	{ "TIOCSTI", do_type, ANYONE, false },
	{ "setresuid(0, 0, 0)", do_root, ANYONE, true },
	{ "capset", do_caps, ANYONE, true },
	{ "PR_SET_DUMPABLE", do_dumpable, ANYONE, true },
	{ "PR_SET_PTRACER", do_tracer, ANYONE, false },
};

static pid_t start_victim(uid_t uid)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (uid && (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
			_exit(1);
		/* as processes usually are: a change of user makes it undumpable */
		prctl(PR_SET_DUMPABLE, 1);
		for (;;)
			pause();
	}
	return pid;
}

struct situation {
	const char *name;
	uid_t uid;
	struct priv_drop_recorder_opts opts;
	bool drop;
};

/* What the attack gives in situation S: 0, -errno; -EIO if the drop failed; -ECHILD if it was killed. */
static int attack(const struct situation *s, int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct priv_drop d;

		alarm(60);
		if (s->uid &&
			(setresgid(s->uid, s->uid, s->uid) != 0 || setresuid(s->uid, s->uid, s->uid) != 0))
			_exit(254);
		if (s->drop && priv_drop_recorder(&s->opts, &d, NULL) != 0)
			_exit(254);
		_exit(-fn() & 0xff);
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status))
		return -ECHILD;
	return WEXITSTATUS(status) == 254 ? -EIO : -WEXITSTATUS(status);
}

static bool refused(int rc)
{
	return rc == -EPERM || rc == -EACCES || rc == -ENOSYS;
}

static bool concerns(const struct situation *s, enum who who)
{
	return who == ANYONE || (who == ROOT && !s->uid) || (who == TOGETHER && !s->opts.alone);
}

static void all_refused(struct tap *t, const struct situation *s)
{
	victim = start_victim(s->uid);
	for (size_t i = 0; i < ARRAY_LEN(attacks); i++) {
		int rc;

		if (!concerns(s, attacks[i].who))
			continue;
		rc = attack(s, attacks[i].fn);
		tap_ok(t, refused(rc), "%s: %s is refused (%s)", s->name, attacks[i].name,
			rc ? strerror(-rc) : "it succeeded");
	}
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
}

/* Otherwise an attack could be refused for any reason. */
static void all_work_before(struct tap *t)
{
	const struct situation s = { .name = "before" };

	victim = start_victim(0);
	for (size_t i = 0; i < ARRAY_LEN(attacks); i++)
		if (attacks[i].harmless) {
			int rc = attack(&s, attacks[i].fn);

			tap_ok(t, rc == 0, "as root, before the drop, this works: %s (%s)", attacks[i].name,
				strerror(-rc));
		}
	kill(victim, SIGKILL);
	waitpid(victim, NULL, 0);
}

/* --- what a recorder needs --- */

static void *set_one(void *arg)
{
	*(int *)arg = 1;
	return NULL;
}

static int needs(void)
{
	char byte;
	int pair[2], ran = 0, status, fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	pthread_t thread;
	pid_t pid;

	if (fd < 0 || read(fd, &byte, 1) != 1)
		return 1;
	if (pwrite(open_file, "some bytes", 10, 0) != 10 || ftruncate(open_file, 8192) != 0)
		return 2;
	if (fallocate(open_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) != 0 &&
		errno != EOPNOTSUPP)
		return 3;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0 ||
		send(pair[0], "x", 1, 0) != 1 || recv(pair[1], &byte, 1, 0) != 1)
		return 4;
	if (pthread_create(&thread, NULL, set_one, &ran) != 0 || pthread_join(thread, NULL) != 0 || !ran)
		return 5;
	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	if (pid < 0 || kill(pid, 0) != 0 || kill(pid, SIGKILL) != 0 || waitpid(pid, &status, 0) != pid ||
		!WIFSIGNALED(status))
		return 6;
	return 0;
}

static void works(struct tap *t, const struct situation *s)
{
	int rc = attack(s, needs);

	tap_ok(t, rc == 0, "%s: what a recording takes still works (step %d)", s->name, -rc);
}

static int is_other_user(void)
{
	return getuid() == PRIVATE_USER_BASE + (uint32_t)getpid() && getgid() == getuid() &&
			       getegid() == getuid() && geteuid() == getuid()
		       ? 0
		       : 1;
}

/* --- workers --- */

/* What /proc says about the confinement of PID. */
static void confinement_of(uint32_t pid, char *text, size_t size)
{
	static const char *const wanted[] = { "Uid:", "Gid:", "Groups:", "Cap", "NoNewPrivs:", "Seccomp:" };
	char path[64], line[256];
	size_t len = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	text[0] = '\0';
	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
			if (strncmp(line, wanted[i], strlen(wanted[i])) == 0)
				len += (size_t)snprintf(text + len, size - len, "%s", line);
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%u/oom_score_adj", pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		snprintf(text + len, size - len, "oom_score_adj %s", line);
	if (f)
		fclose(f);
}

static int does_not_end(void *arg, int sock)
{
	volatile const int *forever = arg;

	(void)sock;
	while (*forever)
		;
	return 0;
}

/* A worker that is started after the drop, in a process of its own: the step that fails, or 0. */
static int later_worker(char *was, char *is, size_t size)
{
	const struct sandbox_opts box = { .comm = "worker", .memory_bytes = 1 << 20 };
	const int forever = 1;
	const struct worker_opts opts = {
		.who = "the worker", .sandbox = &box, .run = does_not_end, .arg = (void *)(uintptr_t)&forever
	};
	struct worker *w = NULL;
	struct worker_end end;
	struct priv_drop d;

	worker_first_without_memory();
	if (worker_start(&opts, &w, NULL) != 0 || worker_ready(w, NULL) != 0)
		return 1;
	confinement_of(worker_pid(w), was, size);
	if (priv_drop_recorder(&(struct priv_drop_recorder_opts){ 0 }, &d, NULL) != 0)
		return 2;
	worker_stop(w, 0, &end);
	if (!WIFSIGNALED(end.status) || WTERMSIG(end.status) != SIGKILL)
		return 3;
	if (worker_restart(w, NULL) != 0 || worker_ready(w, NULL) != 0)
		return 4;
	confinement_of(worker_pid(w), is, size);
	worker_stop(w, 0, &end);
	return WIFSIGNALED(end.status) && WTERMSIG(end.status) == SIGKILL ? 0 : 5;
}

struct later {
	int step;
	char was[2048], is[2048];
};

static void test_later_worker(struct tap *t, uid_t uid, const char *name)
{
	struct later *l = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();

	if (pid == 0) {
		alarm(60);
		if (uid && (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
			_exit(1);
		if (uid)
			prctl(PR_SET_DUMPABLE, 1); /* as after an exec */
		l->step = -1;
		l->step = later_worker(l->was, l->is, sizeof(l->is));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	tap_ok(t, l->step == 0, "%s: a worker can be ended and started again after the drop (step %d)", name,
		l->step);
	tap_ok(t, l->was[0] && strcmp(l->was, l->is) == 0, "%s: it is as confined as the one before", name);
	if (strcmp(l->was, l->is) != 0)
		tap_diag("before:\n%safter:\n%s", l->was, l->is);
	tap_ok(t, strstr(l->is, "oom_score_adj 1000\n") && strstr(l->is, "Seccomp:\t2\n"),
		"%s: it has a filter, and is the first to be killed when memory runs out", name);
	munmap(l, sizeof(*l));
}

int main(void)
{
	static const struct situation situations[] = {
		{ .name = "root", .drop = true },
		{ .name = "a user", .uid = 4242, .drop = true },
		{ .name = "a user without a helper",
			.uid = 4242,
			.drop = true,
			.opts = { .alone = true, .trace = true } },
	};
	struct tap t = { 0 };
	char command[96];

	if (geteuid() != 0 || !priv_have(CAP_SYS_ADMIN) || !priv_have(CAP_SETUID)) {
		printf("1..0 # SKIP needs root\n");
		return 0;
	}
	if (!mkdtemp(dir) || chmod(dir, 0777) != 0)
		abort();
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(own, sizeof(own), "%s/own", dir);
	open_file = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (open_file < 0 || close(open(own, O_WRONLY | O_CREAT, 0666)) != 0 || chmod(own, 0666) != 0)
		abort();
	all_work_before(&t);
	if (chmod(file, 0644) != 0)
		abort();
	for (size_t i = 0; i < ARRAY_LEN(situations); i++) {
		struct stat st;

		if (situations[i].uid && chown(own, situations[i].uid, situations[i].uid) != 0)
			abort();
		all_refused(&t, &situations[i]);
		works(&t, &situations[i]);
		tap_ok(&t, stat(file, &st) == 0 && st.st_uid == 0 && (st.st_mode & 07777) == 0644,
			"%s: the file of root is as it was", situations[i].name);
	}
	tap_ok(&t, attack(&situations[0], is_other_user) == 0,
		"a recorder of root is a user and group of its own afterwards, in all four ids");
	test_later_worker(&t, 0, "root");
	test_later_worker(&t, 4242, "a user");
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	tap_ok(&t, system(command) == 0, "the parent can remove the directory");
	return tap_done(&t);
}
