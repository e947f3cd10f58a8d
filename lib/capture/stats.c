/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "capture/stats.h"
#include "base/intern.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_sample(struct cap_stats_sum *sum, const struct cap_sample *s)
{
	sum->waits = add(sum->waits, s->count);
	sum->off_ns = add(sum->off_ns, s->total_ns);
	sum->longest_ns = MAX(sum->longest_ns, s->max_ns);
	if (s->flags & CAPTURE_SAMPLE_OPEN)
		sum->open = add(sum->open, s->count);
}

/* Something in a process that is counted once. */
struct thing {
	uint32_t proc, a, b;
};

static int by_thing(const void *a, const void *b)
{
	const struct thing *x = a, *y = b;
	int c = CMP(x->proc, y->proc);

	c = c ? c : CMP(x->a, y->a);
	return c ? c : CMP(x->b, y->b);
}

/* Is thing I of the sorted T the first of its equals? */
static bool fresh(const struct thing *t, size_t i)
{
	return i == 0 || by_thing(&t[i - 1], &t[i]) != 0;
}

static int count_distinct(const struct cap_reader *c, struct cap_stats *s)
{
	_cleanup_free_ struct thing *t = calloc(c->n_samples + c->n_threads + 1, sizeof(*t));
	size_t n = c->n_samples;

	if (!t)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		t[i] = (struct thing){ c->samples[i].proc, c->samples[i].kstack, c->samples[i].ustack };
	qsort(t, n, sizeof(*t), by_thing);
	for (size_t i = 0; i < n; i++)
		s->procs[t[i].proc].stacks += fresh(t, i);
	for (size_t i = 0; i < n; i++)
		t[i] = (struct thing){ c->samples[i].proc, c->samples[i].tid, 0 };
	for (size_t i = 0; i < c->n_threads; i++)
		t[n++] = (struct thing){ c->threads[i].proc, c->threads[i].tid, 0 };
	qsort(t, n, sizeof(*t), by_thing);
	for (size_t i = 0; i < n; i++) {
		s->procs[t[i].proc].threads += fresh(t, i);
		s->total.threads += fresh(t, i);
	}
	/* pairs over all processes: two processes may share one */
	n = c->n_samples;
	for (size_t i = 0; i < n; i++)
		t[i] = (struct thing){ 0, c->samples[i].kstack, c->samples[i].ustack };
	qsort(t, n, sizeof(*t), by_thing);
	for (size_t i = 0; i < n; i++)
		s->total.stacks += fresh(t, i);
	return 0;
}

static int group_cmp(const struct cap_stats_group *x, const struct cap_stats_group *y)
{
	int c = CMP(x->kind, y->kind);

	c = c ? c : CMP(x->verdict, y->verdict);
	c = c ? c : CMP(x->reason, y->reason);
	return c ? c : CMP(x->error, y->error);
}

static int by_group(const void *a, const void *b)
{
	return group_cmp(a, b);
}

/* Each stack begins as a group of its own; then equal groups are added up. */
static int group_stacks(const struct cap_reader *c, struct cap_stats *s)
{
	struct cap_stats_group *g = calloc(c->n_stacks + 1, sizeof(*g));

	s->groups = g;
	if (!g)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_stacks; i++) {
		const struct cap_stack *k = &c->stacks[i];

		g[i] = (struct cap_stats_group){ k->kind, k->verdict, k->reason, k->error, .stacks = 1 };
	}
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *k = &c->samples[i];

		if (k->flags & CAPTURE_SAMPLE_ON_CPU)
			continue;
		g[k->kstack].waits = add(g[k->kstack].waits, k->count);
		g[k->kstack].off_ns = add(g[k->kstack].off_ns, k->total_ns);
		g[k->ustack].waits = add(g[k->ustack].waits, k->count);
		g[k->ustack].off_ns = add(g[k->ustack].off_ns, k->total_ns);
	}
	qsort(g, c->n_stacks, sizeof(*g), by_group);
	for (size_t i = 0; i < c->n_stacks; i++) {
		if (s->n_groups && group_cmp(&g[s->n_groups - 1], &g[i]) == 0) {
			g[s->n_groups - 1].stacks++;
			g[s->n_groups - 1].waits = add(g[s->n_groups - 1].waits, g[i].waits);
			g[s->n_groups - 1].off_ns = add(g[s->n_groups - 1].off_ns, g[i].off_ns);
		} else {
			g[s->n_groups++] = g[i];
		}
	}
	return 0;
}

int cap_stats_make(const struct cap_reader *c, struct cap_stats *ret)
{
	struct cap_stats s = { .procs = calloc(c->n_procs + 1, sizeof(*s.procs)) };

	if (!s.procs || count_distinct(c, &s) != 0 || group_stacks(c, &s) != 0) {
		cap_stats_free(&s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_sample *k = &c->samples[i];

		if (k->flags & CAPTURE_SAMPLE_ON_CPU) {
			s.cpu_samples = add(s.cpu_samples, k->count);
			s.cpu_ns = add(s.cpu_ns, k->total_ns);
			cap_outcomes_add(
				&s.cpu, c->stacks[k->ustack].verdict, c->stacks[k->ustack].reason, k->count);
			continue;
		}
		add_sample(&s.total, k);
		add_sample(&s.procs[k->proc], k);
	}
	s.end_ns = MAX(c->trailer.stop_ns, c->last_flush_ns);
	s.end_ns = MAX(s.end_ns, c->host.start_mono_ns);
	*ret = s;
	return 0;
}

void cap_stats_free(struct cap_stats *s)
{
	free(s->procs);
	free(s->groups);
	s->procs = NULL;
	s->groups = NULL;
}

void cap_outcomes_add(struct cap_outcomes *ends, unsigned int verdict, unsigned int reason, uint64_t waits)
{
	uint64_t *v, *r = &ends->reasons[MIN(reason, REASON_COUNT)];

	if (verdict == VERDICT_FAILED && (reason == REASON_KTHREAD || reason == REASON_NOT_RECORDED))
		return;
	v = &ends->verdicts[verdict <= VERDICT_FAILED ? verdict : 0];
	*v = add(*v, waits);
	if (verdict == VERDICT_STOPPED || verdict == VERDICT_FAILED)
		*r = add(*r, waits);
}

uint64_t cap_outcomes_waits(const struct cap_outcomes *ends)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(ends->verdicts); i++)
		sum = add(sum, ends->verdicts[i]);
	return sum;
}

/* In hundredths of a percent, rounded down. */
static unsigned int share(uint64_t part, uint64_t whole)
{
	if (!whole || part >= whole)
		return 10000;
	/* the product must not overflow 64 bits; huge numbers lose the last digit instead */
	return (unsigned int)(whole > UINT64_MAX / 10000 ? part / (whole / 10000) : part * 10000 / whole);
}

static void put_count(struct buf *b, uint64_t n, const char *what)
{
	if (n)
		buftext_printf(b, "; %" PRIu64 " %s", n, what);
}

void cap_outcomes_put(struct buf *b, const struct cap_outcomes *ends, const char *one, const char *many)
{
	uint64_t waits = cap_outcomes_waits(ends);
	unsigned int whole = share(ends->verdicts[VERDICT_COMPLETE], waits);

	buftext_printf(b, "%u.%02u %% of ", whole / 100, whole % 100);
	buftext_count(b, waits, one, many);
	buftext_str(b, " complete");
	put_count(b, ends->verdicts[VERDICT_UNVERIFIED], capture_verdict_name(VERDICT_UNVERIFIED));
	put_count(b, ends->verdicts[VERDICT_TRUNCATED], capture_verdict_name(VERDICT_TRUNCATED));
	put_count(b, ends->verdicts[0], capture_verdict_name(0));
	for (unsigned int i = 0; i < ARRAY_LEN(ends->reasons); i++)
		put_count(b, ends->reasons[i], capture_reason_name(i));
}

static int stop_group_cmp(const struct cap_stop_places_stop *x, const struct cap_stop_places_stop *y)
{
	int c = CMP(x->reason, y->reason);

	c = c ? c : CMP(x->mapped, y->mapped);
	return c ? c : CMP(x->file, y->file);
}

static int by_place(const void *a, const void *b)
{
	const struct cap_stop_places_stop *x = a, *y = b;
	int c = stop_group_cmp(x, y);

	return c ? c : CMP(x->place, y->place);
}

static int by_waits(const void *a, const void *b)
{
	const struct cap_stop_places_stop *x = a, *y = b;
	int c = CMP(y->waits, x->waits);

	c = c ? c : CMP(y->off_ns, x->off_ns);
	return c ? c : by_place(a, b);
}

static struct cap_stop_places_stop stop_of(
	const struct cap_reader *c, const struct cap_sample *s, const struct cap_stack *k)
{
	const struct cap_map *m = cap_reader_map(c, s->proc, k->stop_pc, s->first_ns, s->last_ns, NULL);
	struct cap_stop_places_stop stop = { .reason = k->reason,
		.mapped = m != NULL,
		.file = m ? m->file : CAPTURE_NONE,
		.places = 1,
		.waits = s->count,
		.off_ns = s->total_ns,
		.place = k->stop_pc };

	if (stop.file != CAPTURE_NONE)
		stop.place = k->stop_pc - m->start + m->offset;
	return stop;
}

/* Merge stops at the same place. Returns how many are left. */
static size_t merge_places(struct cap_stop_places_stop *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_place);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_place(&list[kept - 1], &list[i]) != 0) {
			list[kept++] = list[i];
			continue;
		}
		list[kept - 1].waits = add(list[kept - 1].waits, list[i].waits);
		list[kept - 1].off_ns = add(list[kept - 1].off_ns, list[i].off_ns);
	}
	return kept;
}

/* Merge places with the same reason and file; `place` becomes the one with the most waits. */
static size_t merge_groups(struct cap_stop_places_stop *list, size_t n)
{
	size_t kept = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++) {
		struct cap_stop_places_stop *into = kept ? &list[kept - 1] : NULL;

		if (!into || stop_group_cmp(into, &list[i]) != 0) {
			most = list[i].waits;
			list[kept++] = list[i];
			continue;
		}
		if (list[i].waits > most) {
			most = list[i].waits;
			into->place = list[i].place;
		}
		into->places++;
		into->waits = add(into->waits, list[i].waits);
		into->off_ns = add(into->off_ns, list[i].off_ns);
	}
	return kept;
}

int cap_stop_places_make(const struct cap_reader *c, struct cap_stop_places *ret)
{
	struct cap_stop_places_stop *list = calloc(c->n_samples + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_samples; i++) {
		const struct cap_stack *k = &c->stacks[c->samples[i].ustack];

		if (capture_stopped(k->verdict, k->reason))
			list[n++] = stop_of(c, &c->samples[i], k);
	}
	n = merge_groups(list, merge_places(list, n));
	qsort(list, n, sizeof(*list), by_waits);
	*ret = (struct cap_stop_places){ list, n };
	return 0;
}

void cap_stop_places_free(struct cap_stop_places *s)
{
	free(s->list);
	s->list = NULL;
	s->n = 0;
}

/* Set procs[file] for each file that a frame of S lies in. */
static void mark(const struct cap_reader *c, const struct cap_sample *s, uint32_t *procs)
{
	const struct cap_stack *k = &c->stacks[s->ustack];
	uint32_t e = 0;

	for (uint32_t i = 0; i < k->len; i++) {
		bool marked = e < k->n_exact && k->exact[e] == i;
		uint64_t addr = k->frames[i] - (!i || marked || !k->frames[i] ? 0 : 1);
		const struct cap_map *m = cap_reader_map(c, s->proc, addr, s->first_ns, s->last_ns, NULL);

		e += marked;
		if (m && m->file != CAPTURE_NONE && procs[m->file] == CAPTURE_NONE)
			procs[m->file] = s->proc;
	}
}

/* Samples with the same process and stack differ in their files only if their epochs differ. */
static int mark_all(const struct cap_reader *c, uint32_t *procs)
{
	struct idmap seen = { 0 };
	int rc = 0;

	for (size_t i = 0; i < c->n_samples && !rc; i++) {
		const struct cap_sample *s = &c->samples[i];
		bool added = false;

		if (idmap_put(&seen, (uint64_t)s->proc << 32 | s->ustack, s->flags / CAPTURE_SAMPLE_EPOCH, 0,
			    &added) == UINT32_MAX)
			rc = -ENOMEM;
		else if (added)
			mark(c, s, procs);
	}
	idmap_free(&seen);
	return rc;
}

int cap_stack_files_make(const struct cap_reader *c, struct cap_stack_files *ret)
{
	_cleanup_free_ uint32_t *procs = malloc((c->n_files + 1) * sizeof(*procs));

	*ret = (struct cap_stack_files){ .files = malloc((c->n_files + 1) * sizeof(*ret->files)),
		.procs = malloc((c->n_files + 1) * sizeof(*ret->procs)) };
	for (size_t i = 0; procs && i < c->n_files; i++)
		procs[i] = CAPTURE_NONE;
	if (!procs || !ret->files || !ret->procs || mark_all(c, procs) != 0) {
		cap_stack_files_free(ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < c->n_files; i++) {
		if (procs[i] == CAPTURE_NONE)
			continue;
		ret->files[ret->n] = i;
		ret->procs[ret->n++] = procs[i];
	}
	return 0;
}

void cap_stack_files_free(struct cap_stack_files *f)
{
	free(f->files);
	free(f->procs);
	*f = (struct cap_stack_files){ 0 };
}

static const char *option(const struct cap_reader *c, const char *name)
{
	for (size_t i = 0; i < c->n_options; i++)
		if (strcmp(c->options[i].name, name) == 0)
			return c->options[i].value;
	return "";
}

void cap_mode_get(const struct cap_reader *c, struct cap_mode *ret)
{
	*ret = (struct cap_mode){ .name = option(c, "mode"), .tried = option(c, "tried") };
	ret->best = !*ret->name || strcmp(ret->name, "btf") == 0;
	ret->sampled = strcmp(ret->name, "procfs") == 0;
	if (!ret->sampled)
		return;
	ret->checked = cap_reader_counter(c, "procfs.threads") > cap_reader_counter(c, "procfs.unchecked");
	ret->hz = strtoull(option(c, "frequency"), NULL, 10);
	ret->samples = cap_reader_counter(c, "procfs.samples");
	ret->late = cap_reader_counter(c, "procfs.samples_late");
	ret->skipped = cap_reader_counter(c, "procfs.samples_skipped");
	ret->estimated_ns = cap_reader_counter(c, "procfs.estimated_ns");
	ret->schedstat_ns = cap_reader_counter(c, "procfs.schedstat_ns");
}

void cap_mode_put_json(struct json *j, const struct cap_mode *m)
{
	if (!m->sampled) {
		json_null(j, "samples");
		return;
	}
	json_begin(j, "samples", '{');
	json_u64(j, "hz", m->hz);
	json_u64(j, "taken", m->samples);
	json_u64(j, "late", m->late);
	json_u64(j, "skipped", m->skipped);
	json_u64(j, "estimated_ns", m->estimated_ns);
	if (m->checked)
		json_u64(j, "schedstat_ns", m->schedstat_ns);
	else
		json_null(j, "schedstat_ns");
	json_end(j, '}');
}

void cap_mode_put_why(struct buf *b, const struct cap_mode *m)
{
	if (m->best)
		return;
	buftext_escaped(b, m->name, TEXT_LINE);
	if (!*m->tried) {
		buftext_str(b, ", as requested");
		return;
	}
	buftext_str(b, ": ");
	for (const char *line = m->tried; *line;) {
		size_t len = strcspn(line, "\n");
		char text[512];

		snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1), line);
		buftext_escaped(b, text, TEXT_LINE);
		line += len + (line[len] == '\n');
		if (*line)
			buftext_str(b, "; ");
	}
}

void cap_mode_put(struct buf *b, const struct cap_mode *m)
{
	if (!m->sampled)
		return;
	buftext_str(b, "estimates, not exact waits: ");
	buftext_count(b, m->samples, "sample", "samples");
	buftext_printf(b, " at %" PRIu64 " Hz", m->hz);
	if (m->late || m->skipped)
		buftext_printf(b, " (%" PRIu64 " late, %" PRIu64 " not taken)", m->late, m->skipped);
	if (!m->checked) {
		buftext_str(b, ", not checked: no schedstat");
		return;
	}
	buftext_str(b, ", checked against schedstat: off-CPU estimated ");
	buftext_seconds(b, m->estimated_ns);
	buftext_str(b, ", by schedstat ");
	buftext_seconds(b, m->schedstat_ns);
}
