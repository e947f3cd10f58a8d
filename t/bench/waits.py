# SPDX-License-Identifier: GPL-2.0-or-later
"""waits.py SECONDS FILE: threads that wait for time, a lock, a pipe, a disk and a process."""
import os, subprocess, sys, threading, time

end = time.monotonic() + float(sys.argv[1])
lock = threading.Lock()
a, b = os.pipe()

def sleeps():
    time.sleep(.002)

def locks():
    with lock:
        time.sleep(.001)

def reads():
    os.read(a, 1)

def writes():
    time.sleep(.001)
    os.write(b, b"x")

def syncs():
    with open(sys.argv[2], "w") as f:
        f.write("x" * 10000)
        f.flush()
        os.fsync(f.fileno())
    time.sleep(.001)

def runs():
    subprocess.run(["true"])

def repeat(what):
    while time.monotonic() < end:
        what()

threads = [threading.Thread(target=repeat, args=(f,), daemon=f is reads) for f in (sleeps, locks, locks, reads, writes, syncs, runs)]
for t in threads:
    t.start()
for t in threads:
    t.join(float(sys.argv[1]) + 1)
