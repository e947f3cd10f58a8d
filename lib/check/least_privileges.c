/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/least_privileges.h"
#include "base/cli.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "check/probe.h"
#include "system/privilege_sets.h"

#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * priv_try - steps done by a child that has exactly the user and the capabilities
 * to be tried.
 *
 * The child gives up everything else permanently, supplementary groups, bounding
 * and ambient set included, and sets no_new_privs. It ends when its time is over
 * or its parent has ended (check/probe.h).
 */

struct priv_try {
	const struct priv_step_list *steps;
	const uint16_t *which; /* the numbers of N steps, in the order to try them */
	size_t n;
	uid_t uid;
	uint64_t caps; /* 1 << CAP_x */
	const struct priv_targets *world; /* the target processes to try on */
	const struct priv_targets *worlds; /* those of all children, which this child must not keep alive */
	size_t n_worlds;
};

/* In the child: T, and what its steps leave for each other. */
struct trying {
	const struct priv_try *t;
	struct priv_bpf bpf;
};

/* The capabilities that this process can give to a child: its permitted set. */
static uint64_t priv_try_granted(void)
{
	cap_t set = cap_get_proc();
	uint64_t ret = 0;

	for (int cap = 0; set && cap < 64; cap++) {
		cap_flag_value_t value;

		if (cap_get_flag(set, cap, CAP_PERMITTED, &value) == 0 && value == CAP_SET)
			ret |= PRIV_BIT(cap);
	}
	if (set)
		cap_free(set);
	return ret;
}

static int change_user(uid_t uid, struct err *e)
{
	/* may be refused to an ordinary user, which does not matter if the user stays the same */
	if (setgroups(0, NULL) != 0 && getuid() != uid)
		return err_sys(e, PRIV_STEP_UNTRIED, "cannot give up the supplementary groups");
	if (getuid() == uid && geteuid() == uid)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresgid(uid, uid, uid) != 0 ||
		setresuid(uid, uid, uid) != 0)
		return err_set(e, PRIV_STEP_UNTRIED, "cannot become user %u: %s", (unsigned int)uid,
			err_name(errno));
	return 0;
}

/* Make CAPS the permitted and effective set, and empty the inheritable set. */
static int set_caps(uint64_t caps)
{
	cap_t set = cap_init();
	int rc = set ? 0 : -ENOMEM;

	for (int cap = 0; cap < 64 && !rc; cap++) {
		if (!(caps & PRIV_BIT(cap)))
			continue;
		if (cap_set_flag(set, CAP_PERMITTED, 1, &cap, CAP_SET) != 0 ||
			cap_set_flag(set, CAP_EFFECTIVE, 1, &cap, CAP_SET) != 0)
			rc = -errno;
	}
	if (!rc && cap_set_proc(set) != 0)
		rc = -errno;
	if (set)
		cap_free(set);
	return rc;
}

static int enter(void *ctx, struct err *e)
{
	const struct priv_try *t = ((struct trying *)ctx)->t;
	int rc;

	for (size_t i = 0; i < t->n_worlds; i++)
		priv_targets_leave(&t->worlds[i]);
	/* fails without CAP_SETPCAP, which does not matter to a process that executes no program */
	for (int cap = 0; cap < 64; cap++)
		if (!(t->caps & PRIV_BIT(cap)))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	rc = change_user(t->uid, e);
	if (rc)
		return rc;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	rc = set_caps(t->caps);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		rc = -errno;
	if (rc)
		return err_set(
			e, PRIV_STEP_UNTRIED, "cannot take on a set of capabilities: %s", err_name(rc));
	return 0;
}

static int attempt(void *ctx, size_t i, char *found, size_t cap, struct err *e)
{
	struct trying *c = ctx;
	const struct priv_try *t = c->t;

	(void)found, (void)cap;
	return priv_step_do(&t->steps->list[t->which[i]], t->world, t->uid, &c->bpf, e);
}

/*
 * Start T, with LIMIT_MS for each step and TOTAL_MS for all of them. On success
 * release *RET with probe_finish(), which returns a result for each step: its code
 * is 0, -errno, or PRIV_STEP_UNTRIED if the child could not get that user or those
 * capabilities. T is not needed after the call.
 */
static int priv_try_start(const struct priv_try *t, unsigned int limit_ms, unsigned int total_ms,
	struct probe_run **ret, struct err *e)
{
	struct trying c = { .t = t };
	const struct probe_job job = {
		.n = t->n,
		.enter = enter,
		.attempt = attempt,
		.ctx = &c,
		.limit_ms = limit_ms,
		.total_ms = total_ms,
	};

	return probe_start_job(&job, ret, e);
}

#define STEP_MS 20000

/* The work of one child: the steps of a column whose result is unknown. */
struct task {
	struct priv_trials_user *user;
	size_t column; /* an index, as the array moves when it grows */
	uint16_t which[PRIV_STEP_MAX];
	size_t n;
	struct probe_run *run;
};

static struct priv_column *find_column(const struct priv_trials_user *u, uint64_t caps)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->columns[i].caps == caps)
			return &u->columns[i];
	return NULL;
}

static void fill(struct priv_column *c, enum priv_cell_state state)
{
	for (size_t i = 0; i < PRIV_STEP_MAX; i++)
		c->cells[i] = (struct priv_cell){ .state = state };
}

/* The column of CAPS, which is created if there is none; NULL = no memory. */
static struct priv_column *need_column(struct priv_trials *t, struct priv_trials_user *u, uint64_t caps)
{
	struct priv_column *c = find_column(u, caps);

	if (c)
		return c;
	if (base_grow(&u->columns, &u->cap, u->n + 1, sizeof(*u->columns)) != 0)
		return NULL;
	c = &u->columns[u->n++];
	*c = (struct priv_column){ .caps = caps };
	if (caps & ~t->granted)
		fill(c, PRIV_CELL_NOT_GRANTED);
	else if (u->why_not[0])
		fill(c, PRIV_CELL_NOT_TRIED);
	for (size_t i = 0; t->untried_why[0] && i < t->steps.n; i++)
		if (t->steps.list[i].kernel_memory && c->cells[i].state == PRIV_CELL_UNKNOWN)
			c->cells[i].state = PRIV_CELL_NOT_TRIED;
	return c;
}

static struct priv_cell cell_of(int code)
{
	struct priv_cell c = { .state = PRIV_CELL_FAILED, .code = (int16_t)code };

	if (code == 0)
		c.state = PRIV_CELL_WORKS;
	else if (code == -EPERM || code == -EACCES)
		c.state = PRIV_CELL_REFUSED;
	else if (code == PRIV_STEP_UNTRIED || code == -ETIMEDOUT)
		c.state = PRIV_CELL_NOT_TRIED;
	return c;
}

/* Store the results. A child that ended early has tried the steps up to the one that it ended in. */
static void take(struct priv_trials *t, struct task *k, const struct probe_result *results)
{
	struct priv_column *c = &k->user->columns[k->column];
	size_t done = 0;

	for (bool ended = false; done < k->n && !ended; done++) {
		const struct probe_result *r = &results[done];
		size_t step = k->which[done];

		ended = r->code == -ETIMEDOUT || r->code == -ECHILD;
		c->cells[step] = cell_of(r->code);
		t->late = t->late || r->code == -ETIMEDOUT;
		if (c->caps == t->granted && r->code)
			snprintf(k->user->why[step], sizeof(k->user->why[step]), "%.150s", r->err.msg);
	}
	memmove(k->which, k->which + done, (k->n - done) * sizeof(*k->which));
	k->n -= done;
}

static void give_up(const struct task *k)
{
	for (size_t i = 0; i < k->n; i++)
		k->user->columns[k->column].cells[k->which[i]].state = PRIV_CELL_NOT_TRIED;
}

static bool begin(struct priv_trials *t, struct task *k, size_t slot)
{
	uint64_t now = now_ns(), left_ms;
	const struct priv_try try = { .steps = &t->steps,
		.which = k->which,
		.n = k->n,
		.uid = k->user->uid,
		.caps = k->user->columns[k->column].caps,
		.world = &t->worlds[slot],
		.worlds = t->worlds,
		.n_worlds = t->n_worlds };

	k->run = NULL;
	if (now >= t->deadline_ns) {
		t->late = true;
		return false;
	}
	left_ms = (t->deadline_ns - now) / 1000000 + 1;
	return priv_try_start(
		       &try, (unsigned int)MIN(STEP_MS, left_ms), (unsigned int)left_ms, &k->run, NULL) == 0;
}

/* Wait until all steps of K are known. If a step ends its child, another child does the rest. */
static void finish(struct priv_trials *t, struct task *k, size_t slot)
{
	_cleanup_free_ struct probe_result *results = calloc(k->n + 1, sizeof(*results));

	while (k->n && k->run && results) {
		probe_finish(k->run, results);
		take(t, k, results);
		k->run = NULL;
		if (k->n && !begin(t, k, slot))
			break;
	}
	if (!results)
		probe_finish(k->run, NULL);
	give_up(k);
	k->n = 0;
}

/* The steps of WHICH whose result is unknown in column COLUMN of U. */
static struct task task_of(const struct priv_trials *t, struct priv_trials_user *u, size_t column,
	const uint16_t *which, size_t n)
{
	struct task k = { .user = u, .column = column };

	(void)t;
	for (size_t i = 0; i < n; i++)
		if (u->columns[column].cells[which[i]].state == PRIV_CELL_UNKNOWN)
			k.which[k.n++] = which[i];
	return k;
}

/* Run the tasks in parallel, one at a time in each slot. */
static void run_tasks(struct priv_trials *t, struct task *tasks, size_t n)
{
	for (size_t i = 0; i < n + t->n_worlds; i++) {
		if (i >= t->n_worlds)
			finish(t, &tasks[i - t->n_worlds], i % t->n_worlds);
		if (i < n && tasks[i].n)
			begin(t, &tasks[i], i % t->n_worlds);
	}
}

int priv_trials_all(struct priv_trials *t, const uint64_t *sets, size_t n, struct err *e)
{
	_cleanup_free_ struct task *tasks = calloc(n * PRIV_TRIALS_USERS + 1, sizeof(*tasks));
	uint16_t every[PRIV_STEP_MAX];
	size_t n_tasks = 0;

	for (size_t i = 0; i < t->steps.n; i++)
		every[i] = (uint16_t)i;
	for (size_t i = 0; i < n; i++) {
		for (size_t user = 0; user < PRIV_TRIALS_USERS; user++) {
			struct priv_trials_user *u = &t->users[user];
			struct priv_column *c = need_column(t, u, sets[i]);

			if (!c || !tasks)
				return err_nomem(e, "what was tried");
			tasks[n_tasks] = task_of(t, u, (size_t)(c - u->columns), every, t->steps.n);
			n_tasks++;
		}
	}
	run_tasks(t, tasks, n_tasks);
	return 0;
}

bool priv_trials_ask(struct priv_trials *t, size_t user, uint64_t caps, const uint16_t *which, size_t n)
{
	struct priv_trials_user *u = &t->users[user];
	struct priv_column *c = need_column(t, u, caps);
	struct task k;
	bool works = c;

	if (!c)
		return false;
	k = task_of(t, u, (size_t)(c - u->columns), which, n);
	if (k.n)
		run_tasks(t, &k, 1);
	for (size_t i = 0; i < n; i++)
		works = works && c->cells[which[i]].state == PRIV_CELL_WORKS;
	return works;
}

struct priv_cell priv_trials_cell(const struct priv_trials *t, size_t user, uint64_t caps, size_t step)
{
	const struct priv_column *c = find_column(&t->users[user], caps);

	return c ? c->cells[step] : (struct priv_cell){ .state = PRIV_CELL_UNKNOWN };
}

static void choose_users(struct priv_trials *t)
{
	bool root = geteuid() == 0;

	t->users[0] = (struct priv_trials_user){ .name = "root", .uid = 0 };
	t->users[1] =
		(struct priv_trials_user){ .name = "ordinary", .uid = root ? PRIV_TARGETS_USER : geteuid() };
	if (!root)
		snprintf(t->users[0].why_not, sizeof(t->users[0].why_not),
			"bpfcheck itself is not run by root");
}

/* In mode confidentiality every attempt is refused, with any privileges, and fills the kernel's log. */
static void read_lockdown(struct priv_trials *t)
{
	struct root root = { .fd = -1 };
	char line[128];

	if (root_open(NULL, &root, NULL) != 0)
		return;
	if (root_line(&root, "sys/kernel/security/lockdown", line, sizeof(line), NULL) == 0 &&
		strstr(line, "[confidentiality]"))
		snprintf(t->untried_why, sizeof(t->untried_why),
			"lockdown forbids them, and the kernel would log each attempt");
	root_close(&root);
}

int priv_trials_open(unsigned int limit_ms, struct priv_trials *t, struct err *e)
{
	int rc;

	*t = (struct priv_trials){ .granted = priv_try_granted(),
		.deadline_ns = now_ns() + (uint64_t)limit_ms * 1000000 };
	choose_users(t);
	read_lockdown(t);
	rc = priv_step_all(&t->steps, e);
	while (!rc && t->n_worlds < PRIV_TRIALS_SLOTS) {
		rc = priv_targets_open(t->users[1].uid, &t->worlds[t->n_worlds], e);
		t->n_worlds += !rc;
	}
	if (!rc && !t->users[0].why_not[0] && !t->worlds[0].process[PRIV_TARGETS_OF_USER])
		snprintf(t->users[1].why_not, sizeof(t->users[1].why_not),
			"bpfcheck cannot become user %u here: that takes CAP_SETUID and CAP_SETGID, and a "
			"user namespace that knows the user",
			(unsigned int)t->users[1].uid);
	return rc;
}

static void priv_trials_end(struct priv_trials *t)
{
	while (t->n_worlds)
		priv_targets_close(&t->worlds[--t->n_worlds]);
}

void priv_trials_close(struct priv_trials *t)
{
	priv_trials_end(t);
	for (size_t i = 0; i < PRIV_TRIALS_USERS; i++)
		free(t->users[i].columns);
	*t = (struct priv_trials){ 0 };
}

#define BOTH (PRIV_BIT(CAP_BPF) | PRIV_BIT(CAP_PERFMON))

static const struct priv_set_cap known_caps[PRIV_SET_CAPS] = {
	{ CAP_BPF, 'B' },
	{ CAP_PERFMON, 'P' },
	{ CAP_SYSLOG, 'Y' },
	{ CAP_SYS_PTRACE, 'T' },
	{ CAP_CHECKPOINT_RESTORE, 'K' },
	{ CAP_DAC_READ_SEARCH, 'D' },
	{ CAP_SYS_RESOURCE, 'R' },
	{ CAP_SYS_ADMIN, 'A' },
};

static const int by_power[PRIV_SET_CAPS] = { CAP_SYS_ADMIN, CAP_SYS_RESOURCE, CAP_DAC_READ_SEARCH,
	CAP_CHECKPOINT_RESTORE, CAP_SYS_PTRACE, CAP_SYSLOG, CAP_PERFMON, CAP_BPF };

static const struct priv_set sets[] = {
	{ 0, "none", "- " },
	{ PRIV_BIT(CAP_BPF), "CAP_BPF", "B " },
	{ PRIV_BIT(CAP_PERFMON), "CAP_PERFMON", "P " },
	{ PRIV_BIT(CAP_SYSLOG), "CAP_SYSLOG", "Y " },
	{ PRIV_BIT(CAP_SYS_PTRACE), "CAP_SYS_PTRACE", "T " },
	{ PRIV_BIT(CAP_CHECKPOINT_RESTORE), "CAP_CHECKPOINT_RESTORE", "K " },
	{ PRIV_BIT(CAP_DAC_READ_SEARCH), "CAP_DAC_READ_SEARCH", "D " },
	{ PRIV_BIT(CAP_SYS_RESOURCE), "CAP_SYS_RESOURCE", "R " },
	{ BOTH, "both", "BP" },
	{ BOTH | PRIV_BIT(CAP_SYSLOG), "both and CAP_SYSLOG", "+Y" },
	{ BOTH | PRIV_BIT(CAP_SYS_PTRACE), "both and CAP_SYS_PTRACE", "+T" },
	{ BOTH | PRIV_BIT(CAP_CHECKPOINT_RESTORE), "both and CAP_CHECKPOINT_RESTORE", "+K" },
	{ BOTH | PRIV_BIT(CAP_DAC_READ_SEARCH), "both and CAP_DAC_READ_SEARCH", "+D" },
	{ BOTH | PRIV_BIT(CAP_SYS_RESOURCE), "both and CAP_SYS_RESOURCE", "+R" },
	{ PRIV_BIT(CAP_SYS_ADMIN), "CAP_SYS_ADMIN", "A " },
	{ BOTH | PRIV_BIT(CAP_SYS_ADMIN), "both and CAP_SYS_ADMIN", "+A" },
};

_Static_assert(ARRAY_LEN(sets) < PRIV_SET_MAX, "room for all that may be granted");

const struct priv_set_cap *priv_set_caps(void)
{
	return known_caps;
}

const int *priv_set_order(void)
{
	return by_power;
}

size_t priv_set_list(uint64_t all, struct priv_set list[PRIV_SET_MAX])
{
	memcpy(list, sets, sizeof(sets));
	list[ARRAY_LEN(sets)] = (struct priv_set){ all, "all", "* " };
	return ARRAY_LEN(sets) + 1;
}

const char *priv_set_names(uint64_t set, char *buf, size_t cap)
{
	char name[32];
	size_t len = 0;

	snprintf(buf, cap, "none");
	for (int i = 0; i < 64; i++) {
		if (!(set & PRIV_BIT(i)) || len >= cap)
			continue;
		snprintf(buf + len, cap - len, "%s%s", len ? ", " : "", priv_name(i, name, sizeof(name)));
		len += strlen(buf + len);
	}
	return buf;
}

const char *priv_set_letters(uint64_t set, char *buf, size_t cap)
{
	size_t len = 0;

	for (size_t i = 0; i < PRIV_SET_CAPS && len + 2 < cap; i++) {
		if (set & PRIV_BIT(known_caps[i].cap))
			buf[len++] = known_caps[i].letter;
		set &= ~PRIV_BIT(known_caps[i].cap);
	}
	if (set)
		buf[len++] = '#';
	if (!len)
		buf[len++] = '-';
	buf[len] = '\0';
	return buf;
}

/*
 * Tools that are not listed need no privilege: symbolize, fold and capinfo read
 * captures, and symbolize also reads files that its caller may read.
 *
 * What offcpu-record does to the caller's own processes without BPF (sampling
 * /proc, ptrace) is not listed either: it needs no privilege.
 */
static const struct tool_need all_needs[] = {
	{ TOOL_OFFCPU_RECORD, "map.array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.mmapable_array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.hash", NULL },
	{ TOOL_OFFCPU_RECORD, "map.percpu_array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.lru_hash", NULL },
	{ TOOL_OFFCPU_RECORD, "map.ring_buffer", NULL },
	{ TOOL_OFFCPU_RECORD, "map.array_of_maps", NULL },
	{ TOOL_OFFCPU_RECORD, "map.task_storage", NULL },
	{ TOOL_OFFCPU_RECORD, "map.prog_array", NULL },
	{ TOOL_OFFCPU_RECORD, "map.btf", NULL },
	{ TOOL_OFFCPU_RECORD, "record.*", NULL },
	{ TOOL_OFFCPU_RECORD, "attach.*", NULL },
	{ TOOL_OFFCPU_RECORD, "iterator.*", NULL },
	{ TOOL_OFFCPU_RECORD, "kernel.btf", NULL },
	{ TOOL_OFFCPU_RECORD, "raw.*", "records where the kernel has no BTF" },
	{ TOOL_OFFCPU_RECORD, "perf.system", "sees mappings and names that change while it records" },
	{ TOOL_OFFCPU_RECORD, "kernel.kallsyms", "gives kernel frames their names" },
	{ TOOL_OFFCPU_RECORD, "proc.other.maps", "reads the mappings of other users' processes" },
	{ TOOL_OFFCPU_RECORD, "proc.other.maps_hidden",
		"reads the mappings of processes that had privileges" },
	{ TOOL_OFFCPU_RECORD, "proc.other.root",
		"opens files that other users' processes have mapped, in containers too" },
	{ TOOL_OFFCPU_RECORD, "proc.own.map_files", "opens mapped files that were deleted or replaced" },
	{ TOOL_OFFCPU_RECORD, "proc.other.map_files",
		"opens deleted or replaced files of other users' processes" },
	{ TOOL_OFFCPU_RECORD, "proc.other.private_file",
		"opens mapped files that only their owner may read" },
	{ TOOL_OFFCPU_RECORD, "proc.other.ptrace",
		"holds a command at its exec until its unwind tables are there, a set-user-ID one too" },
	{ TOOL_STACKMAP_TEST, "map.stack_trace", NULL },
	{ TOOL_STACKMAP_TEST, "map.hash", NULL },
	{ TOOL_STACKMAP_TEST, "stackmap.raw_tp", NULL },
	{ TOOL_STACKMAP_TEST, "stackmap.tracepoint", "runs its cases of tracepoints" },
	{ TOOL_STACKMAP_TEST, "stackmap.tp_btf", "runs its cases of tp_btf" },
	{ TOOL_STACKMAP_TEST, "stackmap.sched_switch", "runs its cases of sched_switch" },
	{ TOOL_STACKMAP_TEST, "stackmap.perf_event", "runs its cases of perf events" },
	{ TOOL_STACKMAP_TEST, "stackmap.uprobe", "runs its cases of uprobes" },
	{ TOOL_STACKMAP_TEST, "stackmap.kprobe", "runs its cases of kprobes" },
	{ TOOL_STACKMAP_TEST, "kernel.kallsyms", "checks what kernel stacks are made of" },
	{ TOOL_KALLSYMS_RESOLVE, "kernel.kallsyms", "names kernel addresses without a copy of kallsyms" },
};

const struct tool_need *tool_need_list(size_t *n)
{
	*n = ARRAY_LEN(all_needs);
	return all_needs;
}

bool tool_need_is(const struct tool_need *c, const char *id)
{
	size_t len = strlen(c->step);

	return c->step[len - 1] == '*' ? strncmp(c->step, id, len - 1) == 0 : strcmp(c->step, id) == 0;
}

struct search {
	uint64_t set, keep;
	priv_minimal_fn works;
	void *ctx;
};

/* Remove BITS, except those to keep, if it works without them. */
static bool take_away(struct search *s, uint64_t bits)
{
	uint64_t less = s->set & ~(bits & ~s->keep);

	if (less == s->set || !s->works(s->ctx, less))
		return false;
	s->set = less;
	return true;
}

static bool once_through(struct search *s, const int *order, size_t n, uint64_t others)
{
	bool changed = take_away(s, others);

	for (int cap = 0; cap < 64; cap++)
		if (others & PRIV_BIT(cap))
			changed = take_away(s, PRIV_BIT(cap)) || changed;
	for (size_t i = 0; i < n; i++)
		changed = take_away(s, UINT64_C(1) << order[i]) || changed;
	return changed;
}

bool priv_minimal_find(uint64_t from, uint64_t keep, const int *order, size_t n, priv_minimal_fn works,
	void *ctx, uint64_t *ret)
{
	struct search s = { .set = from, .keep = keep, .works = works, .ctx = ctx };
	uint64_t others = ~UINT64_C(0);

	for (size_t i = 0; i < n; i++)
		others &= ~(UINT64_C(1) << order[i]);
	if (!works(ctx, from))
		return false;
	/* a capability that was needed may not be needed any more once another one is removed */
	while (once_through(&s, order, n, others))
		;
	*ret = s.set;
	return true;
}

/* Steps that must all work with a set, as one user. */
struct query {
	struct priv_table *t;
	size_t user;
	uint16_t which[PRIV_STEP_MAX];
	size_t n;
};

static bool works(void *ctx, uint64_t set)
{
	struct query *q = ctx;

	return priv_trials_ask(&q->t->trials, q->user, set, q->which, q->n);
}

/* Search from FROM; if that is not enough, from all granted capabilities. */
static struct priv_least search_sets(struct query *q, uint64_t from, uint64_t keep)
{
	struct priv_least least = { 0 };

	least.found = priv_minimal_find(from, keep, priv_set_order(), PRIV_SET_CAPS, works, q, &least.caps) ||
		      priv_minimal_find(q->t->trials.granted, keep, priv_set_order(), PRIV_SET_CAPS, works, q,
			      &least.caps);
	return least;
}

/* Start the search from a set, within WITHIN, that another step was found to need. False if none works. */
static bool try_known(struct query *q, uint64_t within, struct priv_least *ret)
{
	const struct priv_least *known = q->t->least[q->user];

	for (size_t i = 0; i < q->t->trials.steps.n; i++) {
		if (!known[i].found || (known[i].caps & ~within) || !works(q, known[i].caps))
			continue;
		*ret = search_sets(q, known[i].caps, 0);
		return true;
	}
	return false;
}

/* Start from the weakest set of the table that works, and remove what is not needed. */
static void search_step(struct priv_table *t, size_t user, size_t step)
{
	struct query q = { .t = t, .user = user, .which = { (uint16_t)step }, .n = 1 };
	struct priv_least *ret = &t->least[user][step];
	uint64_t within = t->trials.granted;

	for (size_t i = 0; i + 1 < t->n_sets; i++) {
		if (priv_trials_cell(&t->trials, user, t->sets[i].caps, step).state != PRIV_CELL_WORKS)
			continue;
		*ret = search_sets(&q, t->sets[i].caps, 0);
		return;
	}
	if (!works(&q, within))
		return;
	/* CAP_SYS_ADMIN permits much: prefer a set without it */
	if (works(&q, within & ~PRIV_BIT(CAP_SYS_ADMIN)))
		within &= ~PRIV_BIT(CAP_SYS_ADMIN);
	if (!try_known(&q, within, ret))
		*ret = search_sets(&q, within, 0);
}

/* Append TEXT to a list of reasons, unless it is there already. */
static void add_why(char *why, size_t cap, const char *text)
{
	size_t len = strlen(why);

	if (!strstr(why, text))
		snprintf(why + len, cap - len, "%s%s", len ? "; " : "", text);
}

static struct priv_reason *reason_of(struct priv_reason *list, size_t *n, int cap)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].cap == cap)
			return &list[i];
	if (*n == PRIV_TABLE_REASONS)
		return NULL;
	list[*n] = (struct priv_reason){ .cap = cap };
	return &list[(*n)++];
}

/* For each required capability, what failed in the attempt without it. */
static void explain_required(const struct query *q, struct priv_table_tool *tool)
{
	const struct priv_trials *t = &q->t->trials;

	for (int cap = 0; cap < 64; cap++) {
		struct priv_reason *r;

		if (!(tool->required.caps & PRIV_BIT(cap)))
			continue;
		r = reason_of(tool->reasons, &tool->n_reasons, cap);
		for (size_t i = 0; r && i < q->n; i++) {
			struct priv_cell c = priv_trials_cell(
				t, q->user, tool->required.caps & ~PRIV_BIT(cap), q->which[i]);

			if (c.state != PRIV_CELL_WORKS && c.state != PRIV_CELL_UNKNOWN)
				add_why(r->why, sizeof(r->why),
					priv_step_reason(t->steps.list[q->which[i]].group));
		}
	}
}

static void add_missing(
	const struct priv_table *t, size_t user, struct priv_table_tool *tool, size_t step, const char *gain)
{
	const struct priv_trials_user *u = &t->trials.users[user];
	struct priv_cell c = priv_trials_cell(&t->trials, user, t->trials.granted, step);
	char text[400];

	snprintf(text, sizeof(text), "%s: %s", gain ? gain : t->trials.steps.list[step].id,
		u->why[step][0] ? u->why[step] : "not tried");
	add_why(tool->missing, sizeof(tool->missing), text);
	tool->refused = tool->refused || c.state == PRIV_CELL_REFUSED || c.state == PRIV_CELL_NOT_TRIED;
}

static void search_required(struct query *q, enum finding_tool tool)
{
	struct priv_table_tool *ret = &q->t->tools[q->user][tool];
	uint64_t from = 0;

	for (size_t i = 0; i < q->n; i++) {
		const struct priv_least *l = &q->t->least[q->user][q->which[i]];

		if (!l->found)
			add_missing(q->t, q->user, ret, q->which[i], NULL);
		from |= l->caps;
	}
	if (!ret->missing[0])
		ret->required = search_sets(q, from, 0);
	if (ret->required.found)
		explain_required(q, ret);
}

/* The capabilities for a need besides the required ones; 0 = none. */
struct extra {
	const struct tool_need *need;
	uint64_t caps;
};

/* The most powerful capability of SET. */
static uint64_t strongest(uint64_t set)
{
	for (size_t i = 0; i < PRIV_SET_CAPS; i++)
		if (set & PRIV_BIT(priv_set_order()[i]))
			return PRIV_BIT(priv_set_order()[i]);
	return set;
}

/* Add a reason for those capabilities of X that have none yet; if all have one, for the most powerful. */
static void add_useful(struct priv_table_tool *tool, const struct extra *x)
{
	uint64_t known = 0, to;

	for (size_t i = 0; i < tool->n_useful; i++)
		known |= PRIV_BIT(tool->useful[i].cap);
	to = x->caps & ~known ? x->caps & ~known : strongest(x->caps);
	for (int cap = 0; cap < 64; cap++) {
		struct priv_reason *r =
			to & PRIV_BIT(cap) ? reason_of(tool->useful, &tool->n_useful, cap) : NULL;
		char text[300], others[200];

		if (!r)
			continue;
		snprintf(text, sizeof(text), "%s", x->need->gain);
		if (x->caps & ~PRIV_BIT(cap))
			snprintf(text, sizeof(text), "%s (with %s)", x->need->gain,
				priv_set_names(x->caps & ~PRIV_BIT(cap), others, sizeof(others)));
		add_why(r->why, sizeof(r->why), text);
	}
}

/* Fewer capabilities first, so that the simplest reason of each capability comes first. */
static int by_count(const void *a, const void *b)
{
	const struct extra *x = a, *y = b;
	int nx = __builtin_popcountll(x->caps), ny = __builtin_popcountll(y->caps);

	return CMP(nx, ny) ? CMP(nx, ny) : CMP(x->need, y->need);
}

static void search_useful(
	struct priv_table *t, size_t user, enum finding_tool tool, const struct extra *list, size_t n)
{
	struct priv_table_tool *ret = &t->tools[user][tool];

	for (size_t i = 0; i < n; i++)
		if (list[i].caps)
			add_useful(ret, &list[i]);
}

/* Add the steps of NEED to Q. False if Q is still empty. */
static bool collect(struct query *q, const struct tool_need *need)
{
	const struct priv_step_list *s = &q->t->trials.steps;

	for (size_t i = 0; i < s->n && q->n < PRIV_STEP_MAX; i++)
		if (tool_need_is(need, s->list[i].id))
			q->which[q->n++] = (uint16_t)i;
	return q->n;
}

/* Find the capabilities for NEED besides the required ones; false if there are none that suffice here. */
static bool find_extra(struct priv_table *t, size_t user, const struct tool_need *need, struct extra *x)
{
	struct priv_table_tool *tool = &t->tools[user][need->tool];
	struct query q = { .t = t, .user = user };
	uint64_t from = tool->required.caps;
	struct priv_least least;

	if (!collect(&q, need))
		return false;
	for (size_t i = 0; i < q.n; i++) {
		const struct priv_least *l = &t->least[user][q.which[i]];

		if (!l->found) {
			add_missing(t, user, tool, q.which[i], need->gain);
			return false;
		}
		from |= l->caps;
	}
	least = search_sets(&q, from, tool->required.caps);
	*x = (struct extra){ .need = need, .caps = least.caps & ~tool->required.caps };
	return least.found;
}

static void search_tool(struct priv_table *t, size_t user, enum finding_tool tool)
{
	size_t n, n_extra = 0;
	const struct tool_need *needs = tool_need_list(&n);
	struct query q = { .t = t, .user = user };
	struct extra extra[PRIV_STEP_MAX];

	for (size_t i = 0; i < n; i++)
		if (needs[i].tool == tool && !needs[i].gain)
			collect(&q, &needs[i]);
	search_required(&q, tool);
	if (!t->tools[user][tool].required.found)
		return;
	for (size_t i = 0; i < n && n_extra < PRIV_STEP_MAX; i++)
		if (needs[i].tool == tool && needs[i].gain)
			n_extra += find_extra(t, user, &needs[i], &extra[n_extra]);
	qsort(extra, n_extra, sizeof(*extra), by_count);
	search_useful(t, user, tool, extra, n_extra);
}

static int try_all(struct priv_table *t, struct err *e)
{
	uint64_t caps[PRIV_SET_MAX];

	t->n_sets = priv_set_list(t->trials.granted, t->sets);
	for (size_t i = 0; i < t->n_sets; i++)
		caps[i] = t->sets[i].caps;
	return priv_trials_all(&t->trials, caps, t->n_sets, e);
}

/* Whether T includes TOOL. */
static bool priv_table_has(const struct priv_table *t, enum finding_tool tool)
{
	return t->tool < 0 || t->tool == (int)tool;
}

/* Drop the steps that the selected tool does not need. */
static void choose_steps(struct priv_table *t)
{
	struct priv_step_list *s = &t->trials.steps;
	size_t n, kept = 0;
	const struct tool_need *needs = tool_need_list(&n);

	for (size_t i = 0; i < s->n; i++) {
		bool takes = t->tool < 0;

		for (size_t j = 0; j < n && !takes; j++)
			takes = (int)needs[j].tool == t->tool && tool_need_is(&needs[j], s->list[i].id);
		if (takes)
			s->list[kept++] = s->list[i];
	}
	s->n = kept;
}

int priv_table_run(int tool, unsigned int limit_ms, struct priv_table **ret, struct err *e)
{
	struct priv_table *t = calloc(1, sizeof(*t));
	int rc = t ? priv_trials_open(limit_ms, &t->trials, e) : err_nomem(e, "the table of capabilities");

	if (!rc) {
		t->tool = tool;
		choose_steps(t);
		rc = try_all(t, e);
	}
	if (rc) {
		priv_table_free(t);
		return rc;
	}
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++) {
		/* from the last: those are cheap, and other steps may need the same sets */
		for (size_t step = t->trials.steps.n; step-- > 0;)
			search_step(t, user, step);
		for (enum finding_tool i = 0; i < TOOL_COUNT; i++)
			if (priv_table_has(t, i) && !t->trials.users[user].why_not[0])
				search_tool(t, user, i);
	}
	priv_trials_end(&t->trials);
	*ret = t;
	return 0;
}

void priv_table_free(struct priv_table *t)
{
	if (!t)
		return;
	priv_trials_close(&t->trials);
	free(t);
}

int priv_table_verdict(const struct priv_table *t)
{
	int status = t->trials.late ? 1 : 0;

	if (t->trials.users[0].why_not[0] && t->trials.users[1].why_not[0])
		return 2;
	for (enum finding_tool i = 0; i < TOOL_COUNT; i++) {
		const struct priv_table_tool *u = &t->tools[1][i];

		if (priv_table_has(t, i) && (!u->required.found || u->refused))
			status = 1;
	}
	return status;
}

#define NAME_COLUMNS 35
#define WIDTH 96

/* By enum priv_cell_state. */
static const char marks[] = "~x.!?~";

static void put_heads(const struct priv_table *t, struct out *o)
{
	char line[2][2 * PRIV_SET_MAX + 3] = { "", "" };

	out_printf(o, "%-*s ", NAME_COLUMNS, "");
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++) {
		char who[32];

		snprintf(who, sizeof(who), "as user %u", (unsigned int)t->trials.users[user].uid);
		out_printf(o, "%-*s  ", (int)t->n_sets, who);
	}
	out_printf(o, "least set\n");
	for (int row = 0; row < 2; row++) {
		for (size_t i = 0; i < t->n_sets; i++)
			line[row][i] = t->sets[i].head[row];
		out_printf(o, "%-*s %s  %s  %s\n", NAME_COLUMNS, "", line[row], line[row],
			row ? "" : "root  ordinary");
	}
}

static void put_marks(const struct priv_table *t, size_t user, size_t step, struct out *o)
{
	for (size_t i = 0; i < t->n_sets; i++)
		out_char(o, marks[priv_trials_cell(&t->trials, user, t->sets[i].caps, step).state]);
	out_str(o, "  ");
}

static const char *least_letters(const struct priv_least *l, char *buf, size_t cap)
{
	if (l->found)
		return priv_set_letters(l->caps, buf, cap);
	return "none";
}

static void put_step(const struct priv_table *t, size_t step, bool verbose, struct out *o)
{
	const struct priv_step *s = &t->trials.steps.list[step];
	const char *why = t->trials.users[1].why[step];
	char root[72], ordinary[72];

	out_printf(o, "  %-*s ", NAME_COLUMNS - 2, s->does);
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++)
		put_marks(t, user, step, o);
	out_printf(o, "%-4s  %s\n", least_letters(&t->least[0][step], root, sizeof(root)),
		least_letters(&t->least[1][step], ordinary, sizeof(ordinary)));
	if (verbose && why[0]) {
		out_str(o, "      ");
		outtext_put(o, why, TEXT_LINE);
		out_char(o, '\n');
	}
}

static void put_legend(const struct priv_table *t, struct out *o)
{
	const struct priv_set_cap *caps = priv_set_caps();
	char name[32];

	out_printf(o, "\nSets:  - none");
	for (size_t i = 0; i < PRIV_SET_CAPS; i++)
		out_printf(o, "%s%c %s", i == 3 || i == 6 ? "\n       " : "  ", caps[i].letter,
			priv_name(caps[i].cap, name, sizeof(name)));
	out_str(o, "\n       B over P: both; + over a letter: both and that; * all that bpfcheck itself has\n"
		   "Marks: x works   . refused   ! fails otherwise   ? not granted here   ~ not tried\n"
		   "Least set: - nothing is needed; # others as well, see --json; none: not with what is "
		   "granted\n");
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++)
		if (t->trials.users[user].why_not[0])
			out_printf(o, "As user %u nothing was tried: %s\n",
				(unsigned int)t->trials.users[user].uid, t->trials.users[user].why_not);
	if (t->trials.untried_why[0])
		out_printf(o, "BPF programs were not tried: %s\n", t->trials.untried_why);
	if (t->trials.late)
		out_str(o, "The time was over before everything was tried: try again when the machine is "
			   "less busy\n");
}

/* Print TEXT, wrapped at spaces, after the INDENT columns that the line already has. */
static void put_wrapped(const char *text, size_t indent, struct out *o)
{
	size_t room = WIDTH - indent;

	while (*text) {
		size_t len = strlen(text);

		if (len > room) {
			len = room;
			while (len && text[len] != ' ')
				len--;
			len = len ? len : room;
		}
		out_put(o, text, len);
		text += len;
		text += strspn(text, " ");
		if (*text)
			out_printf(o, "\n%*s", (int)indent, "");
	}
	out_char(o, '\n');
}

static void put_reasons(const struct priv_reason *list, size_t n, const char *title, struct out *o)
{
	char name[32], line[64];

	for (size_t i = 0; i < n; i++) {
		snprintf(line, sizeof(line), "  %-9s %-23s ", i ? "" : title,
			priv_name(list[i].cap, name, sizeof(name)));
		out_str(o, line);
		put_wrapped(list[i].why, strlen(line), o);
	}
}

static const char *required_names(const struct priv_table_tool *tool, char *buf, size_t cap)
{
	return tool->required.found ? priv_set_names(tool->required.caps, buf, cap) : "not found";
}

static void put_tool(const struct priv_table *t, enum finding_tool tool, struct out *o)
{
	const struct priv_table_tool *ordinary = &t->tools[1][tool], *root = &t->tools[0][tool];
	char names[512];

	out_printf(o, "%s", finding_tool_name(tool));
	if (!ordinary->required.found || !ordinary->required.caps)
		out_printf(o, ": needs %s",
			ordinary->required.found ? "no capability"
						 : "what could not be found: see \"lacks\"");
	out_char(o, '\n');
	put_reasons(ordinary->reasons, ordinary->n_reasons, "needs", o);
	put_reasons(ordinary->useful, ordinary->n_useful, "can use", o);
	if (root->required.found && ordinary->required.found &&
		root->required.caps != ordinary->required.caps)
		out_printf(o, "  as root  %s\n", required_names(root, names, sizeof(names)));
	if (ordinary->missing[0]) {
		out_str(o, "  lacks     ");
		put_wrapped(ordinary->missing, 12, o);
	}
}

static void put_tool_line(const struct priv_table *t, enum finding_tool tool, struct out *o)
{
	const struct priv_table_tool *x = &t->tools[1][tool];
	char names[512], name[32];

	out_printf(o, "%-17s needs %s", finding_tool_name(tool), required_names(x, names, sizeof(names)));
	for (size_t i = 0; i < x->n_useful; i++)
		out_printf(
			o, "%s%s", i ? ", " : "; can use ", priv_name(x->useful[i].cap, name, sizeof(name)));
	out_char(o, '\n');
}

static void put_table(const struct priv_table *t, bool verbose, struct out *o)
{
	int group = -1;

	put_heads(t, o);
	for (size_t i = 0; i < t->trials.steps.n; i++) {
		const struct priv_step *s = &t->trials.steps.list[i];

		if (group != (int)s->group)
			out_printf(o, "%s\n", priv_step_title(s->group));
		group = (int)s->group;
		put_step(t, i, verbose, o);
	}
	put_legend(t, o);
	out_char(o, '\n');
}

void priv_report_text(const struct priv_table *t, enum priv_report_style style, struct out *o)
{
	if (style != PRIV_REPORT_QUIET && t->trials.steps.n)
		put_table(t, style == PRIV_REPORT_VERBOSE, o);
	for (enum finding_tool i = 0; i < TOOL_COUNT; i++) {
		if (!priv_table_has(t, i))
			continue;
		if (style == PRIV_REPORT_QUIET)
			put_tool_line(t, i, o);
		else
			put_tool(t, i, o);
	}
}

static void put_names(struct json *j, const char *key, uint64_t set)
{
	char name[32];

	json_begin(j, key, '[');
	for (int cap = 0; cap < 64; cap++)
		if (set & PRIV_BIT(cap))
			json_str(j, NULL, priv_name(cap, name, sizeof(name)));
	json_end(j, ']');
}

static void put_least(struct json *j, const char *key, const struct priv_least *l)
{
	if (l->found)
		put_names(j, key, l->caps);
	else
		json_null(j, key);
}

/* "ok", the name of the error, "not granted" or "not tried". */
static const char *cell_text(struct priv_cell c)
{
	switch ((enum priv_cell_state)c.state) {
	case PRIV_CELL_WORKS:
		return "ok";
	case PRIV_CELL_REFUSED:
	case PRIV_CELL_FAILED:
		return err_name(c.code);
	case PRIV_CELL_NOT_GRANTED:
		return "not granted";
	default:
		return "not tried";
	}
}

static void put_json_users(const struct priv_table *t, struct json *j)
{
	json_begin(j, "users", '[');
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++) {
		const struct priv_trials_user *u = &t->trials.users[user];

		json_begin(j, NULL, '{');
		json_str(j, "name", u->name);
		json_u64(j, "uid", u->uid);
		json_str(j, "not_tried", u->why_not[0] ? u->why_not : NULL);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_line(j, 4);
	json_begin(j, "sets", '[');
	for (size_t i = 0; i < t->n_sets; i++) {
		json_line(j, 6);
		json_begin(j, NULL, '{');
		json_str(j, "name", t->sets[i].name);
		put_names(j, "caps", t->sets[i].caps);
		json_end(j, '}');
	}
	json_line(j, 4);
	json_end(j, ']');
}

static void put_json_step(const struct priv_table *t, size_t step, struct json *j)
{
	const struct priv_step *s = &t->trials.steps.list[step];
	const char *why = t->trials.users[1].why[step];

	json_begin(j, NULL, '{');
	json_str(j, "id", s->id);
	json_str(j, "group", priv_step_title(s->group));
	json_str(j, "does", s->does);
	json_begin(j, "least", '{');
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++)
		put_least(j, t->trials.users[user].name, &t->least[user][step]);
	json_end(j, '}');
	json_begin(j, "results", '{');
	for (size_t user = 0; user < PRIV_TRIALS_USERS; user++) {
		json_begin(j, t->trials.users[user].name, '[');
		for (size_t i = 0; i < t->n_sets; i++)
			json_str(j, NULL,
				cell_text(priv_trials_cell(&t->trials, user, t->sets[i].caps, step)));
		json_end(j, ']');
	}
	json_end(j, '}');
	json_str(j, "why", why[0] ? why : NULL);
	json_end(j, '}');
}

static void put_json_reasons(struct json *j, const char *key, const struct priv_reason *list, size_t n)
{
	char name[32];

	json_begin(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		json_begin(j, NULL, '{');
		json_str(j, "cap", priv_name(list[i].cap, name, sizeof(name)));
		json_str(j, "why", list[i].why);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void put_json_tool(const struct priv_table_tool *x, struct json *j)
{
	put_least(j, "required", &x->required);
	put_json_reasons(j, "reasons", x->reasons, x->n_reasons);
	put_json_reasons(j, "useful", x->useful, x->n_useful);
	json_str(j, "lacks", x->missing[0] ? x->missing : NULL);
}

static void put_json_caps(const struct priv_table *t, struct json *j)
{
	json_begin(j, "caps", '{');
	json_line(j, 4);
	json_bool(j, "late", t->trials.late);
	json_line(j, 4);
	put_names(j, "granted", t->trials.granted);
	json_line(j, 4);
	put_json_users(t, j);
	json_line(j, 4);
	json_begin(j, "steps", '[');
	for (size_t i = 0; i < t->trials.steps.n; i++) {
		json_line(j, 6);
		put_json_step(t, i, j);
	}
	json_line(j, 4);
	json_end(j, ']');
	json_line(j, 4);
	json_begin(j, "tools", '[');
	for (enum finding_tool i = 0; i < TOOL_COUNT; i++) {
		if (!priv_table_has(t, i))
			continue;
		json_line(j, 6);
		json_begin(j, NULL, '{');
		json_str(j, "name", finding_tool_name(i));
		put_json_tool(&t->tools[1][i], j);
		json_begin(j, "as_root", '{');
		put_json_tool(&t->tools[0][i], j);
		json_end(j, '}');
		json_end(j, '}');
	}
	json_line(j, 4);
	json_end(j, ']');
	json_line(j, 2);
	json_end(j, '}');
}

void priv_report_json(const struct priv_table *t, int status, struct out *o)
{
	struct json j = { .o = o, .spaced = true };

	json_begin(&j, NULL, '{');
	json_line(&j, 2);
	json_u64(&j, "schema", 1);
	json_line(&j, 2);
	json_str(&j, "version", cli_version_string);
	json_line(&j, 2);
	put_json_caps(t, &j);
	json_line(&j, 2);
	json_u64(&j, "status", (uint64_t)status);
	json_line(&j, 0);
	json_end(&j, '}');
	out_char(o, '\n');
}

/* Whether a tool requires STEP. */
static bool is_required(const struct priv_table *t, size_t step)
{
	size_t n;
	const struct tool_need *needs = tool_need_list(&n);

	for (size_t i = 0; i < n; i++)
		if (!needs[i].gain && priv_table_has(t, needs[i].tool) &&
			tool_need_is(&needs[i], t->trials.steps.list[step].id))
			return true;
	return false;
}

void priv_report_tap(const struct priv_table *t, struct tap *tap)
{
	char names[512], why[TEXT_ESCAPED_MAX(256)];

	for (size_t i = 0; i < t->trials.steps.n; i++) {
		const struct priv_step *s = &t->trials.steps.list[i];
		const struct priv_least *l = &t->least[1][i];
		const char *text = t->trials.users[1].why[i];

		text_escape(why, sizeof(why), text, strlen(text), TEXT_LINE);
		if (l->found)
			tap_ok(tap, true, "%s: with %s", s->id,
				priv_set_names(l->caps, names, sizeof(names)));
		else if (is_required(t, i))
			tap_ok(tap, false, "%s: with no set that is granted here: %s", s->id, why);
		else
			tap_skip(tap, s->id, "%s", why[0] ? why : "not tried");
	}
}
