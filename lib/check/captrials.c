/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/captrials.h"
#include "base/clock.h"
#include "base/fs.h"
#include "check/captry.h"

#include <string.h>

#define STEP_MS 20000

/* One child's work: those steps of a column that are not known. */
struct task {
	struct captrials_user *user;
	size_t column; /* by number: columns move when there are more */
	uint16_t which[CAPSTEPS_MAX];
	size_t n;
	struct probe_run *run;
};

static struct capcolumn *find_column(const struct captrials_user *u, uint64_t caps)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->columns[i].caps == caps)
			return &u->columns[i];
	return NULL;
}

static void fill(struct capcolumn *c, enum capcell_state state)
{
	for (size_t i = 0; i < CAPSTEPS_MAX; i++)
		c->cells[i] = (struct capcell){ .state = state };
}

/* The column of CAPS, a new one where there is none; NULL = no memory. */
static struct capcolumn *need_column(struct captrials *t, struct captrials_user *u, uint64_t caps)
{
	struct capcolumn *c = find_column(u, caps);

	if (c)
		return c;
	if (base_grow(&u->columns, &u->cap, u->n + 1, sizeof(*u->columns)) != 0)
		return NULL;
	c = &u->columns[u->n++];
	*c = (struct capcolumn){ .caps = caps };
	if (caps & ~t->granted)
		fill(c, CAPCELL_NOT_GRANTED);
	else if (u->why_not[0])
		fill(c, CAPCELL_NOT_TRIED);
	for (size_t i = 0; t->left_out[0] && i < t->steps.n; i++)
		if (t->steps.list[i].kernel_memory && c->cells[i].state == CAPCELL_UNKNOWN)
			c->cells[i].state = CAPCELL_NOT_TRIED;
	return c;
}

static struct capcell cell_of(int code)
{
	struct capcell c = { .state = CAPCELL_FAILED, .code = (int16_t)code };

	if (code == 0)
		c.state = CAPCELL_WORKS;
	else if (code == -EPERM || code == -EACCES)
		c.state = CAPCELL_REFUSED;
	else if (code == CAPSTEPS_UNTRIED || code == -ETIMEDOUT)
		c.state = CAPCELL_NOT_TRIED;
	return c;
}

/* Take in the results. A child that did not get through has tried the steps up to the one it ended in. */
static void take(struct captrials *t, struct task *k, const struct probe_result *results)
{
	struct capcolumn *c = &k->user->columns[k->column];
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
		k->user->columns[k->column].cells[k->which[i]].state = CAPCELL_NOT_TRIED;
}

static bool begin(struct captrials *t, struct task *k, size_t slot)
{
	uint64_t now = now_ns(), left_ms;
	const struct captry try = { .steps = &t->steps,
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
	return captry_start(
		       &try, (unsigned int)MIN(STEP_MS, left_ms), (unsigned int)left_ms, &k->run, NULL) == 0;
}

/* Until all steps of K are known; one that ends its child is one more child's work. */
static void finish(struct captrials *t, struct task *k, size_t slot)
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

/* Those of WHICH that are not known in column COLUMN of U. */
static struct task task_of(
	const struct captrials *t, struct captrials_user *u, size_t column, const uint16_t *which, size_t n)
{
	struct task k = { .user = u, .column = column };

	(void)t;
	for (size_t i = 0; i < n; i++)
		if (u->columns[column].cells[which[i]].state == CAPCELL_UNKNOWN)
			k.which[k.n++] = which[i];
	return k;
}

/* Side by side: one after the other in each slot. */
static void run_tasks(struct captrials *t, struct task *tasks, size_t n)
{
	for (size_t i = 0; i < n + t->n_worlds; i++) {
		if (i >= t->n_worlds)
			finish(t, &tasks[i - t->n_worlds], i % t->n_worlds);
		if (i < n && tasks[i].n)
			begin(t, &tasks[i], i % t->n_worlds);
	}
}

int captrials_all(struct captrials *t, const uint64_t *sets, size_t n, struct err *e)
{
	_cleanup_free_ struct task *tasks = calloc(n * CAPTRIALS_USERS + 1, sizeof(*tasks));
	uint16_t every[CAPSTEPS_MAX];
	size_t n_tasks = 0;

	for (size_t i = 0; i < t->steps.n; i++)
		every[i] = (uint16_t)i;
	for (size_t i = 0; i < n; i++) {
		for (size_t user = 0; user < CAPTRIALS_USERS; user++) {
			struct captrials_user *u = &t->users[user];
			struct capcolumn *c = need_column(t, u, sets[i]);

			if (!c || !tasks)
				return err_nomem(e, "what was tried");
			tasks[n_tasks] = task_of(t, u, (size_t)(c - u->columns), every, t->steps.n);
			n_tasks++;
		}
	}
	run_tasks(t, tasks, n_tasks);
	return 0;
}

bool captrials_ask(struct captrials *t, size_t user, uint64_t caps, const uint16_t *which, size_t n)
{
	struct captrials_user *u = &t->users[user];
	struct capcolumn *c = need_column(t, u, caps);
	struct task k;
	bool works = c;

	if (!c)
		return false;
	k = task_of(t, u, (size_t)(c - u->columns), which, n);
	if (k.n)
		run_tasks(t, &k, 1);
	for (size_t i = 0; i < n; i++)
		works = works && c->cells[which[i]].state == CAPCELL_WORKS;
	return works;
}

struct capcell captrials_cell(const struct captrials *t, size_t user, uint64_t caps, size_t step)
{
	const struct capcolumn *c = find_column(&t->users[user], caps);

	return c ? c->cells[step] : (struct capcell){ .state = CAPCELL_UNKNOWN };
}

static void choose_users(struct captrials *t)
{
	bool root = geteuid() == 0;

	t->users[0] = (struct captrials_user){ .name = "root", .uid = 0 };
	t->users[1] = (struct captrials_user){ .name = "ordinary", .uid = root ? CAPWORLD_USER : geteuid() };
	if (!root)
		snprintf(t->users[0].why_not, sizeof(t->users[0].why_not),
			"bpfcheck itself is not run by root");
}

/* Under that lockdown each attempt is refused whoever makes it, and fills the kernel's log. */
static void look_at_lockdown(struct captrials *t)
{
	struct root root = { .fd = -1 };
	char line[128];

	if (root_open(NULL, &root, NULL) != 0)
		return;
	if (root_line(&root, "sys/kernel/security/lockdown", line, sizeof(line), NULL) == 0 &&
		strstr(line, "[confidentiality]"))
		snprintf(t->left_out, sizeof(t->left_out),
			"lockdown forbids them, and the kernel would log each attempt");
	root_close(&root);
}

int captrials_open(unsigned int limit_ms, struct captrials *t, struct err *e)
{
	int rc;

	*t = (struct captrials){ .granted = captry_granted(),
		.deadline_ns = now_ns() + (uint64_t)limit_ms * 1000000 };
	choose_users(t);
	look_at_lockdown(t);
	rc = capsteps_list(&t->steps, e);
	while (!rc && t->n_worlds < CAPTRIALS_SLOTS) {
		rc = capworld_open(t->users[1].uid, &t->worlds[t->n_worlds], e);
		t->n_worlds += !rc;
	}
	if (!rc && !t->users[0].why_not[0] && !t->worlds[0].pid[CAPWORLD_OF_USER])
		snprintf(t->users[1].why_not, sizeof(t->users[1].why_not),
			"bpfcheck cannot become user %u here: that takes CAP_SETUID and CAP_SETGID, and a "
			"user namespace that knows the user",
			(unsigned int)t->users[1].uid);
	return rc;
}

void captrials_end(struct captrials *t)
{
	while (t->n_worlds)
		capworld_close(&t->worlds[--t->n_worlds]);
}

void captrials_close(struct captrials *t)
{
	captrials_end(t);
	for (size_t i = 0; i < CAPTRIALS_USERS; i++)
		free(t->users[i].columns);
	*t = (struct captrials){ 0 };
}
