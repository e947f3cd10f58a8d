# SPDX-License-Identifier: GPL-2.0-or-later
# The first lines of a program whose threads share a CPU with two loops, until it ends.
import atexit, os, signal, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
parent = os.getpid()
for _ in range(2):
    loop = os.fork()
    if not loop:
        while os.getppid() == parent:
            pass
        os._exit(0)
    atexit.register(os.kill, loop, signal.SIGKILL)

