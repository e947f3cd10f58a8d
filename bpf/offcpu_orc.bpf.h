/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel stack of the current thread, by the kernel's own unwind table (ORC). Part of offcpu.bpf.c.
 *
 * bpf_get_stack() walks the stack by the same table, but starts in its own functions, searches the table
 * for each frame, and takes 1.6 to 1.9 us. This walk takes the same steps on the same rows, from the
 * function that called this program, and keeps the rows of return addresses that it has met. Only what
 * the rows say is kept: all that depends on the stack is read from it at every walk.
 *
 * Only these steps are taken, by the rows of the kernel's own code, which never change, and of modules, as
 * long as none is loaded or unloaded: a call's frame whose CFA is found from SP or BP, the step from the
 * stack of interrupts to the one that they came on, the registers of user mode at the end of the stack, and
 * the end of a kernel thread's stack. Of a waker that is an interrupt only its own part is wanted: that walk
 * ends where it entered the kernel. Whatever else comes, bpf_get_stack() takes the stack: other walks that
 * meet an interrupt, trampolines, return addresses that a tracer has replaced. docs/internals.md has the
 * proof.
 *
 * Sources: arch/x86/kernel/unwind_orc.c, arch/x86/include/asm/orc_types.h, kernel/module/tree_lookup.c,
 * include/linux/rbtree_latch.h.
 */
#ifndef STACKTOOLS_OFFCPU_ORC_BPF_H
#define STACKTOOLS_OFFCPU_ORC_BPF_H

/* What orc_walk() returns if it does not return a number of frames. */
enum orc_refusal {
	ORC_UNREADY = -1, /* table or start are not known yet */
	ORC_OUTSIDE = -2, /* a return address of neither kernel nor module, or put there by a tracer */
	ORC_INTERRUPT = -3, /* an interrupt came in kernel mode */
	ORC_UNPROVED = -4, /* any other row; too many frames; memory that is not the stack's */
};

/* Set by user space when it has the kernel's symbols; `rows` last. */
struct offcpu_orc orc = {};

/* With --wakers user space sets this before the recording begins: where interrupts enter the kernel. */
struct {
	__u64 start, end;
} interrupts = {};

/* Is PC, a return address, where an interrupt enters the kernel? */
static __always_inline bool enters_kernel(__u64 pc)
{
	return pc > interrupts.start && pc <= interrupts.end;
}

#if defined(__TARGET_ARCH_x86) && !defined(OFFCPU_RAW)

#define ORC_SETS 512
#define ORC_STEPS 8 /* frames at once */
#define ORC_FRAMES_MAX 64
#define ORC_WINDOW 512 /* bytes of stack read at once */
#define ORC_TRIALS 16 /* so many walks on each CPU are compared with bpf_get_stack() */
#define ORC_TREE_DEPTH 24 /* of the tree of modules */
#define ORC_PAGE 4096
#define THREAD_STACK_MAX 32768 /* THREAD_SIZE, with KASAN */
#define IRQ_STACK_MAX 65536 /* IRQ_STACK_SIZE, with KASAN */

/*
 * orc_types.h: types since Linux 6.4, which replaced `end` by two more, and registers, of which some have
 * other numbers in the tables of newer kernels (7.3): orc_learn_start()
 */
enum { ORC_REG_UNDEFINED = 0, ORC_REG_BP = 4, ORC_REG_SP_INDIRECT = 9 };
enum { ORC_REG_OLD_SP = 5, ORC_REG_OLD_CFA = 1, ORC_REG_SP = 3, ORC_REG_CFA = 8 };
enum { ORC_TYPE_UNDEFINED, ORC_TYPE_END, ORC_TYPE_CALL, ORC_TYPE_REGS, ORC_TYPE_REGS_PARTIAL };
#define ORC_TYPE_OLD_CALL 0

enum orc_kind {
	ORC_BY_SP, /* a call; CFA = SP + offset */
	ORC_BY_BP, /* a call; CFA = BP + offset */
	ORC_AT_END,
	ORC_AT_REGS, /* registers at SP + offset */
	ORC_BY_OTHER, /* a call on another stack; CFA = word at SP, + offset */
	ORC_IS_OUTSIDE,
	ORC_IS_INTERRUPT,
	ORC_IS_OTHER,
};

#define ORC_OF_MODULE 0x80

struct orc_row {
	__u64 pc; /* return address */
	/* 63..32: for ORC_OF_MODULE, the count of changes at which the row was found; 31..16: offset in
	   bytes; 15..8: words down from the CFA to the saved BP, 0 = BP is as it was; 7..0: enum orc_kind,
	   with ORC_OF_MODULE for an address that is not the kernel's own */
	__u64 way;
};

struct orc_table {
	__u64 ips, entries; /* as in struct offcpu_orc */
	__u32 rows, pad;
};

/*
 * Where walks begin, learned from bpf_get_stack(); zero = not known. One for each of our programs that has
 * stacks taken: another function of the kernel calls it.
 */
struct orc_start {
	__u64 own; /* the first frame, which belongs to this program */
	__u64 ra; /* the second one: the return address in the program's caller */
	__u64 back; /* SP of the caller is so many bytes before ctx */
	__u32 trusted; /* walks that matched bpf_get_stack() */
	__u32 caller; /* from `ra` to the return address that tells who waits: for trail_number() */
};

enum orc_event { ORC_SWITCH, ORC_WAKING, ORC_EVENTS };

/* Two rows for each address: the newer one is first. */
struct orc_set {
	struct orc_row way[2];
};

struct orc_walk {
	/* set by the caller */
	__u64 ctx; /* address of the program's context, in the frame of the function that called it */
	__u64 regs; /* address of the registers of user mode, where the thread's stack begins */
	__u32 event; /* enum orc_event: where the walk begins */
	/* learned: orc_learn_start() */
	bool renumbered; /* SP is ORC_REG_SP and the CFA is ORC_REG_CFA */
	struct orc_start starts[ORC_EVENTS];
	/* of this walk */
	__u32 after; /* orc_after() is to be called */
	struct offcpu_stack_id walked; /* hi == 0: it is used as it is */
	__u32 len; /* frames */
	__u64 pc, sp, bp;
	__u64 end; /* no frame of this stack is beyond: orc_end() */
	struct orc_table table; /* where the row of pc is */
	__u32 changes; /* of the tree of modules, if `counted` */
	__u32 counted;
	__u32 trail; /* the number of the one that this walk leaves; 0 = it depends on more than the stack */
	__u32 pad;
	__u64 bp_from; /* the address that bp was read at, or TRAIL_FP_BEFORE */
	/* orc_same_steps() */
	__u64 base, size;
	struct trail_match match;
	__u64 missed; /* address of the word that is not in the window */
	__u64 window_at, window_len;
	__u64 window[ORC_WINDOW / 8];
	__u32 between[2]; /* of the search for a row: the first one that it may be, and one after the last */
	struct orc_set sets[ORC_SETS];
};

/* of an element of a map for each CPU: PCPU_MIN_UNIT_SIZE */
_Static_assert(sizeof(struct orc_walk) <= 32768, "orc_walk");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct orc_walk);
} orc_walks SEC(".maps");

static __always_inline struct orc_walk *my_orc_walk(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&orc_walks, &zero);
}

static __always_inline struct orc_start *orc_start_of(struct orc_walk *k)
{
	return &k->starts[k->event & (ORC_EVENTS - 1)];
}

static __always_inline struct orc_set *orc_set_of(struct orc_walk *k, __u64 pc)
{
	return &k->sets[(pc * 0x9e3779b97f4a7c15ULL) >> 55 & (ORC_SETS - 1)];
}

/* A row of the table as enum orc_kind, offset and saved BP. */
static __always_inline __u64 orc_way(const struct orc_walk *k, const struct orc_entry *row)
{
	const __u32 sp = k->renumbered ? ORC_REG_SP : ORC_REG_OLD_SP,
		    cfa = k->renumbered ? ORC_REG_CFA : ORC_REG_OLD_CFA;
	const __u32 sp_reg = BPF_CORE_READ_BITFIELD(row, sp_reg),
		    bp_reg = BPF_CORE_READ_BITFIELD(row, bp_reg);
	const __s32 off = (__s16)row->sp_offset, bp_off = -(__s16)row->bp_offset;
	__u32 type = BPF_CORE_READ_BITFIELD(row, type);
	__u64 below = 0;

	if (bpf_core_field_exists(((struct orc_entry___end *)0)->end)) {
		if (sp_reg == ORC_REG_UNDEFINED)
			return BPF_CORE_READ_BITFIELD((const struct orc_entry___end *)row, end)
				       ? ORC_AT_END
				       : ORC_IS_OTHER;
		type += ORC_TYPE_CALL - ORC_TYPE_OLD_CALL;
	}
	if (type == ORC_TYPE_END)
		return ORC_AT_END;
	if (off < 0 || off & 7)
		return ORC_IS_OTHER;
	if (type == ORC_TYPE_REGS && sp_reg == sp)
		return ORC_AT_REGS | off << 16;
	if (type == ORC_TYPE_REGS || type == ORC_TYPE_REGS_PARTIAL)
		return ORC_IS_INTERRUPT;
	if (type != ORC_TYPE_CALL || off < 8)
		return ORC_IS_OTHER;
	if (sp_reg != sp && sp_reg != ORC_REG_BP && sp_reg != ORC_REG_SP_INDIRECT)
		return ORC_IS_OTHER;
	if (bpf_core_field_exists(row->signal) && BPF_CORE_READ_BITFIELD(row, signal))
		return ORC_IS_OTHER;
	if (bp_reg == cfa) {
		if (bp_off < 16 || bp_off & 7 || bp_off > ORC_WINDOW / 2)
			return ORC_IS_OTHER;
		below = bp_off >> 3;
	} else if (bp_reg != ORC_REG_UNDEFINED) {
		return ORC_IS_OTHER;
	}
	return (sp_reg == sp                  ? ORC_BY_SP
		       : sp_reg == ORC_REG_BP ? ORC_BY_BP
					      : ORC_BY_OTHER) |
	       below << 8 | off << 16;
}

#define ORC_HALVES 8 /* at once, of 32: loops in loops, so that the verifier follows few of their passes */

/* Search on for the row for the byte before k->pc, in k->table between k->between. False if it cannot be
 * read. */
__noinline int orc_halve(void)
{
	struct orc_walk *k = my_orc_walk();
	__u64 pc;
	__s32 rel;

	if (!k)
		return false;
	pc = k->pc - 1;
	for (__u32 i = 0; i < ORC_HALVES; i++) {
		const __u32 rows = k->between[1] - k->between[0], middle = k->between[0] + rows / 2;
		const __u64 at = k->table.ips + 4ULL * middle;

		if (rows < 2)
			break;
		if (bpf_probe_read_kernel(&rel, sizeof(rel), (void *)at))
			return false;
		/* without a branch, or the verifier would follow each way through the table */
		k->between[(pc - (at + rel)) >> 63 & 1] = middle;
	}
	return true;
}

/* The row for the byte before k->pc of k->table, in the kernel's memory. */
__noinline __u64 orc_find(void)
{
	union {
		struct orc_entry row;
		__u64 room; /* a bit-field is read as four bytes */
	} found = { .room = 0 };
	struct orc_walk *k = my_orc_walk();

	if (!k)
		return ORC_IS_OTHER;
	k->between[0] = 0;
	k->between[1] = k->table.rows;
	for (__u32 i = 0; i < 32 / ORC_HALVES; i++)
		if (!orc_halve())
			return ORC_IS_OTHER;
	if (bpf_core_type_size(struct orc_entry) != 6 ||
		bpf_probe_read_kernel(&found, 6, (void *)(k->table.entries + 6ULL * k->between[0])))
		return ORC_IS_OTHER;
	return orc_way(k, &found.row);
}

static __always_inline bool orc_knows_modules(void)
{
	return orc.modules && bpf_core_field_exists(((struct module___orc *)0)->arch.num_orcs) &&
	       (bpf_core_field_exists(((struct module_memory___orc *)0)->mtn) ||
		       bpf_core_field_exists(((struct module_layout___orc *)0)->mtn));
}

/* How often the tree of modules has changed. */
static __always_inline bool orc_count_changes(__u32 *ret)
{
	const struct mod_tree_root___orc *tree = (void *)orc.modules;

	return orc_knows_modules() && !bpf_probe_read_kernel(ret, sizeof(*ret), &tree->root.seq);
}

/* Where a part of a module in the tree has its node, its address and its length. */
static __always_inline __u64 orc_part_node(void)
{
	return bpf_core_field_exists(((struct module_memory___orc *)0)->mtn)
		       ? bpf_core_field_offset(struct module_memory___orc, mtn)
		       : bpf_core_field_offset(struct module_layout___orc, mtn);
}

static __always_inline __u64 orc_part_base(void)
{
	return bpf_core_field_exists(((struct module_memory___orc *)0)->mtn)
		       ? bpf_core_field_offset(struct module_memory___orc, base)
		       : bpf_core_field_offset(struct module_layout___orc, base);
}

static __always_inline __u64 orc_part_size(void)
{
	return bpf_core_field_exists(((struct module_memory___orc *)0)->mtn)
		       ? bpf_core_field_offset(struct module_memory___orc, size)
		       : bpf_core_field_offset(struct module_layout___orc, size);
}

/*
 * Find the table of the module that has the byte before k->pc, as the kernel does: of the two copies of the
 * tree the one that is not being changed. Returns whether there is one.
 */
__noinline int orc_find_module(void)
{
	const struct mod_tree_root___orc *tree = (void *)orc.modules;
	struct orc_walk *k = my_orc_walk();
	__u64 pc, node, part, base, step, to_part;
	struct module___orc *mod;
	__u32 size;

	if (!k || !orc_knows_modules())
		return false;
	pc = k->pc - 1;
	step = k->changes & 1;
	to_part = orc_part_node() + bpf_core_field_offset(struct mod_tree_node___orc, node) +
		  step * bpf_core_type_size(struct rb_node);
	if (bpf_probe_read_kernel(&node, sizeof(node),
		    (void *)&tree->root.tree + step * bpf_core_type_size(struct rb_root)))
		return false;
	for (int i = 0; i < ORC_TREE_DEPTH && node; i++) {
		part = node - to_part;
		if (bpf_probe_read_kernel(&base, sizeof(base), (void *)(part + orc_part_base())) ||
			bpf_probe_read_kernel(&size, sizeof(size), (void *)(part + orc_part_size())))
			return false;
		if (pc - base < size) {
			if (bpf_probe_read_kernel(&mod, sizeof(mod),
				    (void *)(part + orc_part_node() +
					     bpf_core_field_offset(struct mod_tree_node___orc, mod))))
				return false;
			k->table.ips = (__u64)BPF_CORE_READ(mod, arch.orc_unwind_ip);
			k->table.entries = (__u64)BPF_CORE_READ(mod, arch.orc_unwind);
			k->table.rows = BPF_CORE_READ(mod, arch.num_orcs);
			return k->table.rows > 0;
		}
		step = pc < base ? bpf_core_field_offset(struct rb_node, rb_left)
				 : bpf_core_field_offset(struct rb_node, rb_right);
		if (bpf_probe_read_kernel(&node, sizeof(node), (void *)(node + step)))
			return false;
	}
	return false;
}

/* The row for the return address k->pc, of a module: valid as long as the tree does not change. */
__noinline __u64 orc_module_way(void)
{
	struct orc_walk *k = my_orc_walk();
	__u64 way = ORC_IS_OUTSIDE;
	__u32 changes;

	if (!k)
		return ORC_IS_OTHER;
	if (orc_find_module())
		way = orc_find();
	if (!orc_count_changes(&changes) || changes != k->changes)
		way = ORC_IS_OTHER;
	return way | ORC_OF_MODULE | (__u64)k->changes << 32;
}

/* Remember the row for the return address k->pc, and return its way. */
__noinline __u64 orc_learn_row(void)
{
	struct orc_walk *k = my_orc_walk();
	struct orc_set *set;
	__u64 pc, way;

	if (!k)
		return ORC_IS_OTHER;
	pc = k->pc;
	way = ORC_IS_OUTSIDE;
	if (pc != orc.hooks[0] && pc != orc.hooks[1] && pc != orc.hooks[2] && pc != orc.hooks[3]) {
		if (pc > orc.text_start && pc <= orc.text_end) {
			k->table.ips = orc.ips;
			k->table.entries = orc.entries;
			k->table.rows = orc.rows;
			way = orc_find();
		} else if (k->counted) {
			way = orc_module_way();
		}
	}
	set = orc_set_of(k, pc);
	if (set->way[0].pc != pc)
		set->way[1] = set->way[0];
	set->way[0].pc = pc;
	set->way[0].way = way;
	return way;
}

/* The row for k->pc, if it is there. */
static __always_inline const struct orc_row *orc_row_of(struct orc_walk *k)
{
	const struct orc_set *set = orc_set_of(k, k->pc);

	return &set->way[set->way[0].pc != k->pc];
}

/* Is the row for k->pc there, and of a module that is still the same? Counts the changes once for each walk.
 */
static __always_inline bool orc_keeps_row(struct orc_walk *k)
{
	const struct orc_row *row = orc_row_of(k);

	if (!k->counted)
		k->counted = orc_count_changes(&k->changes);
	return k->counted && row->pc == k->pc && row->way & ORC_OF_MODULE && row->way >> 32 == k->changes;
}

/*
 * Where the stack with SP ends: at the registers of user mode, or, if it is that of interrupts, not known. It
 * is not known of idle threads either: bpf_task_pt_regs() was seen to return an address elsewhere for them.
 */
static __always_inline __u64 orc_end(const struct orc_walk *k, __u64 sp)
{
	return k->regs - sp <= THREAD_STACK_MAX ? k->regs : sp + IRQ_STACK_MAX;
}

/*
 * Read the stack from AT, which is not below the walk's SP - 8, to the end of the window or of the stack.
 * Where that is not known it ends with a page: to read what is not there costs more than the walk.
 */
static __always_inline bool orc_read(struct orc_walk *k, __u64 at)
{
	const __u64 page = ORC_PAGE - (at & (ORC_PAGE - 1));
	__u64 len = k->end - at;

	if (at > k->end)
		return false;
	if (k->end != k->regs && len > page)
		len = page;
	if (len > ORC_WINDOW)
		len = ORC_WINDOW;
	k->window_at = at;
	k->window_len = len;
	barrier_var(len);
	if (len < 8 || len > ORC_WINDOW)
		return false;
	return !bpf_probe_read_kernel(k->window, len, (void *)at);
}

enum { ORC_MORE = 16, ORC_NEED_ROW, ORC_NEED_WINDOW };

/* A step by WAY that reads return address RA at address AT is part of the walk's trail. See known_trail(). */
__noinline int orc_trail(__u64 at, __u64 ra, __u64 way)
{
	struct orc_walk *k = my_orc_walk();
	struct trail *t;

	t = k ? trail_of(k->trail) : NULL;
	if (t)
		trail_step(t, at, ra, way & ORC_BY_BP, k->bp, &k->bp_from);
	return 0;
}

/*
 * Go from frame to frame, at most ORC_STEPS times. Returns why it stopped: one of the above, or the kind of
 * the last frame's row. SP and BP stay in memory, as in known_steps().
 */
__noinline int orc_steps(void)
{
	struct orc_walk *k = my_orc_walk();
	struct scratch *s = my_scratch();
	__u64 *frames, pc;
	__u32 n, at;

	if (!k || !s)
		return ORC_IS_OTHER;
	n = at = k->len;
	barrier_var(at);
	if (at > ORC_FRAMES_MAX - ORC_STEPS)
		return ORC_IS_OTHER;
	frames = s->ev.frames + at;
	pc = k->pc;
#pragma unroll
	for (__u32 i = 0; i < ORC_STEPS; i++) {
		const struct orc_row *row = &orc_set_of(k, pc)->way[0];
		__u64 way, cfa, below, ra_at, bp_at;

		k->pc = pc;
		k->len = n + i;
		if (row->pc != pc && (++row)->pc != pc)
			return ORC_NEED_ROW;
		way = row->way;
		if (way & ORC_OF_MODULE) {
			if (!k->counted || way >> 32 != k->changes)
				return ORC_NEED_ROW;
			way = (__u32)way & ~ORC_OF_MODULE;
			k->trail = 0;
		}
		frames[i] = pc;
		if ((way & 0xff) > ORC_BY_BP) {
			k->len = n + i + 1;
			k->sp += way >> 16;
			return way & 0xff;
		}
		cfa = (way & ORC_BY_BP ? k->bp : k->sp) + (way >> 16);
		if (cfa <= k->sp || cfa & 7 || cfa > k->end)
			return ORC_IS_OTHER;
		below = way >> 5 & 0x7f8;
		ra_at = cfa - 8 - k->window_at;
		bp_at = below ? cfa - below - k->window_at : ra_at;
		if (ra_at >= k->window_len || bp_at >= k->window_len) {
			k->missed = k->window_at + bp_at;
			return ORC_NEED_WINDOW;
		}
		pc = k->window[ra_at >> 3 & (ORC_WINDOW / 8 - 1)];
		orc_trail(cfa - 8, pc, way);
		if (below) {
			k->bp = k->window[bp_at >> 3 & (ORC_WINDOW / 8 - 1)];
			k->bp_from = cfa - below;
		}
		k->sp = cfa;
	}
	k->pc = pc;
	k->len = n + ORC_STEPS;
	return ORC_MORE;
}

/*
 * The frame at k->pc, the last one, is on the stack of interrupts, and the word at its SP is the SP of the
 * stack that it was called on: go on there.
 */
__noinline int orc_change_stack(void)
{
	struct orc_walk *k = my_orc_walk();
	__u64 way, cfa, below;

	if (!k)
		return ORC_IS_OTHER;
	k->trail = 0;
	way = (__u32)orc_row_of(k)->way;
	if (!orc_read(k, k->sp - (way >> 16)))
		return ORC_IS_OTHER;
	cfa = k->window[0] + (way >> 16);
	if (cfa & 7)
		return ORC_IS_OTHER;
	k->end = orc_end(k, cfa);
	below = way >> 5 & 0x7f8;
	if (!orc_read(k, below ? cfa - below : cfa - 8))
		return ORC_IS_OTHER;
	if (below)
		k->bp = k->window[0];
	k->pc = k->window[below ? (below - 8) >> 3 & (ORC_WINDOW / 8 - 1) : 0];
	k->sp = cfa;
	return ORC_MORE;
}

/* orc_steps(), and read what it misses. */
__noinline int orc_advance(void)
{
	struct orc_walk *k = my_orc_walk();
	int why = orc_steps();

	if (!k)
		return ORC_IS_OTHER;
	if (why == ORC_NEED_ROW && !orc_keeps_row(k))
		orc_learn_row();
	else if (why == ORC_NEED_WINDOW)
		return k->missed >= k->sp - 8 && orc_read(k, k->missed) ? ORC_MORE : ORC_IS_OTHER;
	else if (why == ORC_BY_OTHER)
		return orc_change_stack();
	return why == ORC_NEED_ROW ? ORC_MORE : why;
}

/* The walk has ended at k->sp. */
static __always_inline void orc_trail_end(struct orc_walk *k)
{
	struct trail *t = k->trail ? trail_of(k->trail) : NULL;

	if (!t)
		return;
	t->end = k->sp - t->origin;
	if (t->n > 1 && !orc_start_of(k)->caller)
		orc_start_of(k)->caller = t->steps[1].at;
}

#define ORC_ADVANCES 8

/* The next advances of a walk. Returns ORC_MORE, or why it ends. */
__noinline int orc_advances(void)
{
	int why = ORC_MORE;

	for (__u32 i = 0; i < ORC_ADVANCES && why == ORC_MORE; i++)
		why = orc_advance();
	return why;
}

/*
 * Walk the stack of the current thread, as my_orc_walk() describes it, into the scratch event.
 * Returns the number of frames, or enum orc_refusal. USER: k->regs have the registers of user mode.
 */
static __always_inline int orc_walk(bool user)
{
	struct orc_walk *k = my_orc_walk();
	struct scratch *s = my_scratch();
	struct orc_start *start;
	int why = ORC_MORE;

	if (!k || !s || !orc.rows)
		return ORC_UNREADY;
	start = orc_start_of(k);
	if (!start->ra)
		return ORC_UNREADY;
	k->end = orc_end(k, k->ctx);
	if (!orc_read(k, k->ctx - start->back - 8))
		return ORC_UNPROVED;
	if (k->window[0] != start->ra) {
		start->ra = 0; /* another call of the same function: with the statistics of BPF, or without */
		return ORC_UNREADY;
	}
	s->ev.frames[0] = start->own;
	k->counted = false;
	k->len = 1;
	k->pc = start->ra;
	k->sp = k->window_at + 8;
	k->bp = 0; /* not known: a frame by it is refused until a frame has saved it */
	k->bp_from = TRAIL_FP_BEFORE;
	for (__u32 i = 0; i < 2 * ORC_FRAMES_MAX && why == ORC_MORE; i += ORC_ADVANCES)
		why = orc_advances();
	orc_trail_end(k);
	if (why == ORC_AT_REGS)
		return (user && k->sp == k->regs) || (k->event == ORC_WAKING && enters_kernel(k->pc))
			       ? k->len
			       : ORC_INTERRUPT;
	return why == ORC_AT_END         ? (int)k->len
	       : why == ORC_IS_OUTSIDE   ? ORC_OUTSIDE
	       : why == ORC_IS_INTERRUPT ? ORC_INTERRUPT
					 : ORC_UNPROVED;
}

#define ORC_MATCHES 8 /* words at once */

/*
 * Which of the words from the FIRST on of the window, which ends at the context, has RA, and is less than
 * SIZE before that? Of each: how far before the context the word behind it is, and one in the upper half.
 */
__noinline __u64 orc_match(__u32 first, __u64 ra, __u64 size)
{
	struct orc_walk *k = my_orc_walk();
	__u64 before, sum = 0;

	if (!k || first > ORC_WINDOW / 8 - ORC_MATCHES)
		return 0;
	before = ORC_WINDOW - 8ULL * first;
	for (__u32 i = 0; i < ORC_MATCHES; i++, before -= 8) {
		__u64 differs = k->window[first + i] ^ ra, beyond = size - before;

		/* 1 or 0: without a branch, as above */
		differs = (differs | -differs | beyond) >> 63;
		barrier_var(differs);
		sum += (1 - differs) * (1ULL << 32 | (before - 8));
	}
	return sum;
}

/*
 * Learn where walks begin from a stack that bpf_get_stack() has left in the scratch event. The context is in
 * the frame of the function that called this program. The row of the return address there has the frame's
 * size, so SP is less than that before the context, and the return address is in the word before SP. If
 * one word alone in that range has it, it is this one. The row also tells how registers are numbered: the
 * frame of this function is by SP in one of the two numberings only.
 */
__noinline int orc_learn_start(void)
{
	struct orc_walk *k = my_orc_walk();
	struct scratch *s = my_scratch();
	__u64 ra, size, matches = 0;
	struct orc_start *start;
	__u64 way;

	if (!k || !s || !orc.rows || s->ev.len < 3)
		return 0;
	start = orc_start_of(k);
	/* the numbering is learned once */
	if (k->event != ORC_SWITCH && !k->starts[ORC_SWITCH].ra)
		return 0;
	ra = s->ev.frames[1];
	k->pc = ra;
	if (k->event == ORC_SWITCH)
		k->renumbered = false;
	way = orc_learn_row();
	if (k->event == ORC_SWITCH && (way & 0xff) != ORC_BY_SP) {
		k->renumbered = true;
		way = orc_learn_row();
	}
	size = way >> 16;
	if ((way & 0xff) != ORC_BY_SP || size > ORC_WINDOW ||
		bpf_probe_read_kernel(k->window, ORC_WINDOW, (void *)(k->ctx - ORC_WINDOW)))
		return 0;
	for (__u32 i = 0; i < ORC_WINDOW / 8; i += ORC_MATCHES)
		matches += orc_match(i, ra, size);
	if (matches >> 32 != 1)
		return 0;
	start->back = (__u32)matches;
	start->own = s->ev.frames[0];
	start->trusted = 0;
	start->ra = ra;
	return 0;
}

static __always_inline void count_refusal(struct offcpu_counters *c, int why)
{
	if (why == ORC_OUTSIDE)
		c->kernel_outside++;
	else if (why == ORC_INTERRUPT)
		c->kernel_interrupt++;
	else if (why == ORC_UNPROVED)
		c->kernel_unproved++;
	else
		c->kernel_unready++;
}

/*
 * Walk the stack of the current thread into the scratch event. Returns the number of frames; 0 =
 * bpf_get_stack() is needed, and if k->after then orc_after(). USER as in orc_walk().
 */
__noinline int orc_take(__u32 user)
{
	struct orc_walk *k = my_orc_walk();
	struct scratch *s = my_scratch();
	int n;

	if (!k || !s)
		return 0;
	n = orc_walk(user);
	/* let the helper decide what is cut */
	if (n > 0 && ((__u32)n > depth + OFFCPU_OWN_FRAMES || (__u32)n >= max_stack))
		n = ORC_UNPROVED;
	k->walked.hi = 0;
	k->after = n == ORC_UNREADY;
	s->walk.trail = 0;
	if (n <= 0) {
		count_refusal(&s->count, n);
		return 0;
	}
	s->walk.trail = k->trail;
	if (!verify_stacks && orc_start_of(k)->trusted >= ORC_TRIALS) {
		s->count.kernel_walked++;
		return n;
	}
	taken_stack(&s->ev, 8L * n, KIND_KERNEL);
	no_scripts(&s->ev);
	hash_frames();
	k->walked = s->ev.id;
	k->after = true;
	return 0;
}

/* No word of a walk lies elsewhere than at a multiple of eight; 0 is no return address and no place on the
 * stack. */
static __always_inline __u64 orc_word(const void *base, __u64 at)
{
	return at & 7 ? 0 : kernel_word((__u64)base + at);
}

/*
 * Does the stack of k->size bytes at k->base, up to the registers of user mode, have the next steps of trail
 * k->trail? A function of its own, because the verifier follows a loop step by step.
 */
__noinline int orc_same_steps(__u32 from)
{
	struct orc_walk *k = my_orc_walk();
	const struct trail *t;

	if (!cast_type || !k || from > TRAIL_STEPS - TRAIL_AT_ONCE)
		return false;
	t = trail_of(k->trail);
	return t && trail_goes_on(t, from, &k->match, orc_word, (void *)k->base, k->base, k->size, 0, NULL);
}

static __always_inline bool orc_same_trail(struct orc_walk *k, const struct trail *t, __u64 base, __u64 size)
{
	if (!t->id.hi)
		return false;
	k->base = base;
	k->size = size;
	k->match = (struct trail_match){};
	for (__u32 i = 0; i < TRAIL_STEPS && i < t->n; i += TRAIL_AT_ONCE)
		if (!orc_same_steps(i))
			return false;
	return k->match.origin + t->end == size;
}

/*
 * Recognise the stack of the current thread, as my_orc_walk() describes it, by its trail: then its ID is in
 * the scratch event. A walk that is needed leaves its trail in k->trail.
 */
__noinline int orc_recognise(__u64 call)
{
	struct orc_walk *k = my_orc_walk();
	struct scratch *s = my_scratch();
	const struct orc_start *start;
	__u64 base, size, key;
	struct trail *t;

	if (!k || !s)
		return false;
	start = orc_start_of(k);
	base = k->ctx - start->back - 8;
	size = k->regs - base;
	if (!cast_type || !orc.rows || !start->ra || start->trusted < ORC_TRIALS || size > THREAD_STACK_MAX ||
		kernel_word(base) != start->ra)
		return false;
	key = trail_key(call, start->caller < size ? kernel_word(base + start->caller) : 0);
	k->trail = trail_number(false, key);
	t = trail_of(k->trail);
	if (!t)
		return false;
	if (t->begin[0] == start->own && t->begin[1] == start->ra && t->begin[2] == start->back &&
		t->epoch == epoch && orc_same_trail(k, t, base, size)) {
		s->ev.id = t->id;
		return true;
	}
	t->begin[0] = start->own;
	t->begin[1] = start->ra;
	t->begin[2] = start->back;
	trail_begin(t, key, base);
	return false;
}

/* bpf_get_stack() has taken the stack in the scratch event, and it is identified: compare it, or learn from
 * it. */
__noinline int orc_after(void)
{
	struct orc_walk *k = my_orc_walk();
	struct scratch *s = my_scratch();

	if (!k || !s)
		return 0;
	if (!k->walked.hi)
		return orc_learn_start();
	s->count.kernel_compared++;
	if (s->ev.id.hi == k->walked.hi && s->ev.id.lo == k->walked.lo) {
		orc_start_of(k)->trusted++;
	} else {
		s->count.kernel_differs++;
		orc.rows = 0; /* no walk on any CPU from now on */
	}
	return 0;
}

#endif

/* The kernel stack of TASK, the current thread, which is about to leave the CPU. */
static __always_inline struct offcpu_stack_id kernel_stack(void *ctx, struct task_struct *task,
	struct scratch *s, struct offcpu_wait *w, const struct offcpu_stack_id *last)
{
	struct offcpu_stack_id id;
	long n = 0;
#if defined(__TARGET_ARCH_x86) && !defined(OFFCPU_RAW)
	struct orc_walk *k = my_orc_walk();

	if (!k)
		return no_stack(REASON_MEMORY);
	k->after = false;
	/* the helper is there since Linux 5.15, which the walk of user stacks by table needs as well */
	if (by_table || !user_stacks) {
		const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

		k->ctx = (__u64)ctx;
		k->regs = (__u64)regs;
		k->event = ORC_SWITCH;
		k->trail = 0;
		if ((regs->cs & 3) == 3 && orc_recognise(arch_syscall(regs))) {
			if (!verify_stacks) {
				s->count.kernel_walked++;
				return s->ev.id;
			}
			k->walked = s->ev.id;
			k->after = true;
		} else {
			n = 8L * orc_take((regs->cs & 3) == 3);
		}
	}
#endif
	if (n <= 0)
		n = bpf_get_stack(ctx, s->ev.frames, stack_bytes(KIND_KERNEL), 0);
	id = helper_stack(s, w, last, n, KIND_KERNEL);
#if defined(__TARGET_ARCH_x86) && !defined(OFFCPU_RAW)
	if (k->after && n > 0)
		orc_after();
#endif
	return id;
}

#endif
