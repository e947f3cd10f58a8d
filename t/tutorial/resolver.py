# SPDX-License-Identifier: GPL-2.0-or-later
"""A client that looks a name up before each connection; resolver has made it a network of its own.

Of the two name servers 127.0.0.1 never answers, and 127.0.0.2, a child, always does. Prints how long
each connection took. The child ends with the client.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import time

PR_SET_PDEATHSIG = 1
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = bytearray(struct.pack("16sH22x", b"lo", 0))
        fcntl.ioctl(any_socket, SIOCGIFFLAGS, request)
        flags = struct.unpack_from("H", request, 16)[0] | IFF_UP
        struct.pack_into("H", request, 16, flags)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, request)


def name_server(address):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    return server


def answer_queries(server):
    """Answers each query for an address (type A) with 127.0.0.1, any other with nothing."""
    while True:
        query, client = server.recvfrom(512)
        end = query.index(b"\0", 12) + 1  # of the name in the question
        is_a = query[end : end + 2] == b"\0\1"
        header = query[:2] + b"\x85\x80\0\1" + struct.pack(">HHH", is_a, 0, 0)
        record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4\x7f\0\0\1"
        server.sendto(header + query[12 : end + 4] + (record if is_a else b""), client)


def find_host(name):
    return socket.getaddrinfo(name, 8080, socket.AF_INET, socket.SOCK_STREAM)[0][4]


def send_order(name):
    with socket.create_connection(find_host(name)) as connection:
        connection.sendall(b"an order")


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    loopback_up()
    _silent = name_server("127.0.0.1")
    answering = name_server("127.0.0.2")
    shop = socket.create_server(("127.0.0.1", 8080), backlog=100)
    client = os.getpid()
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == client:
            answer_queries(answering)
        os._exit(0)
    print("ready: process", client, flush=True)
    while True:
        begin = time.monotonic()
        send_order("shop.example")
        print(f"an order takes {(time.monotonic() - begin) * 1000:.1f} ms", flush=True)
        shop.accept()[0].close()
        time.sleep(0.05)


main()
