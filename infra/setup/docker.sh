#!/usr/bin/env bash
# Runs a command beside a Docker daemon of its own, which is started for it and stopped by its pid. Nothing of it is left: no container,
# mount or cgroup. The host's network and its other daemons are not touched; there is no bridge and no registry.
# usage: docker.sh COMMAND...   The command sees DOCKER_HOST. Without dockerd or root it runs without it.
set -euo pipefail
. "$(dirname "$0")/env.sh"
without() {
    [[ ",${ROLLMILL_REQUIRE:-}," != *,docker,* ]] || { echo "docker: ROLLMILL_REQUIRE names docker, but $1" >&2; exit 1; }
    echo "skipped: tests that need docker ($1)"
    shift
    exec "$@"
}
[ -n "${1:-}" ] || { echo "usage: docker.sh COMMAND..." >&2; exit 2; }
command -v dockerd >/dev/null || without "there is no dockerd" "$@"
[ "$(id -u)" -eq 0 ] || without "dockerd needs root" "$@"
dir=$(mktemp -d)
group=rollmill-docker-$$
echo '{}' > "$dir/daemon.json"
# In a session of its own: Ctrl-C is for the command, which still removes its containers. It ends with this script.
apart=(setsid)
command -v setpriv >/dev/null && apart+=(setpriv --pdeathsig TERM)
"${apart[@]}" dockerd --config-file "$dir/daemon.json" --iptables=false --ip-forward=false --ip-masq=false --bridge=none \
    --data-root "$dir/data" --exec-root "$dir/exec" --pidfile "$dir/pid" --exec-opt native.cgroupdriver=cgroupfs \
    --cgroup-parent "/$group" -H "unix://$dir/docker.sock" >"$dir/log" 2>&1 </dev/null &
pid=$!
stop() {
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    # a daemon that was killed itself leaves what it started; nothing else has this group or names this folder
    { find /sys/fs/cgroup -path "*/$group/*" -name cgroup.procs -exec cat {} + | sort -u
        grep -ls -- "$dir/exec" /proc/[0-9]*/cmdline | cut -d/ -f3; } 2>/dev/null | xargs -r kill -9 2>/dev/null || true
    awk -v d="$dir/" 'index($2, d) == 1 {print $2}' /proc/self/mounts | sort -r | while read -r mount; do umount -l "$mount" || true; done
    for _ in $(seq 50); do
        find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null || true
        [ -n "$(find /sys/fs/cgroup -maxdepth 2 -name "$group" 2>/dev/null)" ] || break
        sleep 0.1
    done
    rm -rf "$dir"
}
trap stop EXIT
for _ in $(seq 600); do
    curl -sf -o /dev/null --unix-socket "$dir/docker.sock" http://docker/_ping && break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
done
if ! curl -sf -o /dev/null --unix-socket "$dir/docker.sock" http://docker/_ping; then
    tail -5 "$dir/log" >&2
    trap - EXIT
    stop
    without "dockerd does not start here" "$@"
fi
DOCKER_HOST=unix://$dir/docker.sock "$@"
