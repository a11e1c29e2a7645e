#!/usr/bin/env bash
# Builds release, converts the model once, and runs the demo; the same command carries on after Ctrl-C.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$here/../.."
cargo build --release --bins -p rollmill -p rollmill-serve -p rollmill-train
bin=$(target_dir)/release
bash "$here/model.sh" "$bin/rollmill-serve"
exec "$bin/rollmill" run --config "${CONFIG:-examples/demo.toml}" ${RUN:+--run "$RUN"}
