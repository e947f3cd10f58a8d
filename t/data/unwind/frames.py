# SPDX-License-Identifier: GPL-2.0-or-later
"""For gdb -P or -x: every thread's frames as gdb's bt has them, one a line.

TID N
PC NAME OFFSET   NAME - and OFFSET 0 where there is no symbol

Inlined functions and tail calls, which gdb adds from debug information, are no
frames of the stack and are left out. A PC that was interrupted is looked up as
it is, a return address one byte back.
"""
import re
import gdb

gdb.execute("set backtrace past-main on")
gdb.execute("set backtrace past-entry on")
gdb.execute("set backtrace limit unlimited")
gdb.execute("set height 0")
gdb.execute("set width 0")
gdb.execute("set print symbol off")
gdb.execute("set print asm-demangle off")
gdb.execute("set print demangle off")
INVENTED = (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME)


def symbol(pc):
    text = gdb.execute("info symbol %#x" % pc, to_string=True)
    m = re.match(r"(\S+)(?: \+ (\d+))? in section", text)
    return (m.group(1), int(m.group(2) or 0)) if m else ("-", 0)


for thread in gdb.selected_inferior().threads():
    thread.switch()
    print("TID %d" % (thread.ptid[1] or thread.ptid[0]))
    frame, exact = gdb.newest_frame(), 1
    while frame:
        # an inlined function shares its PC with the frame that holds it
        if frame.type() not in INVENTED:
            pc = frame.pc()
            # a handler returns to the first byte of the trampoline, which called nothing
            exact = exact or frame.type() == gdb.SIGTRAMP_FRAME
            name, offset = symbol(pc if exact else pc - 1)
            print("%#x %s %d" % (pc, name, offset + (0 if exact or name == "-" else 1)))
            exact = frame.type() == gdb.SIGTRAMP_FRAME
        frame = frame.older()
