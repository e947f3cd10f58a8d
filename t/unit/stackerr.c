/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "stackmap/case.h"

#include <errno.h>
#include <string.h>

static const char *text(enum stackerr_call call, int64_t result)
{
	static char buf[256];

	return stackerr_text(call, result, buf, sizeof(buf));
}

static void test_names(struct tap *t)
{
	static const struct {
		enum stackerr_call call;
		int code;
		const char *prefix, *means;
	} rows[] = {
		{ STACKERR_GET_ID, -14, "-14 EFAULT: ", "no such stack" },
		{ STACKERR_GET_ID, -17, "-17 EEXIST: ", "another stack" },
		{ STACKERR_GET_ID, -12, "-12 ENOMEM: ", "every entry" },
		{ STACKERR_GET_ID, -22, "-22 EINVAL: ", "flag" },
		{ STACKERR_CREATE, -7, "-7 E2BIG: ", "entries" },
		{ STACKERR_CREATE, -1, "-1 EPERM: ", "CAP_BPF" },
		{ STACKERR_LOOKUP, -2, "-2 ENOENT: ", "no stack has this id" },
		{ STACKERR_DELETE, -7, "-7 E2BIG: ", "beyond" },
		{ STACKERR_UPDATE, -22, "-22 EINVAL: ", "only the kernel" },
		{ STACKERR_NEXT, -2, "-2 ENOENT: ", "no further id" },
		{ STACKERR_GET, -14, "-14 EFAULT: ", "no such stack" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *got = text(rows[i].call, rows[i].code);

		if (!tap_ok(t,
			    strncmp(got, rows[i].prefix, strlen(rows[i].prefix)) == 0 &&
				    strstr(got, rows[i].means),
			    "error %d has its name and meaning: %s", rows[i].code, rows[i].means))
			tap_diag("got '%s'", got);
	}
}

int main(void)
{
	struct tap t = { 0 };
	char small[8];

	test_names(&t);
	tap_eq_str(&t, text(STACKERR_GET_ID, 0), "0", "ID 0 is a number, not an error");
	tap_eq_str(&t, text(STACKERR_GET_ID, 1234), "1234", "an ID is a number");
	tap_eq_str(&t, text(STACKERR_GET_ID, INT64_MIN), "-9223372036854775808",
		"a value that is not an errno stays a number");
	tap_eq_str(
		&t, text(STACKERR_GET_ID, -EIO), "-5 EIO", "an error without a known meaning has its name");
	tap_eq_str(&t, stackerr_meaning(STACKERR_LOOKUP, -EIO), "",
		"an error without a known meaning has an empty meaning");
	tap_ok(&t,
		strcmp(stackerr_meaning(STACKERR_GET_ID, -EINVAL),
			stackerr_meaning(STACKERR_CREATE, -EINVAL)),
		"the same error has another meaning in another call");
	stackerr_text(STACKERR_GET_ID, -EFAULT, small, sizeof(small));
	tap_eq_str(&t, small, "-14 EFA", "text for a short buffer is truncated and terminated");
	return tap_done(&t);
}
