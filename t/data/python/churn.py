# SPDX-License-Identifier: GPL-2.0-or-later
"""churn.py SECONDS: functions that are compiled, wait once and are freed, as many as possible. Function
f_N is in file <N> and waits in line 2 + N % 61; all of them have the same shape, so that their memory
is used again and again. Those called g_N, in file <N>, differ in nothing but these names. Forked children do
the same. Prints how many there were."""
import os, sys, threading, time, types

end = time.monotonic() + float(sys.argv[1])
made = [0] * 4


def make_and_call(n):
    number = "%09d" % n
    text = "def f_%s():\n%s time.sleep(0.00005)%s" % (number, "\n" * (n % 61), "\n" * (61 - n % 61))
    names = {"time": time}
    exec(compile(text, "<%s>" % number, "exec"), names)
    names["f_" + number]()


def g():
    time.sleep(0.00005)


def replace_and_call(n):
    """Only the names are new, at the same addresses as the ones before."""
    name = "g_%09d" % n
    names = {"co_name": name, "co_qualname": name, "co_filename": "<%09d>" % n}
    if not hasattr(g.__code__, "co_qualname"):
        del names["co_qualname"]
    types.FunctionType(g.__code__.replace(**names), globals())()


def replace_many(thread):
    n = 0
    while time.monotonic() < end:
        n += 1
        replace_and_call(n)
        made[thread] += 1


def work(thread):
    n = thread
    while time.monotonic() < end:
        n += len(made)
        make_and_call(n)
        made[thread] += 1


threads = [threading.Thread(target=replace_many if i == 0 else work, args=(i,)) for i in range(len(made))]
for t in threads:
    t.start()
while time.monotonic() < end:
    pid = os.fork()
    if not pid:
        # the same memory as in the parent and in other children, but with other functions from here on
        end = time.monotonic() + 0.05
        for n in range(os.getpid() * 1000, os.getpid() * 1000 + 999):
            if time.monotonic() < end:
                make_and_call(n)
        os._exit(0)
    os.waitpid(pid, 0)
for t in threads:
    t.join()
print(sum(made))
