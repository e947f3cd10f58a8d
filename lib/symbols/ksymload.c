/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbols/ksymload.h"

#include <errno.h>

static void *load(void *arg)
{
	struct ksymload *l = arg;

	l->ks = NULL;
	if (l->fd < 0)
		l->rc = kallsyms_load(NULL, &l->ks, &l->why);
	else if (lseek(l->fd, 0, SEEK_SET) != 0)
		l->rc = err_sys(&l->why, -errno, "cannot read '/proc/kallsyms' again");
	else
		l->rc = kallsyms_load_fd(l->fd, "/proc/kallsyms", &l->ks, &l->why);
	return NULL;
}

void ksymload_begin(struct ksymload *l, int fd)
{
	if (l->running)
		return;
	l->running = true;
	l->thread = 0;
	l->fd = fd;
	if (pthread_create(&l->thread, NULL, load, l) != 0) {
		l->thread = 0;
		load(l);
	}
}

int ksymload_take(struct ksymload *l, struct kallsyms **ret, struct err *e)
{
	if (!l->running)
		return err_set(e, -ENODATA, "the kernel's symbols are not being read");
	if (l->thread)
		pthread_join(l->thread, NULL);
	l->running = false;
	if (l->rc) {
		if (e)
			*e = l->why;
		return l->rc;
	}
	*ret = TAKE_PTR(l->ks);
	return 0;
}

void ksymload_close(struct ksymload *l)
{
	struct kallsyms *ks = NULL;

	if (l->running && ksymload_take(l, &ks, NULL) == 0)
		kallsyms_free(ks);
}
