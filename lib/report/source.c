/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/source.h"
#include "capture/format.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

/* Does FD begin like a capture? A pipe is not read: its bytes would be missing. */
static bool is_capture(int fd)
{
	char magic[CAPTURE_BLOCK_MAGIC_LEN];

	return pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	       memcmp(magic, CAPTURE_BLOCK_MAGIC, sizeof(magic)) == 0;
}

/* The path of symbolize: beside our executable, or the bare name, which PATH finds. */
static void find_symbolize(char path[PATH_MAX])
{
	static const char name[] = "symbolize";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - sizeof(name));
	char *slash;

	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		strcpy(slash + 1, name);
		if (access(path, X_OK) == 0)
			return;
	}
	strcpy(path, name);
}

/* posix_spawn(3) changes none of its arguments, but is declared so for historical reasons. */
static char *unconst(const char *s)
{
	union {
		const char *from;
		char *to;
	} u = { .from = s };

	return u.to;
}

static int start(struct source *s, const char *capture, int out_fd, struct err *e)
{
	char program[PATH_MAX], *args[SOURCE_OPTIONS_MAX + 6] = { program };
	posix_spawn_file_actions_t fa;
	size_t n = 1;
	int code;

	for (; s->options && s->options[n - 1] && n <= SOURCE_OPTIONS_MAX; n++)
		args[n] = unconst(s->options[n - 1]);
	if (s->kinds) {
		args[n++] = unconst("--kinds");
		args[n++] = unconst(s->kinds);
	}
	args[n++] = unconst("--");
	args[n] = unconst(capture);
	find_symbolize(program);
	code = posix_spawn_file_actions_init(&fa);
	if (!code) {
		/* its stdin is ours, because the capture may be /dev/stdin */
		code = posix_spawn_file_actions_adddup2(&fa, out_fd, STDOUT_FILENO);
		if (!code)
			code = posix_spawnp(&s->pid, program, &fa, NULL, args, environ);
		posix_spawn_file_actions_destroy(&fa);
	}
	if (!code)
		return 0;
	s->pid = -1;
	err_sys(e, -code, "cannot run '%s', which reads the capture '%s'", program, capture);
	err_hint(e, "it is part of stacktools and belongs beside %s or into PATH",
		program_invocation_short_name);
	return -code;
}

int source_open(void *ctx, const char *path, struct err *e)
{
	const bool is_stdin = strcmp(path, "-") == 0;
	_cleanup_close_ int fd =
		is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int rd = -1, wr = -1;
	struct source *s = ctx;
	int code, fds[2];

	if (fd < 0) {
		code = -errno;
		return err_sys(e, code, "cannot open '%s'", path);
	}
	if (!is_capture(fd))
		return TAKE_FD(fd);
	code = source_end(s, e);
	if (code)
		return code;
	if (pipe2(fds, O_CLOEXEC) != 0) {
		code = -errno;
		return err_sys(e, code, "cannot make a pipe from 'symbolize'");
	}
	rd = fds[0];
	wr = fds[1];
	code = start(s, path, wr, e);
	if (code)
		return code;
	s->path = path;
	return TAKE_FD(rd);
}

int source_check_kinds(const char *const *paths, size_t n, struct err *e)
{
	static const char *const in[] = { "-" };

	for (size_t i = 0; i < MAX(n, (size_t)1); i++) {
		const char *path = n ? paths[i] : in[0];
		const bool is_stdin = strcmp(path, "-") == 0;
		/* a pipe that no one writes must not stop us: it is text in any case */
		_cleanup_close_ int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
						  : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

		if (fd >= 0 && !is_capture(fd))
			return err_set(e, -EINVAL,
				"--kinds is for captures, and %s%s%s has its kinds already: give it to "
				"symbolize",
				is_stdin ? "" : "'", is_stdin ? "standard input" : path, is_stdin ? "" : "'");
	}
	return 0;
}

int source_end(struct source *s, struct err *e)
{
	const char *name;
	int status = 0;

	if (s->pid < 0)
		return 0;
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	s->pid = -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) {
		s->incomplete |= WEXITSTATUS(status) == 1;
		return 0;
	}
	name = WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "symbolize, which reads the capture '%s', was killed by SIG%s",
			s->path, name ? name : "RT");
	return err_set(e, -EIO, "symbolize could not read the capture '%s': it ended with status %d", s->path,
		WEXITSTATUS(status));
}

void source_close(struct source *s)
{
	source_end(s, NULL);
}
