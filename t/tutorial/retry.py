# SPDX-License-Identifier: GPL-2.0-or-later
"""A job that looks every half second whether a child process has finished, which takes 50 ms.

"fixed" waits for the end of the child. Prints how long each report took.
"""

import os
import signal
import subprocess
import sys
import time

FIXED = sys.argv[1:] == ["fixed"]


def retry(attempt):
    """Calls attempt() until it returns something: the usual helper of a library."""
    while True:
        result = attempt()
        if result is not None:
            return result
        time.sleep(0.5)


def wait_for_converter(converter):
    if FIXED:
        return converter.wait()
    return retry(converter.poll)


def convert(path):
    converter = subprocess.Popen(["sleep", "0.05"])  # stands for a program that converts path
    return wait_for_converter(converter)


def make_report():
    return convert("report.html")


def main():
    if sys.argv[1:] and not FIXED:
        print("usage: retry [fixed]", file=sys.stderr)
        sys.exit(64)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print("ready: process", os.getpid(), flush=True)
    while True:
        begin = time.monotonic()
        make_report()
        print(f"a report takes {(time.monotonic() - begin) * 1000:.0f} ms", flush=True)


main()
