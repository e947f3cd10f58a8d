/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "check/bugcheck.h"

#include <ctype.h>
#include <string.h>

struct version {
	unsigned int major, minor, patch;
};

struct bug {
	const char *id, *what, *concerns;
	struct version since; /* of the main line */
	/* stable releases that took it over, and those that fixed it; a zeroed one ends a list */
	struct version taken[8], fixed[8];
};

/* Known, without a release that fixes it: told, but there is nothing to mend. */
#define NO_FIX(b) (!(b)->fixed[0].major)

static const struct bug bugs[] = {
	{ "kernel.bug.stackid_overflow", "a stack deeper than its stack map is written beyond the map",
		"stackmap-test tries such maps; the recorder has none", { 5, 18, 0 },
		{ { 5, 10, 110 }, { 5, 15, 33 }, { 5, 16, 19 }, { 5, 17, 2 } },
		{ { 6, 12, 63 }, { 6, 17, 13 }, { 6, 18, 2 }, { 6, 19, 0 } } },
	{ "kernel.bug.task_stack", "bpf_get_task_stack reads the stack of a thread that ends",
		"the recorder looks so at waits in progress", { 5, 9, 0 }, { { 0 } },
		{ { 5, 11, 14 }, { 5, 12, 0 } } },
	{ "kernel.bug.callchain_reuse",
		"a stack taken by an iterator that is preempted can be another thread's",
		"the stacks of waits in progress when a recording begins may be wrong on a preemptible "
		"kernel; those taken at a switch are not",
		{ 5, 9, 0 }, { { 0 } }, { { 0 } } },
};

/* Does what the kernel says of itself tell the patch level? */
static bool patch_known(const struct machine *m, struct version *v)
{
	char line[512];
	const char *at;

	if (sscanf(m->release, "%u.%u.%u", &v->major, &v->minor, &v->patch) < 2)
		return false;
	/* "Ubuntu 6.8.0-45.45-generic 6.8.12" */
	if (root_line(m->root, "proc/version_signature", line, sizeof(line), NULL) == 0) {
		at = strrchr(line, ' ');
		return at && sscanf(at + 1, "%u.%u.%u", &v->major, &v->minor, &v->patch) == 3;
	}
	/* "... #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)" */
	if (root_line(m->root, "proc/version", line, sizeof(line), NULL) == 0 &&
		(at = strstr(line, " Debian ")) && isdigit((unsigned char)at[8]))
		return sscanf(at + 8, "%u.%u.%u", &v->major, &v->minor, &v->patch) == 3;
	return v->patch || !strchr(m->release, '-');
}

static bool before(const struct version *a, const struct version *b)
{
	return a->major != b->major   ? a->major < b->major
	       : a->minor != b->minor ? a->minor < b->minor
				      : a->patch < b->patch;
}

static const struct version *of_series(const struct version *list, size_t n, const struct version *v)
{
	for (size_t i = 0; i < n && list[i].major; i++)
		if (list[i].major == v->major && list[i].minor == v->minor)
			return &list[i];
	return NULL;
}

enum state { ABSENT, FIXED, PRESENT, UNKNOWN };

/* REBASED: subsystems of the kernel are newer than its version, as in Red Hat's. */
static enum state judge(const struct bug *b, const struct version *v, bool patch, bool rebased)
{
	const struct version *taken = of_series(b->taken, ARRAY_LEN(b->taken), v);
	const struct version *fixed = of_series(b->fixed, ARRAY_LEN(b->fixed), v);
	const struct version *last = NULL;

	for (size_t i = 0; i < ARRAY_LEN(b->fixed) && b->fixed[i].major; i++)
		last = &b->fixed[i];
	if (NO_FIX(b))
		return before(v, &b->since) ? ABSENT : UNKNOWN;
	if (!before(v, last))
		return FIXED;
	if (rebased)
		return UNKNOWN;
	if (before(v, &b->since) && !taken)
		return ABSENT;
	if (!patch)
		return UNKNOWN;
	if (taken && before(v, taken))
		return ABSENT;
	/* a series that is not listed may have been mended since the list was made */
	return !fixed ? UNKNOWN : before(v, fixed) ? PRESENT : FIXED;
}

static void tell_fix(const struct bug *b, const struct version *v, char *buf, size_t cap)
{
	const struct version *fixed = of_series(b->fixed, ARRAY_LEN(b->fixed), v);
	size_t len = 0;

	if (fixed) {
		snprintf(buf, cap, "fixed in %u.%u.%u", fixed->major, fixed->minor, fixed->patch);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(b->fixed) && b->fixed[i].major && len < cap; i++)
		len += (size_t)snprintf(buf + len, cap - len, "%s%u.%u.%u", i ? ", " : "fixed in ",
			b->fixed[i].major, b->fixed[i].minor, b->fixed[i].patch);
	if (len < cap)
		snprintf(buf + len, cap - len, "; of %u.%u none is known to be", v->major, v->minor);
}

static void check(
	const struct machine *m, const struct bug *b, const struct version *v, bool patch, struct findings *f)
{
	enum state state = judge(b, v, patch, strstr(m->release, ".el") != NULL);
	char fix[200], command[256];
	struct finding *fi;

	if (state == ABSENT || state == FIXED) {
		findings_add(f, GROUP_KERNEL, FINDING_OK, b->id, "%s: %s", b->what,
			state == FIXED ? "fixed in this kernel" : "not in this kernel");
		return;
	}
	if (NO_FIX(b)) {
		findings_add(f, GROUP_KERNEL, FINDING_OK, b->id,
			"%s: no release is known to have it fixed; %s", b->what, b->concerns);
		return;
	}
	tell_fix(b, v, fix, sizeof(fix));
	fi = findings_add(f, GROUP_KERNEL, FINDING_WARN, b->id, "%s: this kernel %s it (%s): %s", b->what,
		state == PRESENT ? "has" : "may have", fix, b->concerns);
	finding_mend(fi, "%s", machine_new_kernel(m, command, sizeof(command)));
}

void bugcheck_run(const struct machine *m, struct findings *f)
{
	struct version v = { 0 };
	bool patch = patch_known(m, &v);

	if (!v.major) {
		findings_add(f, GROUP_KERNEL, FINDING_SKIP, "kernel.bug.stackid_overflow",
			"no version is understood in the release '%s': whether it has known bugs is not told",
			m->release);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(bugs); i++)
		check(m, &bugs[i], &v, patch, f);
}
