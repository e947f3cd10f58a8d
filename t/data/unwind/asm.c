/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that block below the functions of asmfn.S: asm [frame-pointer|neither|product] */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "work.h"

typedef void (*called)(void);
void fn_by_rbx(called);
void fn_remembers(called);
void fn_by_expression(called);
void fn_by_product(called);
void fn_frame_pointer(called);
void fn_neither(called);

FN void fn_leaf(void)
{
	block();
}

FN void *fn_rbx(void *arg)
{
	chain("fn_leaf;fn_by_rbx;fn_rbx");
	fn_by_rbx(fn_leaf);
	KEEP();
	return arg;
}

FN void *fn_remember(void *arg)
{
	chain("fn_leaf;fn_remembers;fn_remember");
	fn_remembers(fn_leaf);
	KEEP();
	return arg;
}

FN void *fn_expression(void *arg)
{
	chain("fn_leaf;fn_by_expression;fn_expression");
	fn_by_expression(fn_leaf);
	KEEP();
	return arg;
}

FN void fn_leaf_of_frame_pointer(void)
{
	fn_frame_pointer(fn_leaf);
	KEEP();
}

FN void fn_leaf_of_neither(void)
{
	fn_neither(fn_leaf);
	KEEP();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t t;

	if (!strcmp(mode, "frame-pointer")) {
		chain("fn_leaf;fn_frame_pointer;fn_leaf_of_frame_pointer;main");
		fn_leaf_of_frame_pointer();
	} else if (!strcmp(mode, "neither")) {
		chain("fn_leaf;fn_neither");
		fn_leaf_of_neither();
	} else if (!strcmp(mode, "product")) {
		chain("fn_leaf;fn_by_product;main");
		fn_by_product(fn_leaf);
	} else {
		if (pthread_create(&t, NULL, fn_rbx, NULL) || pthread_create(&t, NULL, fn_remember, NULL) ||
			pthread_create(&t, NULL, fn_expression, NULL))
			return 1;
		chain("main");
		block();
	}
	KEEP();
	return 0;
}
