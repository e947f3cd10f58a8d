# SPDX-License-Identifier: GPL-2.0-or-later
"""interpreters.py ORACLE LIBRARY: threads that execute code of several interpreters at once. LIBRARY is
interpreters.c. Each interpreter says which frames it has on the thread, as ways.py says it: those of
the inner ones are followed by those around them. Standard input wakes the threads, as in ways.py."""
import ctypes, os, sys, threading, time

try:
    import _interpreters
except ImportError:
    import _xxsubinterpreters as _interpreters

HEAD = """
import os, sys, threading
try:
    import _interpreters
except ImportError:
    try:
        import _xxsubinterpreters as _interpreters
    except ImportError:
        _interpreters = None

def say(value, name, part):
    path = "%s.%s.%d" % (oracle, name, part)
    if not os.path.exists(path):
        f = sys._getframe(1)
        with open(path + ".new", "w") as out:
            print(threading.get_native_id(), file=out)
            while f:
                code = f.f_code
                print(getattr(code, "co_qualname", code.co_name), code.co_filename, f.f_lineno, sep="\\t", file=out)
                f = f.f_back
        os.rename(path + ".new", path)
    return value
"""
BLOCK = """
class Inner:
    def key(self, x):
        while True:
            os.read(say(fd, name, 0), 1)

    def sort(self):
        sorted([2, 1], key=self.key)

def inner():
    Inner().sort()

inner()
"""
AROUND = """
def around():
    _interpreters.run_string(say(other, name, 1), code)

[around() for _ in range(1)]
"""
oracle, library = sys.argv[1:]
exec(HEAD)
pokes = []
made = []
parts = {}


def text(body, **names):
    return HEAD + "".join("%s = %r\n" % each for each in dict(names, oracle=oracle).items()) + body


def blocks(name, n):
    parts[name] = n
    r, w = os.pipe()
    pokes.append(w)
    return text(BLOCK, fd=r, name=name)


def created():
    made.append(_interpreters.create())  # before 3.13 it ends with the last reference to its number
    return int(made[-1])


def inside(name, depth, code):
    if depth:
        return inside(name, depth - 1, code)
    _interpreters.run_string(say(created(), name, parts[name] - 1), code)


def one():
    inside("one", 3, blocks("one", 2))


def deep():
    inside("deep", 300, blocks("deep", 2))


def two():
    code = text(AROUND, name="two", other=created(), code=blocks("two", 3))
    max([1, 2], key=lambda x: inside("two", 1, code))


def begun():
    ctypes.CDLL(library).interpreter_begin(blocks("begun", 1).encode())


def back():
    """Both interpreters have two groups of frames, in turn."""
    call = "import ctypes\nctypes.PyDLL(%r).interpreter_back(%r)\n"
    ctypes.PyDLL(library).interpreter_inside((call % (library, blocks("back", 1).encode())).encode())


def files(name):
    return ["%s.%s.%d" % (oracle, name, part) for part in range(parts[name])]


def blocked(tid):
    with open("/proc/self/task/%d/stat" % tid) as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def settled(tids):
    for _ in range(3):
        time.sleep(0.05)
        while not all(blocked(tid) for tid in tids):
            time.sleep(0.05)


# interpreters that alternate are not shown, nor, before 3.11, several at once: a state does not say where its calls are
hidden = [back] if sys.version_info >= (3, 11) else [one]
threads = hidden + ([one, deep, two] if sys.version_info >= (3, 11) else [])
for each in threads:
    threading.Thread(target=each, daemon=True).start()
begun()
names = [each.__name__ for each in threads] + ["begun"]
while not all(name in parts and all(map(os.path.exists, files(name))) for name in names):
    time.sleep(0.05)
tids = []
with open(oracle + ".new", "w") as out:
    for name in names:
        said = [open(path).read().split("\n", 1) for path in files(name)]
        tids.append(int(said[0][0]))
        print(tids[-1], name, sep="\n", file=out)
        print("".join(frames for _, frames in said) if name not in [h.__name__ for h in hidden] else "", file=out)
settled(tids)
os.rename(oracle + ".new", oracle)
for _ in sys.stdin:
    for w in pokes:
        os.write(w, b"x")
    settled(tids)
    print("poked", flush=True)
os._exit(0)  # interpreters that are in use cannot be ended
