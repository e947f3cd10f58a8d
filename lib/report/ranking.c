/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/ranking.h"

#include <errno.h>
#include <string.h>

/* Where a row goes. */
enum lot { LOT_RANKED, LOT_IDLE, LOT_ONCE, LOT_LEFT_OUT };

/* Groups, or something else, and their threads. */
struct members {
	struct ranking_member *p;
	size_t n, cap;
};

static int add_member(struct members *m, uint32_t group, uint32_t thread, wait_sum total)
{
	if (thread == WAITS_NONE)
		return 0;
	if (m->n && m->p[m->n - 1].group == group && m->p[m->n - 1].thread == thread) {
		m->p[m->n - 1].total += total;
		return 0;
	}
	if (base_grow(&m->p, &m->cap, m->n + 1, sizeof(*m->p)) != 0)
		return -ENOMEM;
	m->p[m->n++] = (struct ranking_member){ group, thread, total };
	return 0;
}

static int by_member(const void *a, const void *b)
{
	const struct ranking_member *x = a, *y = b;

	return x->group != y->group ? CMP(x->group, y->group) : CMP(x->thread, y->thread);
}

/* Sort M and join members that are there twice. */
static void distinct(struct members *m)
{
	size_t n = 0;

	if (m->n)
		qsort(m->p, m->n, sizeof(*m->p), by_member);
	for (size_t i = 0; i < m->n; i++) {
		if (!n || by_member(&m->p[n - 1], &m->p[i]) != 0)
			m->p[n++] = m->p[i];
		else
			m->p[n - 1].total += m->p[i].total;
	}
	m->n = n;
}

static void free_groups(struct ranking_groups *g)
{
	free(g->p);
	free(g->uses);
	idmap_free(&g->by_key);
	*g = (struct ranking_groups){ 0 };
}

static struct ranking_group *put_group(struct ranking_groups *g, uint32_t key, uint32_t kind, bool is_call)
{
	bool added;
	uint32_t at = idmap_put(&g->by_key, (uint64_t)is_call << 32 | kind, key, (uint32_t)g->n, &added);

	if (at == UINT32_MAX)
		return NULL;
	if (!added)
		return &g->p[at];
	if (base_grow(&g->p, &g->cap, g->n + 1, sizeof(*g->p)) != 0)
		return NULL;
	g->p[g->n] = (struct ranking_group){ .key = key, .kind = kind, .is_call = is_call };
	return &g->p[g->n++];
}

static void count_threads(struct ranking_groups *g, struct members *m)
{
	distinct(m);
	for (size_t i = 0; i < m->n; i++) {
		if (!g->p[m->p[i].group].threads++)
			g->p[m->p[i].group].first_member = i;
	}
}

static void add_last(struct wait_last *to, const struct wait_last *last)
{
	to->total += last->total;
	to->count += last->count;
}

/* Add the row to its group. */
static int add_row(struct ranking_groups *g, struct members *m, const struct wait_row *row, uint32_t key,
	uint32_t kind, bool is_call, bool self)
{
	struct ranking_group *group = put_group(g, key, kind, is_call);

	if (!group)
		return -ENOMEM;
	wait_stats_add(&group->stats, &row->stats);
	add_last(&group->last, &row->last);
	if (self)
		group->self += row->stats.total;
	if (g->of && row->first_bin != WAITS_NONE) {
		if (base_grow(&g->uses, &g->max_uses, g->n_uses + 1, sizeof(*g->uses)) != 0)
			return -ENOMEM;
		g->uses[g->n_uses++] = (struct ranking_use){ (uint32_t)(group - g->p), row };
	}
	return add_member(m, (uint32_t)(group - g->p), row->thread, row->stats.total);
}

/* --- the 99th percentile --- */

static int by_use(const void *a, const void *b)
{
	const struct ranking_use *x = a, *y = b;

	return CMP(x->group, y->group);
}

/* The wait of rank ceil(0.99 * n), where COUNTS has n of them by bucket; the longest is exact. */
static uint64_t percentile99(const uint64_t counts[WAIT_BUCKETS], const struct wait_stats *s)
{
	const wait_sum rank = s->count - s->count / 100;
	wait_sum seen = 0;

	for (uint32_t i = 0; i < WAIT_BUCKETS; i++) {
		seen += counts[i];
		if (seen >= rank)
			return MIN(wait_bucket_ns(i), s->max_ns);
	}
	return s->max_ns;
}

static void add_bins(uint64_t counts[WAIT_BUCKETS], const struct waits *w, const struct wait_row *row)
{
	for (uint32_t i = row->first_bin; i != WAITS_NONE; i = w->bins[i].next)
		counts[w->bins[i].bucket] += w->bins[i].count;
}

/* Only where each wait of a group is known by itself. Of less than 100, it is the longest. */
static void find_percentiles(struct ranking_groups *g)
{
	uint64_t counts[WAIT_BUCKETS];
	size_t from, to;

	if (g->n_uses)
		qsort(g->uses, g->n_uses, sizeof(*g->uses), by_use);
	for (from = 0; from < g->n_uses; from = to) {
		struct ranking_group *group = &g->p[g->uses[from].group];
		const bool known = group->stats.single == group->stats.count;
		const bool many = known && group->stats.count >= 100;

		if (many)
			memset(counts, 0, sizeof(counts));
		for (to = from; to < g->n_uses && g->uses[to].group == g->uses[from].group; to++) {
			if (many)
				add_bins(counts, g->of, g->uses[to].row);
		}
		group->has_p99 = known;
		group->p99_ns = many ? percentile99(counts, &group->stats) : group->stats.max_ns;
	}
}

/* --- which rows --- */

static uint32_t find_string(const struct waits *w, const char *p, size_t len)
{
	return intern_find(&w->strings, p, len, intern_hash(&w->strings, p, len));
}

/* Set *RET to the next word of a list, whose rest is *LIST. */
static bool next_word(const char **list, const char **word, size_t *len)
{
	while (**list == ',')
		++*list;
	*word = *list;
	*len = strcspn(*list, ",");
	*list += *len;
	return *len > 0;
}

static bool is_listed(const char *list, const char *p, size_t len)
{
	const char *word;
	size_t n;

	while (next_word(&list, &word, &n)) {
		if (n == len && memcmp(word, p, n) == 0)
			return true;
	}
	return false;
}

/* The kinds that the text has, for a hint. */
static void hint_kinds(const struct waits *w, struct err *e)
{
	char list[256] = "";
	size_t at = 0, len;
	struct idmap seen = { 0 };

	for (size_t i = 0; i < w->n_rows; i++) {
		const char *p = waits_string(w, w->rows[i].kind, &len);
		bool added = false;

		idmap_put(&seen, 0, w->rows[i].kind, 0, &added);
		if (added && len && at + len + 3 < sizeof(list))
			at += (size_t)snprintf(
				list + at, sizeof(list) - at, "%s%.*s", at ? ", " : "", (int)len, p);
	}
	idmap_free(&seen);
	if (at)
		err_hint(e, "there are waits of %s", list);
	else
		err_hint(e, "its records have no kind: only the text of symbolize has them");
}

/* The lots of all rows: LOT_RANKED, or LOT_LEFT_OUT for other kinds than those requested. */
static int select_kinds(
	const struct waits *w, const struct ranking_opts *o, unsigned char *lots, struct err *e)
{
	bool any = false;
	size_t len;

	for (size_t i = 0; i < w->n_rows; i++) {
		const char *p = waits_string(w, w->rows[i].kind, &len);

		lots[i] = !o->kinds || is_listed(o->kinds, p, len) ? LOT_RANKED : LOT_LEFT_OUT;
		any |= lots[i] == LOT_RANKED;
	}
	if (any || !o->kinds)
		return 0;
	err_set(e, -ENOENT, "no wait is of kind '%s'", o->kinds);
	hint_kinds(w, e);
	return -ENOENT;
}

/*
 * May threads wait in P merely for their next work, or for other threads? Kinds where something is in
 * their way are ranked however long that takes: a deadlock, a full disk, a stopped process.
 */
static bool may_be_set_aside(const struct waits *w, const struct ranking_group *p)
{
	static const char in_the_way[] =
		"lock,disk-read,disk-write,fsync,swap,page-fault,throttled,stopped,net-send";
	size_t len;
	const char *kind = waits_string(w, p->kind, &len);

	return !is_listed(in_the_way, kind, len);
}

/* Set aside what was not requested, and count that. */
static int set_aside(struct ranking *r, const struct waits *w, const struct ranking_opts *o,
	unsigned char *lots, uint32_t *places)
{
	const uint32_t idle = find_string(w, "idle", 4);
	const bool rank_idle = o->idle || o->all || (o->kinds && is_listed(o->kinds, "idle", 4));
	struct ranking_groups g = { 0 };
	struct members m = { 0 }, aside = { 0 };
	int code = 0;

	for (size_t i = 0; i < w->n_rows && !code; i++) {
		if (lots[i] == LOT_LEFT_OUT)
			continue;
		code = add_row(&g, &m, &w->rows[i], w->rows[i].path, w->rows[i].kind, false, false);
		if (!code)
			places[i] = (uint32_t)(put_group(&g, w->rows[i].path, w->rows[i].kind, false) - g.p);
	}
	count_threads(&g, &m);
	for (size_t i = 0; i < g.n; i++) {
		struct ranking_group *p = &g.p[i];
		struct ranking_rest *rest = NULL;
		const uint32_t path = p->key;

		/* from here on, `key` is the lot */
		p->key = LOT_RANKED;
		if (p->kind == idle && !rank_idle) {
			p->key = LOT_IDLE;
			rest = &r->set_aside_idle;
		} else if (!o->all && p->threads && p->stats.count == p->threads &&
			   p->stats.whole == p->threads && may_be_set_aside(w, p) &&
			   !(o->rank_once && o->rank_once(o->ctx, w, path, p->kind))) {
			p->key = LOT_ONCE;
			rest = &r->set_aside_once;
		}
		if (rest) {
			wait_stats_add(&rest->stats, &p->stats);
			rest->places++;
		}
	}
	for (size_t i = 0; i < w->n_rows && !code; i++) {
		if (lots[i] == LOT_LEFT_OUT)
			continue;
		lots[i] = (unsigned char)g.p[places[i]].key;
		code = add_member(&aside, lots[i], w->rows[i].thread, 0);
	}
	distinct(&aside);
	for (size_t i = 0; i < aside.n; i++) {
		r->set_aside_idle.threads += aside.p[i].group == LOT_IDLE;
		r->set_aside_once.threads += aside.p[i].group == LOT_ONCE;
	}
	free(m.p);
	free(aside.p);
	free_groups(&g);
	return code;
}

static int summarize(struct ranking *r, const struct waits *w, const unsigned char *lots)
{
	const uint32_t idle = find_string(w, "idle", 4);
	struct members threads = { 0 }, processes = { 0 };
	int code = 0;

	for (size_t i = 0; i < w->n_rows && !code; i++) {
		const struct wait_row *row = &w->rows[i];

		if (lots[i] == LOT_LEFT_OUT)
			continue;
		wait_stats_add(&r->all, &row->stats);
		add_last(&r->last, &row->last);
		if (lots[i] == LOT_RANKED) {
			r->ranked += row->stats.total;
			add_last(&r->ranked_last, &row->last);
		}
		if (row->kind == idle) {
			r->idle += row->stats.total;
		} else {
			r->blocked += row->stats.split - row->stats.runnable;
			r->runnable += row->stats.runnable;
		}
		code = add_member(&threads, 0, row->thread, 0);
		if (!code)
			code = add_member(&processes, 0, row->process, 0);
	}
	distinct(&threads);
	distinct(&processes);
	r->n_threads = threads.n;
	r->n_processes = processes.n;
	free(threads.p);
	free(processes.p);
	return code;
}

/* --- groups --- */

/* Which strings the present row has given already: the index of the row, plus one. */
struct stamps {
	uint32_t *p;
};

static bool stamp(struct stamps *s, uint32_t string, size_t row)
{
	if (s->p[string] == (uint32_t)row + 1)
		return false;
	s->p[string] = (uint32_t)row + 1;
	return true;
}

/* Add the row to each of its functions once. */
static int add_functions(
	struct ranking_groups *g, struct members *m, const struct waits *w, size_t i, struct stamps *stamps)
{
	const struct wait_row *row = &w->rows[i];
	const struct wait_path *path = &w->paths[row->path];
	const uint32_t *f = w->functions + path->first;
	int code = 0;

	if (!path->n)
		return add_row(g, m, row, 0, 0, false, true);
	for (uint32_t k = path->n; k-- && !code;) {
		if (stamp(stamps, f[k], i))
			code = add_row(g, m, row, f[k], 0, false, k + 1 == path->n);
	}
	return code;
}

static int compare_strings(const struct waits *w, uint32_t a, uint32_t b)
{
	size_t x, y;
	const char *p = waits_string(w, a, &x), *q = waits_string(w, b, &y);
	int c = MIN(x, y) ? memcmp(p, q, MIN(x, y)) : 0;

	return c ? c : CMP(x, y);
}

struct order {
	const struct waits *w;
	enum ranking_by by;
	bool last;
};

static int compare_paths(const struct waits *w, const struct wait_path *a, const struct wait_path *b)
{
	int c = 0;

	for (uint32_t i = 0; i < MIN(a->n, b->n) && !c; i++)
		c = compare_strings(w, w->functions[a->first + i], w->functions[b->first + i]);
	c = c ? c : CMP(a->n, b->n);
	c = c ? c : compare_strings(w, a->call, b->call);
	return c ? c : CMP(a->kernel, b->kernel);
}

static int compare_keys(const struct order *o, const struct ranking_group *x, const struct ranking_group *y)
{
	const struct waits *w = o->w;
	int c;

	switch (o->by) {
	case RANKING_STACK:
		c = compare_paths(w, &w->paths[x->key], &w->paths[y->key]);
		return c ? c : compare_strings(w, x->kind, y->kind);
	case RANKING_THREAD:
		c = compare_strings(w, x->kind, y->kind);
		return c ? c : compare_strings(w, w->threads[x->key].id, w->threads[y->key].id);
	case RANKING_PROCESS:
		c = compare_strings(w, w->processes[x->key].name, w->processes[y->key].name);
		return c ? c : compare_strings(w, w->processes[x->key].id, w->processes[y->key].id);
	default:
		c = compare_strings(w, x->key, y->key);
		return c ? c : CMP(x->is_call, y->is_call);
	}
}

/* The greatest time first; of equal ones by name, so that the order is the same each time. */
static int by_time(const void *a, const void *b, void *order)
{
	const struct ranking_group *x = a, *y = b;
	const struct order *o = order;
	int c = o->last ? CMP(y->last.total, x->last.total) : 0;

	c = c ? c : CMP(y->stats.total, x->stats.total);

	return c ? c : compare_keys(o, x, y);
}

static void sort_groups(struct ranking_groups *g, const struct waits *w, enum ranking_by by, bool last)
{
	struct order o = { .w = w, .by = by, .last = last };

	if (g->n)
		qsort_r(g->p, g->n, sizeof(*g->p), by_time, &o);
}

static int group_row(struct ranking_groups *g, struct members *m, const struct waits *w, size_t i,
	enum ranking_by by, bool any_kind, struct stamps *stamps)
{
	const struct wait_row *row = &w->rows[i];

	switch (by) {
	case RANKING_STACK:
		return add_row(g, m, row, row->path, any_kind ? 0 : row->kind, false, false);
	case RANKING_FUNCTION:
		return add_functions(g, m, w, i, stamps);
	case RANKING_THREAD:
		return row->thread == WAITS_NONE ? 0
						 : add_row(g, m, row, row->thread, row->comm, false, false);
	case RANKING_PROCESS:
		return add_row(g, m, row, row->process, 0, false, false);
	case RANKING_KIND:
		return add_row(g, m, row, row->kind, 0, false, false);
	case RANKING_MODULE:
		return add_row(g, m, row, row->module, 0, false, false);
	case RANKING_STATE:
		return add_row(g, m, row, row->state, 0, false, false);
	case RANKING_WAKER:
		return add_row(g, m, row, row->waker, 0, false, false);
	case RANKING_THREAD_NAME:
		return row->thread == WAITS_NONE ? 0 : add_row(g, m, row, row->comm, 0, false, false);
	case RANKING_PROCESS_NAME:
		return add_row(g, m, row, w->processes[row->process].name, 0, false, false);
	}
	return 0;
}

int ranking_make(struct ranking *r, const struct waits *w, const struct ranking_opts *opts, struct err *e)
{
	_cleanup_free_ unsigned char *lots = calloc(w->n_rows + 1, 1);
	_cleanup_free_ uint32_t *places = calloc(w->n_rows + 1, sizeof(*places));
	_cleanup_free_ uint32_t *stamped = calloc(w->strings.n + 1, sizeof(*stamped));
	struct stamps stamps = { stamped };
	struct members m = { 0 };
	int code;

	*r = (struct ranking){ .groups.of = w };
	if (!lots || !places || !stamped)
		return err_nomem(e, "the ranking");
	code = select_kinds(w, opts, lots, e);
	if (code)
		return code;
	code = set_aside(r, w, opts, lots, places);
	if (!code)
		code = summarize(r, w, lots);
	for (size_t i = 0; i < w->n_rows && !code; i++) {
		if (lots[i] == LOT_RANKED)
			code = group_row(&r->groups, &m, w, i, opts->by, opts->any_kind, &stamps);
	}
	if (!code) {
		find_percentiles(&r->groups);
		count_threads(&r->groups, &m);
		sort_groups(&r->groups, w, opts->by, opts->by_last);
	}
	if (!code && opts->rows) {
		r->row_is_ranked = calloc(w->n_rows + 1, sizeof(*r->row_is_ranked));
		code = r->row_is_ranked ? 0 : -ENOMEM;
		for (size_t i = 0; i < w->n_rows && !code; i++)
			r->row_is_ranked[i] = lots[i] == LOT_RANKED;
	}
	if (opts->members)
		r->members = TAKE_PTR(m.p);
	free(m.p);
	return code ? err_nomem(e, "the ranking") : 0;
}

void ranking_free(struct ranking *r)
{
	free(r->members);
	free(r->row_is_ranked);
	r->members = NULL;
	r->row_is_ranked = NULL;
	free_groups(&r->groups);
}

/* --- callers and callees --- */

/* Functions whose names contain NAME, for a hint. */
static void hint_functions(const struct waits *w, const char *name, struct err *e)
{
	char list[400] = "";
	size_t at = 0, len, n = 0;
	struct idmap seen = { 0 };

	for (size_t i = 0; i < w->n_functions && n < 3; i++) {
		const char *p = waits_string(w, w->functions[i], &len);
		bool added = false;

		if (len >= 100 || !memmem(p, len, name, strlen(name)))
			continue;
		idmap_put(&seen, 0, w->functions[i], 0, &added);
		if (!added)
			continue;
		at += (size_t)snprintf(list + at, sizeof(list) - at, "%s'%.*s'", n ? ", " : "", (int)len, p);
		n++;
	}
	idmap_free(&seen);
	if (n)
		err_hint(e, "there is %s", list);
	else
		err_hint(e, "--by function lists them");
}

/* Add a row to the callers and callees of function F, each once. */
static int add_around(struct ranking_function *r, struct members *callers, struct members *callees,
	const struct waits *w, size_t i, uint32_t name, struct stamps stamps[2])
{
	const struct wait_row *row = &w->rows[i];
	const struct wait_path *path = &w->paths[row->path];
	const uint32_t *f = w->functions + path->first;
	int code = 0;

	for (uint32_t k = 0; k < path->n && !code; k++) {
		uint32_t caller = k ? f[k - 1] : 0;

		if (f[k] != name)
			continue;
		if (stamp(&stamps[0], caller, i))
			code = add_row(&r->callers, callers, row, caller, 0, false, false);
		if (!code && k + 1 < path->n && stamp(&stamps[1], f[k + 1], i))
			code = add_row(&r->callees, callees, row, f[k + 1], 0, false, false);
		else if (!code && k + 1 == path->n && path->call)
			code = add_row(&r->callees, callees, row, path->call, 0, true, false);
	}
	return code;
}

static bool has_function(const struct waits *w, const struct wait_path *path, uint32_t name)
{
	for (uint32_t k = 0; k < path->n; k++) {
		if (w->functions[path->first + k] == name)
			return true;
	}
	return false;
}

int ranking_function(struct ranking_function *r, const struct waits *w, const struct ranking_opts *opts,
	const char *name, struct err *e)
{
	_cleanup_free_ unsigned char *lots = calloc(w->n_rows + 1, 1);
	_cleanup_free_ uint32_t *callers_stamped = calloc(w->strings.n + 1, sizeof(*callers_stamped));
	_cleanup_free_ uint32_t *callees_stamped = calloc(w->strings.n + 1, sizeof(*callees_stamped));
	struct stamps stamps[2] = { { callers_stamped }, { callees_stamped } };
	struct members callers = { 0 }, callees = { 0 }, threads = { 0 };
	const uint32_t id = find_string(w, name, strlen(name));
	bool found = false;
	int code;

	*r = (struct ranking_function){ .callers.of = w, .callees.of = w };
	if (!lots || !callers_stamped || !callees_stamped)
		return err_nomem(e, "the ranking");
	code = select_kinds(w, opts, lots, e);
	if (code)
		return code;
	for (size_t i = 0; i < w->n_rows && id && id != INTERN_NONE && !code; i++) {
		const struct wait_path *path = &w->paths[w->rows[i].path];

		if (lots[i] == LOT_LEFT_OUT || !has_function(w, path, id))
			continue;
		found = true;
		wait_stats_add(&r->total, &w->rows[i].stats);
		if (w->functions[path->first + path->n - 1] == id)
			r->self += w->rows[i].stats.total;
		code = add_member(&threads, 0, w->rows[i].thread, 0);
		if (!code)
			code = add_around(r, &callers, &callees, w, i, id, stamps);
	}
	if (!code) {
		find_percentiles(&r->callers);
		find_percentiles(&r->callees);
		distinct(&threads);
		r->threads = threads.n;
		count_threads(&r->callers, &callers);
		count_threads(&r->callees, &callees);
		sort_groups(&r->callers, w, RANKING_FUNCTION, false);
		sort_groups(&r->callees, w, RANKING_FUNCTION, false);
	}
	free(callers.p);
	free(callees.p);
	free(threads.p);
	if (code)
		return err_nomem(e, "the ranking");
	if (found)
		return 0;
	err_set(e, -ENOENT, "no stack has the function '%s'", name);
	hint_functions(w, name, e);
	return -ENOENT;
}

void ranking_function_free(struct ranking_function *r)
{
	free_groups(&r->callers);
	free_groups(&r->callees);
}
