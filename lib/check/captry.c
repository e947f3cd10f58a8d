/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/captry.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The child's side: T is followed by what its steps leave for each other. */
struct trying {
	const struct captry *t;
	struct capbpf bpf;
};

uint64_t captry_granted(void)
{
	cap_t set = cap_get_proc();
	uint64_t ret = 0;

	for (int cap = 0; set && cap < 64; cap++) {
		cap_flag_value_t value;

		if (cap_get_flag(set, cap, CAP_PERMITTED, &value) == 0 && value == CAP_SET)
			ret |= UINT64_C(1) << cap;
	}
	if (set)
		cap_free(set);
	return ret;
}

static int change_user(uid_t uid, struct err *e)
{
	/* an ordinary user may have neither the right nor the need */
	if (setgroups(0, NULL) != 0 && getuid() != uid)
		return err_sys(e, CAPSTEPS_UNTRIED, "cannot give up the supplementary groups");
	if (getuid() == uid && geteuid() == uid)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setresgid(uid, uid, uid) != 0 ||
		setresuid(uid, uid, uid) != 0)
		return err_set(
			e, CAPSTEPS_UNTRIED, "cannot become user %u: %s", (unsigned int)uid, err_name(errno));
	return 0;
}

/* Permitted and effective are CAPS, nothing is inheritable. */
static int set_caps(uint64_t caps)
{
	cap_t set = cap_init();
	int rc = set ? 0 : -ENOMEM;

	for (int cap = 0; cap < 64 && !rc; cap++) {
		if (!(caps & UINT64_C(1) << cap))
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
	const struct captry *t = ((struct trying *)ctx)->t;
	int rc;

	for (size_t i = 0; i < t->n_worlds; i++)
		if (t->worlds[i].hold_fd > 0)
			close(t->worlds[i].hold_fd);
	/* without CAP_SETPCAP it stays, which matters to nobody who starts no program */
	for (int cap = 0; cap < 64; cap++)
		if (!(t->caps & UINT64_C(1) << cap))
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	rc = change_user(t->uid, e);
	if (rc)
		return rc;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	rc = set_caps(t->caps);
	if (!rc && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		rc = -errno;
	if (rc)
		return err_set(e, CAPSTEPS_UNTRIED, "cannot take on a set of capabilities: %s", err_name(rc));
	return 0;
}

static int attempt(void *ctx, size_t i, char *found, size_t cap, struct err *e)
{
	struct trying *c = ctx;
	const struct captry *t = c->t;

	(void)found, (void)cap;
	return capsteps_do(&t->steps->list[t->which[i]], t->world, t->uid, &c->bpf, e);
}

int captry_start(const struct captry *t, unsigned int limit_ms, unsigned int total_ms, struct probe_run **ret,
	struct err *e)
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
