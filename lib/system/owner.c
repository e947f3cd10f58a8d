/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/owner.h"
#include "system/elevated.h"
#include "system/interrupt.h"
#include "system/privilege_sets.h"
#include "system/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>

/*
 * For loading and attaching; names of kernel functions; mapped files that have no
 * path any more, of processes whose maps the user may read; limits of memory and
 * files. None of them opens what the user could not open.
 */
#define KEPT                                                                                                 \
	(PRIV_BIT(CAP_BPF) | PRIV_BIT(CAP_PERFMON) | PRIV_BIT(CAP_SYSLOG) |                                  \
		PRIV_BIT(CAP_CHECKPOINT_RESTORE) | PRIV_BIT(CAP_IPC_LOCK) | PRIV_BIT(CAP_SYS_RESOURCE))

/*
 * Effective only between owner_raise() and owner_lower(): on newer kernels a
 * process with one of them may read the maps of every process (may_access_mm() in
 * kernel/fork.c).
 */
#define RAISED (PRIV_BIT(CAP_PERFMON) | PRIV_BIT(CAP_SYS_ADMIN))

/* The capabilities of HAVE to keep. A kernel before 5.8 has CAP_SYS_ADMIN for BPF and perf events. */
static uint64_t kept_of(uint64_t have)
{
	const uint64_t both = PRIV_BIT(CAP_BPF) | PRIV_BIT(CAP_PERFMON);

	return have & ((have & both) == both ? KEPT : KEPT | PRIV_BIT(CAP_SYS_ADMIN));
}

/* Whether /proc/self/ns/user is PROC_USER_INIT_INO. In other namespaces an id differs from the kernel's. */
static bool in_first_user_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino == 0xeffffffdu;
}

/* In a child without capabilities: the index of the first ID that may not be read, with its *CODE; or N. */
static size_t try_each(const uint32_t *ids, size_t n, int *code)
{
	char path[64];

	for (size_t i = 0; i < n; i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/%u/maps", ids[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC); /* access is checked here, and only here */
		*code = errno;
		if (fd < 0 && (*code == EACCES || *code == EPERM))
			return i;
		if (fd >= 0)
			close(fd);
	}
	return n;
}

/* Whether /proc/kallsyms shows addresses. Without permission it shows zeros. */
static bool sees_kernel(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long addr;

	/* the first ones may be per-CPU offsets, from 0 */
	for (int i = 0; f && i < 1000 && fscanf(f, "%llx%*[^\n]", &addr) == 1; i++)
		if (addr)
			return true;
	return false;
}

struct verdict {
	size_t at; /* index of the first refused id, n = none; without ids: 1 = kernel addresses are shown */
	int code;
};

struct trial {
	const uint32_t *ids;
	size_t n;
};

static int try_all(void *arg, int sock)
{
	const struct trial *t = arg;
	struct verdict v = { 0 };
	int rc = elevated_real_ids();

	rc = rc ? rc : priv_sets_set(0, 0);
	if (rc)
		return 1;
	v.at = t->n ? try_each(t->ids, t->n, &v.code) : sees_kernel();
	return worker_report(sock, &v, sizeof(v), -1, true) != 0;
}

static int ask_child(const uint32_t *ids, size_t n, struct verdict *ret, struct err *e)
{
	struct trial t = { ids, n };
	const struct worker_opts opts = {
		.who = "the process that tries it", .reports = true, .run = try_all, .arg = &t
	};
	struct worker *w = NULL;
	struct worker_reply r;
	int rc = worker_start(&opts, &w, e);
	bool ok = !rc && worker_receive(w, -1, ret, sizeof(*ret), false, &r) == 1 && r.len == sizeof(*ret) &&
		  ret->at <= MAX(n, (size_t)1);

	worker_free(w);
	if (rc || ok)
		return rc;
	return interrupt_pending()
		       ? err_set(e, -EINTR, "interrupted")
		       : err_set(e, -EAGAIN,
				 "cannot find out what user %u may read: the process that tries it failed",
				 getuid());
}

int owner_become(struct owner *ret, struct err *e)
{
	bool first = in_first_user_ns();
	struct verdict v = { 0 };
	uint64_t have = 0;
	int rc;

	*ret = (struct owner){
		.only = elevated(), .uid = first ? getuid() : UINT32_MAX, .gid = first ? getgid() : UINT32_MAX
	};
	if (!ret->only)
		return 0;
	rc = priv_sets_get(&have, NULL);
	rc = rc ? rc : elevated_real_ids();
	rc = rc ? rc : priv_sets_set(kept_of(have), kept_of(have) & ~RAISED);
	if (rc)
		return err_sys(e, rc, "cannot give up rights that user %u has not", getuid());
	rc = ask_child(NULL, 0, &v, e);
	ret->no_kernel = v.at != 1;
	return rc;
}

/* Make all permitted capabilities but LOWERED effective. If this fails, the call that needs one fails. */
static void put_in_force(uint64_t lowered)
{
	uint64_t have;

	if (elevated() && priv_sets_get(&have, NULL) == 0)
		priv_sets_set(have, have & ~lowered);
}

void owner_raise(void)
{
	put_in_force(0);
}

void owner_lower(void)
{
	put_in_force(RAISED);
}

static bool belongs_to(uint32_t id, unsigned int *uid)
{
	char path[64], line[256];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%u/status", id);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Uid: %u", uid) == 1)
			return true;
	return false;
}

static int refused(uint32_t id, int code, struct err *e)
{
	unsigned int uid;

	if (!belongs_to(id, &uid))
		return err_set(e, -ESRCH, "process %u has exited meanwhile", id);
	if (uid != getuid())
		err_set(e, -code,
			"not permitted to record process %u: it belongs to user %u, not to you, user %u", id,
			uid, getuid());
	else
		err_set(e, -code,
			"not permitted to record process %u: it is yours, but you may not trace it: it has "
			"another group or rights of its own, or must not be dumped",
			id);
	err_hint(e,
		"this program has its capabilities from its file, for your own processes: what 'cat "
		"/proc/%u/maps' shows you; run it as root (sudo) for others",
		id);
	return -EACCES;
}

int owner_check(const uint32_t *ids, size_t n, struct err *e)
{
	struct verdict v = { 0 };
	int rc;

	if (!n || !elevated())
		return 0;
	rc = ask_child(ids, n, &v, e);
	if (rc || v.at == n)
		return rc;
	return refused(ids[v.at], v.code, e);
}
