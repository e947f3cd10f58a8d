/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/procrec.h"
#include "base/clock.h"
#include "procfs/procpriv.h"
#include "procfs/procround.h"
#include "record/files.h"
#include "record/host.h"
#include "record/jit.h"
#include "record/names.h"
#include "record/options.h"
#include "symbols/kallsyms.h"
#include "system/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define FRAMES_KEPT (UINT64_C(64) << 20) /* bytes of stacks that other processes may have too */
#define NAMES_NS UINT64_C(2000000000) /* how long a recording waits, at its end, for names */

struct procrec {
	const struct recorder_opts *o;
	struct capwrite *out;
	struct stacktab *stacks;
	struct proctab *procs;
	struct namewant *names; /* NULL = none are stored */
	struct namekeep *namer;
	struct jitkeep *jit;
	struct kallsyms *ks;
	int kallsyms; /* opened with privileges; -1 = not to be had */
	struct procthreads *threads;
	struct procstacks *places;
	struct procrows rows;
	struct proctold told;
	struct procround round;
	struct procpriv priv;
	uint64_t due_ns, flush_ns;
	uint64_t stop_ns;
	bool all;
	char degraded[1024];
	char privileges[512];
};

static void degrade(struct procrec *r, const char *what, const struct err *e)
{
	size_t len = strlen(r->degraded);

	snprintf(r->degraded + len, sizeof(r->degraded) - len, "%s%s%s%s%s%s", len ? "; " : "", what,
		e ? ": " : "", e ? e->msg : "", e && e->hint[0] ? "; " : "", e ? e->hint : "");
}

/* When the next look is due; those for which there was no time are left out. At most half of the time is
 * spent. */
static void plan(struct procrec *r, uint64_t began)
{
	uint64_t now = now_ns(), earliest = now + r->round.cost_ns, n;

	r->told.late += began - r->due_ns > r->round.period_ns / 2;
	r->due_ns += r->round.period_ns;
	if (r->due_ns >= earliest)
		return;
	n = (earliest - r->due_ns + r->round.period_ns - 1) / r->round.period_ns;
	r->told.left_out += n;
	r->due_ns += n * r->round.period_ns;
}

/* --- the capture --- */

static void rescan(void *ctx, uint32_t tgid)
{
	struct procrec *r = ctx;

	procround_rescan(&r->round, tgid);
}

/* What is not seen any more is told, for counters alone do not say since when. */
static void miss(struct procrec *r)
{
	struct err why;

	looker_stats(r->priv.looker, &r->told.looker);
	opener_stats(r->priv.opener, &r->told.opener);
	if (!procpriv_missed(&r->priv, &why))
		return;
	degrade(r, "of others' threads is seen what one's own rights reach", &why);
	capwrite_option(r->out, &(struct cap_option){ "looker", why.msg });
}

static void bring_up(struct procrec *r)
{
	struct proctold *t = &r->told;

	t->now_ns = r->stop_ns ? r->stop_ns : now_ns();
	t->bytes = capwrite_bytes(r->out);
	t->rows_lost = r->rows.lost;
	t->user = r->rows.user;
	t->names_overflow = procstacks_overflow(r->places);
	proctab_stats(r->procs, &t->procs);
	stacktab_stats(r->stacks, &t->stacks);
	t->by_name = r->namer != NULL;
	if (r->namer)
		namekeep_stats(r->namer, &t->names);
	miss(r);
	t->degraded = r->degraded;
	t->privileges = r->privileges;
}

static int flush(struct procrec *r, struct err *e)
{
	procrows_write(&r->rows, r->out, rescan, r);
	procstacks_write(r->places, r->out);
	proctab_flush(r->procs, now_ns(), r->out);
	bring_up(r);
	proctold_write(&r->told, r->out);
	return capwrite_flush(r->out, now_ns(), e);
}

static void write_options(struct procrec *r)
{
	const struct recorder_opts *o = r->o;
	char number[32];

	snprintf(number, sizeof(number), "%u", o->hz);
	capwrite_option(r->out, &(struct cap_option){ "frequency", number });
	recoptions_write(r->out, o,
		o->bpf.no_user_stacks ? "none"
		: o->ptrace           ? "ptrace"
				      : "pc",
		r->degraded);
}

/* --- the recording --- */

/* What goes without saying else is told. */
static void check_options(struct procrec *r, const struct recorder_opts *o)
{
	if (o->unwind != RECORDER_UNWIND_AUTO && !o->bpf.no_user_stacks)
		degrade(r, "user stacks are not walked as --unwind says, for that takes BPF", NULL);
	if (o->ptrace && !o->bpf.no_user_stacks)
		degrade(r, "--ptrace stops a thread for a moment where its stack cannot be read otherwise",
			NULL);
	if (!o->ptrace && !o->bpf.no_user_stacks)
		degrade(r,
			"of user stacks there is the program counter alone; --ptrace walks those of your own "
			"processes",
			NULL);
	if (procthreads_hidden() && (r->all || o->bpf.follow))
		degrade(r,
			"/proc hides the processes of other users (hidepid); root, and the group that its "
			"option gid= names, see them",
			NULL);
}

/* The last thing that is done with privileges. */
static int drop(struct procrec *r, struct err *e)
{
	const struct recorder_opts *o = r->o;
	struct buf b = { 0 };
	struct err why;
	int rc = procpriv_drop(&r->priv, o->ptrace && !o->bpf.no_user_stacks, &why, e);

	if (rc)
		return rc;
	if (why.msg[0])
		degrade(r, "others' threads are looked at as far as one's own rights go", &why);
	procpriv_put(&r->priv, &b);
	snprintf(r->privileges, sizeof(r->privileges), "%.*s", (int)b.len, b.p ? (const char *)b.p : "");
	buf_free(&b);
	capwrite_option(r->out, &(struct cap_option){ "privileges", r->privileges });
	return 0;
}

/* Addresses of kernel functions serve for nothing where stacks may not be read. */
static void read_symbols(struct procrec *r)
{
	char text[64];
	_cleanup_close_ int fd = open("/proc/self/stack", O_RDONLY | O_CLOEXEC);
	struct err why;

	if (r->o->bpf.no_kernel_stacks || r->o->hide_kernel || fd < 0 || read(fd, text, sizeof(text)) < 0)
		return;
	r->kallsyms = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	if (kallsyms_load(NULL, &r->ks, &why) != 0)
		degrade(r, "kernel frames are names without addresses", &why);
}

static int open_tables(struct procrec *r, struct err *e)
{
	const struct recorder_opts *o = r->o;
	const struct procthreads_opts to = { .all = o->bpf.all,
		.no = { looker_pid(r->priv.looker), opener_pid(r->priv.opener) },
		.kthreads = o->bpf.kthreads,
		.follow = o->bpf.follow,
		.pids = o->pids,
		.n_pids = o->n_pids,
		.tids = o->tids,
		.n_tids = o->n_tids,
		.comms = o->comms,
		.n_comms = o->n_comms,
		.looker = r->priv.looker,
		.in = o->in };
	struct procstacks_opts so = { .no_kernel = o->bpf.no_kernel_stacks,
		.no_user = o->bpf.no_user_stacks };
	int rc = stacktab_new(o->bpf.depth ? o->bpf.depth : 127, &r->stacks, e);

	rc = rc ? rc : proctab_new(false, false, &r->procs, e);
	if (!rc)
		proctab_opener(r->procs, r->priv.opener);
	rc = rc ? rc : procthreads_open(&to, &r->threads, e);
	so.ks = r->ks;
	rc = rc ? rc : procstacks_new(&so, r->stacks, &r->places, e);
	if (rc || o->no_symbols || o->bpf.no_user_stacks)
		return rc;
	rc = namewant_new(&r->names, e);
	rc = rc ? rc : jitkeep_new(&r->jit, e);
	if (!rc)
		jitkeep_opener(r->jit, r->priv.opener);
	return rc;
}

static unsigned int files_wanted(const struct recorder_opts *o)
{
	unsigned int kernel = 1u << PROCFILE_STACK | 1u << PROCFILE_WCHAN;

	return 1u << PROCFILE_SYSCALL | (o->bpf.no_kernel_stacks ? 0 : kernel);
}

int procrec_open(const struct recorder_opts *opts, struct procrec **ret, struct err *e)
{
	struct procrec *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e, "the recorder");
	r->o = opts;
	r->kallsyms = -1;
	r->all = opts->bpf.all || opts->n_comms;
	r->told.hz = opts->hz;
	r->told.degraded = "";
	rc = opts->bpf.owner_only ? procpriv_renounce(e) : 0;
	check_options(r, opts);
	if (!rc)
		read_symbols(r);
	rc = rc ? rc : capwrite_open(opts->path, opts->force, &r->out, e);
	rc = rc ? rc : drop(r, e);
	rc = rc ? rc : open_tables(r, e);
	if (!rc && r->names)
		rc = namekeep_new(r->names, proctab_files(r->procs), r->out, &r->namer, e);
	if (rc) {
		procrec_close(r);
		return rc;
	}
	r->rows.procs = r->procs;
	r->rows.stacks = r->stacks;
	r->rows.names = r->names;
	r->rows.jit = r->jit;
	stacktab_symbols(r->stacks, r->ks);
	stacktab_keep(r->stacks, FRAMES_KEPT);
	r->round = (struct procround){ .o = opts,
		.reach = { r->priv.looker, r->priv.opener },
		.procs = r->procs,
		.threads = r->threads,
		.places = r->places,
		.rows = &r->rows,
		.told = &r->told };
	procround_init(&r->round, files_wanted(opts));
	runsoon();
	write_options(r);
	*ret = r;
	return 0;
}

void procrec_close(struct procrec *r)
{
	if (!r)
		return;
	procround_release(&r->round);
	namekeep_free(r->namer);
	procrows_free(&r->rows);
	procstacks_free(r->places);
	procthreads_close(r->threads);
	jitkeep_free(r->jit);
	proctab_free(r->procs);
	stacktab_free(r->stacks);
	namewant_free(r->names);
	capwrite_close(r->out);
	kallsyms_free(r->ks);
	if (r->kallsyms >= 0)
		close(r->kallsyms);
	procpriv_close(&r->priv);
	free(r);
}

int procrec_start(struct procrec *r, struct err *e)
{
	/* the first round takes long, for it opens everything and reads mappings: the second one counts */
	procround_before(&r->round);
	procround_look(&r->round);
	r->told.looks = r->told.look_ns = r->told.look_max_ns = 0;
	r->told.start_ns = r->due_ns = now_ns();
	r->flush_ns = r->due_ns + SECOND_NS;
	procround_before(&r->round);
	procround_look(&r->round);
	plan(r, r->due_ns);
	return caphost_write(r->out, r->told.start_ns, r->kallsyms, r->o->hide_kernel, e);
}

int procrec_command(struct procrec *r, uint32_t pid, struct err *e)
{
	int rc = procthreads_add(r->threads, pid, e);

	procround_command(&r->round, pid);
	r->due_ns = now_ns();
	return rc;
}

uint64_t procrec_timeout_ns(const struct procrec *r)
{
	uint64_t now = now_ns();

	return r->due_ns <= now ? 0 : r->due_ns - now;
}

int procrec_service(struct procrec *r, struct err *e)
{
	uint64_t now = now_ns();
	int rc;

	if (now < r->due_ns)
		return 0;
	procround_look(&r->round);
	plan(r, now);
	if (now < r->flush_ns)
		return 0;
	while (r->flush_ns <= now)
		r->flush_ns += SECOND_NS;
	jitkeep_look(r->jit, now);
	rc = flush(r, e);
	/* what looks names up would be recorded with every process */
	if (r->namer && !r->all)
		namekeep_service(r->namer);
	return rc;
}

int procrec_stop(struct procrec *r, const char *why, struct err *e)
{
	int rc;

	r->stop_ns = procround_last(&r->round);
	procround_end(&r->round);
	if (r->namer && !r->all)
		namekeep_hurry(r->namer);
	rc = flush(r, e);
	if (!rc && r->namer) {
		jitkeep_write(r->jit, r->out);
		namekeep_finish(r->namer, NAMES_NS);
		bring_up(r);
		proctold_write(&r->told, r->out);
	}
	return rc ? rc
		  : capwrite_finish(r->out, &(struct cap_trailer){ .stop_ns = r->stop_ns, .why = why }, e);
}

void procrec_stats(const struct procrec *r, struct procrec_stats *ret)
{
	*ret = (struct procrec_stats){ .start_ns = r->told.start_ns,
		.now_ns = r->stop_ns ? r->stop_ns : now_ns(),
		.bytes = capwrite_bytes(r->out),
		.lost = proctold_lost(&r->told) };
}

void procrec_progress(const struct procrec *r, struct buf *b)
{
	struct proctold t = r->told;

	t.now_ns = now_ns();
	stacktab_stats(r->stacks, &t.stacks);
	proctab_stats(r->procs, &t.procs);
	proctold_progress(b, &t);
}

void procrec_summary(const struct procrec *r, const struct rectext_told *told, struct buf *b)
{
	struct proctold t = r->told;

	t.bytes = capwrite_bytes(r->out);
	t.now_ns = r->stop_ns ? r->stop_ns : now_ns();
	proctold_summary(b, &t, told);
}
