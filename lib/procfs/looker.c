/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/looker.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

struct looker {
	struct asker *asker;
	struct lookwire_answer answer;
};

int looker_new(int sock, pid_t pid, struct looker **ret, struct err *e)
{
	struct looker *l = calloc(1, sizeof(*l));
	int rc;

	if (!l) {
		close(sock);
		return err_nomem(e, "the looker");
	}
	rc = asker_new(sock, pid, &l->asker, e);
	if (rc)
		free(l);
	else
		*ret = l;
	return rc;
}

int looker_ready(struct looker *l, struct err *e)
{
	return l ? asker_ready(l->asker, "the process that looks at threads", e) : 0;
}

void looker_free(struct looker *l)
{
	if (l)
		asker_free(l->asker);
	free(l);
}

uint32_t looker_pid(const struct looker *l)
{
	return l ? asker_pid(l->asker) : 0;
}

uint64_t looker_cpu_ns(const struct looker *l)
{
	uint32_t pid = looker_pid(l);
	clockid_t clock;

	return pid && clock_getcpuclockid((pid_t)pid, &clock) == 0 ? now_on(clock) : 0;
}

void looker_stats(struct looker *l, struct asker_stats *ret)
{
	asker_stats(l ? l->asker : NULL, ret);
}

/* How many bytes the answer has behind its head, or -errno: its own, or that there is none. */
static ssize_t ask(struct looker *l, struct lookwire_request *q)
{
	ssize_t n;

	if (!l)
		return -ENOTCONN;
	n = asker_ask(l->asker, q, sizeof(*q), &l->answer, sizeof(l->answer), NULL);
	if (n < 0)
		return n;
	return l->answer.error ? l->answer.error : n - (ssize_t)LOOKWIRE_HEAD;
}

int looker_files(struct looker *l, uint32_t pid, uint32_t tid, unsigned int wanted, bool keep,
	struct looker_texts *ret)
{
	struct lookwire_request q = {
		.kind = LOOKWIRE_FILES, .pid = pid, .tid = tid, .arg = wanted, .keep = keep
	};
	ssize_t n = ask(l, &q);
	const struct lookwire_files *f;
	size_t at = offsetof(struct lookwire_files, text);

	if (n < 0)
		return (int)n;
	f = &l->answer.files;
	for (size_t i = 0; i < PROCFILE_COUNT; i++) {
		ret->len[i] = (size_t)n < at ? -EPROTO : f->len[i];
		ret->text[i] = (const char *)f + at;
		if (ret->len[i] <= 0)
			continue;
		if ((size_t)ret->len[i] > (size_t)n - at)
			return -EPROTO;
		at += (size_t)ret->len[i];
	}
	return 0;
}

void looker_forget(struct looker *l, uint32_t pid, uint32_t tid)
{
	ask(l, &(struct lookwire_request){ .kind = LOOKWIRE_FORGET, .pid = pid, .tid = tid });
}

int looker_list(struct looker *l, uint32_t pid, void (*fn)(void *ctx, uint32_t number), void *ctx)
{
	struct lookwire_request q = { .kind = LOOKWIRE_LIST, .pid = pid };
	uint32_t *numbers;
	size_t n;

	do {
		ssize_t len = ask(l, &q);

		if (len < 0)
			return (int)len;
		n = (size_t)len / sizeof(uint32_t);
		/* FN may ask for something else */
		numbers = malloc((n + 1) * sizeof(*numbers));
		if (!numbers)
			return -ENOMEM;
		memcpy(numbers, l->answer.numbers, n * sizeof(*numbers));
		for (size_t i = 0; i < n; i++)
			fn(ctx, numbers[i]);
		q.arg += (uint32_t)n;
		free(numbers);
	} while (n == LOOKWIRE_NUMBERS);
	return 0;
}

/* The answer to Q, a copy that COPY gets the bytes of too. */
static int copy_all(struct looker *l, struct lookwire_request *q, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct lookwire_copy *ret)
{
	ssize_t len;

	ptcopy_reset(copy);
	q->n = (uint32_t)MIN(n, (size_t)LOOKWIRE_WANTED);
	for (uint32_t i = 0; i < q->n; i++)
		q->wanted[i] = wanted[i];
	len = ask(l, q);
	if (len < 0)
		return (int)len;
	if (len != sizeof(*ret))
		return -EPROTO;
	*ret = l->answer.copy;
	for (uint32_t i = 0; i < MIN(ret->head.n_areas, (uint32_t)PTCOPY_AREAS); i++) {
		struct lookwire_request area = { .kind = LOOKWIRE_AREA, .arg = i };

		len = ask(l, &area);
		if (len < 0)
			return (int)len;
		if ((uint64_t)len != ret->head.areas[i].len || len > (ssize_t)sizeof(copy->bytes[i]))
			return -EPROTO;
		memcpy(copy->bytes[i], l->answer.bytes, (size_t)len);
	}
	copy->head = ret->head;
	return 0;
}

int looker_quiet(struct looker *l, pid_t pid, pid_t tid, const uint64_t *wanted, size_t n,
	struct ptcopy *copy, struct ptquiet_call *call)
{
	struct lookwire_request q = { .kind = LOOKWIRE_QUIET, .pid = (uint32_t)pid, .tid = (uint32_t)tid };
	struct lookwire_copy got = { 0 };
	int rc = copy_all(l, &q, wanted, n, copy, &got);

	*call = got.call;
	return rc;
}

int looker_stop(struct looker *l, pid_t tid, const uint64_t *wanted, size_t n, struct ptcopy *copy,
	struct ptstop_told *told)
{
	struct lookwire_request q = { .kind = LOOKWIRE_STOP, .pid = (uint32_t)tid, .tid = (uint32_t)tid };
	struct lookwire_copy got = { .told = { .again = -1 } };
	int rc = copy_all(l, &q, wanted, n, copy, &got);

	*told = got.told;
	return rc;
}

ssize_t looker_memory(struct looker *l, pid_t pid, uint64_t addr, void *to, size_t len)
{
	struct lookwire_request q = { .kind = LOOKWIRE_MEMORY,
		.pid = (uint32_t)pid,
		.n = (uint32_t)MIN(len, (size_t)LOOKWIRE_BYTES),
		.wanted = { addr } };
	ssize_t n = ask(l, &q);

	if (n > 0)
		memcpy(to, l->answer.bytes, MIN((size_t)n, len));
	return n;
}
