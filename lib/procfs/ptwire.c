/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptwire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static int send_one(int sock, const struct msghdr *m)
{
	ssize_t n;

	do
		n = sendmsg(sock, m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Bytes, 0 at the end, -errno. ECONNRESET comes before what is still to be read. */
static ssize_t receive_one(int sock, struct msghdr *m)
{
	ssize_t n;

	do
		n = recvmsg(sock, m, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	return n < 0 ? -errno : n;
}

int ptwire_ask(int sock, const struct ptwire_request *r, int fd)
{
	struct ptwire_request copy = *r;
	union control c = { { 0 } };
	struct iovec iov = { &copy, sizeof(copy) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;

	if (fd >= 0) {
		m.msg_control = c.bytes;
		m.msg_controllen = sizeof(c.bytes);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	return send_one(sock, &m);
}

int ptwire_answered(int sock, struct ptwire_answer *ret)
{
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = receive_one(sock, &m);

	if (n <= 0)
		return n < 0 ? (int)n : -EPIPE;
	if (n != sizeof(*ret) || (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || ret->error > 0 ||
		ret->error < -4095 || ret->n > PTWIRE_FRAMES)
		return -EPROTO;
	if (ret->error)
		ret->why[sizeof(ret->why) - 1] = '\0';
	return 0;
}

int ptwire_next(int sock, struct ptwire_request *ret, int *fd)
{
	union control c = { { 0 } };
	struct iovec iov = { ret, sizeof(*ret) };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof(c.bytes)
	};
	ssize_t n = receive_one(sock, &m);
	struct cmsghdr *h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	*fd = -1;
	if (n <= 0)
		return (int)n;
	if (h && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(*fd)))
		memcpy(fd, CMSG_DATA(h), sizeof(*fd));
	return n == sizeof(*ret) ? 1 : -EPROTO;
}

int ptwire_answer(int sock, const struct ptwire_answer *a)
{
	/* sendmsg(2) only reads it */
	struct iovec iov = { (void *)(uintptr_t)a, sizeof(*a) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return send_one(sock, &m);
}
