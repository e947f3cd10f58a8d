/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unit-capread - what a reader gives back, and that it gives nothing wrong.
 * unit-capread --write FILE: the sample capture, for t/capinfo.t.
 */
#include "capread.h"
#include "tap.h"
#include "capture/sample.h"

#include <string.h>

static bool same_str(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool same_stack(const struct cap_stack *a, const struct cap_stack *b)
{
	return a->id == b->id && a->kind == b->kind && a->verdict == b->verdict && a->reason == b->reason &&
	       a->error == b->error && a->stop_pc == b->stop_pc && a->len == b->len &&
	       (!a->len || memcmp(a->frames, b->frames, a->len * sizeof(*a->frames)) == 0);
}

int main(int argc, char **argv)
{
	struct err e = {0};
	struct tap t = {0};
	struct capread *c;
	const char *path = argc > 2 ? argv[2] : "/tmp/x.cap";

	if (sample_write(path, &e)) {
		fprintf(stderr, "unit-capread: %s\n", e.msg);
		return 2;
	}
	if (argc > 2)
		return 0;
	tap_ok(&t, capread_load(path, &c, &e) == 0, "loads %s", e.msg);
	tap_ok(&t, c->complete, "complete %s", c->damage);
	tap_eq_str(&t, c->host.hostname, sample_host.hostname, "host");
	tap_eq_u64(&t, c->n_samples, 5, "merged");
	for (size_t i = 0; i < ARRAY_LEN(sample_stacks); i++)
		tap_ok(&t, same_stack(&c->stacks[i], &sample_stacks[i]), "stack");
	tap_ok(&t, same_str(c->threads[1].comm, "new name"), "thread");
	return tap_done(&t);
}
