/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/stackerr.h"

#include <errno.h>
#include <inttypes.h>

static const struct {
	enum stackerr_call call;
	int code;
	const char *meaning;
} table[] = {
	{ STACKERR_CREATE, -EINVAL, "key size, value size, entries or flags are none that such a map has" },
	{ STACKERR_CREATE, -E2BIG, "more entries than a map can have" },
	{ STACKERR_CREATE, -ENOMEM, "no memory for so many entries" },
	{ STACKERR_CREATE, -EPERM,
		"not permitted: CAP_BPF is missing, or before Linux 5.11 RLIMIT_MEMLOCK is used up" },
	{ STACKERR_GET_ID, -EFAULT, "there is no such stack, or the skip count left nothing of it" },
	{ STACKERR_GET_ID, -EEXIST, "another stack occupies this one's bucket: the stack is lost" },
	{ STACKERR_GET_ID, -ENOMEM, "every entry of the map is in use: the stack is lost" },
	{ STACKERR_GET_ID, -EINVAL, "a flag is unknown" },
	{ STACKERR_GET, -EFAULT, "there is no such stack, or the skip count left nothing of it" },
	{ STACKERR_GET, -EINVAL, "a flag is unknown, or the buffer is not a whole number of frames" },
	{ STACKERR_GET, -EOPNOTSUPP, "this kind of stack cannot be taken here" },
	{ STACKERR_LOOKUP, -ENOENT, "no stack has this id" },
	{ STACKERR_DELETE, -ENOENT, "no stack has this id" },
	{ STACKERR_DELETE, -E2BIG, "an id beyond the map's buckets" },
	{ STACKERR_UPDATE, -EINVAL, "only the kernel puts stacks into the map" },
	{ STACKERR_NEXT, -ENOENT, "there is no further id" },
};

const char *stackerr_meaning(enum stackerr_call call, int code)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].call == call && table[i].code == code)
			return table[i].meaning;
	return "";
}

const char *stackerr_text(enum stackerr_call call, int64_t result, char *buf, size_t cap)
{
	const char *meaning;

	if (result >= 0 || result < -4095) {
		snprintf(buf, cap, "%" PRId64, result);
		return buf;
	}
	meaning = stackerr_meaning(call, (int)result);
	snprintf(
		buf, cap, "%" PRId64 " %s%s%s", result, err_name((int)result), *meaning ? ": " : "", meaning);
	return buf;
}
