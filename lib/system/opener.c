/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/opener.h"

#include <errno.h>
#include <string.h>

struct opener {
	struct asker *asker;
};

int opener_new(int sock, pid_t pid, struct opener **ret, struct err *e)
{
	struct opener *o = calloc(1, sizeof(*o));
	int rc;

	if (!o) {
		close(sock);
		return err_nomem(e, "the opener");
	}
	rc = asker_new(sock, pid, &o->asker, e);
	if (rc)
		free(o);
	else
		*ret = o;
	return rc;
}

int opener_ready(struct opener *o, struct err *e)
{
	return o ? asker_ready(o->asker, "the process that opens files", e) : 0;
}

void opener_free(struct opener *o)
{
	if (o)
		asker_free(o->asker);
	free(o);
}

uint32_t opener_pid(const struct opener *o)
{
	return o ? asker_pid(o->asker) : 0;
}

int opener_ask(struct opener *o, struct openwire_request *q, struct openwire_answer *a, int *fd)
{
	const size_t head = offsetof(struct openwire_answer, path);
	int got = -1, rc = 0;
	ssize_t n = asker_ask(o ? o->asker : NULL, q,
		offsetof(struct openwire_request, path) + strlen(q->path) + 1, a, sizeof(*a) - 1, &got);

	if (n < 0)
		return (int)n;
	((char *)a)[MAX((size_t)n, head)] = '\0';
	rc = (size_t)n < head ? -EPROTO : a->error;
	if (got >= 0 && (rc || !fd)) {
		close(got);
		got = -1;
	}
	if (fd)
		*fd = got;
	return rc;
}

/* A descriptor, with the status where ST is not NULL. */
static int ask_fd(struct opener *o, struct openwire_request *q, struct stat *st)
{
	struct openwire_answer a;
	int fd = -1, rc = opener_ask(o, q, &a, &fd);

	if (rc)
		return rc;
	if (st)
		*st = a.st;
	return fd >= 0 ? fd : -EMFILE; /* no room for it here */
}

static int ask_stat(struct opener *o, struct openwire_request *q, struct stat *st)
{
	struct openwire_answer a;
	int rc = opener_ask(o, q, &a, NULL);

	if (!rc)
		*st = a.st;
	return rc;
}

int opener_proc(struct opener *o, enum openwire_kind kind, uint32_t pid)
{
	struct openwire_request q = { .kind = kind, .pid = pid };

	return ask_fd(o, &q, NULL);
}

int opener_maps_exe(struct opener *o, uint32_t pid, char **exe)
{
	struct openwire_request q = { .kind = OPENWIRE_MAPS, .pid = pid, .arg = 1 };
	struct openwire_answer a;
	int fd = -1, rc = opener_ask(o, &q, &a, &fd);

	*exe = rc == 0 && a.path[0] ? strdup(a.path) : NULL;
	return rc ? rc : fd >= 0 ? fd : -EMFILE;
}

int opener_mapping(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_MAPPING, .pid = pid, .start = start, .end = end };

	return ask_fd(o, &q, st);
}

int opener_mapping_stat(struct opener *o, uint32_t pid, uint64_t start, uint64_t end, struct stat *st)
{
	struct openwire_request q = {
		.kind = OPENWIRE_MAPPING, .pid = pid, .status_only = 1, .start = start, .end = end
	};

	return ask_stat(o, &q, st);
}

static int ask_path(struct opener *o, uint32_t pid, const char *path, bool status_only, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_PATH, .pid = pid, .status_only = status_only };

	if ((size_t)snprintf(q.path, sizeof(q.path), "%s", path) >= sizeof(q.path))
		return -ENAMETOOLONG;
	return status_only ? ask_stat(o, &q, st) : ask_fd(o, &q, st);
}

int opener_path(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, false, st);
}

int opener_path_stat(struct opener *o, uint32_t pid, const char *path, struct stat *st)
{
	return ask_path(o, pid, path, true, st);
}

int opener_tmp_stat(struct opener *o, uint32_t pid, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_TMP, .pid = pid };

	return ask_stat(o, &q, st);
}

int opener_perf_map(struct opener *o, uint32_t pid, uint32_t number, struct stat *st)
{
	struct openwire_request q = { .kind = OPENWIRE_PERF_MAP, .pid = pid, .arg = number };

	return ask_fd(o, &q, st);
}

int opener_bpf_map(struct opener *o, enum openwire_kind kind, uint32_t n)
{
	struct openwire_request q = { .kind = kind, .arg = n };

	return ask_fd(o, &q, NULL);
}

void opener_stats(struct opener *o, struct asker_stats *ret)
{
	asker_stats(o ? o->asker : NULL, ret);
}
