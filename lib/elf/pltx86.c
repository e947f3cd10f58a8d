/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "elf/pltx86.h"
#include "base/bytes.h"

#include <elf.h>

/* Step over the bytes of WHAT if they are next. */
static bool take(struct rd *r, const char *what, size_t n)
{
	if (rd_left(r) < n || memcmp(r->p, what, n) != 0)
		return false;
	rd_bytes(r, n);
	return true;
}

/* An opcode with 32 bits behind it. */
static bool take_imm(struct rd *r, const char *opcode, size_t n, uint32_t *imm)
{
	struct rd at = *r;

	if (!take(&at, opcode, n))
		return false;
	*imm = rd_u32(&at);
	if (at.bad)
		return false;
	*r = at;
	return true;
}

/* What a stub does when its function is not bound yet; retpolines call and jump about besides. */
static void take_tail(struct rd *r)
{
	uint32_t imm;

	while (take_imm(r, "\x68", 1, &imm) || take_imm(r, "\xe9", 1, &imm) ||
		take_imm(r, "\xf2\xe9", 2, &imm) || take_imm(r, "\xe8", 1, &imm))
		;
}

bool pltx86_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct pltx86_stub *ret)
{
	struct rd r = rd_init(p, MIN(len, 32)), before;
	uint32_t imm;

	*ret = (struct pltx86_stub){ 0 };
	take(&r, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
	before = r;
	take_imm(&r, "\x41\xbb", 2, &imm); /* mov $index,%r11d: mold */
	if (take_imm(&r, "\xff\x25", 2, &imm) || /* jmp *disp(%rip) */
		take_imm(&r, "\xf2\xff\x25", 3, &imm) || /* the same with bnd */
		take_imm(&r, "\x4c\x8b\x1d", 3, &imm)) { /* mov disp(%rip),%r11: retpoline */
		ret->slot = vaddr + (uint64_t)(r.p - p) + (uint64_t)(int64_t)(int32_t)imm;
		take_tail(&r);
	} else {
		r = before;
		if (!take_imm(&r, "\x68", 1, &ret->index)) /* push $index */
			return false;
		if (!take_imm(&r, "\xe9", 1, &imm) && !take_imm(&r, "\xf2\xe9", 2, &imm))
			return false;
		ret->by_index = true;
	}
	ret->len = (size_t)(r.p - p);
	return true;
}

enum pltx86_fills pltx86_fills(uint32_t type)
{
	switch (type) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		return PLTX86_SYMBOL;
	case R_X86_64_IRELATIVE:
		return PLTX86_RESOLVER;
	default:
		return PLTX86_OTHER;
	}
}
