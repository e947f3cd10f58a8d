/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/target.h"
#include "base/text.h"
#include "elf/file.h"
#include "record/files.h"
#include "record/runtimes.h"
#include "system/maps.h"
#include "system/proc.h"
#include "unwind/interpreter.h"
#include "unwind/worker.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What the worker answers, in place of an unwind table. */
struct identity {
	struct unwindtab_interpreter interpreter;
	struct unwindtab_hotspot hotspot;
};

static int identify(int fd, uint8_t **ret, size_t *len, struct err *e)
{
	struct identity *id = calloc(1, sizeof(*id));
	struct elffile *f = NULL;
	int rc = id ? elffile_fd(fd, &f, e) : err_nomem(e, "a file");

	if (rc) {
		close(fd);
		free(id);
		return rc;
	}
	id->interpreter = interpreter_find(f, &id->hotspot);
	elffile_close(f);
	*ret = (uint8_t *)id;
	*len = sizeof(*id);
	return 0;
}

struct looking {
	struct table_worker *worker;
	struct runtimes *runtimes;
	uint32_t pid;
	uint32_t named; /* runtimes that files are called like, as a bit set */
	uint64_t dev, inode; /* of the last file */
	unsigned int files, failed; /* that could not be read */
	unsigned int read; /* processes of which all files could be read */
	char why[256];
};

static void fail(struct looking *l, const char *path, const char *why)
{
	if (!l->failed++)
		snprintf(l->why, sizeof(l->why), "'%.150s': %.80s", path, why);
}

static void take(struct looking *l, const struct identity *id)
{
	struct hotspot_file hotspot;
	struct runtime_file file;
	uint32_t number = runtimes_file(l->runtimes, &id->interpreter, &file);

	if (!number)
		return;
	runtimes_hotspot(l->runtimes, number, &id->hotspot, &hotspot);
	runtimes_process(l->runtimes, number);
}

/* A nonzero result ends the walk: no worker can be started. */
static int look_at(void *ctx, const struct procmap *m)
{
	const uint64_t dev = (uint64_t)m->dev_major << 32 | m->dev_minor;
	struct table_worker_answer a = { 0 };
	struct looking *l = ctx;
	struct err why = { 0 };
	_cleanup_close_ int fd = -1;
	struct stat st;
	int rc;

	if (!(m->prot & PROT_EXEC) || !m->inode || (m->dev_major == 0 && m->path[0] != '/') ||
		(l->dev == dev && l->inode == m->inode))
		return 0;
	l->dev = dev;
	l->inode = m->inode;
	l->named |= runtimes_of_name(m->path);
	l->files++;
	fd = mapfile_open(NULL, l->pid, m, &st);
	if (fd < 0) {
		if (fd != -EMEDIUMTYPE)
			fail(l, m->path, strerror(-fd));
		return 0;
	}
	rc = table_worker_ask(l->worker, fd, 0, &why);
	rc = rc ? rc : table_worker_next(l->worker, -1, &a, &why);
	if (rc < 0) {
		fail(l, m->path, why.msg);
		return rc;
	}
	/* a file that is not ELF is not a runtime */
	if (a.error && a.error != -EINVAL && a.error != -EOPNOTSUPP)
		fail(l, m->path, a.why);
	else if (rc && !a.error && a.len == sizeof(struct identity))
		take(l, (const struct identity *)a.bytes);
	return 0;
}

static void check_process(struct looking *l, struct findings *f)
{
	char id[64], name[TEXT_ESCAPED_MAX(PROCINFO_COMM_LEN)], comm[PROCINFO_COMM_LEN];
	struct procinfo_status st;
	struct finding *fi;
	int rc;

	snprintf(id, sizeof(id), "target.%u", l->pid);
	if (!procinfo_status(l->pid, &st)) {
		fi = findings_add(f, GROUP_TARGET, FINDING_FAIL, id, "there is no process %u", l->pid);
		fi->forbids = TOOL_BIT(TOOL_OFFCPU_RECORD);
		finding_remedy(fi, "give the ID of a process that runs: pgrep -a NAME");
		return;
	}
	procinfo_comm(l->pid, comm);
	text_escape(name, sizeof(name), comm, strlen(comm), TEXT_LINE);
	l->dev = l->inode = 0;
	l->files = l->failed = 0;
	rc = procmaps_each(l->pid, look_at, l, NULL);
	if (rc == -EACCES || rc == -EPERM) {
		fi = findings_add(f, GROUP_TARGET, FINDING_WARN, id,
			"what %s (%u) maps may not be read by this user: no user stacks, no names", name,
			l->pid);
		finding_remedy(fi, "run bpfcheck and offcpu-record as root, or as the user of the process");
	} else if (l->failed) {
		fi = findings_add(f, GROUP_TARGET, FINDING_WARN, id,
			"%u of the %u files that %s (%u) maps cannot be read: %s", l->failed, l->files, name,
			l->pid, l->why);
	} else {
		l->read++;
		return;
	}
	fi->degrades = TOOL_BIT(TOOL_OFFCPU_RECORD);
}

static void conclude(const struct looking *l, struct findings *f)
{
	struct runtimes_stats st;
	struct finding *fi;

	runtimes_watched(l->runtimes, runtimes_wanted(l->runtimes), l->named, false);
	runtimes_stats(l->runtimes, &st);
	if (!st.refused_processes && !st.unproved) {
		if (l->read || st.processes)
			findings_add(f, GROUP_TARGET, FINDING_OK, "target.runtimes", "runtimes: %s",
				st.summary[0] ? st.summary : "none, native code only");
		return;
	}
	fi = findings_add(f, GROUP_TARGET, FINDING_WARN, "target.runtimes", "runtimes: %s", st.summary);
	finding_remedy(fi, "see 'runtimes' in offcpu-record(1) for the versions that are known");
	fi->degrades = TOOL_BIT(TOOL_OFFCPU_RECORD);
}

void targetcheck_run(const uint32_t *pids, size_t n, struct findings *f)
{
	struct looking l = { 0 };
	struct err why = { 0 };

	if (!n)
		return;
	if (table_worker_open_with(NULL, identify, &l.worker, &why) != 0 ||
		runtimes_new(NULL, &l.runtimes, &why) != 0) {
		findings_add(f, GROUP_TARGET, FINDING_SKIP, "target.runtimes", "not checked: %s", why.msg);
		table_worker_close(l.worker);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		l.pid = pids[i];
		check_process(&l, f);
	}
	conclude(&l, f);
	runtimes_free(l.runtimes);
	table_worker_close(l.worker);
}
