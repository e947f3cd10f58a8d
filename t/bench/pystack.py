# SPDX-License-Identifier: GPL-2.0-or-later
"""pystack.py DEPTH: a thread that waits as often as possible, DEPTH distinct Python functions deep. Ends when
its parent does, or after a minute."""
import os, sys, threading, time

depth = int(sys.argv[1])
a, b = os.pipe()
c, d = os.pipe()
if not os.fork():
    while os.read(a, 1):
        os.write(d, b"x")
    os._exit(0)
os.close(a)
end = time.monotonic() + 60
text = "".join("def f%d():\n  x = %d\n  return f%d()\n\n" % (i, i, i + 1) for i in range(1, depth - 1))
text += "def f%d():\n  while time.monotonic() < end:\n    os.write(b, b'x')\n    os.read(c, 1)\n" % (depth - 1)
exec(compile(text, "/usr/lib/python3/a-module-of-usual-length.py", "exec"))
f1()
