/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that has what proves CPython. The compiler moves what it takes for unlikely out of the evaluation
 * function. */
const unsigned long Py_Version = VERSION;
struct {
	char mark[8];
	unsigned long version, free_threaded;
	char rest[64];
} _PyRuntime = { "xdebugpy", VERSION, FREE_THREADED, { 0 } };
__attribute__((cold, noinline)) void bad(int n)
{
	_PyRuntime.rest[n & 7]++;
}
int _PyEval_EvalFrameDefault(int n, char *p)
{
	if (n > 5) {
		bad(n);
		bad(n + 1);
		n += p[1];
	}
	n += p[2] * 3;
	if (n > 9) {
		bad(n * 2);
		bad(n - 1);
		n -= p[3];
	}
	return n * p[4];
}
int main(int argc, char **argv)
{
	return _PyEval_EvalFrameDefault(argc, argv[0]);
}
