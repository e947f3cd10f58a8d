/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/options.h"
#include "system/targets.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

const char *const record_mode_names[RECORD_MODE_COUNT + 1] = { "auto", "btf", "raw", "procfs" };

const char *record_mode_name(enum record_mode mode)
{
	return record_mode_names[mode];
}

static void put(struct cap_writer *w, const char *name, const char *value)
{
	cap_writer_option(w, &(struct cap_option){ name, value });
}

/* The directory and hierarchy, and the id that BPF compares. */
static void put_cgroup(struct cap_writer *w, const struct cgroup *in)
{
	char id[32];

	put(w, "cgroup", in->dir);
	put(w, "cgroup.hierarchy", in->controller[0] ? in->controller : "v2");
	snprintf(id, sizeof(id), "%" PRIu64, in->id);
	put(w, "cgroup.id", id);
}

uint64_t record_options_children(const struct recorder_opts *o)
{
	const struct targets_roots roots = {
		.pids = o->pids, .n_pids = o->n_pids, .comms = o->comms, .n_comms = o->n_comms
	};

	return o->count_children ? targets_count_descendants(&roots) : 0;
}

void record_options_write(
	struct cap_writer *w, const struct recorder_opts *o, const char *unwind, const char *degraded)
{
	char number[32];

	for (size_t i = 0; i < o->n_words; i++)
		put(w, "argv", o->words[i]);
	put(w, "mode", record_mode_name(o->mode));
	if (o->tried && *o->tried)
		put(w, "tried", o->tried);
	snprintf(number, sizeof(number), "%u", o->bpf.depth);
	put(w, "depth", number);
	put(w, "unwind", unwind);
	if (o->bpf.events)
		put(w, "events", "kept");
	put(w, "preempted", o->bpf.preempted ? "recorded" : "filtered");
	snprintf(number, sizeof(number), "user %u's", o->bpf.owner_uid);
	if (o->bpf.owner_only)
		put(w, "processes", number);
	if (o->mask_kernel)
		put(w, "kernel-addresses", "hidden");
	if (o->in)
		put_cgroup(w, o->in);
	if (*degraded)
		put(w, "degraded", degraded);
}
