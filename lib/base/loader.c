/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/loader.h"

#include <dlfcn.h>
#include <stdio.h>

#ifndef STATIC
bool loader_present(void)
{
	return true;
}

void *loader_open(const char *library)
{
	return dlopen(library, RTLD_NOW | RTLD_LOCAL);
}

void *loader_symbol(void *library, const char *name)
{
	return dlsym(library, name);
}

const struct passwd *loader_user(uid_t uid)
{
	return getpwuid(uid);
}
#else
bool loader_present(void)
{
	return false;
}

void *loader_open(const char *library)
{
	(void)library;
	return NULL;
}

void *loader_symbol(void *library, const char *name)
{
	(void)library, (void)name;
	return NULL;
}

const struct passwd *loader_user(uid_t uid)
{
	_cleanup_fclose_ FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *pw = NULL;

	while (f && (pw = fgetpwent(f)) && pw->pw_uid != uid)
		;
	return pw;
}
#endif
