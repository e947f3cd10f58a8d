/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "procfs/ptwalk.h"
#include "capture/types.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <string.h>

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

struct ptwalk *ptwalk_new(void)
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

void ptwalk_free(struct ptwalk *w)
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

int ptwalk_map(struct ptwalk *w, const struct ptwire_request *map, int fd)
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
	size_t low = 0, high = w->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (w->modules[mid].end <= pc)
			low = mid + 1;
		else
			high = mid;
	}
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

void ptwalk_run(
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

void ptwalk_serve(int sock, int copy_fd)
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
