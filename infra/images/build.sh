#!/usr/bin/env bash
# Builds an image from programs that are built already. Says its size.
# usage: build.sh cpu|gpu TAG      with docker, or what ENGINE names (podman)
#        build.sh apptainer FILE   with apptainer
# BASE: another base image. PROGRAMS: their folder (default target/release). STRIP=1: without symbols. LIBTORCH: the libtorch that
# rollmill-train and rollmill-serve were linked with. KUBECTL: a kubectl for the conductor; without it, the one on PATH, if there is one.
set -euo pipefail
kind=${1:-} to=${2:-}
usage() { sed -n '3,4s/^# //p' "$0" >&2; exit 2; }
[ -n "$to" ] || usage
. "$(dirname "$0")/../setup/env.sh"
images=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=${PROGRAMS:-$(target_dir)/release}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir "$context/bin"

# put NAME...: programs, which must be there.
put() {
    local name
    for name in "$@"; do
        [ -x "$programs/$name" ] || { echo "build: $programs/$name is missing; run \`make build\`, or set PROGRAMS" >&2; exit 2; }
        cp "$programs/$name" "$context/bin/"
        [ -z "${STRIP:-}" ] || strip "$context/bin/$name"
    done
}

libtorch() {
    mkdir "$context/libtorch"
    cp -L "$LIBTORCH"/lib/*.so* "$context/libtorch/"
}

# The program behind a dispatcher of a vendor, or nothing.
with_kubectl() {
    local found=${KUBECTL:-$(command -v kubectl || true)}
    [ -z "$found" ] || cp "$(readlink -f "$found")" "$context/bin/kubectl"
}

case $kind in
    cpu)
        put rollmill rollmill-sandbox-helper
        with_kubectl
        file=Containerfile
        ;;
    gpu)
        put rollmill rollmill-train rollmill-serve
        libtorch
        file=Containerfile.gpu
        ;;
    apptainer)
        put rollmill rollmill-sandbox-helper rollmill-train rollmill-serve
        libtorch
        cp "$images/rollmill.def" "$context/"
        (cd "$context" && exec apptainer build --fakeroot image.sif rollmill.def)
        mv "$context/image.sif" "$to"
        du -h "$to"
        exit
        ;;
    *) usage ;;
esac
chmod -R a+rX "$context"
engine=${ENGINE:-docker}
"$engine" build -q --network "${BUILD_NETWORK:-default}" ${BASE:+--build-arg "BASE=$BASE"} -t "$to" -f "$images/$file" "$context" >/dev/null
"$engine" image inspect -f '{{.Size}}' "$to" | awk -v to="$to" '{ printf "%s: %.0f MB\n", to, $1 / 1e6 }'
