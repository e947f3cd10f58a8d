// SPDX-License-Identifier: GPL-2.0-or-later
// A thread that was not made by CPython: the state of its key is that of the main interpreter, which
// executes nothing in it; its program is that of another interpreter. As servers do that embed CPython.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// of CPython's stable interface: the same in all versions
int PyGILState_Ensure(void);
void *Py_NewInterpreter(void);
int PyRun_SimpleStringFlags(const char *program, void *flags);

static char *program;

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
