/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/captable.h"
#include "check/capminimal.h"

#include <linux/capability.h>
#include <string.h>

#define BIT(cap) (UINT64_C(1) << (cap))

/* Steps that are asked for together, as one user. */
struct query {
	struct captable *t;
	size_t user;
	uint16_t which[CAPSTEPS_MAX];
	size_t n;
};

static bool works(void *ctx, uint64_t set)
{
	struct query *q = ctx;

	return captrials_ask(&q->t->trials, q->user, set, q->which, q->n);
}

/* From FROM, or if that is not enough from everything. */
static struct capleast search(struct query *q, uint64_t from, uint64_t keep)
{
	struct capleast least = { 0 };

	least.found = capminimal_find(from, keep, capsets_order(), CAPSETS_CAPS, works, q, &least.caps) ||
		      capminimal_find(q->t->trials.granted, keep, capsets_order(), CAPSETS_CAPS, works, q,
			      &least.caps);
	return least;
}

/* Sets to begin with, besides those of the table: what other steps were found to take. */
static bool try_known(struct query *q, uint64_t within, struct capleast *ret)
{
	const struct capleast *known = q->t->least[q->user];

	for (size_t i = 0; i < q->t->trials.steps.n; i++) {
		if (!known[i].found || (known[i].caps & ~within) || !works(q, known[i].caps))
			continue;
		*ret = search(q, known[i].caps, 0);
		return true;
	}
	return false;
}

/* The weakest set of the table that does, then what of it is not needed. */
static void search_step(struct captable *t, size_t user, size_t step)
{
	struct query q = { .t = t, .user = user, .which = { (uint16_t)step }, .n = 1 };
	struct capleast *ret = &t->least[user][step];
	uint64_t within = t->trials.granted;

	for (size_t i = 0; i + 1 < t->n_sets; i++) {
		if (captrials_cell(&t->trials, user, t->sets[i].caps, step).state != CAPCELL_WORKS)
			continue;
		*ret = search(&q, t->sets[i].caps, 0);
		return;
	}
	if (!works(&q, within))
		return;
	/* CAP_SYS_ADMIN stands for much: a set with it is no answer where there is one without */
	if (works(&q, within & ~BIT(CAP_SYS_ADMIN)))
		within &= ~BIT(CAP_SYS_ADMIN);
	if (!try_known(&q, within, ret))
		*ret = search(&q, within, 0);
}

/* A list of reasons, each once. */
static void add_why(char *why, size_t cap, const char *text)
{
	size_t len = strlen(why);

	if (!strstr(why, text))
		snprintf(why + len, cap - len, "%s%s", len ? "; " : "", text);
}

static struct capreason *reason_of(struct capreason *list, size_t *n, int cap)
{
	for (size_t i = 0; i < *n; i++)
		if (list[i].cap == cap)
			return &list[i];
	if (*n == CAPTABLE_REASONS)
		return NULL;
	list[*n] = (struct capreason){ .cap = cap };
	return &list[(*n)++];
}

/* For each member what cannot be done without it: by the attempts that showed so. */
static void explain_required(const struct query *q, struct captable_tool *tool)
{
	const struct captrials *t = &q->t->trials;

	for (int cap = 0; cap < 64; cap++) {
		struct capreason *r;

		if (!(tool->required.caps & BIT(cap)))
			continue;
		r = reason_of(tool->reasons, &tool->n_reasons, cap);
		for (size_t i = 0; r && i < q->n; i++) {
			struct capcell c =
				captrials_cell(t, q->user, tool->required.caps & ~BIT(cap), q->which[i]);

			if (c.state != CAPCELL_WORKS && c.state != CAPCELL_UNKNOWN)
				add_why(r->why, sizeof(r->why),
					capsteps_reason(t->steps.list[q->which[i]].group));
		}
	}
}

static void add_missing(
	const struct captable *t, size_t user, struct captable_tool *tool, size_t step, const char *gain)
{
	const struct captrials_user *u = &t->trials.users[user];
	struct capcell c = captrials_cell(&t->trials, user, t->trials.granted, step);
	char text[400];

	snprintf(text, sizeof(text), "%s: %s", gain ? gain : t->trials.steps.list[step].id,
		u->why[step][0] ? u->why[step] : "not tried");
	add_why(tool->missing, sizeof(tool->missing), text);
	tool->refused = tool->refused || c.state == CAPCELL_REFUSED || c.state == CAPCELL_NOT_TRIED;
}

static void search_required(struct query *q, enum finding_tool tool)
{
	struct captable_tool *ret = &q->t->tools[q->user][tool];
	uint64_t from = 0;

	for (size_t i = 0; i < q->n; i++) {
		const struct capleast *l = &q->t->least[q->user][q->which[i]];

		if (!l->found)
			add_missing(q->t, q->user, ret, q->which[i], NULL);
		from |= l->caps;
	}
	if (!ret->missing[0])
		ret->required = search(q, from, 0);
	if (ret->required.found)
		explain_required(q, ret);
}

/* What one step takes besides what the tool has anyway, 0 = nothing. */
struct extra {
	const struct capneed *need;
	uint64_t caps;
};

/* The most powerful one of SET. */
static uint64_t strongest(uint64_t set)
{
	for (size_t i = 0; i < CAPSETS_CAPS; i++)
		if (set & BIT(capsets_order()[i]))
			return BIT(capsets_order()[i]);
	return set;
}

/* A reason for those that had none so far; where all had one, for the one that is hardest to get. */
static void add_useful(struct captable_tool *tool, const struct extra *x)
{
	uint64_t known = 0, to;

	for (size_t i = 0; i < tool->n_useful; i++)
		known |= BIT(tool->useful[i].cap);
	to = x->caps & ~known ? x->caps & ~known : strongest(x->caps);
	for (int cap = 0; cap < 64; cap++) {
		struct capreason *r = to & BIT(cap) ? reason_of(tool->useful, &tool->n_useful, cap) : NULL;
		char text[300], others[200];

		if (!r)
			continue;
		snprintf(text, sizeof(text), "%s", x->need->gain);
		if (x->caps & ~BIT(cap))
			snprintf(text, sizeof(text), "%s (with %s)", x->need->gain,
				capsets_names(x->caps & ~BIT(cap), others, sizeof(others)));
		add_why(r->why, sizeof(r->why), text);
	}
}

/* The more capabilities a step takes, the later: so each has its simplest reason first. */
static int by_count(const void *a, const void *b)
{
	const struct extra *x = a, *y = b;
	int nx = __builtin_popcountll(x->caps), ny = __builtin_popcountll(y->caps);

	return CMP(nx, ny) ? CMP(nx, ny) : CMP(x->need, y->need);
}

static void search_useful(
	struct captable *t, size_t user, enum finding_tool tool, const struct extra *list, size_t n)
{
	struct captable_tool *ret = &t->tools[user][tool];

	for (size_t i = 0; i < n; i++)
		if (list[i].caps)
			add_useful(ret, &list[i]);
}

/* Does TOOL have NEED, and is it one that it does (not) do without? The steps go into Q. */
static bool collect(struct query *q, const struct capneed *need)
{
	const struct capsteps *s = &q->t->trials.steps;

	for (size_t i = 0; i < s->n && q->n < CAPSTEPS_MAX; i++)
		if (capneed_is(need, s->list[i].id))
			q->which[q->n++] = (uint16_t)i;
	return q->n;
}

/* What the steps of NEED take besides what is required; false where they cannot be had. */
static bool find_extra(struct captable *t, size_t user, const struct capneed *need, struct extra *x)
{
	struct captable_tool *tool = &t->tools[user][need->tool];
	struct query q = { .t = t, .user = user };
	uint64_t from = tool->required.caps;
	struct capleast least;

	if (!collect(&q, need))
		return false;
	for (size_t i = 0; i < q.n; i++) {
		const struct capleast *l = &t->least[user][q.which[i]];

		if (!l->found) {
			add_missing(t, user, tool, q.which[i], need->gain);
			return false;
		}
		from |= l->caps;
	}
	least = search(&q, from, tool->required.caps);
	*x = (struct extra){ .need = need, .caps = least.caps & ~tool->required.caps };
	return least.found;
}

static void search_tool(struct captable *t, size_t user, enum finding_tool tool)
{
	size_t n, n_extra = 0;
	const struct capneed *needs = capneeds_list(&n);
	struct query q = { .t = t, .user = user };
	struct extra extra[CAPSTEPS_MAX];

	for (size_t i = 0; i < n; i++)
		if (needs[i].tool == tool && !needs[i].gain)
			collect(&q, &needs[i]);
	search_required(&q, tool);
	if (!t->tools[user][tool].required.found)
		return;
	for (size_t i = 0; i < n && n_extra < CAPSTEPS_MAX; i++)
		if (needs[i].tool == tool && needs[i].gain)
			n_extra += find_extra(t, user, &needs[i], &extra[n_extra]);
	qsort(extra, n_extra, sizeof(*extra), by_count);
	search_useful(t, user, tool, extra, n_extra);
}

static int try_all(struct captable *t, struct err *e)
{
	uint64_t caps[CAPSETS_MAX];

	t->n_sets = capsets_list(t->trials.granted, t->sets);
	for (size_t i = 0; i < t->n_sets; i++)
		caps[i] = t->sets[i].caps;
	return captrials_all(&t->trials, caps, t->n_sets, e);
}

bool captable_has(const struct captable *t, enum finding_tool tool)
{
	return t->tool < 0 || t->tool == (int)tool;
}

/* Leave out the steps that the only tool does not take. */
static void choose_steps(struct captable *t)
{
	struct capsteps *s = &t->trials.steps;
	size_t n, kept = 0;
	const struct capneed *needs = capneeds_list(&n);

	for (size_t i = 0; i < s->n; i++) {
		bool takes = t->tool < 0;

		for (size_t j = 0; j < n && !takes; j++)
			takes = (int)needs[j].tool == t->tool && capneed_is(&needs[j], s->list[i].id);
		if (takes)
			s->list[kept++] = s->list[i];
	}
	s->n = kept;
}

int captable_run(int tool, unsigned int limit_ms, struct captable **ret, struct err *e)
{
	struct captable *t = calloc(1, sizeof(*t));
	int rc = t ? captrials_open(limit_ms, &t->trials, e) : err_nomem(e, "the table of capabilities");

	if (!rc) {
		t->tool = tool;
		choose_steps(t);
		rc = try_all(t, e);
	}
	if (rc) {
		captable_free(t);
		return rc;
	}
	for (size_t user = 0; user < CAPTRIALS_USERS; user++) {
		/* the last are cheap, and what they take may be what others take */
		for (size_t step = t->trials.steps.n; step-- > 0;)
			search_step(t, user, step);
		for (enum finding_tool i = 0; i < TOOL_COUNT; i++)
			if (captable_has(t, i) && !t->trials.users[user].why_not[0])
				search_tool(t, user, i);
	}
	captrials_end(&t->trials);
	*ret = t;
	return 0;
}

void captable_free(struct captable *t)
{
	if (!t)
		return;
	captrials_close(&t->trials);
	free(t);
}

int captable_verdict(const struct captable *t)
{
	int status = t->trials.late ? 1 : 0;

	if (t->trials.users[0].why_not[0] && t->trials.users[1].why_not[0])
		return 2;
	for (enum finding_tool i = 0; i < TOOL_COUNT; i++) {
		const struct captable_tool *u = &t->tools[1][i];

		if (captable_has(t, i) && (!u->required.found || u->refused))
			status = 1;
	}
	return status;
}
