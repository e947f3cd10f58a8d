# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that asks a server once for each row of an invoice, 50 times where one question would do.

The server is a child, at a port of the loopback, and answers each question after 1 ms. "fixed" asks
once for all rows. Prints every second how long an invoice took. The server ends with the client.
"""

import os
import signal
import socket
import sys
import time

ROWS = 50


def serve(listening):
    """Answers lines of article numbers with lines of prices."""
    peer, _ = listening.accept()
    stream = peer.makefile("rw")
    for line in stream:
        time.sleep(0.001)
        stream.write(" ".join(str(100 + int(article)) for article in line.split()) + "\n")
        stream.flush()


def ask(server, question):
    server.write(question + "\n")
    server.flush()
    return server.readline()


def price_of(server, article):
    return int(ask(server, str(article)))


def prices_of(server, articles):
    return [int(price) for price in ask(server, " ".join(map(str, articles))).split()]


def invoice(server, articles):
    return sum(price_of(server, article) for article in articles)


def invoice_fixed(server, articles):
    return sum(prices_of(server, articles))


def main():
    if sys.argv[1:] not in ([], ["fixed"]):
        print("usage: rows [fixed]", file=sys.stderr)
        sys.exit(64)
    make = invoice_fixed if sys.argv[1:] else invoice
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    listening = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        try:
            serve(listening)
        except ConnectionError:
            pass
        os._exit(0)  # the client has ended
    connection = socket.create_connection(listening.getsockname())
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = connection.makefile("rw")
    print("ready: process", os.getpid(), flush=True)
    while True:
        count, begin = 0, time.monotonic()
        while time.monotonic() < begin + 1:
            make(server, range(ROWS))
            count += 1
        print(f"an invoice takes {(time.monotonic() - begin) / count * 1000:.1f} ms", flush=True)


main()
