#!/usr/bin/env bash
# Runs a command beside a SeaweedFS S3 server on loopback, which is started for it and stopped by its pid.
# usage: weed.sh COMMAND...   The command sees AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, ROLLMILL_TEST_S3.
set -euo pipefail
. "$(dirname "$0")/env.sh"
weed=$ROLLMILL_CACHE/seaweedfs/weed
[ -x "$weed" ] || exec "$@"
dir=$(mktemp -d)
read -r master volume filer s3 <<<"$(python3 - <<'P'
import socket
# Ports p with p + 10000 free as well: SeaweedFS adds that for gRPC.
found, p = [], 20000 + (__import__("os").getpid() * 7) % 9000
while len(found) < 4:
    p += 1
    try:
        for q in (p, p + 10000):
            s = socket.socket(); s.bind(("127.0.0.1", q)); s.close()
        found.append(p)
    except OSError:
        pass
print(*found)
P
)"
cat > "$dir/iam.json" <<'J'
{"identities":[{"name":"test","credentials":[{"accessKey":"testkey","secretKey":"testsecret"}],"actions":["Admin","Read","List","Tagging","Write"]}]}
J
mkdir "$dir/data"
"$weed" mini -ip=127.0.0.1 -ip.bind=127.0.0.1 -dir="$dir/data" -master.port="$master" -volume.port="$volume" \
    -filer.port="$filer" -s3.port="$s3" -s3.config="$dir/iam.json" -admin.ui=false -webdav=false >"$dir/log" 2>&1 &
pid=$!
stop() { kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; rm -rf "$dir"; }
trap stop EXIT
for _ in $(seq 600); do
    code=$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$s3/" || true)
    [ "$code" = 403 ] || [ "$code" = 200 ] && break
    kill -0 "$pid" 2>/dev/null || { echo "weed: the S3 server ended:" >&2; tail -5 "$dir/log" >&2; exit 1; }
    sleep 0.1
done
export AWS_ENDPOINT_URL=http://127.0.0.1:$s3 AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret
export AWS_REGION=us-east-1 ROLLMILL_TEST_S3=s3://rollmill-test ROLLMILL_WEED_PID=$pid
python3 "$here/make_bucket.py" rollmill-test
"$@"
