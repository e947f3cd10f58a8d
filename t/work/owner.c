/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * owner GATE [MODE [UID]] - waits in functions whose names say what the user of
 * the process may record. The process is named after its file. It waits in
 * wait_at_gate() until the file GATE exists, then, as MODE says, until it is
 * killed, but no longer than 15 minutes:
 *
 * 	plain	in wait_plainly() all the time
 * 	undump	the same, after prctl(PR_SET_DUMPABLE, 0)
 * 	group	the same, with its own group (start it as root, with UID)
 * 	caps	the same, with a permitted capability (start it as root, with UID)
 * 	become	in wait_before() unchanged; as user UID in wait_undumpable(); when
 * 		dumpable again, in wait_after()
 * 	turn	becomes undumpable during wait_turned(), dumpable again during
 * 		wait_hidden(); then in wait_after()
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WAIT(name)                                                                                           \
	__attribute__((noinline)) static void name(long ms)                                                  \
	{                                                                                                    \
		struct timespec t = { ms / 1000, ms % 1000 * 1000000 };                                      \
                                                                                                             \
		nanosleep(&t, NULL);                                                                         \
		__asm__ volatile("");                                                                        \
	}

WAIT(wait_at_gate)
WAIT(wait_plainly)
WAIT(wait_before)
WAIT(wait_undumpable)
WAIT(wait_after)

static int ends[2]; /* a pipe that ends the next two waits */

#define WAIT_FOR_END(name)                                                                                   \
	__attribute__((noinline)) static void name(void)                                                     \
	{                                                                                                    \
		char c;                                                                                      \
                                                                                                             \
		if (read(ends[0], &c, 1) != 1)                                                               \
			exit(1);                                                                             \
		__asm__ volatile("");                                                                        \
	}

WAIT_FOR_END(wait_turned)
WAIT_FOR_END(wait_hidden)

/* Does the main thread sleep? Then it is waiting for a byte from the pipe. */
static int sleeps(void)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		exit(1);
	fclose(f);
	return state == 'S';
}

static void *turner(void *arg)
{
	(void)arg;
	for (int dumpable = 0; dumpable <= 1; dumpable++) {
		do
			usleep(100000);
		while (!sleeps());
		prctl(PR_SET_DUMPABLE, dumpable);
		if (write(ends[1], "e", 1) != 1)
			exit(1);
	}
	return NULL;
}

static void turn(void)
{
	pthread_t other;

	if (pipe(ends) != 0)
		exit(1);
	pthread_create(&other, NULL, turner, NULL);
	wait_turned();
	wait_hidden();
	pthread_join(other, NULL);
}

/* Change the real, effective and saved IDs of a process of root; the set-user-ID bit would not do that. */
static void become(unsigned int uid)
{
	for (int i = 0; i < 20; i++)
		wait_before(10);
	if (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
		exit(1);
	for (int i = 0; i < 20; i++)
		wait_undumpable(10);
	prctl(PR_SET_DUMPABLE, 1);
}

static void other_group(unsigned int uid)
{
	if (setresgid(uid + 1, uid + 1, uid + 1) != 0 || setresuid(uid, uid, uid) != 0)
		exit(1);
	prctl(PR_SET_DUMPABLE, 1);
}

/* As user UID, with CAP_KILL (5) permitted. */
static void with_caps(unsigned int uid)
{
	unsigned int head[2] = { 0x20080522, 0 }, sets[6] = { 0, 1 << 5, 0, 0, 0, 0 };

	prctl(PR_SET_KEEPCAPS, 1);
	if (setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0 ||
		syscall(SYS_capset, head, sets) != 0)
		exit(1);
	prctl(PR_SET_DUMPABLE, 1);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[2] : "plain";
	unsigned int uid = argc > 3 ? (unsigned int)atoi(argv[3]) : 0;

	alarm(900);
	if (strcmp(mode, "group") == 0)
		other_group(uid);
	if (strcmp(mode, "caps") == 0)
		with_caps(uid);
	if (strcmp(mode, "undump") == 0)
		prctl(PR_SET_DUMPABLE, 0);
	printf("ready\n");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		wait_at_gate(10);
	if (strcmp(mode, "become") == 0)
		become(uid);
	if (strcmp(mode, "turn") == 0)
		turn();
	for (;;) {
		if (strcmp(mode, "become") == 0 || strcmp(mode, "turn") == 0)
			wait_after(10);
		else
			wait_plainly(10);
	}
}
