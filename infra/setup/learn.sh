#!/usr/bin/env bash
# PPO with a critic, then its two controls as forks of the same run: the same tasks, base model and first measurements. Each arm
# carries on where it was stopped. ARMS chooses some of them, ROUNDS how many rounds.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$here/../.."
cargo build --release --bins -p rollmill -p rollmill-serve -p rollmill-train
bash "$here/model.sh" "$(target_dir)/release/rollmill-serve"
rollmill=$(target_dir)/release/rollmill
parent=runs/learn-ppo
"$rollmill" init --config examples/learn/ppo.toml "$parent"
for arm in ${ARMS:-ppo grpo rejection}; do
    if [ "$arm" = ppo ]; then
        "$rollmill" run --config examples/learn/ppo.toml ${ROUNDS:+--rounds "$ROUNDS"}
    else
        "$rollmill" run --config "examples/learn/$arm.toml" --from "$parent" --round 1 ${ROUNDS:+--rounds "$ROUNDS"}
    fi
done
