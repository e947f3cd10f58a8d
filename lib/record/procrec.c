/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procrec.h"

#include <errno.h>

int procrec_open(const struct recorder_opts *opts, struct procrec **ret, struct err *e)
{
	(void)opts, (void)ret;
	return err_set(e, -ENOSYS, "there is no recording by /proc yet");
}

int procrec_start(struct procrec *p, struct err *e)
{
	(void)p, (void)e;
	return -ENOSYS;
}

int procrec_command(struct procrec *p, uint32_t pid, struct err *e)
{
	(void)p, (void)pid, (void)e;
	return -ENOSYS;
}

uint64_t procrec_timeout_ns(const struct procrec *p)
{
	(void)p;
	return 0;
}

int procrec_service(struct procrec *p, struct err *e)
{
	(void)p, (void)e;
	return -ENOSYS;
}

int procrec_stop(struct procrec *p, const char *why, struct err *e)
{
	(void)p, (void)why, (void)e;
	return -ENOSYS;
}

void procrec_close(struct procrec *p)
{
	(void)p;
}

void procrec_stats(const struct procrec *p, struct procrec_stats *ret)
{
	(void)p;
	*ret = (struct procrec_stats){ 0 };
}

void procrec_progress(const struct procrec *p, struct buf *b)
{
	(void)p, (void)b;
}

void procrec_summary(const struct procrec *p, const struct rectext_told *told, struct buf *b)
{
	(void)p, (void)told, (void)b;
}
