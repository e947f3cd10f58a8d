# SPDX-License-Identifier: GPL-2.0-or-later
"""pystack.py DEPTH [again]: a thread that waits as often as possible, DEPTH distinct Python functions deep. All
of them are called again for each wait, or only the innermost one's calls return. Ends when its parent does, or
after a minute."""
import os, sys, time

depth = int(sys.argv[1])
again = len(sys.argv) > 2
a, b = os.pipe()
c, d = os.pipe()
if not os.fork():
    os.close(b)  # so that it ends with its parent
    while os.read(a, 1):
        os.write(d, b"x")
    os._exit(0)
os.close(a)
end = time.monotonic() + 60


def wait():
    os.write(b, b"x")
    os.read(c, 1)


def waits():
    while time.monotonic() < end:
        wait()


last = wait if again else waits
text = "".join("def f%d():\n  x = %d\n  return f%d()\n\n" % (i, i, i + 1) for i in range(1, depth - 3 + again))
text += "def f%d():\n  x = 0\n  return last()\n" % (depth - 3 + again)
exec(compile(text, "/usr/lib/python3/a-module-of-usual-length.py", "exec"))
f1()
while time.monotonic() < end:
    f1()
