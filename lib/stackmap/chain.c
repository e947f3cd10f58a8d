/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stackmap/chain.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

/*
 * All functions are in one section, so that each ends where the next begins. no_sanitize: the root writes to
 * a stack slot that belongs to no variable.
 */
#ifdef __clang__
#define ONE_OF_ITS_KIND noinline
#else
#define ONE_OF_ITS_KIND noipa /* not inlined, cloned, or merged with an identical function */
#endif
#define CHAIN_FN                                                                                             \
	__attribute__((ONE_OF_ITS_KIND, no_sanitize("address"), no_sanitize("undefined"),                    \
		section("stacktools_chain")))

/* Taking the frame's address makes gcc and clang keep a frame pointer. */
#define KEEP_FRAME()                                                                                         \
	do {                                                                                                 \
		void *volatile frame_ = __builtin_frame_address(0);                                          \
		(void)frame_;                                                                                \
	} while (0)

#define RETURN_ADDRESS() ((uint64_t)(uintptr_t)__builtin_return_address(0))

/* Enter frame N: its return address is frame N + 1 of the walk. */
#define ENTER(w, n)                                                                                          \
	do {                                                                                                 \
		KEEP_FRAME();                                                                                \
		(w)->depth++;                                                                                \
		(w)->frames[(n) + 1] = RETURN_ADDRESS();                                                     \
	} while (0)

/* The write after the call prevents a tail call. */
#define CALL(w, call)                                                                                        \
	do {                                                                                                 \
		call;                                                                                        \
		*(volatile uint32_t *)&(w)->depth -= 1;                                                      \
	} while (0)

CHAIN_FN static void chain_getpgid(struct chain_walk *w)
{
	ENTER(w, 0);
	CALL(w, syscall(SYS_getpgid, 0));
}

CHAIN_FN static void chain_sleep(struct chain_walk *w)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	ENTER(w, 0);
	CALL(w, syscall(SYS_nanosleep, &ms, NULL));
}

CHAIN_FN static void chain_spin(struct chain_walk *w)
{
	volatile uint64_t *stop = w->spin.stop;

	ENTER(w, 0);
	if (w->spin.armed)
		*w->spin.armed = w->spin.arm;
	for (uint64_t i = 0; i < 1000000000 && !*stop; i++)
		;
	if (w->spin.armed)
		*w->spin.armed = 0;
	*(volatile uint32_t *)&w->depth -= 1;
}

CHAIN_FN static void chain_probe(struct chain_walk *w)
{
	ENTER(w, 0);
	*(volatile uint32_t *)&w->depth -= 1;
}

#define DEFINE_FAMILY(name)                                                                                  \
	CHAIN_FN static void name##_inner(struct chain_walk *w, void (*trigger)(struct chain_walk *))        \
	{                                                                                                    \
		ENTER(w, 1);                                                                                 \
		CALL(w, trigger(w));                                                                         \
	}                                                                                                    \
	CHAIN_FN static void name##_middle(struct chain_walk *w, void (*trigger)(struct chain_walk *))       \
	{                                                                                                    \
		ENTER(w, 2);                                                                                 \
		CALL(w, name##_inner(w, trigger));                                                           \
	}                                                                                                    \
	CHAIN_FN static void name##_outer(struct chain_walk *w, void (*trigger)(struct chain_walk *))        \
	{                                                                                                    \
		ENTER(w, 3);                                                                                 \
		CALL(w, name##_middle(w, trigger));                                                          \
	}                                                                                                    \
	struct chain_swallow_semicolon

DEFINE_FAMILY(north);
DEFINE_FAMILY(east);
DEFINE_FAMILY(south);
DEFINE_FAMILY(west);

CHAIN_FN static void chain_deep(struct chain_walk *w, void (*trigger)(struct chain_walk *))
{
	KEEP_FRAME();
	w->depth++;
	if (w->depth < CHAIN_DEEP_FRAMES)
		CALL(w, chain_deep(w, trigger));
	else
		CALL(w, trigger(w));
}

static void (*const triggers[])(struct chain_walk *) = {
	[CHAIN_GETPGID] = chain_getpgid,
	[CHAIN_SLEEP] = chain_sleep,
	[CHAIN_SPIN] = chain_spin,
	[CHAIN_PROBE] = chain_probe,
};

static void (*const families[])(struct chain_walk *, void (*)(struct chain_walk *)) = {
	[CHAIN_NORTH] = north_outer,
	[CHAIN_EAST] = east_outer,
	[CHAIN_SOUTH] = south_outer,
	[CHAIN_WEST] = west_outer,
	[CHAIN_DEEP] = chain_deep,
};

CHAIN_FN void chain_run(struct chain_walk *w)
{
	/* what this function pushed: its caller's frame pointer, and its return address */
	volatile struct chain_frame *own = __builtin_frame_address(0);
	const volatile struct chain_frame *callers = own->next;

	w->depth = 0;
	w->frames[5] = RETURN_ADDRESS();
	own->next = w->tail;
	families[w->family](w, triggers[w->trigger]);
	own->next = callers;
}

uint64_t chain_syscall_nr(enum chain_trigger t)
{
	if (t == CHAIN_GETPGID)
		return SYS_getpgid;
	return t == CHAIN_SLEEP ? SYS_nanosleep : 0;
}

uint64_t chain_probe_address(void)
{
	return (uint64_t)(uintptr_t)chain_probe;
}

#define NAMED(fn)                                                                                            \
	{                                                                                                    \
#fn, (void *)fn                                                                              \
	}
#define NAMED_FAMILY(name) NAMED(name##_inner), NAMED(name##_middle), NAMED(name##_outer)

static const struct {
	const char *name;
	void *start;
} functions[] = {
	NAMED(chain_getpgid),
	NAMED(chain_sleep),
	NAMED(chain_spin),
	NAMED(chain_probe),
	NAMED(chain_deep),
	NAMED(chain_run),
	NAMED_FAMILY(north),
	NAMED_FAMILY(east),
	NAMED_FAMILY(south),
	NAMED_FAMILY(west),
};

/* the bounds of the section, defined by the linker */
extern const char section_start[] __asm__("__start_stacktools_chain");
extern const char section_end[] __asm__("__stop_stacktools_chain");

/* dladdr() knows only exported names, which is enough for syscall(); other names are ignored. */
static const char *libc_name(uint64_t addr, uint64_t *offset)
{
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)addr, &info) || !info.dli_sname)
		return NULL;
	*offset = addr - (uint64_t)(uintptr_t)info.dli_saddr;
	return strcmp(info.dli_sname, "syscall") == 0 ? "syscall" : NULL;
}

const char *chain_name(uint64_t addr, uint64_t *offset)
{
	const char *name = NULL;
	uint64_t best = 0, unwanted;

	if (!offset)
		offset = &unwanted;
	if (addr < (uintptr_t)section_start || addr >= (uintptr_t)section_end)
		return libc_name(addr, offset);
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		uint64_t start = (uint64_t)(uintptr_t)functions[i].start;

		if (start <= addr && start >= best) {
			best = start;
			name = functions[i].name;
		}
	}
	*offset = addr - best;
	return name;
}

const char *chain_expect(const struct chain_walk *w, size_t n)
{
	static const char *const names[][3] = {
		[CHAIN_NORTH] = { "north_inner", "north_middle", "north_outer" },
		[CHAIN_EAST] = { "east_inner", "east_middle", "east_outer" },
		[CHAIN_SOUTH] = { "south_inner", "south_middle", "south_outer" },
		[CHAIN_WEST] = { "west_inner", "west_middle", "west_outer" },
		[CHAIN_DEEP] = { "chain_deep", "chain_deep", "chain_deep" },
	};
	if (n == 0 && w->trigger == CHAIN_SPIN)
		return "chain_spin";
	if (n == 0)
		return w->trigger == CHAIN_PROBE ? "chain_probe" : "syscall";
	if (w->family == CHAIN_DEEP)
		return "chain_deep";
	return n <= 3 ? names[w->family][n - 1] : "chain_run";
}

static uint32_t rotl(uint32_t v, unsigned int n)
{
	return v << n | v >> (32 - n);
}

static void mix(uint32_t s[3])
{
	static const unsigned char turns[] = { 4, 6, 8, 16, 19, 4 };

	for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
		uint32_t *a = &s[i % 3], *b = &s[(i + 1) % 3], *c = &s[(i + 2) % 3];

		*a -= *c;
		*a ^= rotl(*c, turns[i]);
		*c += *b;
	}
}

static void final(uint32_t s[3])
{
	static const unsigned char turns[] = { 14, 11, 25, 16, 4, 14, 24 };

	for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
		uint32_t *to = &s[(i + 2) % 3], from = s[(i + 1) % 3];

		*to ^= from;
		*to -= rotl(from, turns[i]);
	}
}

uint32_t chain_hash(const uint64_t *frames, size_t n)
{
	size_t words = n * 2, at = 0;
	uint32_t s[3];

	s[0] = s[1] = s[2] = 0xdeadbeef + (uint32_t)(words << 2);
	while (words > 3) {
		for (size_t i = 0; i < 3; i++, at++)
			s[i] += (uint32_t)(frames[at / 2] >> (at % 2 * 32));
		mix(s);
		words -= 3;
	}
	for (size_t i = 0; i < words; i++, at++)
		s[i] += (uint32_t)(frames[at / 2] >> (at % 2 * 32));
	if (words > 0)
		final(s);
	return s[2];
}
