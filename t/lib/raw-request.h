/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hand-made request to a worker (system/worker.h): its head, and any bytes. */
#ifndef STACKTOOLS_T_RAW_REQUEST_H
#define STACKTOOLS_T_RAW_REQUEST_H

#include "base/base.h"

#include <errno.h>
#include <sys/socket.h>

/* Send LEN unchecked bytes to the worker behind SOCK. Returns the error of its reply. */
static int send_raw(int sock, const void *bytes, size_t len)
{
	struct {
		uint32_t number;
		int32_t error;
	} head = { .number = 7 };
	struct iovec v[] = { { &head, sizeof(head) }, { (void *)(uintptr_t)bytes, len } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = ARRAY_LEN(v) };

	if (sendmsg(sock, &m, MSG_NOSIGNAL) != (ssize_t)(sizeof(head) + len) ||
		recv(sock, &head, sizeof(head), 0) <= 0)
		return -EPIPE;
	return head.number == 7 ? head.error : -EPROTO;
}

#endif
