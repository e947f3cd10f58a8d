/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/recording.h"
#include "base/text.h"
#include "procfs/procrec.h"
#include "record/session.h"

#include <errno.h>
#include <string.h>

struct recording {
	enum recmode mode;
	struct recorder *rec; /* btf and raw */
	struct procrec *proc; /* procfs */
	char tried[1024];
};

static int open_mode(struct recording *r, struct recorder_opts *o, bool *refused, struct err *e)
{
	o->mode = r->mode;
	o->bpf.raw = r->mode == RECMODE_RAW;
	*refused = false;
	return r->mode == RECMODE_PROCFS ? procrec_open(o, &r->proc, e)
					 : recorder_open(o, &r->rec, refused, e);
}

static void note(struct recording *r, const struct err *e)
{
	size_t len = strlen(r->tried);

	snprintf(r->tried + len, sizeof(r->tried) - len, "%snot %s: %s%s%s", len ? "\n" : "",
		recmode_name(r->mode), e->msg, e->hint[0] ? "; " : "", e->hint);
}

static int climb_down(struct recording *r, struct recorder_opts *o, struct err *e)
{
	struct err why = { 0 };
	bool refused = true;
	int rc = -ENOTSUP;

	for (r->mode = RECMODE_BTF; refused && r->mode < RECMODE_COUNT; r->mode++) {
		why = (struct err){ 0 };
		rc = open_mode(r, o, &refused, &why);
		if (!rc)
			return 0;
		if (refused)
			note(r, &why);
		o->tried = r->tried;
	}
	if (e)
		*e = why;
	return rc;
}

/* Without it no mode tells what a process is. */
static int need_proc(struct err *e)
{
	if (access("/proc/self/stat", R_OK) == 0)
		return 0;
	err_sys(e, -errno, "cannot read '/proc/self/stat'");
	return err_hint(e, "/proc is not mounted: mount -t proc proc /proc");
}

int recording_open(struct recorder_opts *opts, struct recording **ret, struct err *e)
{
	struct recording *r;
	bool refused;
	int rc = need_proc(e);

	if (rc)
		return rc;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_nomem(e, "the recording");
	r->mode = opts->mode;
	rc = opts->mode == RECMODE_AUTO ? climb_down(r, opts, e) : open_mode(r, opts, &refused, e);
	if (rc) {
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	recorder_close(r->rec);
	procrec_close(r->proc);
	free(r);
}

enum recmode recording_mode(const struct recording *r)
{
	return r->mode;
}

const char *recording_tried(const struct recording *r)
{
	return r->tried;
}

int recording_start(struct recording *r, struct err *e)
{
	return r->proc ? procrec_start(r->proc, e) : recorder_start(r->rec, e);
}

void recording_hold(struct recording *r, uint32_t pid)
{
	if (r->rec)
		recorder_hold(r->rec, pid);
}

int recording_command(struct recording *r, uint32_t pid, bool held, struct err *e)
{
	return r->proc ? procrec_command(r->proc, pid, e) : recorder_command(r->rec, held ? pid : 0, e);
}

int recording_fd(const struct recording *r)
{
	return r->proc ? -1 : recorder_fd(r->rec);
}

uint64_t recording_timeout_ns(const struct recording *r)
{
	return r->proc ? procrec_timeout_ns(r->proc) : recorder_timeout_ns(r->rec);
}

int recording_service(struct recording *r, struct err *e)
{
	return r->proc ? procrec_service(r->proc, e) : recorder_service(r->rec, e);
}

int recording_stop(struct recording *r, const char *why, struct err *e)
{
	return r->proc ? procrec_stop(r->proc, why, e) : recorder_stop(r->rec, why, e);
}

void recording_state(struct recording *r, struct recording_state *ret)
{
	struct procrec_stats ps;
	struct recorder_stats st;

	if (r->proc) {
		procrec_stats(r->proc, &ps);
		*ret = (struct recording_state){ ps.start_ns, ps.now_ns, ps.lost };
	} else {
		recorder_stats(r->rec, &st);
		*ret = (struct recording_state){ st.start_ns, st.now_ns, st.lost };
	}
}

void recording_progress(struct recording *r, struct buf *b)
{
	struct recorder_stats st;

	if (r->proc) {
		procrec_progress(r->proc, b);
		return;
	}
	recorder_stats(r->rec, &st);
	rectext_progress(b, &st);
}

void recording_summary(struct recording *r, const struct rectext_told *told, struct buf *b)
{
	struct recorder_stats st;

	if (r->proc) {
		procrec_summary(r->proc, told, b);
		return;
	}
	recorder_stats(r->rec, &st);
	rectext_summary(b, &st, told);
}
