/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that has what proves CPython 3.12, and makes code objects. FORM: how the number of each is
 * counted. */
struct code {
	char before[76];
	int frame, names, locals, cells;
	unsigned int version; /* at 92 */
	char rest[96];
};
const unsigned long Py_Version = 0x030c01f0;
struct {
	char rest[64];
} _PyRuntime = { { 0 } };
unsigned int next_version = 1;
unsigned int other = 1;
int _PyEval_EvalFrameDefault(int n, char *p)
{
	return n * p[4];
}
struct code *_PyCode_New(struct code *made, const int *from)
{
	made->frame = from[0] + from[1];
	made->names = from[1];
	made->locals = from[2] * 3;
#if FORM == 0
	made->version = next_version;
	if (made->version)
		next_version++;
#elif FORM == 1
	made->version = next_version++;
#elif FORM == 2
	made->version = next_version;
	made->cells = next_version == 1;
#elif FORM == 3
	made->cells = next_version++;
#else
	made->version = next_version++;
	__asm__ volatile("" ::: "memory");
	made->version = other++;
#endif
	made->rest[0] = from[3] != 0;
	return made;
}
int main(int argc, char **argv)
{
	struct code made = { .version = next_version ^ other };
	const int from[4] = { argc };

	return _PyCode_New(&made, from)->frame + _PyEval_EvalFrameDefault(argc, argv[0]);
}
