/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/rawtasks.h"
#include "capture/types.h"
#include "system/proc.h"

#include <bpf/bpf.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */
#define TASK_NOLOAD 0x0400

static void close_dir(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* The next directory of D whose name is a number; 0 = there is none. */
static uint32_t next_id(DIR *d)
{
	const struct dirent *ent;

	while ((ent = readdir(d)))
		if (isdigit((unsigned char)ent->d_name[0]))
			return (uint32_t)strtoul(ent->d_name, NULL, 10);
	return 0;
}

static bool bit(int map, uint32_t id)
{
	uint32_t word = id >> 6;
	uint64_t bits = 0;

	return bpf_map_lookup_elem(map, &word, &bits) == 0 && (bits >> (id & 63) & 1);
}

static int set_bit(int map, uint32_t id)
{
	uint32_t word = id >> 6;
	uint64_t bits = 0;
	int rc = bpf_map_lookup_elem(map, &word, &bits);

	bits |= UINT64_C(1) << (id & 63);
	return rc ? rc : bpf_map_update_elem(map, &word, &bits, BPF_ANY);
}

/* CALL for every process, or for the only one. */
static int each_process(struct rawtasks *t, int (*call)(struct rawtasks *t, uint32_t pid, const void *arg),
	const void *arg, struct err *e)
{
	CLEANUP(close_dir) DIR *d = t->only ? NULL : opendir("/proc");
	uint32_t pid;
	int rc = 0;

	if (t->only)
		return call(t, t->only, arg);
	if (!d)
		return err_sys(e, -errno, "cannot list the processes in '/proc'");
	while (!rc && (pid = next_id(d)))
		rc = call(t, pid, arg);
	return rc ? err_sys(e, rc, "cannot note a target") : 0;
}

struct names {
	const char (*names)[OFFCPU_COMM_LEN];
	size_t n;
};

static int name_process(struct rawtasks *t, uint32_t pid, const void *arg)
{
	const struct names *names = arg;
	struct threadstat st;

	if (threadstat_read(pid, pid, &st) != 0)
		return 0;
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(st.comm, names->names[i]) == 0)
			return set_bit(t->tgids, pid);
	return 0;
}

int rawtasks_name(struct rawtasks *t, const char (*names)[OFFCPU_COMM_LEN], size_t n, struct err *e)
{
	const struct names arg = { names, n };

	return each_process(t, name_process, &arg, e);
}

static uint32_t execs_of(const struct rawtasks *t, uint32_t pid)
{
	uint32_t n = 0;

	bpf_map_lookup_elem(t->execs, &pid, &n);
	return n;
}

bool rawtasks_image(const struct rawtasks *t, uint32_t pid, struct offcpu_ev_image *ret)
{
	struct threadstat st;

	if (threadstat_read(pid, pid, &st) != 0 || (st.flags & PF_KTHREAD))
		return false;
	*ret = (struct offcpu_ev_image){ .type = OFFCPU_EV_IMAGE,
		.tgid = pid,
		.start_boot_ns = st.start_boot_ns,
		.exec_id = execs_of(t, pid) };
	return true;
}

/* prev_state bits of a letter of ps(1); 0 = the thread runs, or is over. */
static uint32_t state_bits(char letter)
{
	static const struct {
		char letter;
		uint16_t bits;
	} of[] = { { 'S', 1 }, { 'D', 2 }, { 'T', 4 }, { 't', 8 }, { 'P', 0x40 }, { 'I', 2 | TASK_NOLOAD } };

	for (size_t i = 0; i < ARRAY_LEN(of); i++)
		if (of[i].letter == letter)
			return of[i].bits;
	return 0;
}

/* As state_wanted() of bpf/offcpu.bpf.c. */
static bool state_wanted(const struct rawtasks *t, uint32_t state)
{
	uint32_t mask = t->opts->state_mask;

	return !mask || (state & (state & TASK_NOLOAD ? mask & TASK_NOLOAD : mask));
}

static struct offcpu_stack_id no_stack(bool asked)
{
	return (struct offcpu_stack_id){ 0, OFFCPU_FAILED(asked ? CAP_R_NOT_SEEN : CAP_R_NOT_ASKED, 0) };
}

static void announce(struct rawtasks *t, const struct threadstat *leader, const struct threadstat *st,
	const struct offcpu_key *key)
{
	struct offcpu_ev_thread ev = { .type = OFFCPU_EV_THREAD,
		.task_flags = st->flags,
		.tgid = key->tgid,
		.tid = key->tid,
		.ns_tgid = threadstat_own_id(key->tgid, key->tgid),
		.ns_tid = threadstat_own_id(key->tgid, key->tid),
		.start_boot_ns = key->start_boot_ns,
		.exec_id = key->exec_id };

	memcpy(ev.comm, st->comm, sizeof(ev.comm));
	memcpy(ev.leader_comm, leader->comm, sizeof(ev.leader_comm));
	t->thread(t->ctx, &ev);
}

/* Thread TID of the process of LEADER, if it waits. */
static int note_thread(struct rawtasks *t, const struct threadstat *leader, uint32_t tgid, uint32_t tid)
{
	struct offcpu_wait w = { .start = OFFCPU_INITIAL };
	struct offcpu_key *key = &w.initial;
	struct threadstat st;
	int rc;

	if (threadstat_read(tgid, tid, &st) != 0)
		return 0;
	*key = (struct offcpu_key){ .tgid = tgid,
		.tid = tid,
		.start_boot_ns = leader->start_boot_ns,
		.exec_id = execs_of(t, tgid),
		.state = state_bits(st.state),
		.kernel = no_stack(!t->opts->no_kernel_stacks),
		.user = no_stack(!t->opts->no_user_stacks) };
	if (!key->state)
		return 0;
	if (st.flags & PF_KTHREAD && !t->opts->no_user_stacks)
		key->user.lo = OFFCPU_FAILED(CAP_R_KTHREAD, 0);
	if (!state_wanted(t, key->state))
		key->flags |= OFFCPU_F_DROP_STATE;
	rc = bpf_map_update_elem(t->waits, &tid, &w, BPF_NOEXIST);
	if (rc == -E2BIG)
		t->unkept++;
	if (!rc && !(key->flags & OFFCPU_F_DROP))
		announce(t, leader, &st, key);
	return rc == -E2BIG || rc == -EEXIST ? 0 : rc;
}

static bool is_target(const struct rawtasks *t, const struct threadstat *leader, uint32_t pid)
{
	if (!t->opts->all)
		return t->only == pid || bit(t->tgids, pid);
	return pid != t->left_out[0] && pid != t->left_out[1] && pid != t->left_out[2] &&
	       (t->opts->kthreads || !(leader->flags & PF_KTHREAD));
}

static int note_process(struct rawtasks *t, uint32_t pid, const void *arg)
{
	struct threadstat leader;
	char path[32];
	CLEANUP(close_dir) DIR *d = NULL;
	bool whole;
	uint32_t tid;
	int rc = 0;

	(void)arg;
	if (threadstat_read(pid, pid, &leader) != 0)
		return 0;
	whole = is_target(t, &leader, pid);
	if (!whole && !t->opts->use_tids)
		return 0;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/task", pid);
	d = opendir(path);
	while (d && !rc && (tid = next_id(d)))
		if (whole || bit(t->tids, tid))
			rc = note_thread(t, &leader, pid, tid);
	return rc;
}

int rawtasks_waiting(struct rawtasks *t, struct err *e)
{
	return each_process(t, note_process, NULL, e);
}

/* What is told of W, as the iterator open_waits does it. */
static bool is_open(const struct offcpu_wait *w, uint64_t record_start_ns, struct offcpu_ev_open *ev)
{
	if (w->start == OFFCPU_UNKNOWN || w->start == OFFCPU_ON_CPU)
		return false;
	*ev = (struct offcpu_ev_open){ .type = OFFCPU_EV_OPEN,
		.start = w->start,
		.key = w->start == OFFCPU_INITIAL ? w->initial : w->key };
	if (ev->start < record_start_ns) {
		ev->start = record_start_ns;
		ev->key.flags |= OFFCPU_F_INITIAL;
	}
	return true;
}

int rawtasks_open(const struct rawtasks *t, uint64_t record_start_ns, void (*take)(void *ctx, const void *ev),
	void *ctx, struct err *e)
{
	uint32_t id, *last = NULL, key;
	struct offcpu_ev_open ev;
	struct offcpu_wait w;
	int rc;

	while ((rc = bpf_map_get_next_key(t->waits, last, &id)) == 0) {
		if (bpf_map_lookup_elem(t->waits, &id, &w) == 0 && is_open(&w, record_start_ns, &ev))
			take(ctx, &ev);
		key = id;
		last = &key;
	}
	return rc == -ENOENT ? 0 : err_sys(e, rc, "cannot look at the waits that are open");
}
