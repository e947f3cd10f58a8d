/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program without libc, whose call frame information is where the compiler puts it by an option. */
int leaf(int n);
int middle(int n, char *room);
void _start(void);

int leaf(int n)
{
	volatile char room[128];

	room[n & 127] = (char)n;
	return room[(n + 1) & 127];
}

int middle(int n, char *room)
{
	return leaf(n) + leaf(n + room[0]);
}

void _start(void)
{
	char room[64];

	room[0] = (char)leaf(1);
	middle(2, room);
	__asm__ volatile("syscall" : : "a"(60), "D"(0) : "rcx", "r11");
	for (;;)
		;
}
