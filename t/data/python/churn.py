# SPDX-License-Identifier: GPL-2.0-or-later
"""churn.py SECONDS: functions that are compiled, wait once and are freed, as many as possible. Function
f_N is in file <N> and waits in line 2 + N % 61; all of them have the same shape, so that their memory
is used again and again. Those called g_N, in file <N>, differ in nothing but these names, those called h in nothing
but their lines: called by called_N(), they wait in line N. A function that is called often has the code k_N, at the same
address each time, while called by as_N(). Forked children do the same, each in one thread, in which a
function waits three times before the next one is made. Prints how many there were."""
import os, sys, threading, time, types

end = time.monotonic() + float(sys.argv[1])
made = [0] * 6
times = 1


def wait():
    time.sleep(0.00005)


def define(name, file, line):
    text = "def %s():\n%s for _ in range(times): wait()%s" % (name, "\n" * (line - 2), "\n" * (63 - line))
    names = {"wait": wait, "times": times}
    exec(compile(text, file, "exec"), names)
    return names[name]


def make_and_call(n):
    define("f_%09d" % n, "<%09d>" % n, 2 + n % 61)()


def called_10(h):
    h()


def called_20(h):
    h()


def other_lines(n):
    """Only the line table is new."""
    called_10(define("h", "<h>", 10))
    called_20(define("h", "<h>", 20))


def g():
    for _ in range(times):
        time.sleep(0.00005)


def renamed(function, name, **others):
    names = {"co_name": name, "co_qualname": name} if hasattr(function.__code__, "co_qualname") else {"co_name": name}
    return function.__code__.replace(**names, **others)


def replace_and_call(n):
    """Only the names are new, at the same addresses as the ones before."""
    types.FunctionType(renamed(g, "g_%09d" % n, co_filename="<%09d>" % n), globals())()


def blank(waits):
    pass


def often(waits):
    if waits:
        time.sleep(0.00005)


def pattern(waits):
    if waits:
        time.sleep(0.00005)


def use(name):
    often.__code__ = blank.__code__  # frees the one before
    often.__code__ = renamed(pattern, name)
    for _ in range(200):  # CPython 3.11 numbers it
        often(False)
    often(True)


def as_1():
    use("k_1")


def as_2():
    use("k_2")


def other_code(n):
    as_1()
    as_2()


def many(make, thread):
    n = 0
    while time.monotonic() < end:
        n += 1
        make(n)
        made[thread] += 1


def work(thread):
    n = thread
    while time.monotonic() < end:
        n += len(made)
        make_and_call(n)
        made[thread] += 1


threads = [threading.Thread(target=work, args=(i,)) for i in range(3, len(made))]
threads.append(threading.Thread(target=many, args=(replace_and_call, 0)))
threads.append(threading.Thread(target=many, args=(other_lines, 1)))
threads.append(threading.Thread(target=many, args=(other_code, 2)))
for t in threads:
    t.start()
while time.monotonic() < end:
    pid = os.fork()
    if not pid:
        # the same memory as in the parent and in other children, but with other functions from here on
        end = time.monotonic() + 0.05
        times = 3
        for n in range(os.getpid() * 1000, os.getpid() * 1000 + 999):
            if time.monotonic() < end:
                make_and_call(n)
                replace_and_call(n)
                other_lines(n)
                other_code(n)
        os._exit(0)
    os.waitpid(pid, 0)
for t in threads:
    t.join()
print(sum(made))
