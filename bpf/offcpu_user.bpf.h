/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user stack of a wait, by unwind tables or by frame pointer. Part of offcpu.bpf.c. */
#ifndef STACKTOOLS_OFFCPU_USER_BPF_H
#define STACKTOOLS_OFFCPU_USER_BPF_H

/* Report to user space, once per thread, that this image needs unwind tables. */
static __always_inline void ask_tables(struct offcpu_wait *w, const struct offcpu_key *key)
{
	struct offcpu_ev_image ev = { .type = OFFCPU_EV_IMAGE };

	if (w->requested == key->exec_id + 1)
		return;
	ev.tgid = key->tgid;
	ev.start_boot_ns = key->start_boot_ns;
	ev.exec_id = key->exec_id;
	if (!bpf_ringbuf_output(&ring, &ev, sizeof(ev), BPF_RB_FORCE_WAKEUP))
		w->requested = key->exec_id + 1;
}

const volatile bool report_forks; /* no perf event reports forks to user space */

/* Let CHILD, with ID, walk by the tables of PARENT, whose leader has the ID FROM_ID. */
static __always_inline void share_tables(
	struct task_struct *parent, __u32 from_id, struct task_struct *child, __u32 id)
{
	struct task_struct *leader = BPF_CORE_READ(parent, group_leader);
	struct unwind_proc copy, *from;

	from = bpf_map_lookup_elem(&unwind_procs, &from_id);
	if (!from || from->exec_id != image_execs(parent, from_id) ||
		from->start_boot_ns != image_start(leader))
		return;
	copy = *from;
	copy.start_boot_ns = image_start(child);
	copy.exec_id = image_execs_new(child);
	copy.mapping = 0;
	bpf_map_update_elem(&unwind_procs, &id, &copy, BPF_ANY);
}

/* A new process walks by its parent's tables from the first instruction; user space follows later. */
EVENT("sched_process_fork")
int BPF_PROG(tables_fork, struct task_struct *parent, struct task_struct *child)
{
	struct offcpu_ev_image ev = { .type = OFFCPU_EV_FORK };

	if (!is_leader(child) || (report_forks && (hot.phase == OFFCPU_FROZEN || !wanted(child))))
		return 0;
	ev.tgid = our_id(child);
	ev.parent = our_id(BPF_CORE_READ(parent, group_leader));
	if (!ev.tgid)
		return 0;
	share_tables(parent, ev.parent, child, ev.tgid);
	ev.start_boot_ns = image_start(child);
	ev.exec_id = image_execs_new(child);
	/* made in the recorded cgroup by a process outside: no event that it inherits reports it */
	if (!report_forks && use_cgroup && wanted(child) && !in_cgroup(parent)) {
		ev.type = OFFCPU_EV_IMAGE;
		bpf_ringbuf_output(&ring, &ev, sizeof(ev), BPF_RB_FORCE_WAKEUP);
	}
	if (!report_forks)
		return 0;
	ev.time_ns = bpf_ktime_get_ns();
	/* the child has not run yet: it must not have tables that user space does not know about */
	if (bpf_ringbuf_output(&ring, &ev, sizeof(ev), BPF_RB_NO_WAKEUP))
		bpf_map_delete_elem(&unwind_procs, &ev.tgid);
	return 0;
}

/*
 * The current process gets a new address for a mapping, which may hold another
 * library than before. Reported once, until user space is about to read the
 * mappings; before Linux 6.17, reading them waits for the lock that is held here.
 */
EVENT("vm_unmapped_area")
int tables_map(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct offcpu_ev_image ev = { .type = OFFCPU_EV_MAPPING };
	struct unwind_proc *proc;

	ev.tgid = our_id(BPF_CORE_READ(task, group_leader));
	proc = bpf_map_lookup_elem(&unwind_procs, &ev.tgid);
	if (!proc || proc->mapping)
		return 0;
	ev.start_boot_ns = proc->start_boot_ns;
	ev.exec_id = proc->exec_id;
	ev.time_ns = bpf_ktime_get_ns();
	/* before the report: user space clears it, and can run before the next line does */
	proc->mapping = 1;
	if (bpf_ringbuf_output(&ring, &ev, sizeof(ev), BPF_RB_FORCE_WAKEUP))
		proc->mapping = 0;
	return 0;
}

/* The image of TASK will need tables: report it to user space before its first wait. */
static __always_inline void report_image(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct offcpu_ev_image ev = { .type = OFFCPU_EV_IMAGE };

	if (hot.phase == OFFCPU_FROZEN || !wanted(task) || not_owned(task))
		return;
	ev.tgid = our_id(leader);
	ev.start_boot_ns = image_start(leader);
	ev.exec_id = image_execs(task, ev.tgid);
	if (ev.tgid)
		bpf_ringbuf_output(&ring, &ev, sizeof(ev), BPF_RB_FORCE_WAKEUP);
}

static __always_inline void life_of_image(struct task_struct *task);

EVENT("sched_process_exec")
int BPF_PROG(tables_exec, struct task_struct *task)
{
	report_image(task);
	life_of_image(task);
	return 0;
}

/* The user registers that TASK, which is current, saved on kernel entry; *ADDRESS is where they are. */
static __always_inline const struct pt_regs *user_regs(
	struct task_struct *task, struct scratch *s, __u64 *address)
{
#ifdef OFFCPU_RAW
	*address = (__u64)BPF_CORE_READ(task, stack) + regs_from_stack;
	bpf_probe_read_kernel(s->regs, sizeof(s->regs), (void *)*address);
	return (const void *)s->regs;
#else
	const struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	*address = (__u64)regs;
	return regs;
#endif
}

/* Start at the frame that entered the kernel: the registers that a walk can follow, */
static __always_inline void walk_registers(struct unwind_walk *u, const struct pt_regs *regs, __u64 now)
{
	u->bytes = arch_is_32bit(regs) ? 4 : 8;
	u->mask = is_narrow(u) ? 0xffffffff : ~0ULL;
	u->pc = PT_REGS_IP(regs) & u->mask;
	u->sp = PT_REGS_SP(regs) & u->mask;
	u->fp = PT_REGS_FP(regs) & u->mask;
	u->now_ns = now;
	u->serial = 0;
	u->runtime = 0;
	u->reason = 0;
	u->verdict = VERDICT_UNVERIFIED;
}

/* and all else. */
static __always_inline void walk_begin(struct unwind_walk *u, const struct pt_regs *regs, __u64 regs_address)
{
	u->regs = u->entry_regs = regs_address;
	u->bx_from = BX_AT_ENTRY;
	u->ucontext = 0;
	u->need = u->need_code = u->here.at = u->there.at = 0;
	u->map_start = u->map_end = 0;
	u->window_at = u->window_starts = 0;
	u->len = 0;
	u->exact = 1;
	u->fp_known = 1;
	u->by_fp = 0;
	u->fp_from = 0;
	if (ARCH_LR)
		u->sp_lost = 0;
	u->blob_at = u->need_blob = 0;
	u->blobs = 0;
	u->n_java = 0;
	u->v8_table = 0;
	u->v8_copy = u->v8_low = u->v8_high = 0;
	u->retry = u->stacks = 0;
	u->in_syscall = arch_in_syscall(regs);
	u->go_came = GO_NOT_YET;
	u->go_have = u->go_copies = 0;
	u->go_sp = u->go_next = 0;
}

/*
 * The mappings to walk by. Returns false if the image has none yet. The
 * identity is compared last: the kernel may give the element to another process
 * while it is read, and the identity of that process is written first.
 */
static __always_inline bool walk_maps(
	struct unwind_walk *u, struct offcpu_wait *w, const struct offcpu_key *key)
{
	const volatile struct unwind_proc *proc = bpf_map_lookup_elem(&unwind_procs, &key->tgid);

	if (proc) {
		u->serial = proc->serial;
		u->maps_chunk = proc->chunk;
		u->maps_at = proc->grain * UNWIND_GRAIN;
		u->n_maps = proc->maps;
		u->runtime = proc->runtime;
		u->runtime_bias = proc->runtime_bias;
		if (proc->exec_id == key->exec_id && proc->start_boot_ns == key->start_boot_ns)
			return true;
	}
	ask_tables(w, key);
	return stop(u, REASON_NOT_READY);
}

/*
 * The main thread's stack begins right below start_stack: a frame there that
 * has no caller is the program's entry. An innermost frame at start_stack
 * itself, with a table or without, has called nothing yet. Both are proved: the
 * kernel set start_stack, and nothing but the program's arguments is above it.
 */
static __always_inline bool at_entry(const struct unwind_walk *u, struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 bottom = mm ? BPF_CORE_READ(mm, start_stack) : 0;

	if (u->reason == REASON_NO_ROW || u->reason == REASON_NO_FRAME_POINTER)
		return bottom - u->sp <= 64;
	return u->len <= 1 && bottom == u->sp;
}

/*
 * Would the walk that just ended go further with tables or mappings that user
 * space has not published yet?
 */
static __always_inline bool lacks_tables(const struct scratch *s)
{
	return s->ev.kind == KIND_USER &&
	       (s->ev.reason == REASON_NOT_READY || s->ev.reason == REASON_NO_MAPPING);
}

/*
 * Turn the result of the walk of TASK, the thread of KEY, into the scratch
 * event, and send it if it is new. OTHER: the same task if it is not running.
 */
static __always_inline struct offcpu_stack_id walk_end(struct scratch *s, struct offcpu_wait *w,
	const struct offcpu_key *key, struct task_struct *task, struct task_struct *other)
{
	const struct offcpu_stack_id *last = &key->user;
	struct unwind_walk *u = &s->walk;

	if (u->verdict == VERDICT_STOPPED && at_entry(u, task))
		u->verdict = VERDICT_COMPLETE;
	if (u->verdict != VERDICT_STOPPED)
		u->reason = u->verdict == VERDICT_TRUNCATED && u->by_fp ? REASON_DEPTH : 0;
	/* inner frames can be missing, whatever the end is */
	if (u->by_fp)
		u->verdict = VERDICT_UNVERIFIED;
	if (!u->len) {
		s->ev.frames[0] = u->pc;
		u->len = 1;
	}
	walk_to_event(s);
	/* no call may be left behind this: clang does not set arguments that a function does not use */
	if (!SCRIPTS || !u->runtime)
		return identify(s, w, last);
	no_scripts(&s->ev);
	if (WATCHED(RUNTIME_JAVA) && hotspot_of(u)) {
		scripts_init(s, key, 0);
		find_java(other, s);
		if (is_new(s, w, last))
			w->unsent |= put(&s->ev, s, name_java(other, s)) ? 0 : 2;
		return s->ev.id;
	}
	if (WATCHED(RUNTIME_V8) && v8_of(u)) {
		scripts_init(s, key, 0);
		find_v8(other, s);
		if (is_new(s, w, last))
			w->unsent |= put(&s->ev, s, name_v8(other, s)) ? 0 : 2;
		return s->ev.id;
	}
	scripts_init(s, key, tls_of(task));
	if (!other && same_scripts())
		return s->ev.id;
	find_scripts(other, s);
	if (is_new(s, w, last))
		w->unsent |= put(&s->ev, s, name_scripts(other, s)) ? 0 : 2;
	if (!other)
		keep_scripts();
	return s->ev.id;
}

/* One frame of the walk; false if it has ended, or needs memory. */
__noinline int walk_step(void)
{
	struct scratch *s = this_scratch();

	return s && step(&s->walk, s->ev.frames);
}

enum { OWN_ENDED, OWN_MORE, OWN_UNKNOWN };

/* Several frames from the cache of known rules. OWN_UNKNOWN: it does not have the next one. */
__noinline int own_known(void)
{
	struct unwind_known_sets *known;
	struct scratch *s = my_scratch();
	struct unwind_walk *u;
	__u32 zero = 0, len;

	known = bpf_map_lookup_elem(&unwind_known, &zero);
	if (!s || !known)
		return OWN_ENDED;
	u = &s->walk;
	len = u->len;
	if (known_can(u)) {
		if (!known_steps(u, s->ev.frames, known))
			return OWN_ENDED;
		if (u->len != len)
			return OWN_MORE;
	}
	s->walk.trail = 0; /* steps by other rules depend on more than the stack */
	return OWN_UNKNOWN;
}

#define OWN_STEPS 32

/* So many steps by that cache or by the tables; false if the walk has ended. */
__noinline int own_some(void)
{
	for (int i = 0; i < OWN_STEPS; i++) {
		int more = own_known();

		if (!(more == OWN_UNKNOWN ? walk_step() : more))
			return false;
	}
	return true;
}

static __always_inline __u64 trail_word(const void *stack, __u64 at)
{
	return *(__u64 *)(((const struct trail_stack *)stack)->bytes + (at & (TRAIL_BYTES - 1)));
}

/*
 * Does current's stack, whose first t->bytes are copied, have the next steps of the trail? Then their frames
 * are in the scratch event. See orc_same_steps().
 */
__noinline int same_steps(__u32 from)
{
	struct scratch *s = my_scratch();
	struct trail_stack *stack;
	const struct trail *t;
	__u32 zero = 0;

	stack = bpf_map_lookup_elem(&trail_stacks, &zero);
	if (!s || !stack || from > TRAIL_STEPS - TRAIL_AT_ONCE)
		return false;
	t = trail_of(s->walk.trail);
	return t && trail_goes_on(t, from, &stack->match, trail_word, stack, s->walk.sp, t->bytes, s->walk.fp,
			    s->ev.frames + 1 + from);
}

static __always_inline bool same_trail(const struct trail *t, struct trail_stack *stack)
{
	stack->match = (struct trail_match){};
	for (__u32 i = 0; i < TRAIL_STEPS && i < t->n; i += TRAIL_AT_ONCE)
		if (!same_steps(i))
			return false;
	return true;
}

/* Does the process have a virtual machine that knows what made its code? Such a walk depends on more. */
static __always_inline bool is_made(const struct unwind_walk *u)
{
	return u->runtime && ((WATCHED(RUNTIME_JAVA) && hotspot_of(u)) || (WATCHED(RUNTIME_V8) && v8_of(u)));
}

/* The walk that leaves a trail has led to frames that those of an interpreter's functions will follow. */
__noinline int trail_to_frames(void)
{
	struct scratch *s = my_scratch();
	struct trail_stack *stack;
	__u32 zero = 0;
	struct trail *t;

	hash_native();
	t = s ? trail_of(s->walk.trail) : NULL;
	stack = bpf_map_lookup_elem(&trail_stacks, &zero);
	if (!t || !stack)
		return 0;
	s->walk.trail = 0;
	s->walk.found = TRAIL_HAS_FRAMES;
	stack->id = s->ev.id;
	trail_end(t, &s->ev.id, epoch);
	return 0;
}

/*
 * Recognise the user stack of current by its trail: then its ID is in the scratch event. A walk that is
 * needed leaves its trail in s->walk.trail. False with TRAIL_TO_COMPARE: a walk is wanted all the same, and
 * then compare_own(). With TRAIL_HAS_FRAMES: the frames are there, and those of an interpreter's functions
 * are wanted.
 */
__noinline int recognise_own(void)
{
	struct scratch *s = my_scratch();
	struct trail_stack *stack;
	struct unwind_walk *u;
	__u32 zero = 0;
	struct trail *t;
	__u64 bytes, key;

	if (!s)
		return false;
	u = &s->walk;
	u->tag = known_tag(u) | (is_narrow(u) ? KNOWN_NEVER : 0);
	u->found = TRAIL_NOT_FOUND;
	if (is_narrow(u) || mistaken || is_made(u))
		return false;
	key = trail_key(u->pc, u->serial ^ (u->sp & 4095) << 16);
	s->walk.trail = trail_number(true, key);
	t = trail_of(s->walk.trail);
	stack = bpf_map_lookup_elem(&trail_stacks, &zero);
	if (!t || !stack)
		return false;
	bytes = t->bytes;
	barrier_var(bytes);
	if (t->begin[0] == u->pc && t->begin[1] == u->tag && t->begin[2] == u->runtime && t->epoch == epoch &&
		t->id.hi && bytes <= TRAIL_BYTES &&
		!bpf_probe_read_user(stack->bytes, bytes, (void *)u->sp) && same_trail(t, stack)) {
		s->walk.trail = 0;
		s->ev.id = stack->id = t->id;
		s->count.user_recognised++;
		s->ev.frames[0] = u->pc;
		u->n_found = t->n + 1;
		u->found =
			verify_stacks || stack->compared < TRAIL_TRIALS ? TRAIL_TO_COMPARE : TRAIL_HAS_FRAMES;
		return u->found == TRAIL_HAS_FRAMES && !u->runtime;
	}
	t->begin[0] = u->pc;
	t->begin[1] = u->tag;
	t->begin[2] = u->runtime;
	trail_begin(t, key, u->sp);
	return false;
}

/* The walk of current's stack, which was recognised, has found the frames in the scratch event. */
__noinline int compare_own(void)
{
	struct scratch *s = my_scratch();
	struct trail_stack *stack;
	__u32 zero = 0;

	stack = bpf_map_lookup_elem(&trail_stacks, &zero);
	if (!s || !stack)
		return 0;
	hash_native();
	stack->compared++;
	s->count.user_compared++;
	if (s->ev.id.hi != stack->id.hi || s->ev.id.lo != stack->id.lo) {
		s->count.user_differs++;
		mistaken = 1;
	}
	return 0;
}

/* Walk by the tables and by the cache of known rules. */
static __always_inline void walk_own(struct scratch *s)
{
	struct unwind_walk *u = &s->walk;

	read_window(u->sp);
	for (int i = 0; i < OFFCPU_DEPTH_MAX + 2; i += OWN_STEPS)
		if (!own_some())
			break;
	if (u->verdict != VERDICT_COMPLETE)
		s->walk.trail = 0;
	if (u->found == TRAIL_TO_COMPARE)
		compare_own();
	else if (s->walk.trail && u->runtime)
		trail_to_frames();
}

/* The walk would have led to the frames in the scratch event. */
static __always_inline void walk_found(struct unwind_walk *u)
{
	u->len = u->n_found;
	u->verdict = VERDICT_COMPLETE;
}

/* The user stack of TASK, which is current. */
static __always_inline struct offcpu_stack_id user_stack(void *ctx, struct task_struct *task,
	struct scratch *s, struct offcpu_wait *w, struct offcpu_key *key, __u64 now)
{
	__u32 reason = no_user_reason(task);
	const struct pt_regs *regs;
	struct unwind_walk *u = &s->walk;
	struct offcpu_stack_id id;
	__u64 regs_address;

	w->pending = 0;
	s->walk.trail = 0;
	if (reason)
		return no_stack(reason);
	if (!by_table) {
		long n = bpf_get_stack(ctx, s->ev.frames, stack_bytes(KIND_USER), BPF_F_USER_STACK);

		return helper_stack(s, w, &key->user, n, KIND_USER);
	}
	regs = user_regs(task, s, &regs_address);
	walk_registers(u, regs, now);
	u->found = TRAIL_NOT_READY;
	if (walk_maps(u, w, key) && recognise_own())
		return s->ev.id;
	/* again, not kept: 512 bytes of stack are for the program and all functions on the way */
	regs = user_regs(task, s, &regs_address);
	walk_begin(u, regs, regs_address);
	if (u->found == TRAIL_HAS_FRAMES)
		walk_found(u);
	else if (u->found != TRAIL_NOT_READY)
		walk_own(s);
	id = walk_end(s, w, key, task, NULL);
	w->pending = lacks_tables(s);
	return snapshots && w->pending ? snapshot(task, s, w, key, regs, now, id) : id;
}

#ifndef OFFCPU_RAW

/* Read the window around ADDR: related words lie on both sides of it. */
static __always_inline bool other_window(struct unwind_walk *u, struct task_struct *task, __u64 addr)
{
	__u64 from = addr - UNWIND_WINDOW / 2;
	__u32 len = UNWIND_WINDOW;

	if (bpf_copy_from_user_task(u->window, len, (void *)from, task, 0)) {
		from = addr;
		len = window_len(u, addr);
		if (bpf_copy_from_user_task(u->window, len, (void *)from, task, 0))
			return false;
	}
	u->window_at = from;
	u->window_starts = len - u->bytes + 1;
	return true;
}

/* As code_around() for current; code that cannot be read proves nothing. */
static __always_inline void other_code(struct unwind_code *c, struct task_struct *task, __u64 addr)
{
	c->at = addr;
	if (!bpf_copy_from_user_task(&c->before, 16, (void *)(addr - 8), task, 0))
		return;
	c->after = 0;
	if (bpf_copy_from_user_task(&c->before, 8, (void *)(addr - 8), task, 0))
		c->before = 0;
}

static long other_step(__u32 i, struct other_task *o)
{
	struct unwind_walk *u = &o->s->walk;
	__u64 addr;

	if (walk_step())
		return 0;
	if (MADE_CODE && u->need_blob) {
		u->need_blob = 0;
		if (WATCHED(RUNTIME_V8) && v8_of(u))
			v8_find(o->task, o->s);
		else if (WATCHED(RUNTIME_JAVA))
			hotspot_find(o, o->task, o->s);
		u->len--;
		return 0;
	}
	addr = u->need_code;
	if (addr) {
		u->need_code = 0;
		other_code(addr == u->pc ? &u->here : &u->there, o->task, addr);
	} else {
		addr = u->need;
		u->need = 0;
		if (!addr || !other_window(u, o->task, addr))
			return 1;
	}
	u->len--;
	return 0;
}

/* By frame pointer alone, as the kernel's helper does for current. */
static long other_fp_step(__u32 i, struct other_task *o)
{
	struct unwind_walk *u = &o->s->walk;
	__u32 at = u->len;
	__u64 frame[2];
	__u32 pair[2];

	if (at >= depth || at >= OFFCPU_DEPTH_MAX) {
		u->verdict = VERDICT_TRUNCATED;
		return 1;
	}
	o->s->ev.frames[at] = u->pc;
	u->len = at + 1;
	if (is_narrow(u)) {
		if (bpf_copy_from_user_task(pair, sizeof(pair), (void *)u->fp, o->task, 0))
			return 1;
		frame[0] = pair[0];
		frame[1] = pair[1];
	} else if (bpf_copy_from_user_task(frame, sizeof(frame), (void *)u->fp, o->task, 0)) {
		return 1;
	}
	u->fp = frame[0];
	u->pc = code_address(frame[1]);
	return 0;
}

/* The user stack of TASK, which is not running; for the sleepable iterator. */
static __always_inline struct offcpu_stack_id other_user_stack(
	struct task_struct *task, struct scratch *s, struct offcpu_wait *w, struct offcpu_key *key)
{
	struct other_task o = { .s = s, .task = task };
	__u32 reason = no_user_reason(task);
	const struct pt_regs *regs;

	s->ev.kind = KIND_USER;
	s->ev.reason = reason;
	if (reason)
		return no_stack(reason);
	regs = (void *)bpf_task_pt_regs(task);
	walk_registers(&s->walk, regs, bpf_ktime_get_ns());
	walk_begin(&s->walk, regs, (__u64)regs);
	s->walk.tls = tls_of(task);
	s->walk.by_fp = !by_table;
	s->walk.task = (__u64)task;
	if (!by_table)
		bpf_loop(OFFCPU_DEPTH_MAX + 1, other_fp_step, &o, 0);
	else if (walk_maps(&s->walk, w, key))
		bpf_loop(2 * OFFCPU_DEPTH_MAX, other_step, &o, 0); /* a frame may need memory first */
	return walk_end(s, w, key, task, task);
}

#endif

#endif
