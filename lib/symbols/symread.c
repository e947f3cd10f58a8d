/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/symread.h"

#include <unistd.h>

#define MEMORY_DEFAULT (UINT64_C(2) << 30)

/* Those whose answers are kept come first; their number. */
static size_t take_kept(const struct symread *r, struct symchild_job *jobs, size_t n)
{
	size_t taken = 0;

	for (size_t i = 0; r->keep && i < n; i++) {
		struct symchild_job j = jobs[i];

		if (!symkeep_get(r->keep, &j.in, &j.bytes, &j.answer))
			continue;
		jobs[i] = jobs[taken];
		jobs[taken++] = j;
		if (r->done)
			r->done(r->ctx, &jobs[taken - 1]);
	}
	return taken;
}

static void keep_new(const struct symread *r, const struct symchild_job *jobs, size_t n)
{
	for (size_t i = 0; r->keep && i < n; i++)
		if (jobs[i].bytes)
			symkeep_put(r->keep, &jobs[i].in, jobs[i].bytes, jobs[i].len);
}

void symread_run(const struct symread *r, struct symchild_job *jobs, size_t n)
{
	const uint64_t memory = r->memory_bytes ? r->memory_bytes : MEMORY_DEFAULT;
	const size_t kept = take_kept(r, jobs, n);
	struct symchild_opts o = {
		.jobs = r->jobs, .seconds = r->seconds, .tick = r->tick, .tick_ctx = r->ctx
	};

	if (!o.jobs)
		o.jobs = (unsigned int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	o.jobs = MIN(o.jobs, (unsigned int)MAX(memory / SYMREAD_MEMORY_LEAST, UINT64_C(1)));
	o.memory_bytes = memory / o.jobs;
	for (size_t i = kept; i < n; i++)
		jobs[i].in.max_bytes = o.memory_bytes / 4 * 3; /* so that it is told before malloc(3) fails */
	/* what fails is told by each job */
	symchild_run(&o, jobs + kept, n - kept, r->done, r->ctx, NULL);
	keep_new(r, jobs + kept, n - kept);
}
