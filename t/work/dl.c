/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dl LIBRARY FUNCTION [LIBRARY FUNCTION]... - loads each library, calls its
 * function, which waits, and unloads it before the next one. For each it prints
 * "FUNCTION ADDRESS", the address at which the library was loaded.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *lib = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		struct link_map *map;
		void (*fn)(void);

		if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0)
			return 1;
		*(void **)&fn = dlsym(lib, argv[i + 1]);
		if (!fn)
			return 1;
		printf("%s %#lx\n", argv[i + 1], (unsigned long)map->l_addr);
		fflush(stdout);
		fn();
		dlclose(lib);
	}
	return 0;
}
