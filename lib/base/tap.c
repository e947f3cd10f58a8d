/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

bool tap_ok(struct tap *t, bool ok, const char *fmt, ...)
{
	va_list ap;

	t->run++;
	if (!ok)
		t->failed++;
	printf("%sok %u - ", ok ? "" : "not ", t->run);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return ok;
}

void tap_skip(struct tap *t, const char *name, const char *fmt, ...)
{
	va_list ap;

	t->run++;
	t->skipped++;
	printf("ok %u - %s # SKIP ", t->run, name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

void tap_diag(const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		printf("# %s\n", line);
	fflush(stdout);
}

int tap_done(const struct tap *t)
{
	printf("1..%u\n", t->run);
	fflush(stdout);
	return t->failed ? 1 : 0;
}

bool tap_eq_u64_(struct tap *t, uint64_t got, uint64_t want, const char *name)
{
	if (tap_ok(t, got == want, "%s", name))
		return true;
	tap_diag("got %" PRIu64 " (0x%" PRIx64 "), want %" PRIu64 " (0x%" PRIx64 ")", got, got, want, want);
	return false;
}

bool tap_eq_str(struct tap *t, const char *got, const char *want, const char *name)
{
	bool same = got && want ? strcmp(got, want) == 0 : got == want;

	if (tap_ok(t, same, "%s", name))
		return true;
	tap_diag("got '%s', want '%s'", got ? got : "(null)", want ? want : "(null)");
	return false;
}
