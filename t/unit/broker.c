/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "../lib/raw-request.h"
#include "base/clock.h"
#include "base/tap.h"
#include "system/broker.h"
#include "system/drop.h"
#include "system/maps.h"
#include "system/privileges.h"

#include <bpf/bpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define USER 1234

/* Files and a process of another user; the files are in a folder that only this user can enter. */
struct other {
	char dir[64], private[96], program[128], map[64], map_link[64];
	pid_t pid; /* runs the program */
	pid_t cleaner; /* removes all of it when the pipe is closed */
	int cleaner_fd;
};

static const char *in(const struct other *x, const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", x->private, name);
	return path;
}

static void put(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || fchown(fd, USER, USER) != 0)
		abort();
	close(fd);
}

/* The test gives up its privileges, so this child cleans up. */
static void start_cleaner(struct other *x)
{
	int ends[2];
	char byte;

	if (pipe2(ends, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	x->cleaner = fork();
	if (x->cleaner == 0) {
		char command[512];

		close(ends[1]);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		kill(x->pid, SIGKILL);
		snprintf(command, sizeof(command), "rm -rf '%s' '%s' '%s'", x->dir, x->map, x->map_link);
		_exit(system(command) != 0);
	}
	close(ends[0]);
	x->cleaner_fd = ends[1];
}

static void start_program(struct other *x)
{
	char path[64], target[128] = "";

	x->pid = fork();
	if (x->pid == 0) {
		if (setresgid(USER, USER, USER) == 0 && setresuid(USER, USER, USER) == 0)
			execl(x->program, x->program, "1000", (char *)NULL);
		_exit(127);
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)x->pid);
	for (int i = 0; i < 1000 && strcmp(target, x->program) != 0; i++) {
		ssize_t n = readlink(path, target, sizeof(target) - 1);

		target[n < 0 ? 0 : n] = '\0';
		usleep(1000);
	}
}

static void make_other(struct other *x)
{
	const unsigned char core[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = ET_CORE };
	char command[1024];

	*x = (struct other){ .dir = "/tmp/unit-broker.XXXXXX" };
	if (!mkdtemp(x->dir) || chmod(x->dir, 0755) != 0)
		abort();
	snprintf(x->private, sizeof(x->private), "%s/private", x->dir);
	snprintf(x->program, sizeof(x->program), "%s/program", x->private);
	snprintf(command, sizeof(command),
		"mkdir -m 700 '%s' && cp /bin/sleep '%s' && chmod 700 '%s' && chown -R %d:%d '%s'",
		x->private, x->program, x->program, USER, USER, x->private);
	if (system(command) != 0)
		abort();
	put(in(x, "secret"), "the secret of another user\n", 27);
	put(in(x, "core"), core, sizeof(core));
	if (symlink("program", in(x, "link")) != 0 || mkfifo(in(x, "fifo"), 0666) != 0)
		abort();
	start_program(x);
	snprintf(x->map, sizeof(x->map), "/tmp/perf-%d.map", (int)x->pid);
	snprintf(x->map_link, sizeof(x->map_link), "/tmp/perf-%d.map", (int)x->pid + 4194304);
	put(x->map, "1000 10 f\n", 10);
	if (symlink(in(x, "secret"), x->map_link) != 0)
		abort();
	start_cleaner(x);
}

static bool status_of(pid_t pid, struct priv_status *st)
{
	char path[64], text[8192];
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	text[n < 0 ? 0 : n] = '\0';
	return priv_status_parse(text, st) == 0;
}

static void is_confined(struct tap *t, struct worker *o)
{
	const uint64_t five = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH |
			      UINT64_C(1) << CAP_CHECKPOINT_RESTORE | UINT64_C(1) << CAP_BPF |
			      UINT64_C(1) << CAP_PERFMON;
	struct priv_status st = { 0 };
	pid_t pid = (pid_t)worker_pid(o);

	tap_ok(t, status_of(pid, &st), "the broker is running");
	tap_eq_u64(t, st.permitted, five, "the broker keeps only the five capabilities that it needs");
	tap_eq_u64(t, st.effective, five, "the five capabilities of the broker are effective");
	tap_ok(t,
		!((broker_caps(&(struct broker_opts){ 0 }) |
			  broker_caps(&(struct broker_opts){ .events = true, .owner_only = true })) >>
				CAP_PERFMON &
			1),
		"CAP_PERFMON only where events of any process may be requested");
	tap_ok(t, !st.bounding && !st.ambient && !st.inheritable,
		"the broker cannot gain other capabilities or pass any on");
	tap_ok(t, st.no_new_privs == 1 && st.seccomp == 2, "the broker runs under a seccomp filter");
	tap_ok(t, getsid(pid) == pid, "the broker has its own session, so Ctrl-C does not reach it");
}

struct found {
	uint64_t start, end, inode;
};

static int find_program(void *ctx, const struct procmap *m)
{
	struct found *f = ctx;

	if (strstr(m->path, "/private/program"))
		*f = (struct found){ m->start, m->end, m->inode };
	return 0;
}

static void opens_processes(struct tap *t, struct worker *o, const struct other *x, struct found *f)
{
	_cleanup_close_ int own = -1, fd = -1;
	_cleanup_free_ char *exe = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)x->pid);
	own = open(path, O_RDONLY | O_CLOEXEC);
	tap_ok(t, own < 0 && errno == EACCES, "this process cannot open another user's maps");
	fd = broker_maps_exe(o, (uint32_t)x->pid, &exe);
	tap_ok(t, fd >= 0 && procmaps_each_of(fd, (uint32_t)x->pid, find_program, f, NULL) == 0 && f->start,
		"the broker opens another user's maps");
	tap_eq_str(t, exe ? exe : "", x->program, "the broker returns the path of the executable");
	close(fd);
	fd = broker_proc(o, BROKER_STATUS, (uint32_t)x->pid);
	tap_ok(t, fd >= 0, "the broker opens the status of another user's process");
	tap_ok(t, broker_proc(o, BROKER_MAPS, 4194304) == -ENOENT,
		"a request for a process that does not exist is ENOENT");
}

static void opens_mappings(struct tap *t, struct worker *o, const struct other *x, const struct found *f)
{
	uint32_t pid = (uint32_t)x->pid;
	struct stat st = { 0 };
	int fd = broker_mapping(o, pid, f->start, f->end, &st);
	char head[4] = "";

	tap_ok(t,
		fd >= 0 && st.st_ino == f->inode && pread(fd, head, 4, 0) == 4 &&
			memcmp(head, ELFMAG, 4) == 0,
		"the broker opens the file of a mapping for reading");
	tap_ok(t, fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY,
		"the broker does not open the file of a mapping for writing");
	if (fd >= 0)
		close(fd);
	st.st_ino = 0;
	tap_ok(t, broker_mapping_stat(o, pid, f->start, f->end, &st) == 0 && st.st_ino == f->inode,
		"the broker returns the status of a mapping's file without opening it");
	tap_ok(t, broker_mapping(o, pid, f->start, f->end + 4096, &st) == -ENOENT,
		"a request for a range that is not a mapping is ENOENT");
}

static int path_code(struct worker *o, uint32_t pid, const char *path)
{
	struct stat st;
	int fd = broker_path(o, pid, path, &st);

	if (fd >= 0)
		close(fd);
	return MIN(fd, 0);
}

static void opens_programs(struct tap *t, struct worker *o, const struct other *x)
{
	uint32_t pid = (uint32_t)x->pid;
	char environ_of[64];
	struct stat st;

	tap_ok(t, access(x->program, R_OK) != 0, "this process cannot read another user's program");
	tap_eq_u64(t, path_code(o, 0, x->program), 0, "the broker opens another user's program by its path");
	tap_eq_u64(t, path_code(o, pid, x->program), 0,
		"the broker opens a program below the root of a process");
	tap_eq_u64(t, path_code(o, pid, in(x, "../../../../../..")), -EMEDIUMTYPE,
		"a path with \"..\" stays below the root of the process; a folder is refused");
	tap_ok(t, broker_path_stat(o, 0, x->program, &st) == 0 && st.st_uid == USER,
		"the broker returns the status of a program without opening it");
	tap_eq_u64(t, path_code(o, 0, in(x, "secret")), -ENOEXEC,
		"a file of another user that is not a program is refused");
	tap_eq_u64(t, path_code(o, 0, in(x, "core")), -ENOEXEC, "a core is refused");
	tap_eq_u64(t, path_code(o, 0, in(x, "link")), -ELOOP, "a symbolic link is not followed");
	tap_eq_u64(t, path_code(o, 0, in(x, "fifo")), -EMEDIUMTYPE, "a FIFO is refused without waiting");
	tap_eq_u64(t, path_code(o, 0, "/etc/shadow"), -ENOEXEC, "/etc/shadow is refused");
	snprintf(environ_of, sizeof(environ_of), "/proc/%d/environ", (int)x->pid);
	tap_eq_u64(t, path_code(o, 0, environ_of), -ENOEXEC, "the environment of a process is refused");
	tap_eq_u64(t, path_code(o, 0, "/proc/self/exe"), -ELOOP, "a symbolic link in /proc is not followed");
	tap_eq_u64(t, path_code(o, 0, "/dev/null"), -EMEDIUMTYPE, "a device is refused");
}

static void opens_perf_maps(struct tap *t, struct worker *o, const struct other *x)
{
	struct stat a, b = { 0 };
	int fd = broker_perf_map(o, (uint32_t)x->pid, (uint32_t)x->pid, &a);

	tap_ok(t, open(x->map, O_RDONLY | O_CLOEXEC) < 0 && fd >= 0,
		"only the broker can open another user's perf map");
	if (fd >= 0)
		close(fd);
	tap_ok(t, broker_perf_map(o, 0, (uint32_t)x->pid + 4194304, &a) == -EMEDIUMTYPE,
		"a perf map that is a symbolic link is refused");
	tap_ok(t,
		broker_tmp_stat(o, (uint32_t)x->pid, &a) == 0 && stat("/tmp", &b) == 0 &&
			a.st_ino == b.st_ino && a.st_dev == b.st_dev,
		"the broker returns the status of the /tmp that a process sees");
}

static uint64_t map_field(int fd, const char *name)
{
	char path[64], line[128];
	_cleanup_fclose_ FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			return strtoull(line + strlen(name) + 1, NULL, 10);
	return UINT64_MAX;
}

static void makes_maps(struct tap *t, struct worker *o)
{
	int chunk = broker_bpf_map(o, BROKER_CHUNK_MAP, 0, false),
	    agg = broker_bpf_map(o, BROKER_AGG_MAP, 1000, true);

	tap_ok(t, bpf_map_create(BPF_MAP_TYPE_HASH, "own", 4, 4, 1, NULL) == -EPERM,
		"this process cannot create a BPF map");
	tap_ok(t, chunk >= 0 && map_field(chunk, "map_type:") == BPF_MAP_TYPE_ARRAY,
		"the broker creates a chunk");
	tap_ok(t, agg >= 0 && map_field(agg, "max_entries:") == 1000,
		"the broker creates an aggregation map of the requested size");
	tap_eq_u64(t, broker_bpf_map(o, BROKER_AGG_MAP, 0, false), -EPERM,
		"an aggregation map without elements is refused");
	tap_eq_u64(t, broker_bpf_map(o, BROKER_AGG_MAP, UINT32_MAX, false), -EPERM,
		"an aggregation map with too many elements is refused");
	if (chunk >= 0)
		close(chunk);
	if (agg >= 0)
		close(agg);
}

static void opens_events(struct tap *t, struct worker *o, const struct other *x)
{
	const struct procevent_how how = { .prompt = true };
	char link[64], target[64] = "";
	int fd = broker_event(o, &how, x->pid, 0);

	tap_ok(t, procevent_open(&how, x->pid, 0) < 0, "this process cannot follow another user's");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	tap_ok(t, fd >= 0 && readlink(link, target, sizeof(target) - 1) > 0 && strstr(target, "perf_event"),
		"the broker opens the events of another user's process");
	if (fd >= 0)
		close(fd);
	tap_eq_u64(t, broker_event(o, &how, -1, 0), -EPERM, "those of the whole machine are refused");
	tap_eq_u64(t, broker_event(o, &how, 0, 0), -EPERM, "and those of the broker itself");
	tap_eq_u64(t, broker_event(o, &how, x->pid, UINT32_MAX), -EPERM, "and those on any CPU");
}

static void refuses(struct tap *t, struct worker *o, int sock)
{
	static const uint32_t of_process[] = { BROKER_MAPS, BROKER_STATUS, BROKER_MAPPING };
	struct broker_request q = { .kind = BROKER_MAPS, .pid = (uint32_t)getpid() };
	const size_t head = offsetof(struct broker_request, path);
	_cleanup_free_ char *large = calloc(1, 1 << 16);
	struct broker_reply a;
	bool all = true;

	for (uint32_t kind = 0; kind < 1000; kind++) {
		q.kind = kind;
		if (kind == 0 || kind >= BROKER_KINDS)
			all = all && broker_ask(o, &q, &a, NULL) == -EPERM;
	}
	q.kind = UINT32_MAX;
	tap_ok(t, all && broker_ask(o, &q, &a, NULL) == -EPERM, "an unknown kind of request is refused");
	q.pid = 0;
	for (size_t i = 0; i < ARRAY_LEN(of_process); i++) {
		q.kind = of_process[i];
		all = all && broker_ask(o, &q, &a, NULL) == -EPERM;
	}
	tap_ok(t, all, "a request for process 0 is refused");
	tap_ok(t,
		send_raw(sock, "", 0) == -EPERM && send_raw(sock, "x", 1) == -EPERM &&
			send_raw(sock, &q, head) == -EPERM,
		"a truncated request is refused");
	memset(q.path, 'x', sizeof(q.path));
	tap_eq_u64(t, send_raw(sock, &q, sizeof(q)), -EPERM, "a path without a NUL is refused");
	memset(q.path, 0, sizeof(q.path));
	tap_eq_u64(t, send_raw(sock, &q, sizeof(q)), -EPERM, "a path with bytes after its NUL is refused");
	if (large)
		tap_eq_u64(t, send_raw(sock, large, 1 << 16), -EPERM,
			"a message longer than a request is refused");
	q = (struct broker_request){ .kind = BROKER_TMP };
	tap_eq_u64(t, broker_ask(o, &q, &a, NULL), 0, "the broker still answers after refused requests");
}

static void ends(struct tap *t, struct worker *o)
{
	struct worker_stats st;

	kill((pid_t)worker_pid(o), SIGKILL);
	tap_ok(t, broker_proc(o, BROKER_MAPS, 1) == -ENOTCONN && broker_proc(o, BROKER_MAPS, 1) == -ENOTCONN,
		"the next request detects that the broker was killed");
	worker_stats(o, &st);
	tap_ok(t, strstr(st.why, "was killed by SIGKILL") && st.lost == 2 && st.requested,
		"the lost requests are counted, and the broker's end is reported: %s", st.why);
	tap_ok(t, worker_pid(o) == 0, "a broker that was killed has no PID");
	tap_ok(t, broker_proc(NULL, BROKER_MAPS, 1) == -ENOTCONN, "a request without a broker is ENOTCONN");
}

static void owner_only(struct tap *t, const struct other *x)
{
	struct worker *o = NULL;
	struct priv_status st;

	tap_ok(t,
		broker_start(&(struct broker_opts){ .owner_only = true }, &o, NULL) == 0 &&
			worker_ready(o, NULL) == 0 && status_of((pid_t)worker_pid(o), &st),
		"a broker for only the owner's processes starts");
	tap_ok(t, !(st.permitted & (UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH)),
		"a broker for only the owner's processes has no capability to reach others");
	tap_ok(t, broker_proc(o, BROKER_MAPS, (uint32_t)x->pid) == -EACCES,
		"a broker for only the owner's processes does not open others' maps");
	tap_ok(t, path_code(o, 0, x->program) == -EACCES,
		"a broker for only the owner's processes does not open others' files");
	worker_free(o);
}

/* The broker ends if its parent ends. */
static void ends_with_parent(struct tap *t)
{
	uint64_t until = now_ns() + UINT64_C(5000000000);
	pid_t child, pid = 0;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		abort();
	fflush(stdout);
	child = fork();
	if (child == 0) {
		struct worker *o = NULL;

		broker_start(&(struct broker_opts){ 0 }, &o, NULL);
		worker_ready(o, NULL);
		pid = (pid_t)worker_pid(o);
		_exit(write(fds[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	waitpid(child, NULL, 0);
	tap_ok(t, read(fds[0], &pid, sizeof(pid)) == sizeof(pid) && pid > 0,
		"a process starts a broker and ends");
	while (pid > 0 && kill(pid, 0) == 0 && now_ns() < until)
		usleep(1000);
	tap_ok(t, pid > 0 && kill(pid, 0) != 0 && errno == ESRCH,
		"the broker ends after its parent has ended");
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	struct tap t = { 0 };
	struct found f = { 0 };
	struct worker *o = NULL;
	struct priv_drop d;
	struct other x;
	struct err e;
	int sock;

	if (geteuid() != 0 || !priv_have(CAP_SYS_PTRACE)) {
		printf("1..0 # SKIP needs root\n");
		return 0;
	}
	/* before Linux 5.11 BPF maps are charged to this limit */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	make_other(&x);
	owner_only(&t, &x);
	ends_with_parent(&t);
	/* the broker's socket will get the lowest free descriptor */
	sock = fcntl(0, F_DUPFD, 3);
	close(sock);
	tap_ok(&t,
		broker_start(&(struct broker_opts){ .events = true }, &o, &e) == 0 &&
			worker_ready(o, &e) == 0,
		"a broker starts");
	is_confined(&t, o);
	tap_ok(&t, priv_drop_now(&(struct priv_drop_opts){ .private_user = true }, &d, &e) == 0 && !d.kept,
		"the process that uses the broker has no privileges left");
	opens_processes(&t, o, &x, &f);
	opens_mappings(&t, o, &x, &f);
	opens_programs(&t, o, &x);
	opens_perf_maps(&t, o, &x);
	makes_maps(&t, o);
	opens_events(&t, o, &x);
	refuses(&t, o, sock);
	ends(&t, o);
	worker_free(o);
	close(x.cleaner_fd);
	waitpid(x.cleaner, NULL, 0);
	return tap_done(&t);
}
