/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * go - rows of the functions of a Go program, from its table of functions
 * (elf/gopclntab.h).
 *
 * The table gives the size of the frame at each PC, and Go's convention where
 * the frame pointer is saved. It is preferred to .debug_frame, which the linker
 * derives from it, which is missing in stripped programs, and which does not
 * mention the frame pointer.
 *
 * Some functions of the runtime, written in assembly, go from one stack to
 * another: from a goroutine's to the thread's own (systemstack, asmcgocall), and
 * back for a call from C (cgocallback). The table says that they set the stack
 * pointer, and nothing about the frame behind that. But their code says it: what
 * follows the call that they make takes the other stack pointer from where it
 * was kept, and returns. That code is read (unwindx86_decode()), so that the
 * offsets of the runtime's structs are those of this very program. If it has
 * another form than the known ones, the row is one that ends the walk with a
 * reason.
 *
 * Where a stack ends (goexit, mstart, rt0_go, mcall) is known by name.
 */
#ifndef STACKTOOLS_UNWIND_GO_H
#define STACKTOOLS_UNWIND_GO_H

#include "elf/gopclntab.h"
#include "unwind_abi.h"

struct unwindgo;

/* As gopclntab_open(): 1, 0 if F is not a Go program, or -errno. F must outlive *RET. */
int unwindgo_open(const struct elffile *f, struct unwindgo **ret, struct err *e);
void unwindgo_close(struct unwindgo *g); /* NULL is fine */

size_t unwindgo_count(const struct unwindgo *g); /* functions */
void unwindgo_range(const struct unwindgo *g, size_t i, uint64_t *start, uint64_t *end);

/* Takes a row, which is valid from PC to the next one. An error ends unwindgo_rows(). */
typedef int unwindgo_row(void *ctx, uint64_t pc, const struct unwind_rule *rule, struct err *e);

/*
 * The rows of function I, the first one at its start. Code that its table does
 * not cover gets the rule UNWIND_CFA_NONE. Returns 0 or what ROW returned.
 */
int unwindgo_rows(struct unwindgo *g, size_t i, unwindgo_row *row, void *ctx, struct err *e);

#endif
