#!/usr/bin/env bash
# Runs the store's tests on NFS, in a small machine of its own (QEMU, no KVM needed) whose kernel is server and clients of one export.
# What it is made of comes from Debian by apt-get and is unpacked into the cache; nothing is installed. Called by `make nfs`.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$here/../.."
say() { printf 'nfs: %s\n' "$*"; }
skip() {
    [[ ",${ROLLMILL_REQUIRE:-}," != *,nfs,* ]] || { say "ROLLMILL_REQUIRE names nfs, but $*" >&2; exit 1; }
    say "skipped: $*"
    exit 0
}
[ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null \
    || skip "the machine is made of Debian's packages for x86-64"
box=$ROLLMILL_CACHE/nfs

# packages FOLDER NAME...: unpacks packages and all they depend on below FOLDER.
packages() {
    local root=$1; shift
    mkdir -p "$box/archives/partial"
    : > "$box/status"
    # As if nothing were installed, so that the folder is whole.
    apt-get -qq -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Dir::State::status="$box/status" \
        -o Dir::Cache::archives="$box/archives" install --download-only -y --no-install-recommends "$@" >/dev/null \
        || { say "apt-get cannot download $*; try \`apt-get update\` first" >&2; exit 1; }
    mkdir -p "$root"
    for deb in "$box"/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
    rm -rf "$box/archives"
}

if [ ! -f "$box/.complete" ]; then
    say "downloading a kernel, NFS tools and QEMU (about 105 MB)"
    rm -rf "$box"; mkdir -p "$box/kernel"
    packages "$box/qemu" qemu-system-x86
    packages "$box/guest" nfs-kernel-server busybox-static e2fsprogs iproute2
    (cd "$box" && apt-get -qq -o APT::Sandbox::User=root download \
        "$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ {print $2; exit}')")
    dpkg-deb -x "$box"/linux-image-*.deb "$box/kernel"
    rm -rf "$box"/linux-image-*.deb "$box"/guest/usr/share/{doc,man,locale}
    mkdir -p "$box/guest/lib/modules"
    cp -r "$box"/kernel/lib/modules/* "$box/guest/lib/modules/"
    "$box/guest/bin/busybox" depmod -b "$box/guest" "$(ls "$box/kernel/lib/modules")"
    (cd "$box/guest" && find . | ./bin/busybox cpio -o -H newc 2>/dev/null | gzip -1) > "$box/guest.gz"
    touch "$box/.complete"
fi

test=$(cargo test --no-run -p rollmill-faults --test conformance --message-format=json \
    | python3 -c 'import json,sys; print([m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable")][-1])')
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/test"
cp "$here/nfs_init.sh" "$dir/init"
cp "$here/nfs_lossy.py" "$dir/test/lossy.py"
cp "$test" "$dir/test/conformance"
chmod +x "$dir/init"
{ cat "$box/guest.gz"; (cd "$dir" && find init test | "$box/guest/bin/busybox" cpio -o -H newc 2>/dev/null | gzip -1); } > "$dir/initrd"
say "starting the machine (a minute)"
LD_LIBRARY_PATH=$box/qemu/usr/lib/x86_64-linux-gnu:$box/qemu/lib/x86_64-linux-gnu timeout "${NFS_SECONDS:-600}" \
    "$box/qemu/usr/bin/qemu-system-x86_64" -accel tcg -cpu max -smp 2 -m 2048 -no-reboot -nodefaults -nographic -serial stdio \
    -L "$box/qemu/usr/share/qemu" -L "$box/qemu/usr/share/seabios" -kernel "$box"/kernel/boot/vmlinuz-* -initrd "$dir/initrd" \
    -append "console=ttyS0 quiet no_timer_check panic=-1 brd.rd_size=524288 rdinit=/init" </dev/null > "$dir/log" 2>&1 || true
tr -d '\r' < "$dir/log" | sed -n '/^nfs: /,$p' | grep -v 'reboot: '
grep -q '^nfs: the tests ended' "$dir/log" || { say "the machine did not come to the tests:" >&2; tr -d '\r' < "$dir/log" | tail -20 >&2; }
grep -q '^nfs: the tests ended with 0' "$dir/log"
