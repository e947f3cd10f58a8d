/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gives itself one name after the other, and sleeps under each. Prints how often under which, name by name.
 */
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#define NAMES 20
#define ROUNDS 3

int main(void)
{
	char name[16];

	for (int i = 0; i < ROUNDS * NAMES; i++) {
		snprintf(name, sizeof(name), "name-%d", i % NAMES);
		prctl(PR_SET_NAME, name);
		for (int k = 0; k <= i % NAMES; k++)
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	for (int i = 0; i < NAMES; i++)
		printf("name-%d %d\n", i, ROUNDS * (i + 1));
	return 0;
}
