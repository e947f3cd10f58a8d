# SPDX-License-Identifier: GPL-2.0-or-later
"""churn-truth.py LANGUAGE JSON: of the script frames that the functions of LANGUAGE's churn program have in
symbolize's output, print how many are right, wrong and unnamed, and how many distinct functions, names of
functions that differ in nothing else, lines of functions that differ in nothing else and names of code that one
function had were seen."""
import json, re, sys


def perl(f, caller, stack):
    if f["function"].startswith("P_"):
        m = re.fullmatch(r"P_(\d+)::f_(\d+)", f["function"])
        n = int(m.group(1)) if m else -1
        return n, m and m.group(2) == m.group(1) and f["file"] == "file%d" % n and f["line"] == 2 + n % 61
    if f["function"].startswith("C_"):
        m = re.fullmatch(r"C_(\d+)::c_(\d+)", f["function"])
        called = "P_%s::f_%s" % m.groups() if m else ""
        return f["function"], called in (x.get("function") for x in stack)


def php(f, caller, stack):
    if f["function"].startswith("{closure"):
        m = re.search(r"/(\d+)\.php$", f["file"])
        return f["file"], m and f["line"] == 3 + int(m.group(1)) % 61


def python(f, caller, stack):
    at = next(i for i, x in enumerate(stack) if x is f)
    if f["line"] == 1 and any((x.get("symbol") or "").startswith("take_gil") for x in stack[:at]) and not any(
        "runtime" in x for x in stack[:at]
    ):
        return None  # it waits for the interpreter's lock before its first statement, in the line of its `def`
    if f["function"] == "h":
        if caller and caller["function"] is None:
            return None  # which line is right cannot be known
        return "h%s" % f["line"], caller and caller["function"] == "called_%s" % f["line"] and f["file"] == "<h>"
    if f["function"].startswith("k_"):
        by = [x["function"] for x in stack[at:] if "runtime" in x][2:3]  # use() is between
        if by == [None]:
            return None  # which code is right cannot be known
        return f["function"], by == ["as_" + f["function"][2:]]
    m = re.fullmatch(r"([fg])_(\d+)", f["function"])
    if m and m.group(1) == "g":
        return "g" + m.group(2), f["file"] == "<%s>" % m.group(2)
    if f["function"] != "<module>" and (m or f["file"].startswith(("<0", "<1"))):
        n = int(m.group(2)) if m else -1
        return n, m and f["file"] == "<%s>" % m.group(2) and f["line"] == 2 + n % 61


def ruby(f, caller, stack):
    m = re.fullmatch(r"(?:block in )?f_(\d+)", f["function"])
    file = re.fullmatch(r"file(\d+)", f["file"] or "")
    # functions in C have the file and the line of their caller
    if m or file and f["function"] in ("sleep", "each"):
        n = int(file.group(1)) if file else -1
        return n, (not m or int(m.group(1)) == n) and f["line"] == 2 + n % 61


judge = {"perl": perl, "php": php, "python": python, "ruby": ruby}[sys.argv[1]]
right = wrong = unnamed = 0
seen = set()
for line in open(sys.argv[2], encoding="utf-8"):
    w = json.loads(line)
    frames = [f for f in w.get("user_stack", []) if "runtime" in f]
    for f, caller in zip(frames, frames[1:] + [None]):
        if f["function"] is None:
            unnamed += w["count"]
            continue
        verdict = judge(f, caller, w["user_stack"])
        if verdict is None:
            continue
        name, good = verdict
        seen.add(name)
        right += bool(good)
        wrong += not good
        if not good:
            print(f["function"], f["file"], f["line"], caller and (caller["function"], caller["line"]), w["pid"], w["tid"], file=sys.stderr)
names = sum(str(name).startswith("g") for name in seen)
lines = sum(str(name).startswith("h") for name in seen)
codes = sum(str(name).startswith("k") for name in seen)
print(
    *("right", right, "wrong", wrong, "unnamed", unnamed, "names", names, "lines", lines, "codes", codes),
    *("functions", len(seen) - names - lines - codes)
)
