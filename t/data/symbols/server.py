# SPDX-License-Identifier: GPL-2.0-or-later
# server.py HOW FILE: a debug file server on this machine that answers in way HOW; prints its port.
#   liar: FILE, whatever was asked for    garbage: a text    none: 404
#   deaf: nothing    dribble: a byte of many now and then
import http.server
import socketserver
import sys
import time

how, path = sys.argv[1:]
body = open(path, "rb").read() if how == "liar" else b"no debug file" * 100


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if how == "deaf":
            time.sleep(60)
            return
        if how == "none":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) if how != "dribble" else 1 << 30))
        self.end_headers()
        while how == "dribble":
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(0.2)
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
