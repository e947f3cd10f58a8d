# SPDX-License-Identifier: GPL-2.0-or-later
"""pynames.py SECONDS RATE: waits inside of 50 functions that were made for this wait, at RATE functions a second or as
many as possible. Prints how many functions there were, and in how many seconds."""
import sys, time, types


def f(functions, i):
    return functions[i + 1](functions, i + 1)


def last(functions, i):
    time.sleep(max(0.000001, begin + made / rate - time.monotonic()))


names = ["co_name"] + ["co_qualname"] * hasattr(f.__code__, "co_qualname")
begin = time.monotonic()
end = begin + float(sys.argv[1])
rate = float(sys.argv[2])
made = 0
while time.monotonic() < end:
    functions = []
    for _ in range(50):
        made += 1
        code = f.__code__.replace(**dict.fromkeys(names, "f_%d" % made))
        functions.append(types.FunctionType(code, globals()))
    functions.append(last)
    functions[0](functions, 0)
print(made, time.monotonic() - begin)
