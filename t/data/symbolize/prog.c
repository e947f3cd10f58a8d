/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols of every kind that t/tools/symbolize.t asks for; it is never run. */
#define NOINLINE __attribute__((noinline, used))

int plain(int x);
NOINLINE int plain(int x)
{
	return x * 3 + 1;
}

int method(int x) __asm__("_ZN3foo3barEi");
NOINLINE int method(int x)
{
	return plain(x) + 2;
}

int hidden(int x) __asm__("_ZN12_GLOBAL__N_11fEv");
NOINLINE int hidden(int x)
{
	return plain(x) + 3;
}

int rust(int x) __asm__("_ZN4core3fmt5Write9write_fmt17h1234567890abcdefE");
NOINLINE int rust(int x)
{
	return plain(x) + 4;
}

int evil(int x);
NOINLINE int evil(int x)
{
	return plain(x) + 5;
}

static int chosen(int x)
{
	return x + 6;
}

static int (*choose(void))(int)
{
	return chosen;
}

int indirect(int x) __attribute__((ifunc("choose")));

int main(int argc, char **argv)
{
	(void)argv;
	return method(argc) + hidden(argc) + rust(argc) + evil(argc) + indirect(argc);
}
