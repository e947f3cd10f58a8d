/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/cli.h"
#include "base/tap.h"

#include <errno.h>
#include <string.h>

static void size_is(struct tap *t, const char *s, uint64_t want)
{
	uint64_t v = 0;
	struct err e = { 0 };
	int rc = cli_size(s, 1, UINT64_MAX, &v, &e);

	if (!tap_ok(t, rc == 0 && v == want, "'%s' is %llu bytes", s, (unsigned long long)want))
		tap_diag("%d %s", rc, e.msg);
}

static void refused(struct tap *t, const char *s, uint64_t min, uint64_t max, int code, const char *message)
{
	uint64_t v = 7;
	struct err e = { 0 };
	int rc = cli_size(s, min, max, &v, &e);

	if (!tap_ok(t, rc == code && v == 7 && strstr(e.msg, message), "'%s' of %llu to %llu: %s", s,
		    (unsigned long long)min, (unsigned long long)max, message))
		tap_diag("%d %s", rc, e.msg);
}

int main(void)
{
	static const char *const no_size[] = { "", "M", "x", "-1", "+1", " 1", "1 M", "1.5M", "0x10", "1MM",
		"1MiBs", "1T", "1,000", "99999999999999999999" };
	struct tap t = { 0 };

	size_is(&t, "1", 1);
	size_is(&t, "4096", 4096);
	size_is(&t, "16K", 16384);
	size_is(&t, "16M", UINT64_C(16) << 20);
	size_is(&t, "3G", UINT64_C(3) << 30);
	size_is(&t, "18446744073709551615", UINT64_MAX);
	size_is(&t, "17179869183G", UINT64_C(17179869183) << 30);
	for (size_t i = 0; i < ARRAY_LEN(no_size); i++)
		refused(&t, no_size[i], 1, UINT64_MAX, i + 1 == ARRAY_LEN(no_size) ? -ERANGE : -EINVAL,
			i + 1 == ARRAY_LEN(no_size) ? "out of range" : "is not a size such as");
	refused(&t, "0", 1, 100, -ERANGE, "out of range: 1 to 100 bytes");
	refused(&t, "101", 1, 100, -ERANGE, "out of range");
	refused(&t, "1K", 1, 1023, -ERANGE, "out of range");
	refused(&t, "1023", 1024, 4096, -ERANGE, "out of range");
	/* 2^64 + 1 KiB, and 2^64: a shift that wraps would take these for small ones */
	refused(&t, "18014398509481985K", 1, 4096, -ERANGE, "out of range");
	refused(&t, "17179869184G", 1, UINT64_MAX, -ERANGE, "out of range");
	return tap_done(&t);
}
