/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/tap.h"
#include "symbols/lookup.h"

#include <string.h>

static void check(struct tap *t, const char *name, const char *want)
{
	char buf[DEMANGLE_OUT_MAX];

	demangle(name, buf, sizeof(buf));
	tap_eq_str(t, buf, want, want[0] ? want : name);
}

/* A short name whose text doubles with each substitution. */
static void test_bomb(struct tap *t)
{
	char name[1024] = "_Z1fI1AE", buf[DEMANGLE_OUT_MAX];
	size_t n;

	strcpy(name, "_Z1f1AIiE");
	for (int i = 0; i < 60; i++) {
		char more[32];

		/* 1BI Sx_ Sx_ E: each names the one before it twice */
		snprintf(more, sizeof(more), i == 0 ? "1BIS0_S0_E" : "1BIS%c_S%c_E",
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36],
			"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i % 36]);
		strcat(name, more);
	}
	n = demangle(name, buf, sizeof(buf));
	tap_ok(t, n < sizeof(buf), "a short name with a huge text is demangled within the limits");
}

static void test_limits(struct tap *t)
{
	char buf[DEMANGLE_OUT_MAX], name[DEMANGLE_IN_MAX + 64];

	memset(name, 'P', sizeof(name));
	memcpy(name, "_Z1f", 4);
	name[sizeof(name) - 1] = '\0';
	tap_eq_u64(t, demangle(name, buf, sizeof(buf)), 0, "a name beyond the limit stays mangled");
	name[DEMANGLE_IN_MAX - 1] = '\0';
	tap_ok(t, demangle(name, buf, sizeof(buf)) < sizeof(buf),
		"deep nesting within the limit does no harm");
	name[DEMANGLE_IN_MAX - 2] = 'i';
	tap_ok(t, demangle(name, buf, sizeof(buf)) < sizeof(buf),
		"deep nesting in a well-formed name does no harm");
	tap_eq_u64(t, demangle("_ZN3foo3barEi", buf, 5), 0, "a name whose text does not fit stays mangled");
	memset(name, 'Q', sizeof(name));
	memcpy(name, "_D1aFQB", 7);
	name[900] = '\0';
	tap_eq_u64(t, demangle(name, buf, sizeof(buf)), 0, "a D name with many references stays mangled");
}

/* Random bytes: demangling ends and writes nothing past the buffer. The text is not compared. */
static void test_noise(struct tap *t)
{
	static const char alphabet[] = "_ZNRDSTIEQPKFvijcB0123456789abfoLXJDpn$.@\x01\xff";
	static const char *const seeds[] = { "_ZN", "_R", "_D", "_ZZ", "_RNvC" };
	uint64_t rng = 88172645463325252u;
	bool fits = true;

	for (int i = 0; i < 20000; i++) {
		char name[300], buf[DEMANGLE_OUT_MAX];
		size_t len = strlen(strcpy(name, seeds[i % 5]));

		for (size_t want = 10 + (size_t)(i % 250); len < want; len++) {
			rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
			name[len] = alphabet[rng % (sizeof(alphabet) - 1)];
		}
		name[len] = '\0';
		fits = fits && demangle(name, buf, sizeof(buf)) < sizeof(buf);
	}
	tap_ok(t, fits, "20,000 random names are demangled within the limits");
}

int main(void)
{
	struct tap t = { 0 };

	check(&t, "_ZN3foo3barEi", "foo::bar(int)");
	check(&t, "_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()");
	check(&t, "_ZN3fooclEv", "foo::operator()()");
	check(&t, "_ZN3foo3barEi.cold", "foo::bar(int) [clone .cold]");
	check(&t, "_ZN4core3fmt5Write9write_fmt17h1234567890abcdefE", "core::fmt::Write::write_fmt");
	check(&t, "_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example");
	check(&t, "_D3std5stdio4File5closeMFZv", "std.stdio.File.close()");
	check(&t, "main", "");
	check(&t, "_start", "");
	check(&t, "_Z", "");
	check(&t, "_", "");
	check(&t, "", "");
	test_limits(&t);
	test_bomb(&t);
	test_noise(&t);
	return tap_done(&t);
}
