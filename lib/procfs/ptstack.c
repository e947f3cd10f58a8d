/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptstack.h"
#include "procfs/procreach.h"
#include "procfs/ptchild.h"
#include "procfs/ptfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define WALKERS_MAX 4 /* begun for one process, in all */
#define LEARNED_MAX 64

_Static_assert(PTFILES_MAPS <= PTWIRE_MAPS && PTFILES_FILES <= PTWIRE_FILES, "what is told is taken");

/* A system call, by number and first argument, of which a stop has shown that it begins anew. */
struct learned {
	int64_t number;
	uint64_t arg;
};

struct ptstack {
	struct ptreach reach;
	pid_t pid;
	int pidfd, copy_fd, read_fd;
	struct ptcopy *copy; /* copy_fd, mapped */
	struct ptchild child;
	struct ptfiles files;
	unsigned int walkers;
	bool told; /* the child knows the files */
	struct learned learned[LEARNED_MAX];
	size_t n_learned;
	struct ptwire_answer answer;
	uint64_t frames[PTWIRE_FRAMES];
	uint32_t exact[PTWIRE_FRAMES];
	struct ptstack_stats stats;
};

/* --- open and close --- */

/* Sealed, or the walker could cut it off under us; and it gets a descriptor that cannot write. */
static int make_copy(struct ptstack *p, struct err *e)
{
	char path[64];
	void *at;

	p->copy_fd = memfd_create("stack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->copy_fd < 0 || ftruncate(p->copy_fd, sizeof(*p->copy)) != 0 ||
		fcntl(p->copy_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return err_sys(e, -errno, "cannot make room for copies of stacks");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->copy_fd);
	p->read_fd = open(path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, sizeof(*p->copy), PROT_READ | PROT_WRITE, MAP_SHARED, p->copy_fd, 0);
	if (p->read_fd < 0 || at == MAP_FAILED)
		return err_sys(e, -errno, "cannot make room for copies of stacks");
	p->copy = at;
	return 0;
}

int ptstack_open(const struct ptreach *r, uint32_t pid, struct ptstack **ret, struct err *e)
{
	struct ptstack *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_nomem(e, "stacks");
	p->reach = *r;
	p->pid = (pid_t)pid;
	p->copy_fd = p->read_fd = p->child.sock = -1;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	/* ENOSYS: before Linux 5.3, without such protection from a number that is given anew */
	if (p->pidfd < 0 && errno != ENOSYS)
		rc = errno == ESRCH ? err_set(e, -ESRCH, "there is no process %u", pid)
				    : err_sys(e, -errno, "cannot look at process %u", pid);
	else
		rc = make_copy(p, e);
	if (rc)
		ptstack_close(p);
	else
		*ret = p;
	return rc;
}

void ptstack_close(struct ptstack *p)
{
	if (!p)
		return;
	ptchild_stop(&p->child);
	if (p->copy)
		munmap(p->copy, sizeof(*p->copy));
	if (p->copy_fd >= 0)
		close(p->copy_fd);
	if (p->read_fd >= 0)
		close(p->read_fd);
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p);
}

/* --- the walker --- */

static int begin_walker(struct ptstack *p, struct err *e)
{
	if (p->child.pid)
		return 0;
	p->told = false;
	if (p->walkers >= WALKERS_MAX)
		return err_set(e, -EIO, "the process that walks the stacks of process %d has ended %u times",
			p->pid, p->walkers);
	p->walkers++;
	return ptchild_start(&p->child, p->read_fd, e);
}

static int tell_map(void *ctx, const struct ptfiles_map *m, int fd, struct err *e)
{
	struct ptstack *p = ctx;
	const struct ptwire_request r = {
		.what = PTWIRE_MAP, .start = m->start, .end = m->end, .offset = m->offset
	};

	return ptchild_tell(&p->child, &r, fd, e);
}

/* A walker that is new has to be told everything. */
static int tell_files(struct ptstack *p, struct err *e)
{
	bool changed;
	int rc = ptfiles_look(&p->files, &p->reach, (uint32_t)p->pid, &changed, e);

	if (rc || (p->told && !changed))
		return rc;
	p->told = false;
	rc = ptchild_tell(&p->child, &(struct ptwire_request){ .what = PTWIRE_FORGET }, -1, e);
	rc = rc ? rc : ptfiles_tell(&p->files, &p->reach, (uint32_t)p->pid, tell_map, p, e);
	if (rc)
		return rc;
	p->told = true;
	p->stats.maps_cut = MAX(p->stats.maps_cut, p->files.cut);
	p->stats.files_unread = MAX(p->stats.files_unread, p->files.unread);
	return 0;
}

static int walk(struct ptstack *p, struct err *e)
{
	int rc = begin_walker(p, e);

	rc = rc ? rc : tell_files(p, e);
	rc = rc ? rc : ptchild_walk(&p->child, &p->answer, e);
	if (rc && p->walkers > p->stats.walkers_died && !p->child.pid)
		p->stats.walkers_died++;
	if (!rc && (p->answer.verdict < CAP_COMPLETE || p->answer.verdict > CAP_STOPPED ||
			   p->answer.reason >= CAP_R_COUNT))
		return err_set(e, -EPROTO, "the process that walks stacks answers nonsense");
	return rc;
}

static int refuse(struct ptstack *p, enum ptwhy why, int rc)
{
	p->stats.refused[why]++;
	return rc;
}

/* The number may be another process's by now. */
static bool is_gone(const struct ptstack *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return p->pidfd >= 0 && poll(&fd, 1, 0) == 1;
}

/* --- two ways to a copy --- */

static bool spares(const struct ptstack *p, const struct ptquiet_call *call)
{
	for (size_t i = 0; i < p->n_learned; i++)
		if (p->learned[i].number == call->number && p->learned[i].arg == call->args[0])
			return true;
	return ptquiet_is_timed(call);
}

static void learn(struct ptstack *p, const struct ptstop_told *told)
{
	p->stats.stops++;
	p->stats.stopped_ns += told->stopped_ns;
	p->stats.longest_ns = MAX(p->stats.longest_ns, told->stopped_ns);
	if (told->again < 0)
		return;
	p->learned[p->stats.again++ % LEARNED_MAX] =
		(struct learned){ .number = told->again, .arg = told->again_arg };
	p->n_learned = MIN(p->n_learned + 1, LEARNED_MAX);
}

struct way {
	pid_t tid;
	bool stop; /* the thread is stopped: its registers are all known */
	uint64_t wanted[PTCOPY_AREAS - 1];
	size_t n;
	struct ptquiet_call call;
};

static int copy_now(struct ptstack *p, struct way *w)
{
	struct ptstop_told told;
	int rc;

	if (!w->stop)
		return ptreach_quiet(&p->reach, p->pid, w->tid, w->wanted, w->n, p->copy, &w->call);
	rc = ptreach_stop(&p->reach, w->tid, w->wanted, w->n, p->copy, &told);
	if (!rc)
		learn(p, &told);
	return rc;
}

/* Does the walk lack memory that is there? The next copy has it then. */
static bool wants_more(struct ptstack *p, struct way *w)
{
	const struct ptwire_answer *a = &p->answer;
	uint64_t word;

	if (a->verdict != CAP_STOPPED || !a->missed || w->n >= ARRAY_LEN(w->wanted) ||
		!ptreach_word(&p->reach, p->pid, a->wanted, &word))
		return false;
	/* registers are saved below a return address: what is read first need not be the lowest */
	w->wanted[w->n++] = a->wanted & ~UINT64_C(255);
	return true;
}

/* The copy ended below memory that is there. */
static void tell_end(struct ptstack *p)
{
	uint64_t word;

	if (p->answer.verdict == CAP_STOPPED && p->answer.missed &&
		ptreach_word(&p->reach, p->pid, p->answer.wanted, &word))
		p->answer.verdict = CAP_TRUNCATED;
}

/*
 * By one way: copies and walks until no memory is missing. *WHY is what a
 * failure is counted as.
 */
static int go(struct ptstack *p, struct way *w, enum ptwhy *why, struct err *e)
{
	int rc;

	do {
		rc = copy_now(p, w);
		if (rc) {
			/* not an answer to anybody: the other way is tried */
			if (rc == -EAGAIN || rc == -ENODATA)
				return rc;
			*why = ptwhy_tell(p->pid, w->tid, rc, looker_pid(p->reach.looker) != 0, e);
			return *why == PTWHY_GONE ? -ESRCH : rc;
		}
		*why = PTWHY_WALKER;
		rc = walk(p, e);
		if (rc == -ENOEXEC || rc == -ESRCH)
			*why = ptwhy_tell(p->pid, w->tid, rc, looker_pid(p->reach.looker) != 0, e);
	} while (!rc && wants_more(p, w));
	if (!rc)
		tell_end(p);
	return rc;
}

/* Could a stop that is asked for now come at all? In D it would come when the wait is over. */
static bool can_stop(const struct ptstack *p, pid_t tid)
{
	char text[512], *state;
	ssize_t n = procreach_text(
		p->reach.looker, (uint32_t)p->pid, (uint32_t)tid, PROCFILE_STAT, text, sizeof(text) - 1);

	if (n <= 0)
		return true;
	text[n] = '\0';
	state = strrchr(text, ')');
	return !state || strncmp(state, ") D", 3) != 0;
}

/* Stopped where that is needed and does no harm. What was found without stays the answer where it cannot be.
 */
static int take_stopped(
	struct ptstack *p, const struct way *quiet, bool found, enum ptwhy *why, struct err *e)
{
	struct way stop = { .tid = quiet->tid, .stop = true };
	int rc;

	if (found && spares(p, &quiet->call)) {
		p->stats.spared++;
		return 0;
	}
	if (found && !can_stop(p, quiet->tid)) {
		p->stats.refused[PTWHY_LATE]++;
		return 0;
	}
	rc = go(p, &stop, why, e);
	if (!rc || !found || *why == PTWHY_WALKER)
		return rc;
	p->stats.refused[*why]++;
	return 0;
}

static int take(struct ptstack *p, pid_t tid, enum ptwhy *why, struct err *e)
{
	struct way quiet = { .tid = tid };
	int rc = go(p, &quiet, why, e);

	if (rc && rc != -EAGAIN && rc != -ENODATA)
		return rc;
	if (rc || p->answer.reason == CAP_R_REGISTER)
		return take_stopped(p, &quiet, !rc, why, e);
	p->stats.quiet++;
	return 0;
}

/* --- what it found --- */

/* Do the bytes before PC end in a call: e8 with 32 bits of distance, or ff /2? */
static bool follows_call(const struct ptstack *p, uint64_t pc)
{
	uint64_t word;
	uint8_t b[8];

	if (pc < sizeof(b) || !ptreach_word(&p->reach, p->pid, pc - sizeof(b), &word))
		return false;
	memcpy(b, &word, sizeof(b));
	if (b[3] == 0xe8)
		return true;
	for (size_t len = 2; len <= 7; len++)
		if (len != 5 && b[8 - len] == 0xff && (b[9 - len] >> 3 & 7) == 2)
			return true;
	return false;
}

/* A frame that was found by frame pointer is believed only if its callee was called from there. */
static void drop_guesses(struct ptstack *p)
{
	struct ptwire_answer *a = &p->answer;

	for (uint32_t i = 1; i < a->n; i++) {
		uint64_t pc = PTWIRE_PC(a->frames[i]);

		if (!(a->frames[i] & PTWIRE_GUESSED) || follows_call(p, pc))
			continue;
		a->n = i;
		a->verdict = CAP_STOPPED;
		a->reason = CAP_R_NO_FRAME_POINTER;
		a->stop_pc = PTWIRE_PC(a->frames[i - 1]);
	}
}

static void give(struct ptstack *p, struct cap_stack *ret)
{
	const struct ptwire_answer *a = &p->answer;
	uint32_t n = MIN(a->n, (uint32_t)PTWIRE_FRAMES);

	*ret = (struct cap_stack){ .kind = CAP_STACK_USER,
		.verdict = n ? a->verdict : CAP_FAILED,
		.reason = a->verdict == CAP_STOPPED || !n ? a->reason : CAP_R_NONE,
		.stop_pc = a->verdict == CAP_STOPPED && n ? a->stop_pc : 0,
		.len = n,
		.frames = p->frames,
		.exact = p->exact };
	for (uint32_t i = 0; i < n; i++) {
		p->frames[i] = PTWIRE_PC(a->frames[i]);
		if (i && (a->frames[i] & PTWIRE_EXACT))
			p->exact[ret->n_exact++] = i;
	}
}

int ptstack_take(struct ptstack *p, uint32_t tid, struct cap_stack *ret, struct err *e)
{
	enum ptwhy why = PTWHY_OTHER;
	int rc;

	if (is_gone(p)) {
		p->stats.refused[PTWHY_GONE]++;
		return err_set(e, -ESRCH, "process %d has ended", p->pid);
	}
	rc = take(p, (pid_t)tid, &why, e);
	if (rc)
		return refuse(p, why, rc);
	drop_guesses(p);
	give(p, ret);
	p->stats.stacks++;
	return 0;
}

void ptstack_stats(const struct ptstack *p, struct ptstack_stats *ret)
{
	*ret = p->stats;
}
