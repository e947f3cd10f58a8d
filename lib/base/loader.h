/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * loader - what needs a dynamic linker: libraries at run time, and users, whom the C library finds by
 * libraries of its own (nsswitch.conf(5)).
 *
 * A static program (make STATIC=1) is linked with another object of this module, which has neither: a library
 * would bring a second C library, for which nothing is set up.
 */
#ifndef STACKTOOLS_BASE_LOADER_H
#define STACKTOOLS_BASE_LOADER_H

#include "base/base.h"

#include <pwd.h>

bool loader_present(void); /* false in a static program */

/* dlopen(3), dlsym(3): NULL if the library or the function is missing, as in a static program. */
void *loader_open(const char *library);
void *loader_symbol(void *library, const char *name);

/* getpwuid(3), until the next call; in a static program from /etc/passwd alone. NULL if there is no such
 * user. */
const struct passwd *loader_user(uid_t uid);

#endif
