# Where things lie on this machine, and how cargo links. Sourced by the other scripts and by `make`.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/pins.sh"
export ROLLMILL_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/rollmill
export LIBTORCH=${LIBTORCH:-$ROLLMILL_CACHE/libtorch-$TORCH_VERSION}
export ROLLMILL_MODEL=${ROLLMILL_MODEL:-$ROLLMILL_CACHE/models/$MODEL_NAME}
[ -d "$HOME/.cargo/bin" ] && PATH=$HOME/.cargo/bin:$PATH
if command -v mold >/dev/null 2>&1; then
    # mold links these binaries several times faster than ld.
    export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C link-arg=-fuse-ld=mold"
fi
target_dir() { (cd "$here/../.." && cargo metadata --no-deps --offline --format-version 1 2>/dev/null || echo '{}') \
    | python3 -c 'import json,sys; print(json.load(sys.stdin).get("target_directory","target"))'; }
