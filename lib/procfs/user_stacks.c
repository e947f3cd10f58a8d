/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/user_stacks.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/hash.h"
#include "base/search.h"
#include "procfs/thread_copy.h"
#include "record/files.h"
#include "system/broker.h"
#include "system/privileges.h"
#include "system/proc.h"
#include "system/sandbox.h"

#include <elf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

/*
 * ptfiles - the executable mappings of a process and the ELF files behind
 * them, for a walker that can open none itself.
 *
 * A file that cannot be opened any more (deleted, or on a mount that is not
 * seen here) is made up of what the process has mapped of it, in a memfd: its
 * headers and unwind tables are in segments that are loaded.
 */

struct ptfiles_map {
	uint64_t start, end, offset;
};

struct ptfiles {
	uint64_t seen; /* hash of the executable mappings that were told; 0 = none yet */
	uint64_t text; /* hash of the whole text at the last look: the same text, the same mappings */
	uint64_t cut; /* mappings beyond the limits, the last time they were told */
	uint64_t unread; /* files that could not be had */
};

#define PTFILES_MAPS 4000 /* mappings told, at most */
#define PTFILES_FILES 1000 /* files opened for them, one at a time */

#define FILE_BYTES_MAX (UINT64_C(256) << 20) /* of one that is made of its mappings */
#define CHUNK (64u << 10)
#define MAPS_MAX (64u << 20)

/* --- a file made of what is mapped of it --- */

struct remake {
	const struct ptreach *reach;
	uint32_t pid;
	const struct procmap *like;
	int fd;
	bool any;
};

static void copy_mapping(struct remake *r, const struct procmap *m)
{
	_cleanup_free_ uint8_t *bytes = malloc(CHUNK);
	uint64_t len = m->end - m->start;

	if (!bytes || m->offset > FILE_BYTES_MAX || len > FILE_BYTES_MAX - m->offset)
		return;
	for (uint64_t done = 0; done < len; done += CHUNK) {
		size_t take = (size_t)MIN(len - done, CHUNK);
		ssize_t n = ptreach_memory(r->reach, (pid_t)r->pid, m->start + done, bytes, take);

		if (n <= 0 || pwrite(r->fd, bytes, (size_t)n, (off_t)(m->offset + done)) != n)
			return;
		r->any |= !m->offset && !done;
	}
}

/* Those that may be written are not what the file says. */
static int take_mapping(void *ctx, const struct procmap *m)
{
	struct remake *r = ctx;

	if (m->inode == r->like->inode && m->dev_major == r->like->dev_major &&
		m->dev_minor == r->like->dev_minor && (m->prot & PROT_READ) && !(m->prot & PROT_WRITE))
		copy_mapping(r, m);
	return 0;
}

/* Sections are mapped nowhere: what the header says of them leads to nothing. */
static bool forget_sections(int fd)
{
	Elf64_Ehdr h;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	h.e_shoff = 0;
	h.e_shnum = h.e_shstrndx = 0;
	return pwrite(fd, &h, sizeof(h), 0) == sizeof(h);
}

static int remake(const struct ptreach *reach, uint32_t pid, const struct procmap *m)
{
	_cleanup_close_ int fd = memfd_create("remade", MFD_CLOEXEC);
	struct remake r = { .reach = reach, .pid = pid, .like = m, .fd = fd };

	if (fd < 0)
		return -errno;
	if (procaccess_maps(reach->broker, pid, take_mapping, &r, NULL) != 0 || !r.any ||
		!forget_sections(fd))
		return -ENOENT;
	return TAKE_FD(fd);
}

static int vdso_file(void)
{
	size_t len;
	const uint8_t *image = mapfile_vdso(&len);
	_cleanup_close_ int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd < 0 || pwrite(fd, image, len, 0) != (ssize_t)len)
		return -1;
	return TAKE_FD(fd);
}

static int file_of(const struct ptreach *r, uint32_t pid, const struct procmap *m)
{
	struct stat st;
	int fd;

	if (strcmp(m->path, "[vdso]") == 0)
		return vdso_file();
	if (!m->inode)
		return -1;
	fd = mapfile_open(r->broker, pid, m, &st);
	return fd >= 0 || fd == -EMEDIUMTYPE ? fd : remake(r, pid, m);
}

/* --- the list --- */

static int hash_one(void *ctx, const struct procmap *m)
{
	uint64_t *hash = ctx;
	const uint64_t words[] = { m->start, m->end, m->offset, m->inode,
		(uint64_t)m->dev_major << 32 | m->dev_minor };

	if (m->prot & PROT_EXEC)
		*hash = hash_bytes(words, sizeof(words), *hash);
	return 0;
}

/* Have they changed since they were told the last time? -ESRCH, -EACCES and the like with the message. */
static int ptfiles_look(
	struct ptfiles *f, const struct ptreach *r, uint32_t pid, bool *changed, struct err *e)
{
	uint64_t hash = HASH_K0, text_hash;
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = procaccess_open(r->broker, BROKER_MAPS, pid);
	size_t len;
	int rc = fd < 0 ? fd : base_read(fd, MAPS_MAX, &text, &len);

	if (rc)
		return err_sys(e, rc == -ENOENT ? -ESRCH : rc, "cannot read '/proc/%u/maps'", pid);
	text_hash = hash_bytes(text, len, HASH_K1);
	*changed = false;
	if (f->seen && text_hash == f->text)
		return 0;
	f->text = text_hash;
	for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct procmap m;

		if (procmaps_parse(line, &m))
			hash_one(&hash, &m);
	}
	*changed = hash != f->seen;
	return 0;
}

struct tell {
	struct ptfiles *f;
	const struct ptreach *reach;
	uint32_t pid;
	size_t maps, files;
	uint64_t hash;
	int (*fn)(void *ctx, const struct ptfiles_map *m, int fd, struct err *e);
	void *ctx;
	struct err *e;
};

static int tell_one(void *ctx, const struct procmap *m)
{
	struct tell *t = ctx;
	bool vdso = strcmp(m->path, "[vdso]") == 0;
	struct ptfiles_map map = { .start = m->start, .end = m->end, .offset = vdso ? 0 : m->offset };
	_cleanup_close_ int fd = -1;

	hash_one(&t->hash, m);
	if (!(m->prot & PROT_EXEC))
		return 0;
	if (t->maps++ >= PTFILES_MAPS) {
		t->f->cut++;
		return 0;
	}
	if (vdso || m->inode) {
		if (t->files++ < PTFILES_FILES)
			fd = file_of(t->reach, t->pid, m);
		else
			t->f->cut++;
		t->f->unread += fd < 0 && t->files <= PTFILES_FILES;
	}
	return t->fn(t->ctx, &map, fd, t->e);
}

static bool is_32_bit(const struct ptreach *r, uint32_t pid)
{
	char ident[PROCFILE_EXE_BYTES];

	return procreach_text(r->helper, pid, pid, PROCFILE_EXE, ident, sizeof(ident)) == sizeof(ident) &&
	       memcmp(ident, ELFMAG, SELFMAG) == 0 && ident[EI_CLASS] == ELFCLASS32;
}

/*
 * Call FN for each, in the order of addresses. FD is closed after the call; -1 =
 * of no file, or of one that could not be had. FN's nonzero result ends it and
 * is returned. -ENOEXEC for a 32-bit program.
 */
static int ptfiles_tell(struct ptfiles *f, const struct ptreach *r, uint32_t pid,
	int (*fn)(void *ctx, const struct ptfiles_map *m, int fd, struct err *e), void *ctx, struct err *e)
{
	struct tell tell = { .f = f, .reach = r, .pid = pid, .hash = HASH_K0, .fn = fn, .ctx = ctx, .e = e };
	int rc;

	if (is_32_bit(r, pid))
		return err_set(e, -ENOEXEC, "process %u runs a 32-bit program", pid);
	*f = (struct ptfiles){ .text = f->text };
	rc = procaccess_maps(r->broker, pid, tell_one, &tell, e);
	/* what was told is what is known: if that is not what was looked at, the next look has to read it all
	 */
	f->text = 0;
	f->seen = rc ? 0 : tell.hash;
	return rc;
}

#define PTWIRE_FILES 1000 /* mappings of files, at most */
#define PTWIRE_MAPS 4000 /* mappings, at most */

/* In a frame: */
#define PTWIRE_EXACT (UINT64_C(1) << 63) /* no return address */
#define PTWIRE_GUESSED (UINT64_C(1) << 62) /* found by the frame pointer, as no table covers its callee */
#define PTWIRE_PC(frame) ((frame) & ~(PTWIRE_EXACT | PTWIRE_GUESSED))

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

/* The recorder's side. FD < 0: none. 0 or -errno; -EAGAIN when the socket's time is over. */
static int ptwire_ask(int sock, const struct ptwire_request *r, int fd)
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

/* 0, -EPIPE when the other side is gone, -EPROTO for what is no answer, -EAGAIN. */
static int ptwire_answered(int sock, struct ptwire_answer *ret)
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

/* The walker's side; both wait. 1 with *FD for the caller to close (-1 = none), 0 at the end, -errno. */
static int ptwire_next(int sock, struct ptwire_request *ret, int *fd)
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

/*
 * ptwalk - walks the copy of a stack by libdwfl.
 *
 * For a process in a sandbox that has libelf's calls (system/sandbox.h): no file is
 * searched for, the ELF files of a process come as descriptors, memory and
 * registers from a copy (procfs/thread_copy.h). The bias of a file follows from where its
 * segments are mapped.
 */

struct ptwalk;

#define TID 1 /* of the only thread that libdwfl gets to know */
#define SEGMENTS_MAX 4096
#define STACKS_MAX 8 /* changes of stack in a walk, other than by signals */

struct module {
	uint64_t start, end, offset; /* of the mapping */
	int fd;
	Elf *elf; /* until libdwfl takes it */
	uint64_t low, high; /* what libdwfl calls its addresses: from the bias of the file on */
};

struct ptwalk {
	struct module *modules; /* by address */
	size_t n, cap, n_files;
	Dwfl *dwfl; /* NULL = to be made */
	Elf *machine; /* tells libdwfl what it is for */
	Elf64_Ehdr ehdr;
	/* of the walk at hand */
	const struct ptcopy_head *copy;
	const uint8_t *bytes;
	struct ptwire_answer *ret;
	uint64_t sp;
	unsigned int stacks;
	bool guessing; /* no row covers the last frame: what comes now was found by frame pointer */
	bool interrupted; /* the last frame was one that a signal's trampoline is in */
	bool read_zero;
};

/* --- what libdwfl calls --- */

static int find_elf(
	Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base, char **file_name, Elf **elf)
{
	struct module *m = *userdata;

	(void)mod;
	(void)name;
	(void)base;
	*file_name = NULL;
	*elf = m ? TAKE_PTR(m->elf) : NULL;
	return -1;
}

static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
	const char *file_name, const char *link, GElf_Word crc, char **ret)
{
	(void)mod;
	(void)userdata;
	(void)name;
	(void)base;
	(void)file_name;
	(void)link;
	(void)crc;
	*ret = NULL;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = arg;
	return TID;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl;
	*thread_arg = arg;
	return tid == TID;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *result, void *arg)
{
	struct ptwalk *w = arg;

	(void)dwfl;
	for (uint32_t i = 0; i < w->copy->n_areas; i++) {
		const struct ptcopy_area *a = &w->copy->areas[i];
		uint64_t at = addr - a->from;

		if (a->len < sizeof(*result) || at > a->len - sizeof(*result))
			continue;
		memcpy(result, w->bytes + (size_t)i * PTCOPY_AREA_BYTES + at, sizeof(*result));
		w->read_zero |= !*result;
		return true;
	}
	if (!w->ret->missed)
		w->ret->wanted = addr;
	w->ret->missed = 1;
	return false;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct ptcopy_head *c = ((struct ptwalk *)arg)->copy;

	for (int i = 0; i < PTCOPY_REGS; i++) {
		Dwarf_Word value = c->regs[i];

		if ((c->known & 1u << i) && !dwfl_thread_state_registers(thread, i, 1, &value))
			return false;
	}
	dwfl_thread_state_register_pc(thread, c->regs[PTCOPY_PC]);
	return true;
}

static const Dwfl_Callbacks callbacks = { .find_elf = find_elf, .find_debuginfo = find_debuginfo };
static const Dwfl_Thread_Callbacks thread_callbacks = { .next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers };

/* --- modules --- */

static struct ptwalk *ptwalk_new(void)
{
	struct ptwalk *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	elf_version(EV_CURRENT);
	memcpy(w->ehdr.e_ident, ELFMAG, SELFMAG);
	w->ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	w->ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
	w->ehdr.e_ident[EI_VERSION] = EV_CURRENT;
	w->ehdr.e_type = ET_DYN;
	w->ehdr.e_machine = EM_X86_64;
	w->ehdr.e_version = EV_CURRENT;
	w->ehdr.e_ehsize = sizeof(w->ehdr);
	w->machine = elf_memory((char *)&w->ehdr, sizeof(w->ehdr));
	if (!w->machine) {
		free(w);
		return NULL;
	}
	return w;
}

static void ptwalk_free(struct ptwalk *w)
{
	if (!w)
		return;
	if (w->dwfl)
		dwfl_end(w->dwfl);
	for (size_t i = 0; i < w->n; i++) {
		elf_end(w->modules[i].elf);
		if (w->modules[i].fd >= 0)
			close(w->modules[i].fd);
	}
	elf_end(w->machine);
	free(w->modules);
	free(w);
}

/*
 * The segment that is mapped there gives the bias, and the first one the
 * address that libdwfl takes for that of the module.
 */
static bool place(struct module *m)
{
	uint64_t first = 0, bias = 0;
	bool any = false, found = false;
	size_t n;

	m->elf = elf_begin(m->fd, ELF_C_READ, NULL);
	if (!m->elf || elf_kind(m->elf) != ELF_K_ELF || elf_getphdrnum(m->elf, &n) != 0 || n > SEGMENTS_MAX)
		return false;
	for (size_t i = 0; i < n && !found; i++) {
		GElf_Phdr ph_mem, *ph = gelf_getphdr(m->elf, (int)i, &ph_mem);
		uint64_t page;

		if (!ph || ph->p_type != PT_LOAD)
			continue;
		if (!any)
			first = ph->p_vaddr & -ph->p_align;
		any = true;
		page = ph->p_offset & ~UINT64_C(4095);
		/* of several in one page the one that has code */
		if (!(ph->p_flags & PF_X) || m->offset < page || m->offset - page >= ph->p_filesz + 4096)
			continue;
		bias = m->start - m->offset + ph->p_offset - ph->p_vaddr;
		found = true;
	}
	m->low = bias + first;
	m->high = m->end;
	return found && m->low <= m->start;
}

/* An executable mapping; FD is the walker's from now on (-1 = of no file, or of one that cannot be read). */
static int ptwalk_map(struct ptwalk *w, const struct ptwire_request *map, int fd)
{
	struct module *m;
	size_t at = w->n;

	/* libdwfl knows what there was: it has to forget first */
	if (w->dwfl || w->n >= PTWIRE_MAPS || (fd >= 0 && w->n_files >= PTWIRE_FILES) ||
		base_grow(&w->modules, &w->cap, w->n + 1, sizeof(*w->modules)) != 0) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	while (at && w->modules[at - 1].start > map->start)
		at--;
	m = w->modules + at;
	memmove(m + 1, m, (w->n - at) * sizeof(*m));
	*m = (struct module){ .start = map->start, .end = map->end, .offset = map->offset, .fd = fd };
	w->n++;
	if (fd < 0 || place(m)) {
		w->n_files += fd >= 0;
		return 0;
	}
	elf_end(m->elf);
	close(fd);
	m->elf = NULL;
	m->fd = -1;
	return 0;
}

static const struct module *module_at(const struct ptwalk *w, uint64_t pc)
{
	size_t low = PARTITION_POINT(0, w->n, mid, w->modules[mid].end <= pc);

	return low < w->n && w->modules[low].start <= pc ? &w->modules[low] : NULL;
}

/* Two mappings of one file with one bias are one module, of which the first one's file is kept. */
static int report(struct ptwalk *w)
{
	struct module *last = NULL;
	char name[32];

	w->dwfl = dwfl_begin(&callbacks);
	if (!w->dwfl)
		return -ENOMEM;
	dwfl_report_begin(w->dwfl);
	for (size_t i = 0; i < w->n; i++) {
		struct module *m = w->modules + i;
		Dwfl_Module *mod;
		void **userdata;

		if (!m->elf)
			continue;
		if (last && m->low < last->high && m->low != last->low)
			m->low = UINT64_MAX; /* a file that says it is where another one is */
		if (m->low == UINT64_MAX || (last && m->low == last->low))
			continue;
		for (size_t k = i + 1; k < w->n && w->modules[k].elf && w->modules[k].low == m->low; k++)
			m->high = w->modules[k].end;
		snprintf(name, sizeof(name), "%zu", i);
		mod = dwfl_report_module(w->dwfl, name, m->low, m->high);
		if (!mod)
			continue;
		dwfl_module_info(mod, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		*userdata = m;
		last = m;
	}
	dwfl_report_end(w->dwfl, NULL, NULL);
	return dwfl_attach_state(w->dwfl, w->machine, TID, &thread_callbacks, w) ? 0 : -ENOEXEC;
}

/* --- a walk --- */

enum row { ROW_NONE, ROW_ON, ROW_END };

static enum row row_of(Dwarf_CFI *cfi, uint64_t pc)
{
	Dwarf_Frame *frame = NULL;
	Dwarf_Op mem[3], *ops = NULL;
	size_t n = 0;
	enum row row = ROW_ON;

	if (!cfi || dwarf_cfi_addrframe(cfi, pc, &frame) != 0)
		return ROW_NONE;
	if (dwarf_frame_register(frame, PTCOPY_PC, mem, &ops, &n) == 0 && n == 0 && ops == mem)
		row = ROW_END;
	free(frame);
	return row;
}

/* As libdwfl looks for it: .eh_frame, then .debug_frame. */
static enum row row_at(const struct ptwalk *w, uint64_t pc)
{
	Dwfl_Module *mod = dwfl_addrmodule(w->dwfl, pc);
	Dwarf_Addr bias = 0;
	Dwarf_CFI *cfi;
	enum row row;

	if (!mod || !module_at(w, pc))
		return ROW_NONE;
	cfi = dwfl_module_eh_cfi(mod, &bias);
	row = row_of(cfi, pc - bias);
	if (row != ROW_NONE)
		return row;
	cfi = dwfl_module_dwarf_cfi(mod, &bias);
	return row_of(cfi, pc - bias);
}

static int finish(struct ptwalk *w, uint8_t verdict, uint8_t reason)
{
	w->ret->verdict = verdict;
	w->ret->reason = reason;
	if (verdict == CAP_STOPPED && w->ret->n)
		w->ret->stop_pc = PTWIRE_PC(w->ret->frames[w->ret->n - 1]);
	return DWARF_CB_ABORT;
}

/* Every frame is left upwards, but where a signal has changed the stack, or a program by a register. */
static bool goes_round(struct ptwalk *w, Dwfl_Frame *frame)
{
	Dwarf_Word sp;
	bool round = false;

	if (dwfl_frame_reg(frame, PTCOPY_SP, &sp) != 0)
		return false;
	if (w->ret->n && !w->interrupted && sp <= w->sp)
		round = sp == w->sp || ++w->stacks > STACKS_MAX;
	w->sp = sp;
	return round;
}

/* The PC before a frame's, and its, own: is this the outermost one? */
static int look(struct ptwalk *w, uint64_t pc, bool exact)
{
	enum row row = row_at(w, exact ? pc : pc - 1);

	if (row == ROW_END)
		return finish(w, CAP_COMPLETE, CAP_R_NONE);
	/* a return address that was put there for a new stack (makecontext) may be a function's first byte */
	if (row == ROW_NONE && !exact && row_at(w, pc) == ROW_END) {
		w->ret->frames[w->ret->n - 1] |= PTWIRE_EXACT;
		return finish(w, CAP_COMPLETE, CAP_R_NONE);
	}
	w->guessing = row == ROW_NONE;
	return DWARF_CB_OK;
}

static int add_frame(Dwfl_Frame *frame, void *arg)
{
	struct ptwalk *w = arg;
	struct ptwire_answer *r = w->ret;
	Dwarf_Addr pc;
	bool activation, exact;

	if (!dwfl_frame_pc(frame, &pc, NULL))
		return finish(w, CAP_STOPPED, CAP_R_MEMORY);
	if (r->n && w->guessing && !pc)
		return finish(w, CAP_UNVERIFIED, CAP_R_NONE);
	if (r->n && w->guessing && !module_at(w, pc - 1))
		return finish(w, CAP_STOPPED, CAP_R_NO_FRAME_POINTER);
	if (pc >> 62)
		return finish(w, CAP_STOPPED, CAP_R_NO_MAPPING);
	if (r->n >= PTWIRE_FRAMES)
		return finish(w, CAP_TRUNCATED, CAP_R_NONE);
	if (goes_round(w, frame))
		return finish(w, CAP_STOPPED, CAP_R_LOOP);
	r->missed = 0;
	w->read_zero = false;
	/* this goes on to the caller */
	if (!dwfl_frame_pc(frame, &pc, &activation))
		activation = false;
	exact = activation || !r->n;
	r->frames[r->n] =
		pc | (exact && r->n ? PTWIRE_EXACT : 0) | (w->guessing && r->n ? PTWIRE_GUESSED : 0);
	w->interrupted = activation && r->n;
	r->n++;
	return look(w, pc, exact);
}

static void tell_stop(struct ptwalk *w)
{
	struct ptwire_answer *r = w->ret;
	uint64_t frame = r->n ? r->frames[r->n - 1] : 0, pc = PTWIRE_PC(frame);
	bool exact = r->n == 1 || (frame & PTWIRE_EXACT);
	const struct module *m = module_at(w, exact ? pc : pc - 1);

	if (!m)
		finish(w, CAP_STOPPED, CAP_R_NO_MAPPING);
	else if (w->guessing && !(w->copy->known & 1u << PTCOPY_BP))
		finish(w, CAP_STOPPED, CAP_R_REGISTER);
	else if (w->guessing)
		finish(w, CAP_STOPPED, m->fd >= 0 ? CAP_R_NO_ROW : CAP_R_NO_FRAME_POINTER);
	else if (r->missed)
		finish(w, CAP_STOPPED, CAP_R_MEMORY);
	else
		finish(w, CAP_STOPPED, CAP_R_REGISTER);
}

static void clear(struct ptwire_answer *ret)
{
	memset(ret, 0, sizeof(*ret));
}

static void fail(struct ptwire_answer *ret, int error, const char *why)
{
	clear(ret);
	ret->error = error;
	snprintf(ret->why, sizeof(ret->why), "%s", why);
}

/*
 * Walk what C holds, BYTES being those of its areas one after the other, each
 * PTCOPY_AREA_BYTES long. Every field of *RET is written.
 *
 * COMPLETE: the row of the outermost frame says that it has no caller, or a
 * row led to a return address of zero. UNVERIFIED: a frame pointer did.
 */
static void ptwalk_run(
	struct ptwalk *w, const struct ptcopy_head *c, const uint8_t *bytes, struct ptwire_answer *ret)
{
	int rc;

	clear(ret);
	if (!w->dwfl && report(w) != 0) {
		fail(ret, -ENOMEM, "libdwfl does not take the process's mappings");
		return;
	}
	w->copy = c;
	w->bytes = bytes;
	w->ret = ret;
	w->guessing = w->interrupted = w->read_zero = false;
	w->stacks = 0;
	rc = dwfl_getthread_frames(w->dwfl, TID, add_frame, w);
	if (ret->verdict)
		return;
	/* a return address of zero is an end mark, if it was read as one */
	if (rc == 0 && ret->n && w->read_zero && !ret->missed && !w->guessing)
		finish(w, CAP_COMPLETE, CAP_R_NONE);
	else
		tell_stop(w);
}

/* --- the service --- */

static bool read_copy(int fd, struct ptcopy *c)
{
	size_t len = sizeof(c->head), done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (char *)c + done, len - done, (off_t)done);

		if (n <= 0)
			return false;
		done += (size_t)n;
		if (done == sizeof(c->head) && len == done && c->head.n_areas <= PTCOPY_AREAS &&
			c->head.n_areas)
			len = offsetof(struct ptcopy, bytes) + (c->head.n_areas - 1) * sizeof(c->bytes[0]) +
			      MIN(c->head.areas[c->head.n_areas - 1].len, sizeof(c->bytes[0]));
	}
	return c->head.n_areas <= PTCOPY_AREAS;
}

static int serve_one(struct ptwalk **w, const struct ptwire_request *r, int fd, int sock, int copy_fd,
	struct ptcopy *copy, struct ptwire_answer *a)
{
	if (r->what == PTWIRE_MAP)
		return *w ? (ptwalk_map(*w, r, fd), 0) : -ENOMEM;
	if (r->what == PTWIRE_FORGET) {
		ptwalk_free(*w);
		*w = ptwalk_new();
		return *w ? 0 : -ENOMEM;
	}
	if (!*w || !read_copy(copy_fd, copy))
		fail(a, -EIO, "cannot read the copy of the stack");
	else
		ptwalk_run(*w, &copy->head, copy->bytes[0], a);
	return ptwire_answer(sock, a);
}

/*
 * Answer requests from SOCK with the copy that is in the file COPY, until the
 * other side closes it.
 */
static void ptwalk_serve(int sock, int copy_fd)
{
	struct ptcopy *copy = calloc(1, sizeof(*copy));
	struct ptwire_answer *a = calloc(1, sizeof(*a));
	struct ptwalk *w = ptwalk_new();
	struct ptwire_request r;
	int fd;

	if (!copy || !a || !w || ptwire_answer(sock, a) != 0)
		goto out;
	while (ptwire_next(sock, &r, &fd) > 0)
		if (serve_one(&w, &r, fd, sock, copy_fd, copy, a) != 0)
			break;
out:
	ptwalk_free(w);
	free(copy);
	free(a);
}

#define PTCHILD_SECONDS 3 /* that a walk may take; then it gets as long again, and the process is ended */
#define PTCHILD_PATIENCE 10 /* times as long, if it runs and gets less than half of a CPU meanwhile */

#define MEMORY_BYTES (UINT64_C(512) << 20)
#ifdef __SANITIZE_ADDRESS__
#define MORE_MEMORY (UINT64_C(32) << 40) /* of addresses, for its shadow */
#else
#define MORE_MEMORY 0
#endif

__attribute__((noreturn)) static void work(const void *arg, int sock, pid_t parent)
{
	const int *copy = arg;
	const struct sandbox_opts box = { .keep_fd = sock,
		.more_fds = copy,
		.n_more = 1,
		.parent = parent,
		.comm = "stack-walks",
		.memory_bytes = MEMORY_BYTES + MORE_MEMORY,
		.n_received = PTWIRE_FILES + 8,
		.libelf = true };
	struct ptwire_answer no = { .n = 0 };
	struct err e = { 0 };

	no.error = sandbox_enter(&box, &e);
	if (!no.error) {
		ptwalk_serve(SANDBOX_FD, SANDBOX_FD + 1);
	} else {
		snprintf(no.why, sizeof(no.why), "%.*s", (int)sizeof(no.why) - 1, e.msg);
		ptwire_answer(SANDBOX_FD, &no);
	}
	/* not _exit(2), under which a sanitizer would look for leaks */
	syscall(SYS_exit_group, 0);
	__builtin_unreachable();
}

/* CPU time of a process, in ns. */
static uint64_t cpu_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? now_on(clock) : 0;
}

/* One that waits, for a file system that does not answer, is not short of time. */
static bool is_runnable(pid_t pid)
{
	struct procinfo_status s;

	return procinfo_status((uint32_t)pid, &s) && s.state == 'R';
}

/* On a busy machine time passes without any of it being the walker's. */
static int await_answer(struct ptchild *c, struct ptwire_answer *ret)
{
	int rc = ptwire_answered(c->sock, ret);
	uint64_t begin = rc == -EAGAIN ? cpu_of(c->pid) : 0;

	for (int i = 1; rc == -EAGAIN && i < PTCHILD_PATIENCE && is_runnable(c->pid) &&
			cpu_of(c->pid) - begin < PTCHILD_SECONDS * UINT64_C(500000000);
		i++)
		rc = ptwire_answered(c->sock, ret);
	return rc;
}

static int answered(struct ptchild *c, struct ptwire_answer *ret, struct err *e)
{
	int rc = await_answer(c, ret), status = -1;

	if (!rc && ret->error)
		return err_set(e, ret->error, "the process that walks stacks failed: %s", ret->why);
	if (!rc)
		return 0;
	if (rc == -EPIPE && waitpid(c->pid, &status, 0) == c->pid)
		c->pid = 0;
	ptchild_stop(c);
	if (rc == -EAGAIN)
		return err_set(e, -ETIMEDOUT, "the process that walks stacks took longer than %d seconds",
			PTCHILD_SECONDS);
	if (status != -1 && WIFSIGNALED(status))
		return err_set(e, -EIO, "the process that walks stacks was ended by a signal: %s",
			strsignal(WTERMSIG(status)));
	return err_sys(e, rc == -EPROTO ? rc : -EIO, "the process that walks stacks does not answer");
}

int ptchild_start(struct ptchild *c, int copy, struct err *e)
{
	const struct timeval time = { .tv_sec = PTCHILD_SECONDS };
	struct ptwire_answer ready;
	pid_t pid;
	int sock;

	*c = (struct ptchild){ .sock = -1 };
	pid = sandbox_start("walks stacks", work, &copy, &sock, e);
	if (pid < 0)
		return pid;
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	*c = (struct ptchild){ .pid = pid, .sock = sock };
	return answered(c, &ready, e);
}

int ptchild_tell(struct ptchild *c, const struct ptwire_request *r, int fd, struct err *e)
{
	struct ptwire_answer end;
	int rc = ptwire_ask(c->sock, r, fd);

	if (!rc)
		return 0;
	/* it had something to say when it ended, if only by its end */
	return rc == -EPIPE && answered(c, &end, e)
		       ? -EIO
		       : (ptchild_stop(c), err_sys(e, rc, "cannot ask for a walk"));
}

int ptchild_walk(struct ptchild *c, struct ptwire_answer *ret, struct err *e)
{
	int rc = ptchild_tell(c, &(struct ptwire_request){ .what = PTWIRE_WALK }, -1, e);

	return rc ? rc : answered(c, ret, e);
}

void ptchild_stop(struct ptchild *c)
{
	if (c->sock >= 0)
		close(c->sock);
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	*c = (struct ptchild){ .sock = -1 };
}

#define STATUS_MAX (64u << 10)

struct facts {
	bool there;
	unsigned int tracer, uid, yama;
	bool kthread, undumpable, more_caps;
	bool hidden,
		others; /* it is there, but not in /proc (hidepid); whose it is the kernel tells otherwise */
};

const char *ptwhy_name(enum ptwhy why)
{
	static const char *const names[PTWHY_COUNT] = { "gone", "kernel-thread", "32-bit", "traced",
		"other-user", "privileged", "undumpable", "yama", "forbidden", "late", "walker", "other" };

	return why < PTWHY_COUNT ? names[why] : "";
}

/* 0 where it is not there. */
static unsigned int field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? (unsigned int)strtoul(at + strlen(name), NULL, 10) : 0;
}

static uint64_t own_caps(const struct root *root)
{
	_cleanup_free_ char *text = NULL;
	struct caps_status s;

	if (root_read(root, "proc/self/status", STATUS_MAX, &text, NULL, NULL) != 0 ||
		caps_status_parse(text, &s) != 0)
		return UINT64_MAX;
	return s.permitted;
}

static void look_at_limits(pid_t pid, pid_t tid, struct facts *f)
{
	_cleanup_free_ char *text = NULL;
	char path[64], yama[16] = "";
	struct caps_status s;
	struct stat st;
	struct root root;

	*f = (struct facts){ 0 };
	if (root_open(NULL, &root, NULL) != 0)
		return;
	snprintf(path, sizeof(path), "proc/%d/task/%d/status", pid, tid);
	if (root_read(&root, path, STATUS_MAX, &text, NULL, NULL) == 0) {
		f->there = strstr(text, "\nState:\tZ") == NULL && strstr(text, "\nState:\tX") == NULL;
		f->kthread = f->there && !strstr(text, "\nVmSize:") && strstr(text, "\nThreads:");
		f->tracer = field(text, "\nTracerPid:\t");
		f->uid = field(text, "\nUid:\t");
		f->more_caps = caps_status_parse(text, &s) == 0 && (s.permitted & ~own_caps(&root));
	} else {
		snprintf(path, sizeof(path), "/proc/%d", pid);
		f->others = kill(pid, 0) != 0 && errno == EPERM;
		f->hidden = access(path, F_OK) != 0 && (f->others || kill(pid, 0) == 0);
	}
	/* files of such a process belong to root in /proc */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	f->undumpable = stat(path, &st) == 0 && st.st_uid != f->uid;
	if (root_line(&root, "proc/sys/kernel/yama/ptrace_scope", yama, sizeof(yama), NULL) == 0)
		f->yama = (unsigned int)strtoul(yama, NULL, 10);
	root_close(&root);
}

static enum ptwhy refused(const struct facts *f, bool privileged)
{
	if (f->tracer)
		return PTWHY_TRACED;
	if (!privileged) {
		if (f->uid != getuid())
			return PTWHY_OTHERS;
		if (f->undumpable)
			return PTWHY_UNDUMPABLE;
		if (f->more_caps)
			return PTWHY_PRIVILEGED;
	}
	if (f->yama >= (privileged ? 3 : 1))
		return PTWHY_YAMA;
	return PTWHY_FORBIDDEN;
}

static enum ptwhy classify(int code, const struct facts *f, bool privileged)
{
	if (f->hidden)
		return f->others ? PTWHY_OTHERS : PTWHY_UNDUMPABLE;
	if (!f->there || code == -ESRCH || code == -ENOENT)
		return PTWHY_GONE;
	if (f->kthread)
		return PTWHY_KTHREAD;
	if (code == -ENOEXEC)
		return PTWHY_COMPAT;
	if (code == -ETIMEDOUT)
		return PTWHY_LATE;
	return code == -EPERM || code == -EACCES ? refused(f, privileged) : PTWHY_OTHER;
}

static void tell_yama(unsigned int scope, struct err *e)
{
	if (scope >= 3)
		err_hint(e, "kernel.yama.ptrace_scope=%u forbids it to everybody until the next boot", scope);
	else if (scope == 2)
		err_hint(e, "kernel.yama.ptrace_scope=2 asks for CAP_SYS_PTRACE");
	else
		err_hint(e, "kernel.yama.ptrace_scope=1 allows only descendants: start the program by "
			    "'offcpu-record -- COMMAND', or: sysctl kernel.yama.ptrace_scope=0");
}

enum ptwhy ptwhy_tell(pid_t pid, pid_t tid, int code, bool privileged, struct err *e)
{
	struct facts f;
	enum ptwhy why;

	look_at_limits(pid, tid, &f);
	why = classify(code, &f, privileged || caps_have(CAP_SYS_PTRACE));
	switch (why) {
	case PTWHY_GONE:
		err_set(e, -ESRCH, "thread %d of process %d has ended", tid, pid);
		break;
	case PTWHY_KTHREAD:
		err_set(e, code, "thread %d is the kernel's: it has no user stack", tid);
		break;
	case PTWHY_COMPAT:
		err_set(e, code, "process %d runs a 32-bit program, whose stacks cannot be walked", pid);
		break;
	case PTWHY_TRACED:
		err_set(e, code, "thread %d of process %d is traced by process %u already", tid, pid,
			f.tracer);
		err_hint(e, "a thread has one tracer: end gdb, strace, or whatever process %u is", f.tracer);
		break;
	case PTWHY_OTHERS:
		if (f.hidden)
			err_set(e, code, "process %d belongs to somebody else, and /proc hides it (hidepid)",
				pid);
		else
			err_set(e, code, "process %d belongs to user %u", pid, f.uid);
		err_hint(e, "stacks of others take CAP_SYS_PTRACE: run as root, or as that user");
		break;
	case PTWHY_PRIVILEGED:
		err_set(e, code, "process %d has capabilities that this process has not", pid);
		err_hint(e, "stacks of such processes take CAP_SYS_PTRACE: run as root");
		break;
	case PTWHY_UNDUMPABLE:
		err_set(e, code, "process %d does not let itself be looked into", pid);
		err_hint(e, "it changed its user, or its program may not be read, or it called "
			    "prctl(PR_SET_DUMPABLE): run as root");
		break;
	case PTWHY_YAMA:
		err_set(e, code, "thread %d of process %d may not be traced", tid, pid);
		tell_yama(f.yama, e);
		break;
	case PTWHY_FORBIDDEN:
		err_sys(e, code, "thread %d of process %d may not be traced", tid, pid);
		err_hint(e, "a seccomp filter (containers have one), a user namespace or a security module "
			    "forbids ptrace(2)");
		break;
	case PTWHY_LATE:
		err_set(e, code, "thread %d of process %d did not stop", tid, pid);
		err_hint(e, "it waits for something that cannot be interrupted (state D), vfork(2)'s child "
			    "among it");
		break;
	case PTWHY_WALKER:
	case PTWHY_OTHER:
	case PTWHY_COUNT:
		err_sys(e, code, "cannot look at thread %d of process %d", tid, pid);
		break;
	}
	return why;
}

#define WALKERS_MAX 4 /* begun for one process, in all */
#define LEARNED_MAX 64

_Static_assert(PTFILES_MAPS <= PTWIRE_MAPS && PTFILES_FILES <= PTWIRE_FILES, "what is told is taken");

/* A system call, by number and first argument, of which a stop has shown that it begins anew. */
struct learned {
	int64_t number;
	uint64_t arg;
};

struct ptstack {
	struct ptreach reach;
	pid_t pid;
	int pidfd, copy_fd, read_fd;
	struct ptcopy *copy; /* copy_fd, mapped */
	struct ptchild child;
	struct ptfiles files;
	unsigned int walkers;
	bool told; /* the child knows the files */
	struct learned learned[LEARNED_MAX];
	size_t n_learned;
	struct ptwire_answer answer;
	uint64_t frames[PTWIRE_FRAMES];
	uint32_t exact[PTWIRE_FRAMES];
	struct ptstack_stats stats;
};

/* --- open and close --- */

/* Sealed, or the walker could cut it off under us; and it gets a descriptor that cannot write. */
static int make_copy(struct ptstack *p, struct err *e)
{
	char path[64];
	void *at;

	p->copy_fd = memfd_create("stack", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->copy_fd < 0 || ftruncate(p->copy_fd, sizeof(*p->copy)) != 0 ||
		fcntl(p->copy_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return err_sys(e, -errno, "cannot make room for copies of stacks");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->copy_fd);
	p->read_fd = open(path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, sizeof(*p->copy), PROT_READ | PROT_WRITE, MAP_SHARED, p->copy_fd, 0);
	if (p->read_fd < 0 || at == MAP_FAILED)
		return err_sys(e, -errno, "cannot make room for copies of stacks");
	p->copy = at;
	return 0;
}

int ptstack_open(const struct ptreach *r, uint32_t pid, struct ptstack **ret, struct err *e)
{
	struct ptstack *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_nomem(e, "stacks");
	p->reach = *r;
	p->pid = (pid_t)pid;
	p->copy_fd = p->read_fd = p->child.sock = -1;
	p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	/* ENOSYS: before Linux 5.3, without such protection from a number that is given anew */
	if (p->pidfd < 0 && errno != ENOSYS)
		rc = errno == ESRCH ? err_set(e, -ESRCH, "there is no process %u", pid)
				    : err_sys(e, -errno, "cannot look at process %u", pid);
	else
		rc = make_copy(p, e);
	if (rc)
		ptstack_close(p);
	else
		*ret = p;
	return rc;
}

void ptstack_close(struct ptstack *p)
{
	if (!p)
		return;
	ptchild_stop(&p->child);
	if (p->copy)
		munmap(p->copy, sizeof(*p->copy));
	if (p->copy_fd >= 0)
		close(p->copy_fd);
	if (p->read_fd >= 0)
		close(p->read_fd);
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p);
}

/* --- the walker --- */

static int begin_walker(struct ptstack *p, struct err *e)
{
	if (p->child.pid)
		return 0;
	p->told = false;
	if (p->walkers >= WALKERS_MAX)
		return err_set(e, -EIO, "the process that walks the stacks of process %d has ended %u times",
			p->pid, p->walkers);
	p->walkers++;
	return ptchild_start(&p->child, p->read_fd, e);
}

static int tell_map(void *ctx, const struct ptfiles_map *m, int fd, struct err *e)
{
	struct ptstack *p = ctx;
	const struct ptwire_request r = {
		.what = PTWIRE_MAP, .start = m->start, .end = m->end, .offset = m->offset
	};

	return ptchild_tell(&p->child, &r, fd, e);
}

/* A walker that is new has to be told everything. */
static int tell_files(struct ptstack *p, struct err *e)
{
	bool changed = false;
	int rc = ptfiles_look(&p->files, &p->reach, (uint32_t)p->pid, &changed, e);

	if (rc || (p->told && !changed))
		return rc;
	p->told = false;
	rc = ptchild_tell(&p->child, &(struct ptwire_request){ .what = PTWIRE_FORGET }, -1, e);
	rc = rc ? rc : ptfiles_tell(&p->files, &p->reach, (uint32_t)p->pid, tell_map, p, e);
	if (rc)
		return rc;
	p->told = true;
	p->stats.maps_cut = MAX(p->stats.maps_cut, p->files.cut);
	p->stats.files_unread = MAX(p->stats.files_unread, p->files.unread);
	return 0;
}

static int walk(struct ptstack *p, struct err *e)
{
	int rc = begin_walker(p, e);

	rc = rc ? rc : tell_files(p, e);
	rc = rc ? rc : ptchild_walk(&p->child, &p->answer, e);
	if (rc && p->walkers > p->stats.walkers_died && !p->child.pid)
		p->stats.walkers_died++;
	if (!rc && (p->answer.verdict < CAP_COMPLETE || p->answer.verdict > CAP_STOPPED ||
			   p->answer.reason >= CAP_R_COUNT))
		return err_set(e, -EPROTO, "the process that walks stacks answers nonsense");
	return rc;
}

static int refuse(struct ptstack *p, enum ptwhy why, int rc)
{
	p->stats.refused[why]++;
	return rc;
}

/* The number may be another process's by now. */
static bool is_gone(const struct ptstack *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	return p->pidfd >= 0 && poll(&fd, 1, 0) == 1;
}

/* --- two ways to a copy --- */

static bool spares(const struct ptstack *p, const struct ptquiet_call *call)
{
	for (size_t i = 0; i < p->n_learned; i++)
		if (p->learned[i].number == call->number && p->learned[i].arg == call->args[0])
			return true;
	return ptquiet_is_timed(call);
}

static void learn(struct ptstack *p, const struct ptstop_told *told)
{
	p->stats.stops++;
	p->stats.stopped_ns += told->stopped_ns;
	p->stats.longest_ns = MAX(p->stats.longest_ns, told->stopped_ns);
	if (told->again < 0)
		return;
	p->learned[p->stats.again++ % LEARNED_MAX] =
		(struct learned){ .number = told->again, .arg = told->again_arg };
	p->n_learned = MIN(p->n_learned + 1, LEARNED_MAX);
}

struct way {
	pid_t tid;
	bool stop; /* the thread is stopped: its registers are all known */
	uint64_t wanted[PTCOPY_AREAS - 1];
	size_t n;
	struct ptquiet_call call;
};

static int copy_now(struct ptstack *p, struct way *w)
{
	struct ptstop_told told;
	int rc;

	if (!w->stop)
		return ptreach_quiet(&p->reach, p->pid, w->tid, w->wanted, w->n, p->copy, &w->call);
	rc = ptreach_stop(&p->reach, w->tid, w->wanted, w->n, p->copy, &told);
	if (!rc)
		learn(p, &told);
	return rc;
}

/* Does the walk lack memory that is there? The next copy has it then. */
static bool wants_more(struct ptstack *p, struct way *w)
{
	const struct ptwire_answer *a = &p->answer;
	uint64_t word;

	if (a->verdict != CAP_STOPPED || !a->missed || w->n >= ARRAY_LEN(w->wanted) ||
		!ptreach_word(&p->reach, p->pid, a->wanted, &word))
		return false;
	/* registers are saved below a return address: what is read first need not be the lowest */
	w->wanted[w->n++] = a->wanted & ~UINT64_C(255);
	return true;
}

/* The copy ended below memory that is there. */
static void tell_end(struct ptstack *p)
{
	uint64_t word;

	if (p->answer.verdict == CAP_STOPPED && p->answer.missed &&
		ptreach_word(&p->reach, p->pid, p->answer.wanted, &word))
		p->answer.verdict = CAP_TRUNCATED;
}

/*
 * By one way: copies and walks until no memory is missing. *WHY is what a
 * failure is counted as.
 */
static int go(struct ptstack *p, struct way *w, enum ptwhy *why, struct err *e)
{
	int rc;

	do {
		rc = copy_now(p, w);
		if (rc) {
			/* not an answer to anybody: the other way is tried */
			if (rc == -EAGAIN || rc == -ENODATA)
				return rc;
			*why = ptwhy_tell(p->pid, w->tid, rc, helper_pid(p->reach.helper) != 0, e);
			return *why == PTWHY_GONE ? -ESRCH : rc;
		}
		*why = PTWHY_WALKER;
		rc = walk(p, e);
		if (rc == -ENOEXEC || rc == -ESRCH)
			*why = ptwhy_tell(p->pid, w->tid, rc, helper_pid(p->reach.helper) != 0, e);
	} while (!rc && wants_more(p, w));
	if (!rc)
		tell_end(p);
	return rc;
}

/* Could a stop that is asked for now come at all? In D it would come when the wait is over. */
static bool can_stop(const struct ptstack *p, pid_t tid)
{
	char text[512], *state;
	ssize_t n = procreach_text(
		p->reach.helper, (uint32_t)p->pid, (uint32_t)tid, PROCFILE_STAT, text, sizeof(text) - 1);

	if (n <= 0)
		return true;
	text[n] = '\0';
	state = strrchr(text, ')');
	return !state || strncmp(state, ") D", 3) != 0;
}

/* Stopped where that is needed and does no harm. What was found without stays the answer where it cannot be.
 */
static int take_stopped(
	struct ptstack *p, const struct way *quiet, bool found, enum ptwhy *why, struct err *e)
{
	struct way stop = { .tid = quiet->tid, .stop = true };
	int rc;

	if (found && spares(p, &quiet->call)) {
		p->stats.spared++;
		return 0;
	}
	if (found && !can_stop(p, quiet->tid)) {
		p->stats.refused[PTWHY_LATE]++;
		return 0;
	}
	rc = go(p, &stop, why, e);
	if (!rc || !found || *why == PTWHY_WALKER)
		return rc;
	p->stats.refused[*why]++;
	return 0;
}

static int take(struct ptstack *p, pid_t tid, enum ptwhy *why, struct err *e)
{
	struct way quiet = { .tid = tid };
	int rc = go(p, &quiet, why, e);

	if (rc && rc != -EAGAIN && rc != -ENODATA)
		return rc;
	/*
	 * Where SP leads to no memory a stop has nothing to add, and may do harm: x86-64 cannot return to a
	 * program whose SP is not canonical, so the kernel would end it.
	 */
	if (rc || (p->answer.reason == CAP_R_REGISTER && p->copy->head.n_areas))
		return take_stopped(p, &quiet, !rc, why, e);
	p->stats.quiet++;
	return 0;
}

/* --- what it found --- */

/* Do the bytes before PC end in a call: e8 with 32 bits of distance, or ff /2? */
static bool follows_call(const struct ptstack *p, uint64_t pc)
{
	uint64_t word;
	uint8_t b[8];

	if (pc < sizeof(b) || !ptreach_word(&p->reach, p->pid, pc - sizeof(b), &word))
		return false;
	memcpy(b, &word, sizeof(b));
	if (b[3] == 0xe8)
		return true;
	for (size_t len = 2; len <= 7; len++)
		if (len != 5 && b[8 - len] == 0xff && (b[9 - len] >> 3 & 7) == 2)
			return true;
	return false;
}

/* A frame that was found by frame pointer is believed only if its callee was called from there. */
static void drop_guesses(struct ptstack *p)
{
	struct ptwire_answer *a = &p->answer;

	for (uint32_t i = 1; i < a->n; i++) {
		uint64_t pc = PTWIRE_PC(a->frames[i]);

		if (!(a->frames[i] & PTWIRE_GUESSED) || follows_call(p, pc))
			continue;
		a->n = i;
		a->verdict = CAP_STOPPED;
		a->reason = CAP_R_NO_FRAME_POINTER;
		a->stop_pc = PTWIRE_PC(a->frames[i - 1]);
	}
}

static void give(struct ptstack *p, struct cap_stack *ret)
{
	const struct ptwire_answer *a = &p->answer;
	uint32_t n = MIN(a->n, (uint32_t)PTWIRE_FRAMES);

	*ret = (struct cap_stack){ .kind = CAP_STACK_USER,
		.verdict = n ? a->verdict : CAP_FAILED,
		.reason = a->verdict == CAP_STOPPED || !n ? a->reason : CAP_R_NONE,
		.stop_pc = a->verdict == CAP_STOPPED && n ? a->stop_pc : 0,
		.len = n,
		.frames = p->frames,
		.exact = p->exact };
	for (uint32_t i = 0; i < n; i++) {
		p->frames[i] = PTWIRE_PC(a->frames[i]);
		if (i && (a->frames[i] & PTWIRE_EXACT))
			p->exact[ret->n_exact++] = i;
	}
}

int ptstack_take(struct ptstack *p, uint32_t tid, struct cap_stack *ret, struct err *e)
{
	enum ptwhy why = PTWHY_OTHER;
	int rc;

	if (is_gone(p)) {
		p->stats.refused[PTWHY_GONE]++;
		return err_set(e, -ESRCH, "process %d has ended", p->pid);
	}
	rc = take(p, (pid_t)tid, &why, e);
	if (rc)
		return refuse(p, why, rc);
	drop_guesses(p);
	give(p, ret);
	p->stats.stacks++;
	return 0;
}

void ptstack_stats(const struct ptstack *p, struct ptstack_stats *ret)
{
	*ret = p->stats;
}
