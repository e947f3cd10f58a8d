/* SPDX-License-Identifier: GPL-2.0-or-later */
/* procparse - libFuzzer target (`make fuzz`): the small files of /proc/PID/task/TID. */
#include "procfs/sampler.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void stack(const char *p, size_t len)
{
	const char *at = p, *end = p + len;
	struct procparse_frame f;

	for (const char *before = at; procparse_frame(&at, end, &f); before = at)
		if (at <= before || at > end || f.name < before || f.name + f.name_len > end ||
			(f.module && f.module + f.module_len > end))
			__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* a copy of the exact size, so that a read beyond its end is detected */
	_cleanup_free_ char *text = malloc(size ? size : 1);
	struct procparse_schedstat ss;
	struct procparse_stat st = { .comm = "" };
	struct procparse_status status;
	struct procparse_syscall sc;

	if (!text)
		return 0;
	memcpy(text, data, size);
	procparse_schedstat(text, size, &ss);
	if (procparse_stat(text, size, &st) && !memchr(st.comm, 0, sizeof(st.comm)))
		__builtin_trap();
	procparse_status(text, size, &status);
	procparse_syscall(text, size, &sc);
	if (procparse_wchan(text, size) > size)
		__builtin_trap();
	stack(text, size);
	return 0;
}
