/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verlog.h"

#include <string.h>

void verlog_hint(char *log, struct err *e)
{
	char *line, *save = NULL, *last = NULL;

	for (line = strtok_r(log, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strncmp(line, "processed ", 10) != 0)
			last = line;
	if (last)
		err_hint(e, "the verifier says: %s", last);
}
