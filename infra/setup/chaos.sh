#!/usr/bin/env bash
# Kills a thousand workers on a folder and a thousand on SeaweedFS, and twenty times the server itself, then counts rows.
# Called by `make chaos`. KILLS, SERVER_KILLS, FREEZES, SEED and TRAJECTORIES (a finished run, for `score`) may be set.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$here/../.."
cargo build --bins -p rollmill -p rollmill-sandbox -p rollmill-chaos
bin=$(target_dir)/debug
common=(--kills "${KILLS:-1000}" --freezes "${FREEZES:-20}" --seed "${SEED:-1}")
[ -z "${TRAJECTORIES:-}" ] || common+=(--trajectories "$TRAJECTORIES")
"$bin/rollmill-chaos" kill --store folder "${common[@]}"
[ -x "$ROLLMILL_CACHE/seaweedfs/weed" ] || { echo "skipped: the kills on S3 (no weed for this machine)"; exit 0; }
"$bin/rollmill-chaos" kill --store s3 --server-kills "${SERVER_KILLS:-20}" "${common[@]}"
