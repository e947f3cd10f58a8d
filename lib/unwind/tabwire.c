/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/tabwire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* Room for two descriptors, aligned as the macros want it. */
union control {
	char bytes[CMSG_SPACE(2 * sizeof(int))];
	struct cmsghdr align;
};

static int send_one(int sock, const struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = sendmsg(sock, m, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Bytes, 0 at the end, -errno. ECONNRESET comes before what is still to be read. */
static ssize_t receive_one(int sock, struct msghdr *m, int flags)
{
	ssize_t n;

	do
		n = recvmsg(sock, m, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n < 0 ? -errno : n;
}

int tabwire_ask(int sock, const struct tabwire_request *r)
{
	uint64_t number = r->number;
	int fds[2] = { r->file, r->table };
	union control c = { { 0 } };
	struct iovec iov = { &number, sizeof(number) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(h), fds, sizeof(fds));
	return send_one(sock, &m, MSG_DONTWAIT);
}

/* No room for descriptors: any that came with it are closed by the kernel. */
int tabwire_answered(int sock, struct tabwire_answer *ret)
{
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = receive_one(sock, &m, MSG_DONTWAIT);

	if (n <= 0)
		return (int)n;
	if (n != sizeof(*ret) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || ret->error > 0 ||
		ret->error < -4095)
		return -EPROTO;
	ret->why[sizeof(ret->why) - 1] = '\0';
	return 1;
}

int tabwire_next(int sock, struct tabwire_request *ret)
{
	union control c = { { 0 } };
	struct iovec iov = { &ret->number, sizeof(ret->number) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)
	};
	ssize_t n = receive_one(sock, &m, 0);
	struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	int fds[2];

	if (n <= 0)
		return (int)n;
	if (n != sizeof(ret->number) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || !h ||
		h->cmsg_type != SCM_RIGHTS || h->cmsg_len != CMSG_LEN(sizeof(fds)))
		return -EPROTO;
	memcpy(fds, CMSG_DATA(h), sizeof(fds));
	ret->file = fds[0];
	ret->table = fds[1];
	return 1;
}

int tabwire_answer(int sock, const struct tabwire_answer *a)
{
	/* sendmsg(2) only reads it */
	struct iovec iov = { (void *)(uintptr_t)a, sizeof(*a) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return send_one(sock, &m, 0);
}
