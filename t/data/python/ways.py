# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that block in many ways. When all of them do, the program writes what CPython itself says
about their frames to the file argv[1]: a line "TID NAME" and one "FUNCTION FILE LINE" for each frame,
innermost first. Each line on standard input then wakes every thread, which blocks again at the same
place; it is answered with a line. The program ends when standard input does."""
import asyncio, functools, itertools, os, queue, re, select, signal, socket, subprocess, sys, threading, time

sys.setrecursionlimit(3000)
pokes = []


class Pipe:
    def __init__(self):
        self.r, self.w = os.pipe()
        pokes.append(lambda: os.write(self.w, b"x"))

    def wait(self):
        os.read(self.r, 1)


def lock():
    held = threading.Lock()
    held.acquire()
    pokes.append(held.release)
    while True:
        held.acquire()


def from_queue():
    q = queue.Queue()
    pokes.append(lambda: q.put(1))
    while True:
        q.get()


def sleep():
    while True:
        time.sleep(0.2)


def receive():
    a, b = socket.socketpair()
    pokes.append(lambda: b.send(b"x"))
    while True:
        a.recv(1)


def selecting():
    p = Pipe()
    while True:
        select.select([p.r], [], [])
        os.read(p.r, 1)


def child():
    current = []
    pokes.append(lambda: current[-1].kill())
    while True:
        current.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))  # ends with this process
        current[-1].wait()


def fifo():
    p = Pipe()
    with open(p.r, "rb", buffering=0) as f:
        while True:
            f.read(1)


def event():
    e = threading.Event()
    pokes.append(e.set)
    while True:
        e.wait()
        e.clear()


def generate(p):
    while True:
        p.wait()
        yield 1


def generator():
    for _ in generate(Pipe()):
        pass


def delegating(p):
    yield from generate(p)


def generator_of_generator():
    sum(delegating(Pipe()))


def sort():
    p = Pipe()

    def key(x):
        p.wait()
        return x

    while True:
        sorted([2, 1], key=key)


def substitute():
    p = Pipe()
    while True:
        re.sub("x", lambda m: p.wait() or "y", "axbx")


def reduce():
    p = Pipe()
    while True:
        functools.reduce(lambda a, b: p.wait() or a, [1, 2, 3])


class Dying:
    def __init__(self, p):
        self.p = p

    def __del__(self):
        self.p.wait()


def finalizer():
    p = Pipe()
    while True:
        d = Dying(p)
        del d


def decorated(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)

    return wrapper


@decorated
@decorated
def decorator():
    p = Pipe()
    while True:
        p.wait()


def recursion(n=500, p=None):
    p = p or Pipe()
    if n:
        return recursion(n - 1, p)
    while True:
        p.wait()


def loop():
    wakes = []

    async def waits(e):
        while True:
            await e.wait()
            e.clear()

    async def begin():
        e = asyncio.Event()
        running = asyncio.get_running_loop()
        wakes.append(lambda: running.call_soon_threadsafe(e.set))
        await waits(e)

    pokes.append(lambda: wakes[0]())
    asyncio.run(begin())


def coroutine():
    p = Pipe()

    async def inner():
        if hasattr(asyncio, "capture_call_graph"):  # what 3.14 itself says of who awaits whom in this task
            chain = [e.frame.f_code.co_name for e in asyncio.capture_call_graph().call_stack]
            if chain != ["inner", "middle", "outer"]:
                raise SystemExit(chain)
        while True:
            p.wait()

    async def middle():
        await inner()

    async def outer():
        await middle()

    async def begin():
        await asyncio.create_task(outer())  # another task, which is suspended

    asyncio.run(begin())


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Made(metaclass=Meta):
    def __init__(self, p):
        [p.wait() for _ in range(1000)]

    @property
    def value(self):
        return 1


def constructor():
    p = Pipe()
    while True:
        Made(p)


class Plain:
    def __init__(self, p):
        if p:
            p.wait()


def specialised():
    """A call that CPython has replaced with a faster one by then."""
    for p in itertools.chain([None] * 1000, itertools.repeat(Pipe())):
        Plain(p)


def executed():
    names = {"p": Pipe()}
    exec(compile("def größe():\n\n  while True:\n    p.wait()\n\ngröße()", "a dir/größe: 1.py", "exec"), names)


def many_lines(n=300):
    names = {"p": Pipe()}
    text = "def far():\n" + "  x = [1,\n    2]\n" * n + "  while True:\n    p.wait()\n\n" + "  y = 3\n" * 300
    exec(compile(text, "far.py", "exec"), names)
    names["far"]()


def too_many_lines():
    many_lines(20000)  # the line table is longer than what is read of it


ways = [lock, from_queue, sleep, receive, selecting, child, fifo, event, generator, generator_of_generator, sort,
        substitute, reduce, finalizer, decorator, recursion, loop, coroutine, constructor, specialised, executed, many_lines, too_many_lines]
threading.stack_size(64 << 20)
threads = [threading.Thread(target=w, name=w.__name__, daemon=True) for w in ways]
for t in threads:
    t.start()


def frames_of(thread):
    f = sys._current_frames()[thread.ident]
    while f:
        name = getattr(f.f_code, "co_qualname", f.f_code.co_name)
        yield "%s\t%s\t%d" % (name, f.f_code.co_filename, f.f_lineno)
        f = f.f_back


def blocked(thread):
    """Does it wait in the kernel? Those that sleep or wait for the interpreter's lock come and go."""
    with open("/proc/self/task/%d/stat" % thread.native_id) as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def settled():
    before = None
    for _ in range(100):
        time.sleep(0.05)
        now = [list(frames_of(t)) for t in threads]
        if now == before and all(blocked(t) for t in threads):
            return now
        before = now
    raise SystemExit("the threads do not settle")


stacks = settled()
with open(sys.argv[1] + ".new", "w", encoding="utf-8") as out:
    for t, frames in zip(threads, stacks):
        print(t.native_id, t.name, *frames, sep="\n", end="\n\n", file=out)
os.rename(sys.argv[1] + ".new", sys.argv[1])
for _ in sys.stdin:
    for p in pokes:
        p()
    settled()
    print("poked", flush=True)
