#!/usr/bin/env bash
# Builds what the tests start, then runs all tests beside a real S3 server and a real Docker daemon. Called by `make test`.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$here/../.."
cargo fmt --all --check
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
# One set of packages for all calls, so that cargo unifies features once and builds each dependency once.
cargo build --workspace --bins
bash "$here/model.sh" "$(target_dir)/debug/rollmill-serve"
if [ -x "$ROLLMILL_CACHE/transformers/bin/python" ]; then
    export ROLLMILL_TRANSFORMERS=$ROLLMILL_CACHE/transformers/bin/python
fi
export ROLLMILL_SCHEMAS=${ROLLMILL_SCHEMAS:-$ROLLMILL_CACHE/schemas/bin/python}
# Compilers for the sandboxes, made once; tests that find them absent try themselves, and say so when they cannot.
"$(target_dir)/debug/rollmill" sandbox prepare all --profile all || echo "skipped: tests that need packages"
# What images are built on, in place of a registry's Debian.
"$(target_dir)/debug/rollmill" sandbox prepare image-base --packages bash,coreutils,grep,libc-bin,libstdc++6,python3,ca-certificates \
    || echo "skipped: tests that build images"
export ROLLMILL_DATA=${ROLLMILL_DATA:-$PWD/../shared/data}
# Test runners hide what a passing test prints: what is missing is said here.
for part in "s3:$ROLLMILL_CACHE/seaweedfs/weed" "model:$ROLLMILL_MODEL/config.json" "data:$ROLLMILL_DATA/mbpp/mbpp.jsonl" \
    "transformers:${ROLLMILL_TRANSFORMERS:-none}" "schemas:$ROLLMILL_SCHEMAS"; do
    [ -e "${part#*:}" ] || echo "skipped: tests that need ${part%%:*} (${part#*:} is not there)"
done
for program in kubectl terraform; do
    command -v "$program" >/dev/null || echo "skipped: tests that need $program"
done
[ -n "${ROLLMILL_TERRAFORM_PLUGINS:-}" ] || echo "skipped: tests that need terraform-providers (ROLLMILL_TERRAFORM_PLUGINS names none)"
[ -n "${ROLLMILL_TEST_NFS:-}" ] || echo "skipped: tests that need nfs (\`make nfs\` runs them in a machine of their own)"
# Doc tests apart: nextest does not run them.
cargo test --workspace --doc
runner=(cargo test)
cargo nextest --version >/dev/null 2>&1 && runner=(cargo nextest run)
"${runner[@]}" --workspace --no-run
# Checkpoints of the real model with their optimizers, in a folder and in the S3 server: beyond a full disk both fail obscurely.
for folder in "${TMPDIR:-/tmp}" "$(target_dir)"; do
    free_gib=$(($(df -Pk "$folder" | awk 'END { print $4 }') >> 20))
    [ "$free_gib" -ge 12 ] && continue
    echo "test: $folder has $free_gib GiB free and the tests need 12: make room (\`cargo clean --workspace\`, TMPDIR=...)" >&2
    exit 2
done
bash "$here/docker.sh" bash "$here/weed.sh" "${runner[@]}" --workspace --no-fail-fast
