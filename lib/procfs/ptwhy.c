/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptwhy.h"
#include "base/fs.h"
#include "system/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define STATUS_MAX (64u << 10)

struct facts {
	bool there;
	unsigned int tracer, uid, yama;
	bool kthread, undumpable, more_caps;
	bool hidden,
		others; /* it is there, but not in /proc (hidepid); whose it is the kernel tells otherwise */
};

const char *ptwhy_name(enum ptwhy why)
{
	static const char *const names[PTWHY_COUNT] = { "gone", "kernel-thread", "32-bit", "traced",
		"other-user", "privileged", "undumpable", "yama", "forbidden", "late", "walker", "other" };

	return why < PTWHY_COUNT ? names[why] : "";
}

/* 0 where it is not there. */
static unsigned int field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? (unsigned int)strtoul(at + strlen(name), NULL, 10) : 0;
}

static uint64_t own_caps(const struct root *root)
{
	_cleanup_free_ char *text = NULL;
	struct caps_status s;

	if (root_read(root, "proc/self/status", STATUS_MAX, &text, NULL, NULL) != 0 ||
		caps_status_parse(text, &s) != 0)
		return UINT64_MAX;
	return s.permitted;
}

static void look(pid_t pid, pid_t tid, struct facts *f)
{
	_cleanup_free_ char *text = NULL;
	char path[64], yama[16] = "";
	struct caps_status s;
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
		f->more_caps = caps_status_parse(text, &s) == 0 && (s.permitted & ~own_caps(&root));
	} else {
		snprintf(path, sizeof(path), "/proc/%d", pid);
		f->others = kill(pid, 0) != 0 && errno == EPERM;
		f->hidden = access(path, F_OK) != 0 && (f->others || kill(pid, 0) == 0);
	}
	/* files of such a process belong to root in /proc */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f->undumpable = stat(path, &st) == 0 && st.st_uid != f->uid;
	if (root_line(&root, "proc/sys/kernel/yama/ptrace_scope", yama, sizeof(yama), NULL) == 0)
		f->yama = (unsigned int)strtoul(yama, NULL, 10);
	root_close(&root);
}

static enum ptwhy refused(const struct facts *f, bool privileged)
{
	if (f->tracer)
		return PTWHY_TRACED;
	if (!privileged) {
		if (f->uid != getuid())
			return PTWHY_OTHERS;
		if (f->undumpable)
			return PTWHY_UNDUMPABLE;
		if (f->more_caps)
			return PTWHY_PRIVILEGED;
	}
	if (f->yama >= (privileged ? 3 : 1))
		return PTWHY_YAMA;
	return PTWHY_FORBIDDEN;
}

static enum ptwhy classify(int code, const struct facts *f, bool privileged)
{
	if (f->hidden)
		return f->others ? PTWHY_OTHERS : PTWHY_UNDUMPABLE;
	if (!f->there || code == -ESRCH || code == -ENOENT)
		return PTWHY_GONE;
	if (f->kthread)
		return PTWHY_KTHREAD;
	if (code == -ENOEXEC)
		return PTWHY_COMPAT;
	if (code == -ETIMEDOUT)
		return PTWHY_LATE;
	return code == -EPERM || code == -EACCES ? refused(f, privileged) : PTWHY_OTHER;
}

static void tell_yama(unsigned int scope, struct err *e)
{
	if (scope >= 3)
		err_hint(e, "kernel.yama.ptrace_scope=%u forbids it to everybody until the next boot", scope);
	else if (scope == 2)
		err_hint(e, "kernel.yama.ptrace_scope=2 asks for CAP_SYS_PTRACE");
	else
		err_hint(e, "kernel.yama.ptrace_scope=1 allows only descendants: start the program by "
			    "'offcpu-record -- COMMAND', or: sysctl kernel.yama.ptrace_scope=0");
}

enum ptwhy ptwhy_tell(pid_t pid, pid_t tid, int code, bool privileged, struct err *e)
{
	struct facts f;
	enum ptwhy why;

	look(pid, tid, &f);
	why = classify(code, &f, privileged || caps_have(CAP_SYS_PTRACE));
	switch (why) {
	case PTWHY_GONE:
		err_set(e, -ESRCH, "thread %d of process %d has ended", tid, pid);
		break;
	case PTWHY_KTHREAD:
		err_set(e, code, "thread %d is the kernel's: it has no user stack", tid);
		break;
	case PTWHY_COMPAT:
		err_set(e, code, "process %d runs a 32-bit program, whose stacks cannot be walked", pid);
		break;
	case PTWHY_TRACED:
		err_set(e, code, "thread %d of process %d is traced by process %u already", tid, pid,
			f.tracer);
		err_hint(e, "a thread has one tracer: end gdb, strace, or whatever process %u is", f.tracer);
		break;
	case PTWHY_OTHERS:
		if (f.hidden)
			err_set(e, code, "process %d belongs to somebody else, and /proc hides it (hidepid)",
				pid);
		else
			err_set(e, code, "process %d belongs to user %u", pid, f.uid);
		err_hint(e, "stacks of others take CAP_SYS_PTRACE: run as root, or as that user");
		break;
	case PTWHY_PRIVILEGED:
		err_set(e, code, "process %d has capabilities that this process has not", pid);
		err_hint(e, "stacks of such processes take CAP_SYS_PTRACE: run as root");
		break;
	case PTWHY_UNDUMPABLE:
		err_set(e, code, "process %d does not let itself be looked into", pid);
		err_hint(e, "it changed its user, or its program may not be read, or it called "
			    "prctl(PR_SET_DUMPABLE): run as root");
		break;
	case PTWHY_YAMA:
		err_set(e, code, "thread %d of process %d may not be traced", tid, pid);
		tell_yama(f.yama, e);
		break;
	case PTWHY_FORBIDDEN:
		err_sys(e, code, "thread %d of process %d may not be traced", tid, pid);
		err_hint(e, "a seccomp filter (containers have one), a user namespace or a security module "
			    "forbids ptrace(2)");
		break;
	case PTWHY_LATE:
		err_set(e, code, "thread %d of process %d did not stop", tid, pid);
		err_hint(e, "it waits for something that cannot be interrupted (state D), vfork(2)'s child "
			    "among it");
		break;
	case PTWHY_WALKER:
	case PTWHY_OTHER:
	case PTWHY_COUNT:
		err_sys(e, code, "cannot look at thread %d of process %d", tid, pid);
		break;
	}
	return why;
}
