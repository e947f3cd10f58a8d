# SPDX-License-Identifier: GPL-2.0-or-later
"""Python below forty calls: asleep, in accept, waiting for a process, for a
thread and for a lock, one of each in a thread."""
import socket
import subprocess
import sys
import threading
import time

lock = threading.Lock()
lock.acquire()
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1)
child = subprocess.Popen(["cat"])


def deep(n, wait):
    # map() is C code, so each call is one of the interpreter's loop too
    return next(map(lambda m: deep(m, wait), [n - 1])) if n else wait()


waits = [lambda: time.sleep(1000), listener.accept, child.wait, lock.acquire, lambda: sorted([2, 1], key=lambda x: sys.stdin.read())]
threads = [threading.Thread(target=deep, args=(40, w)) for w in waits]
for t in threads:
    t.start()
threads[0].join()
