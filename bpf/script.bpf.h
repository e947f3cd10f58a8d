/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of all runtimes use: fields of structures that were read,
 * hashes, texts, and the frames of the stack. Part of offcpu.bpf.c.
 */
#ifndef STACKTOOLS_SCRIPT_BPF_H
#define STACKTOOLS_SCRIPT_BPF_H

/* Fields at offsets that user space gave: the mask proves that they are inside. */
#define WINDOW_WORD(k, at) (*(__u64 *)((k)->window + ((at) & (RUNTIME_WINDOW - 8))))
#define FRAME_WORD(k, at) WINDOW_WORD(k, (k)->frame_at + (at))
#define FRAME_INT(k, at) (*(__u32 *)((k)->window + (((k)->frame_at + (at)) & (RUNTIME_WINDOW - 4))))
#define FRAME_BYTE(k, at) ((k)->window[((k)->frame_at + (at)) & (RUNTIME_WINDOW - 1)])
#define CODE_WORD(k, at) (*(__u64 *)((k)->code_bytes + ((at) & (RUNTIME_CODE_BYTES - 8))))
#define CODE_INT(k, at) (*(__u32 *)((k)->code_bytes + ((at) & (RUNTIME_CODE_BYTES - 4))))
#define OBJECT_WORD(k, i) (*(__u64 *)((k)->object + (i)*8))

static __always_inline const struct runtime_file *runtime_of(const struct unwind_walk *u)
{
	__u32 number = u->runtime;

	return number ? bpf_map_lookup_elem(&runtimes, &number) : NULL;
}

static __always_inline bool script_stop(struct script_walk *k, __u8 reason)
{
	k->reason = reason;
	return false;
}

/* Are the BYTES of the next frame among those that were read? */
static __always_inline bool has_frame(struct script_walk *k, __u32 bytes)
{
	__u64 at = k->frame - k->window_at;

	if (at >= k->window_len || at + bytes > k->window_len)
		return false;
	k->frame_at = at;
	return true;
}

/*
 * Read the next frame, of BYTES below RUNTIME_FRAME_BYTES. Unless it is ALONE, its callers lie below
 * it, next to each other but for generators: read them too, down to the beginning of the page.
 */
static __always_inline bool read_frame(
	struct task_struct *task, struct script_walk *k, __u32 bytes, bool alone)
{
	__u32 before = k->frame & 4088, len;

	if (before > RUNTIME_WINDOW - RUNTIME_FRAME_BYTES)
		before = RUNTIME_WINDOW - RUNTIME_FRAME_BYTES;
	if (alone)
		before = 0;
	len = before + bytes;
	barrier_var(len);
	len &= RUNTIME_WINDOW - 1;
	k->window_len = 0;
	if (script_read(task, k->window, len, k->frame - before))
		return script_stop(k, SCRIPT_MEMORY);
	k->window_at = k->frame - before;
	k->window_len = len;
	k->frame_at = before;
	return true;
}

/* X < N, as 1 or 0: without a branch, both sides of which the verifier would follow. N is less than 2^63. */
static __always_inline __u64 is_below(__u64 x, __u64 n)
{
	return ((x - n) & ~x) >> 63;
}

static __always_inline __u64 in_eval(const struct runtime_file *f, __u64 bias, __u64 pc)
{
	pc -= bias;
	return is_below(pc - f->eval[0], f->eval[1] - f->eval[0]) |
	       is_below(pc - f->cold[0], f->cold[1] - f->cold[0]);
}

#define PTHREAD_KEYS 0x310 /* struct pthread.specific_1stblock: 32 times {sequence number, value} */
#define PTHREAD_KEY_BLOCKS 0x510 /* struct pthread.specific: 32 pointers to blocks of that form */

/*
 * The thread's value of thread-specific data KEY, as glibc keeps it in the
 * thread's descriptor (nptl/descr.h). 0 if there is none, or it is not readable.
 * Sets key_serial, which differs when the key was deleted and made again.
 */
static __always_inline __u64 thread_value(struct task_struct *task, struct script_walk *k, __u32 key)
{
	__u64 at = k->thread + PTHREAD_KEYS, value[2] = { 0, 0 };

	if (key >= 1024)
		return 0;
	if (key >= 32) {
		if (script_read(task, &at, 8, k->thread + PTHREAD_KEY_BLOCKS + key / 32 * 8) || !at)
			return 0;
		key %= 32;
	}
	if (script_read(task, value, sizeof(value), at + key * 16))
		script_stop(k, SCRIPT_THREAD);
	k->key_serial = value[0];
	return value[1];
}

static __always_inline __u64 mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word) * (hash_key[2] | 1);
	return hash ^ hash >> 29;
}

/* Add a frame that follows native frame NATIVE. False if there is no room. */
static __always_inline bool script_add(struct scratch *s, __u64 code, __u32 native, __u32 position)
{
	__u32 n = s->ev.scripts, at = s->walk.len + 2 * n;

	barrier_var(at);
	if (at >= OFFCPU_FRAMES_MAX - 1)
		return false;
	s->ev.frames[at] = code | (__u64)native << SCRIPT_AT_SHIFT;
	s->ev.frames[at + 1] = s->script.check << SCRIPT_POSITION_BITS | position;
	s->ev.scripts = n + 1;
	return true;
}

/*
 * What only computes, in many places of the program for waits in progress, is a global function for another
 * task: the verifier follows it once. For current it is inlined: there the stack has no room for more calls.
 */
#define COMPUTED(name)                                                                                       \
	__noinline __u64 other_##name(__u64 with)                                                            \
	{                                                                                                    \
		struct scratch *s = this_scratch();                                                          \
                                                                                                             \
		return SCRIPTS && s ? name(&s->script, with) : 0;                                            \
	}

#define FACTOR_STEP 0x9e3779b97f4a7c16ULL

/*
 * The sum of the words of the object that was read. Each is multiplied by another odd number that is not
 * known outside, so that these do not wait for each other.
 */
static __always_inline __u64 sum_words(const struct script_walk *k, __u64 factor)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < SCRIPT_OBJECT_BYTES / 8; i++) {
		factor += FACTOR_STEP;
		sum += OBJECT_WORD(k, i) * factor;
	}
	return sum;
}

COMPUTED(sum_words)

/*
 * The same up to a NUL, before which are `piece_len` bytes. Whether it was found is 0 or 1 and never
 * compared: the verifier would follow both, word by word, and since Linux 6.18 it does so for a 0 or -1 in an
 * AND with a constant, too.
 */
static __always_inline __u64 sum_line(struct script_walk *k, __u64 factor)
{
	__u64 got = 0, dead = 0, sum = 0;

	for (__u32 i = 0; i < SCRIPT_OBJECT_BYTES / 8; i++) {
		__u64 word = OBJECT_WORD(k, i), zero, minus, below;

		/* the lowest bit that is set is in the first byte of zero */
		zero = (word - 0x0101010101010101) & ~word & 0x8080808080808080;
		zero &= -zero;
		barrier_var(zero);
		below = ((zero >> 7) - 1) & (dead - 1); /* all ones if there is no zero */
		minus = -zero;
		barrier_var(minus);
		dead |= (zero | minus) >> 63;
		barrier_var(dead);
		factor += FACTOR_STEP;
		sum += (word & below) * factor;
		/* the sum of the bytes that are below, each as one */
		got += ((below & 0x0101010101010101) * 0x0101010101010101) >> 56;
	}
	k->piece_len = got;
	return sum;
}

COMPUTED(sum_line)

#define FOR_TASK(name, with) (task ? other_##name(with) : name(k, with))

static __always_inline void clear_own_words(struct script_walk *k)
{
	__builtin_memset(k->object, 0, sizeof(k->object));
}

__noinline int clear_other_words(void)
{
	struct scratch *s = this_scratch();

	if (SCRIPTS && s)
		clear_own_words(&s->script);
	return 0;
}

/* Set the words that an object is read into to 0. */
static __always_inline void clear_words(struct task_struct *task, struct script_walk *k)
{
	if (task)
		clear_other_words();
	else
		clear_own_words(k);
}

/* Hash the LEN bytes of text at AT: the beginning and, if it is long, the end. */
static __always_inline __u64 hash_text(
	struct task_struct *task, struct script_walk *k, __u64 at, __u64 len, __u64 hash)
{
	__u32 n = len < SCRIPT_OBJECT_BYTES ? len : SCRIPT_OBJECT_BYTES;
	__u64 factor = hash_key[3] | 1, sum = len * factor;

	for (int end = 0; end < 2; end++) {
		barrier_var(n);
		if (n < SCRIPT_OBJECT_BYTES)
			clear_words(task, k);
		else
			n = SCRIPT_OBJECT_BYTES;
		if (script_read(task, k->object, n, at)) {
			k->reason = SCRIPT_MEMORY;
			return 0;
		}
		sum += FOR_TASK(sum_words, factor);
		factor += SCRIPT_OBJECT_BYTES / 8 * FACTOR_STEP;
		if (len <= SCRIPT_OBJECT_BYTES)
			break;
		at += len - SCRIPT_OBJECT_BYTES;
	}
	return mix(hash, sum ^ sum >> 32);
}

#define LINE_PIECES 2 /* of SCRIPT_OBJECT_BYTES: a longer name of a file is not readable */

/*
 * Hash the text at AT up to its NUL. Sets file_len; ~0 = no NUL. Lengths go through memory: in registers, the
 * verifier would follow each of their values.
 */
static __always_inline __u64 hash_line(struct task_struct *task, struct script_walk *k, __u64 at)
{
	volatile __u64 *len = &k->file_len, *piece_len = &k->piece_len;
	__u64 factor = hash_key[3] | 1, sum = 0;

	*len = 0;
	for (int piece = 0; piece < LINE_PIECES; piece++) {
		__u64 n = 4096 - (at & 4095), got;

		*piece_len = n < SCRIPT_OBJECT_BYTES ? n : SCRIPT_OBJECT_BYTES;
		n = *piece_len;
		n &= 255; /* at most SCRIPT_OBJECT_BYTES, behind which is more of the same map */
		clear_words(task, k);
		if (script_read(task, k->object, n, at)) {
			k->reason = SCRIPT_MEMORY;
			return 0;
		}
		sum += FOR_TASK(sum_line, factor);
		factor += SCRIPT_OBJECT_BYTES / 8 * FACTOR_STEP;
		got = *piece_len;
		*len += got < n ? got : n;
		if (got < n)
			return mix(*len, sum ^ sum >> 32);
		at += n; /* a NUL behind what was read is ours */
	}
	*len = ~0ULL;
	return mix(1, sum ^ sum >> 32);
}

/* Read LEN bytes of text at AT into a string of the event. Returns its kind; *BYTES is its length. */
static __always_inline __u8 script_text(
	struct task_struct *task, __u64 at, __u64 len, __u8 *to, __u32 size, __u16 *bytes)
{
	__u32 n = len;

	*bytes = 0;
	barrier_var(n);
	if (len >= size)
		return SCRIPT_UNREADABLE;
	n &= size - 1;
	if (script_read(task, to, n, at))
		return SCRIPT_UNREADABLE;
	*bytes = n;
	return SCRIPT_UTF8;
}

/* The function has no name: it is of KIND, SCRIPT_MAIN and above. */
static __always_inline void script_nameless(struct offcpu_ev_code *ev, __u8 kind)
{
	ev->name_kind = kind;
	ev->name_bytes = 0;
}

#endif
