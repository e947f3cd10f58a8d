#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# docs/fleet.md: its units, and its script against a server that keeps what it is sent.
# shellcheck disable=SC2154,SC2016 # $out, $err and $rc come from tap.sh; Perl's variables
. "$(dirname "$0")/../lib/tap.sh"
cd "$TMP" || exit 1

# each block that follows the name of a file
perl -ne '
	if (/^`(\/\S+)`/) { $name = $1 =~ s/.*\///r }
	elsif (/^```\w+$/ && $name) { open $out, ">", $name or die "$name: $!"; $in = 1 }
	elsif (/^```$/) { $in = 0; undef $name }
	elsif ($in) { print $out $_ }' "$TOP/docs/fleet.md"
is "$(echo ship stacktools-*)" "ship stacktools-record.service stacktools-record.timer stacktools-ship.service" "the page has these files"

## units

if command -v systemd-analyze >/dev/null; then
	mkdir bin
	printf '#!/bin/sh\n' >bin/true
	chmod +x bin/true ship
	mkdir units
	for unit in stacktools-*; do
		# programs that need not be installed here
		sed "s,^ExecStart=[^ ]*,ExecStart=$TMP/bin/true," "$unit" >"units/$unit"
	done
	run env SYSTEMD_UNIT_PATH="$TMP/units:" systemd-analyze verify --man=no units/stacktools-record.timer units/stacktools-record.service units/stacktools-ship.service
	is "$rc:$(grep -F stacktools "$err")" "0:" "systemd accepts the units"
	sed 's/^CPUQuota=.*/CPUQuota=much/' units/stacktools-ship.service >units/stacktools-bad.service
	run env SYSTEMD_UNIT_PATH="$TMP/units:" systemd-analyze verify --man=no units/stacktools-bad.service
	like "$(cat "$err")" 'CPU quota' "and would report a bad one"
else
	skip "systemd accepts the units" "no systemd-analyze"
	skip "and would report a bad one" "no systemd-analyze"
fi
for service in record ship; do
	for bound in TimeoutStartSec CPUQuota MemoryMax LimitFSIZE TasksMax; do
		like "$(cat stacktools-$service.service)" "^$bound=" "$service is bounded by $bound"
	done
done
command=$(sed -n 's/^ExecStart=\/usr\/bin\///p' stacktools-record.service)
run "$BIN/${command%% *}" --help
for option in $(echo "$command" | tr ' ' '\n' | grep '^-'); do
	like "$(cat "$out")" "[ ,]${option}[ ,=]" "${command%% *} has $option"
done

## the script

if ! command -v python3 >/dev/null || ! command -v curl >/dev/null; then
	skip "ship" "no python3 or no curl"
	tap_done
	exit
fi
cat >server.py <<'EOF'
import http.server, os, sys
class Keep(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        open('body', 'wb').write(body)
        open('request', 'w').write(self.path + ' ' + self.headers['Content-Type'])
        self.send_response(500 if os.path.exists('broken') else 200)
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(('127.0.0.1', 0), Keep)
open('port.new', 'w').write(str(server.server_port))
os.rename('port.new', 'port')
server.serve_forever()
EOF
python3 server.py &
at_exit_kill $!
while ! [ -e port ]; do
	sleep 0.05
done
url=http://127.0.0.1:$(cat port)
"$OBJ/t/unit/print" --make a.cap <"$DATA/viewers/plain.waits"
"$BIN/stackexport" --format=pprof a.cap >a.pb.gz 2>/dev/null
"$BIN/stackexport" --format=otlp a.cap >a.otlp 2>/dev/null
ship() { # RECEIVER CAPTURE
	rm -f body request
	run env PATH="$BIN:$PATH" TMPDIR="$TMP/tmp" no_proxy=127.0.0.1 STACKTOOLS_RECEIVER="$1" STACKTOOLS_URL="$url" sh ship "$2"
}
mkdir tmp
profile_of() { # PATH-IN-JSON: of the body, decoded
	python3 -c '
import base64, json, sys
at = json.load(open("body"))
for key in sys.argv[1].split("/"):
    at = at[int(key) if key.isdigit() else key]
sys.stdout.buffer.write(base64.b64decode(at) if "rofile" in key else json.dumps(at).encode())' "$1"
}

ship pyroscope a.cap
is "$rc:$(cat request)" "0:/push.v1.PusherService/Push application/json" "Pyroscope gets a request"
profile_of series/0/samples/0/rawProfile >got
same got a.pb.gz "with the profile"
like "$(profile_of series/0/labels)" '"service_name", "value": "stacktools"' "and labels"
ship parca a.cap
is "$rc:$(cat request)" "0:/api/profiles/writeraw application/json" "Parca gets a request"
profile_of series/0/samples/0/raw_profile >got
same got a.pb.gz "with the profile"
like "$(profile_of series/0/labels/labels)" '"__name__", "value": "offcpu"' "and labels"
ship otlp a.cap
is "$rc:$(cat request)" "0:/v1development/profiles application/x-protobuf" "a collector gets a request"
same body a.otlp "with the profiles"
ship nowhere a.cap
is "$rc" 64 "another receiver is an error"
ship pyroscope none.cap
is "$rc:$(test -e request && echo sent)" "2:" "a capture that cannot be read is not sent, and the status is stackexport's"
sed 's/^MAX_BYTES=.*/MAX_BYTES=10/' ship >small
mv ship whole && mv small ship
ship pyroscope a.cap
is "$rc:$(grep -v symbolize "$err")" "1:ship: the profile has more than 10 bytes: not sent" "a profile that is too large is dropped"
mv whole ship
: >broken
ship otlp a.cap
is "$rc" 22 "a server that refuses is an error"
is "$(ls tmp)" "" "nothing stays behind"

tap_done
