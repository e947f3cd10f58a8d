// SPDX-License-Identifier: GPL-2.0-or-later
// What programs do that embed CPython. interpreter_begin: a thread that was not made by CPython: the state of
// its key is that of the main interpreter, which executes nothing in it; its program is that of another
// interpreter. interpreter_inside and interpreter_back: the program of a new interpreter calls back into the
// one that it was begun from.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// of CPython's stable interface: the same in all versions
int PyGILState_Ensure(void);
void *Py_NewInterpreter(void);
void *PyThreadState_Swap(void *state);
int PyRun_SimpleStringFlags(const char *program, void *flags);

// the first version of the symbol: runtimes of older suites have an older C library
__asm__(".symver pthread_create,pthread_create@GLIBC_2.2.5");

static char *program;
static void *around;

static void *begun(void *unused)
{
	(void)unused;
	PyGILState_Ensure();
	if (!Py_NewInterpreter() || PyRun_SimpleStringFlags(program, NULL))
		abort();
	return NULL;
}

int interpreter_begin(const char *text)
{
	pthread_t thread;

	program = malloc(strlen(text) + 1);
	if (!program)
		return -1;
	strcpy(program, text);
	return pthread_create(&thread, NULL, begun, NULL);
}

int interpreter_inside(const char *text)
{
	void *inside;

	around = PyThreadState_Swap(NULL);
	PyThreadState_Swap(around);
	inside = Py_NewInterpreter();
	return inside ? PyRun_SimpleStringFlags(text, NULL) : -1;
}

int interpreter_back(const char *text)
{
	PyThreadState_Swap(around);
	return PyRun_SimpleStringFlags(text, NULL);
}
