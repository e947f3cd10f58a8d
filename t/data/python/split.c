/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that has what proves CPython. The compiler moves what it takes for unlikely out of the evaluation
 * function. */
const unsigned long Py_Version = 0x030b02f0;
char _PyRuntime[999];
__attribute__((cold, noinline)) void bad(int n)
{
	_PyRuntime[n & 7]++;
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
