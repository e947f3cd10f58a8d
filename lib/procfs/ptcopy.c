/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptcopy.h"

#include <string.h>
#include <sys/uio.h>

#define PAGE 4096u
#define PIECES (PTCOPY_AREA_BYTES / PAGE + 1)

void ptcopy_reset(struct ptcopy *c)
{
	c->head = (struct ptcopy_head){ 0 };
}

/* A transfer ends between pieces: pages, so that all up to the first that is missing is read. */
static size_t pages(uint64_t from, size_t len, struct iovec pieces[PIECES])
{
	size_t n = 0;

	for (size_t take; len; from += take, len -= take) {
		take = MIN(len, (size_t)(PAGE - from % PAGE));
		pieces[n++] = (struct iovec){ (void *)(uintptr_t)from, take };
	}
	return n;
}

bool ptcopy_area(struct ptcopy *c, pid_t id, uint64_t from)
{
	struct iovec there[PIECES], here;
	uint32_t i = c->head.n_areas;
	size_t len = PTCOPY_AREA_BYTES;
	ssize_t n;

	if (i >= PTCOPY_AREAS)
		return false;
	if (UINT64_MAX - from < len)
		return false;
	here = (struct iovec){ c->bytes[i], len };
	n = process_vm_readv(id, &here, 1, there, pages(from, len, there), 0);
	if (n <= 0)
		return false;
	c->head.areas[i] = (struct ptcopy_area){ .from = from, .len = (uint64_t)n };
	c->head.n_areas++;
	return true;
}

bool ptcopy_stack(struct ptcopy *c, pid_t id)
{
	uint64_t sp = c->head.regs[PTCOPY_SP];

	/* the page below may be a guard */
	return (sp > PTCOPY_BELOW_SP && ptcopy_area(c, id, sp - PTCOPY_BELOW_SP)) || ptcopy_area(c, id, sp);
}
