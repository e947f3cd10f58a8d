/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/waitlist.h"

#include <errno.h>
#include <string.h>

#define AHEAD 8 /* frames whose text is fetched before it is needed */

struct text {
	size_t at;
	uint32_t len;
};

struct print {
	const struct waitlist *w;
	struct buf arena; /* the lines of all frames */
	struct text *texts; /* by frame id */
};

const char *waitlist_comm(const struct capread *c, const struct cap_sample *s, uint32_t *ns_tid)
{
	const struct cap_thread *t = capread_thread(c, s->proc, s->tid);

	*ns_tid = t ? t->ns_tid : 0;
	return t ? t->comm : c->procs[s->proc].comm;
}

/* Each frame becomes text once. */
static int render_frames(struct print *j, struct err *e)
{
	size_t n = resolve_count(j->w->r);

	j->texts = calloc(n + 1, sizeof(*j->texts));
	if (!j->texts)
		return err_nomem(e, "frames");
	for (size_t i = 0; i < n; i++) {
		const struct frame *f = resolve_frame(j->w->r, (uint32_t)i);

		j->texts[i].at = j->arena.len;
		if (j->w->json)
			perftext_json_frame(&j->arena, f);
		else
			perftext_frame(&j->arena, f, j->w->lines);
		j->texts[i].len = (uint32_t)(j->arena.len - j->texts[i].at);
	}
	return j->arena.failed ? err_nomem(e, "frames") : 0;
}

static void put_frames(
	const struct print *j, struct out *out, const struct stackids_span *s, const char *between)
{
	const uint32_t *ids = stackids_at(j->w->stacks, s);
	size_t n = strlen(between);

	for (uint32_t i = 0; i < s->len; i++) {
		const struct text *t = &j->texts[ids[i]];

		if (i + AHEAD < s->len)
			__builtin_prefetch(j->arena.p + j->texts[ids[i + AHEAD]].at);
		if (i && n)
			out_put(out, between, n);
		out_put(out, j->arena.p + t->at, t->len);
	}
}

static void put_buf(struct out *out, struct buf *b)
{
	if (b->failed)
		out->code = out->code ? out->code : -ENOMEM;
	out_put(out, b->p, b->len);
	buf_reset(b);
}

static void put_text(const struct print *j, struct out *out, struct buf *b, const struct waitlist_record *r,
	const struct perftext_wait *w)
{
	perftext_wait(b, w);
	put_buf(out, b);
	put_frames(j, out, &r->kernel, "");
	perftext_lack(b, w->kernel);
	put_buf(out, b);
	put_frames(j, out, &r->user, "");
	perftext_lack(b, w->user);
	buf_put(b, "\n", 1);
	put_buf(out, b);
}

static void put_json(const struct print *j, struct out *out, struct buf *b, const struct waitlist_record *r,
	const struct perftext_wait *w)
{
	perftext_json_wait(b, w);
	put_buf(out, b);
	out_str(out, perftext_json_kernel);
	put_frames(j, out, &r->kernel, ",");
	out_str(out, perftext_json_user);
	put_frames(j, out, &r->user, ",");
	out_str(out, perftext_json_end);
}

static void put_head(const struct print *j, struct out *out, struct buf *b)
{
	struct modules_file f;

	if (j->w->json)
		perftext_json_head(b, j->w->c, &j->w->totals);
	else
		perftext_head(b, j->w->c, &j->w->totals);
	for (uint32_t i = 0; i < j->w->c->n_files; i++) {
		if (!resolve_file(j->w->r, i, &f) || !f.problem)
			continue;
		if (j->w->json)
			perftext_json_not_used(b, j->w->c->files[i].path, f.problem);
		else
			perftext_not_used(b, j->w->c->files[i].path, f.problem);
	}
	if (!j->w->json)
		buf_put(b, "\n", 1);
	put_buf(out, b);
}

static void put_record(const struct print *j, struct out *out, struct buf *b, const struct waitlist_record *r)
{
	const struct cap_sample *s = r->sample;
	struct perftext_wait w = { .sample = s,
		.proc = &j->w->c->procs[s->proc],
		.kernel = &j->w->c->stacks[s->kstack],
		.user = &j->w->c->stacks[s->ustack] };

	w.comm = waitlist_comm(j->w->c, s, &w.ns_tid);
	if (j->w->json)
		put_json(j, out, b, r, &w);
	else
		put_text(j, out, b, r, &w);
}

int waitlist_print(const struct waitlist *w, struct out *out, struct err *e)
{
	struct print p = { .w = w };
	struct buf b = { 0 };
	int rc = render_frames(&p, e);

	if (rc == 0)
		put_head(&p, out, &b);
	for (size_t i = 0; i < w->n_records && rc == 0 && !out->code; i++)
		put_record(&p, out, &b, &w->records[i]);
	buf_free(&b);
	buf_free(&p.arena);
	free(p.texts);
	return rc;
}
