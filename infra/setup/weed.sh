#!/usr/bin/env bash
# Runs a command beside a SeaweedFS S3 server on loopback, which is started for it and stopped by its pid.
# usage: weed.sh COMMAND...   The command sees AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION.
# With WEED_DATA=FOLDER the data stays there for the next call. Without it the data goes with the command, and tests get a bucket
# (ROLLMILL_TEST_S3), a key that may only read and list (ROLLMILL_TEST_S3_READER, id:secret), and keys of jobs.
set -euo pipefail
. "$(dirname "$0")/env.sh"
weed=$ROLLMILL_CACHE/seaweedfs/weed
if [ ! -x "$weed" ]; then
    [ -z "${WEED_DATA:-}" ] || { echo "weed: there is no S3 server for this machine" >&2; exit 2; }
    exec "$@"
fi
dir=$(mktemp -d)
data=${WEED_DATA:-$dir/data}
mkdir -p "$data"
# A server finds its data again on the ports it had, so they stay with the data while they are free.
read -r master volume filer s3 <<<"$(python3 - "$data/.ports" <<'P'
import os, socket, sys

def free(p):
    """Whether p and p + 10000, which SeaweedFS takes for gRPC, can be bound."""
    try:
        for q in (p, p + 10000):
            s = socket.socket()
            # As the server does: a port it has just left is free.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", q))
            s.close()
        return True
    except OSError:
        return False

file = sys.argv[1]
ports = [int(p) for p in open(file).read().split()] if os.path.exists(file) else []
if len(ports) != 4 or not all(map(free, ports)):
    ports, p = [], 20000 + (os.getpid() * 7) % 9000
    while len(ports) < 4:
        p += 1
        if free(p):
            ports.append(p)
    with open(file, "w") as out:
        print(*ports, file=out)
print(*ports)
P
)"
# Everybody, one who may only look, and one for each job with the rights terraform/ gives it on one run (ROLLMILL_TEST_S3_ROLES).
python3 - "$here/../../terraform/modules/rights/rights.json" > "$dir/iam.json" <<'P'
import json, sys

rights, run = json.load(open(sys.argv[1])), "rollmill-roles/run/"
def identity(name, actions):
    return {"name": name, "credentials": [{"accessKey": name + "key", "secretKey": name + "secret"}], "actions": actions}

# The server takes an action without a star for one on a whole bucket, and knows no denial: what is denied is left out.
def control(name):
    """What a job reads of the control folder: of stages with hidden tests all but their chunks."""
    closed = [] if name in rights["sees_secrets"] else ["synthesize", "verify"]
    parts = ["plan", "leases/", "blocks/", "reports/", "sealed"]
    return [f"control/{stage}/{part}" for stage in ("synthesize", "verify") for part in (parts if stage in closed else [""])] + [
        f"control/{folder}/" for folder in ("rollout", "score", "evaluate", "checkpoints", "retired", "endpoints", "serve")]

def job(name, of):
    folders = [folder for folder in rights["read_by_all"] + of["reads"] if folder != "control/*"] + control(name)
    reads = [f"Read:{run}{folder.rstrip('*')}*" for folder in folders]
    writes = [f"{action}:{run}{folder.rstrip('*')}*" for folder in of["writes"] for action in ("Write", "Tagging")]
    return identity(name, ["List:rollmill-roles*"] + reads + writes)

everybody = [identity("test", ["Admin", "Read", "List", "Tagging", "Write"]), identity("read", ["Read", "List"])]
print(json.dumps({"identities": everybody + [job(name, of) for name, of in rights["jobs"].items()]}))
P
# In a session of its own: Ctrl-C is for the command, which still needs the server while it drains. It ends with this script.
apart=(setsid)
command -v setpriv >/dev/null && apart+=(setpriv --pdeathsig TERM)
# As many volumes as it likes: left to itself it takes the disk's free space of this moment for the most it may ever store.
"${apart[@]}" "$weed" mini -ip=127.0.0.1 -ip.bind=127.0.0.1 -dir="$data" -master.port="$master" -volume.port="$volume" \
    -filer.port="$filer" -s3.port="$s3" -s3.config="$dir/iam.json" -admin.ui=false -webdav=false \
    -master.volumeSizeLimitMB=512 -volume.max=1000 >"$dir/log" 2>&1 &
pid=$!
stop() { kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; rm -rf "$dir"; }
trap stop EXIT
for _ in $(seq 600); do
    code=$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$s3/" || true)
    [ "$code" = 403 ] || [ "$code" = 200 ] && break
    kill -0 "$pid" 2>/dev/null || { echo "weed: the S3 server ended:" >&2; tail -5 "$dir/log" >&2; exit 1; }
    sleep 0.1
done
export AWS_ENDPOINT_URL=http://127.0.0.1:$s3 AWS_ACCESS_KEY_ID=testkey AWS_SECRET_ACCESS_KEY=testsecret AWS_REGION=us-east-1
export ROLLMILL_WEED_PID=$pid
if [ -z "${WEED_DATA:-}" ]; then
    export ROLLMILL_TEST_S3=s3://rollmill-test ROLLMILL_TEST_S3_READER=readkey:readsecret
    export ROLLMILL_TEST_S3_ROLES=s3://rollmill-roles/run
    python3 "$here/make_bucket.py" rollmill-test
    python3 "$here/make_bucket.py" rollmill-roles
fi
"$@"
