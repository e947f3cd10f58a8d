/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "record/recmode.h"

#include <errno.h>
#include <string.h>

static const char *const names[RECMODE_COUNT] = { "auto", "btf", "raw", "procfs" };

const char *recmode_name(enum recmode mode)
{
	return names[mode];
}

int recmode_parse(const char *name, enum recmode *ret, struct err *e)
{
	for (enum recmode mode = 0; mode < RECMODE_COUNT; mode++) {
		if (strcmp(name, names[mode]) == 0) {
			*ret = mode;
			return 0;
		}
	}
	return err_set(e, -EINVAL, "'%s' is no mode: auto, btf, raw or procfs", name);
}
