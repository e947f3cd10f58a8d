/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format: src/lib/file-format-spec.ts of github.com/jlfwong/speedscope. */
#include "base/cli.h"
#include "base/json.h"
#include "export/export.h"

#include <errno.h>

struct total {
	uint64_t total_ns;
	size_t group;
};

struct speedscope {
	const struct profile *p;
	struct out *out;
	struct profile_groups groups;
	struct idmap
		functions; /* (name, file or module) -> number: speedscope sums what has the same number */
	struct buf stacks; /* text of all stacks, "1,2,3", outermost first */
	size_t *stack_at; /* where each of them begins */
	struct {
		uint64_t total_ns;
		size_t group;
	} * totals; /* of groups, the greatest first */
	size_t n_totals;
	struct buf name; /* scratch */
	bool failed;
};

static void put_text(struct json *j, const char *key, struct speedscope *x, profile_text text)
{
	json_str(j, key, profile_cstr(x->p, text, &x->name));
	x->failed = x->failed || x->name.failed;
}

static uint32_t function(struct speedscope *x, const struct profile_frame *f, const struct profile_call *c)
{
	const profile_text module = f->mapping != PROFILE_NONE ? x->p->mappings[f->mapping].name : 0;
	uint32_t id =
		idmap_put(&x->functions, c->name, c->file ? c->file : module, (uint32_t)x->functions.n, NULL);

	x->failed = x->failed || id == UINT32_MAX;
	return id;
}

static void add_number(struct buf *b, bool first, uint64_t v)
{
	if (!first)
		buf_put(b, ",", 1);
	buftext_dec(b, v, 1);
}

static void make_stacks(struct speedscope *x)
{
	const struct profile *p = x->p;

	for (size_t i = 0; i < p->n_stacks; i++) {
		const struct profile_stack *s = &p->stacks[i];

		x->stack_at[i] = x->stacks.len;
		for (uint32_t k = s->n; k-- > 0;) {
			const struct profile_frame *f = &p->frames[p->stacked[s->first + k]];

			for (uint32_t c = f->n; c-- > 0;)
				add_number(&x->stacks, x->stacks.len == x->stack_at[i],
					function(x, f, &p->calls[f->first + c]));
		}
	}
	x->stack_at[p->n_stacks] = x->stacks.len;
	x->failed = x->failed || x->stacks.failed;
}

static void put_frames(struct speedscope *x, struct json *j)
{
	json_begin(j, "shared", '{');
	json_begin(j, "frames", '[');
	for (size_t i = 0; i < x->functions.n; i++) {
		const struct idmap_slot *s = &x->functions.slots[i];

		json_begin(j, NULL, '{');
		put_text(j, "name", x, (profile_text)s->hi);
		if (s->lo)
			put_text(j, "file", x, (profile_text)s->lo);
		json_end(j, '}');
	}
	json_end(j, ']');
	json_end(j, '}');
}

/* "worker 4242/4243", and for samples "worker 4242/4243 on CPU" */
static void put_name(struct speedscope *x, struct json *j, size_t group)
{
	const struct profile_thread *t = &x->p->threads[group / 2];
	size_t len;
	const char *comm = profile_str(x->p, t->comm, &len);

	buf_reset(&x->name);
	buf_put(&x->name, comm, len);
	buftext_printf(
		&x->name, " %u/%u%s", x->p->processes[t->process].pid, t->tid, group % 2 ? " on CPU" : "");
	buf_put(&x->name, "", 1);
	x->failed = x->failed || x->name.failed;
	json_str(j, "name", x->name.failed ? "" : (const char *)x->name.p);
}

static void put_group(struct speedscope *x, struct json *j, size_t group, uint64_t total_ns)
{
	const uint32_t *first = x->groups.order + x->groups.first[group];
	const uint32_t *end = x->groups.order + x->groups.first[group + 1];

	json_begin(j, NULL, '{');
	json_str(j, "type", "sampled");
	put_name(x, j, group);
	json_str(j, "unit", "nanoseconds");
	json_u64(j, "startValue", 0);
	json_u64(j, "endValue", total_ns);
	json_begin(j, "samples", '[');
	for (const uint32_t *i = first; i < end && !x->out->code; i++) {
		const uint32_t stack = x->p->records[*i].stack;

		out_str(x->out, i == first ? "[" : ",[");
		out_put(x->out, x->stacks.p + x->stack_at[stack],
			x->stack_at[stack + 1] - x->stack_at[stack]);
		out_char(x->out, ']');
	}
	json_end(j, ']');
	json_begin(j, "weights", '[');
	for (const uint32_t *i = first; i < end && !x->out->code; i++)
		json_u64(j, NULL, x->p->records[*i].total_ns);
	json_end(j, ']');
	json_end(j, '}');
}

static int by_total(const void *a, const void *b)
{
	const struct total *x = a, *y = b;
	int c = CMP(y->total_ns, x->total_ns);

	return c ? c : CMP(x->group, y->group);
}

static void sum_groups(struct speedscope *x)
{
	for (size_t g = 0; g < x->groups.n; g++) {
		uint64_t total = 0;

		if (x->groups.first[g] == x->groups.first[g + 1])
			continue;
		for (size_t i = x->groups.first[g]; i < x->groups.first[g + 1]; i++)
			total = add_saturating(total, x->p->records[x->groups.order[i]].total_ns);
		x->totals[x->n_totals].total_ns = total;
		x->totals[x->n_totals++].group = g;
	}
	qsort(x->totals, x->n_totals, sizeof(*x->totals), by_total);
}

static void put_file(struct speedscope *x)
{
	struct json j = { .o = x->out };
	char exporter[64];

	snprintf(exporter, sizeof(exporter), "stackexport@%s", cli_version_string);
	json_begin(&j, NULL, '{');
	json_str(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_str(&j, "exporter", exporter);
	put_text(&j, "name", x, x->p->hostname);
	put_frames(x, &j);
	json_begin(&j, "profiles", '[');
	for (size_t i = 0; i < x->n_totals && !x->out->code; i++)
		put_group(x, &j, x->totals[i].group, x->totals[i].total_ns);
	json_end(&j, ']');
	json_end(&j, '}');
	out_char(x->out, '\n');
}

int export_speedscope(struct profile *p, struct out *out, struct err *e)
{
	struct speedscope x = { .p = p,
		.out = out,
		.stack_at = calloc(p->n_stacks + 1, sizeof(*x.stack_at)),
		.totals = calloc(2 * p->n_threads + 1, sizeof(*x.totals)) };

	x.failed = !x.stack_at || !x.totals || profile_by_thread(p, &x.groups) != 0;
	if (!x.failed)
		make_stacks(&x);
	if (!x.failed) {
		sum_groups(&x);
		put_file(&x);
	}
	profile_groups_free(&x.groups);
	idmap_free(&x.functions);
	buf_free(&x.stacks);
	buf_free(&x.name);
	free(x.stack_at);
	free(x.totals);
	return x.failed ? err_nomem(e, "the profile") : 0;
}
