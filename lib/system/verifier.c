/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "system/verifier.h"
#include "system/privileges.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/*
 * The largest size that every kernel accepts. Pages that are never touched cost nothing. Allocated with
 * mmap(2), because calloc() takes a second buffer of this size from its heap and clears all of it.
 */
#define VERIFIER_LOG_BYTES (UINT32_MAX >> 8)

/*
 * One buffer serves all programs, because libbpf requests a log only when a load
 * has failed, and then gives up. The log of program number I begins at byte I,
 * after zeros: so the buffer shows which program it was.
 */
int verifier_log_open(struct verifier_log *l, struct bpf_object *obj, struct err *e)
{
	struct bpf_program *prog;
	size_t i = 0;

	char *buf = mmap(NULL, VERIFIER_LOG_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	*l = (struct verifier_log){ 0 };
	if (buf == MAP_FAILED)
		return err_nomem(e, "the verifier's log");
	*l = (struct verifier_log){ .obj = obj, .buf = buf };
	bpf_object__for_each_program(prog, obj)
	{
		bpf_program__set_log_buf(prog, l->buf + i, VERIFIER_LOG_BYTES - i);
		i++;
	}
	return 0;
}

void verifier_log_close(struct verifier_log *l)
{
	if (l->buf)
		munmap(l->buf, VERIFIER_LOG_BYTES);
	*l = (struct verifier_log){ 0 };
}

/* Whether LINE is one of the statistics that follow the reason. */
static bool is_statistic(const char *line, size_t len)
{
	static const char *const begins[] = { "processed ", "verification time ", "stack depth " };

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (len >= strlen(begins[i]) && strncmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

const char *verifier_log_reason(const char *log, size_t *len)
{
	/* since Linux 7.3 a long report follows the reason; it ends with advice for programmers */
	static const char report[] = "Verification failed: ";
	const char *reason = NULL;

	for (const char *line = log; *line;) {
		size_t n = strcspn(line, "\n");

		if (reason && strncmp(line, report, strlen(report)) == 0)
			break;
		if (n && !is_statistic(line, n)) {
			reason = line;
			*len = n;
		}
		line += n + (line[n] == '\n');
	}
	return reason;
}

static const char *program_name(const struct verifier_log *l, size_t number)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, l->obj)
	{
		if (!number--)
			return bpf_program__name(prog);
	}
	return "?";
}

/* Hide addresses of maps, "r1 = 0xff11000101be2c00", which are of no use to readers on other machines. */
static void hide_addresses(char *log)
{
	for (char *p = log; (p = strstr(p, " = 0xff")); p += 7)
		if (strspn(p + 5, "0123456789abcdef") == 16)
			memset(p + 7, '.', 14);
}

static void keep(const char *name, char *log, int fd)
{
	size_t len = strlen(log);

	hide_addresses(log);
	dprintf(fd, "program '%s':\n", name);
	while (len) {
		ssize_t n = write(fd, log, len);

		if (n <= 0)
			return;
		log += n;
		len -= (size_t)n;
	}
	dprintf(fd, "\n");
}

bool verifier_log_lockdown(struct err *e)
{
	char mode[32];

	if (!priv_lockdown(mode, sizeof(mode)) || strcmp(mode, "confidentiality") != 0)
		return false;
	err_hint(e, "lockdown=confidentiality forbids BPF programs to read the kernel's memory: boot with "
		    "lockdown=integrity");
	return true;
}

/* Under that lockdown the verifier refuses helpers that read memory. */
static void hint(const char *reason, size_t len, struct err *e)
{
	if (!memmem(reason, len, "bpf_probe_read", 14) || !verifier_log_lockdown(e))
		err_hint(e,
			"no privilege changes that; 'bpfcheck -v' shows the verifier's whole log, 'bpfcheck "
			"--bundle FILE' writes it into a file");
}

bool verifier_log_refused(const struct verifier_log *l, int code, int fd, struct err *e)
{
	size_t number = 0, n = 0, len = 0;
	const char *name, *reason;
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, l->obj) n++;
	while (number < n && !l->buf[number])
		number++;
	reason = number < n ? verifier_log_reason(l->buf + number, &len) : NULL;
	if (!reason)
		return false;
	name = program_name(l, number);
	err_set(e, code, "the kernel's verifier refuses the program '%s': %.*s", name, (int)MIN(len, 400),
		reason);
	hint(reason, len, e);
	if (fd > 0)
		keep(name, l->buf + number, fd);
	return true;
}
