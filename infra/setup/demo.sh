#!/usr/bin/env bash
# Builds release, converts the model once, and runs the demo; the same command carries on after Ctrl-C.
# With STORE=s3 the run lies in a bucket on an S3 server, which is started for it and keeps its data in runs/s3-data.
# CONFIG, RUN and WEED_DATA choose another configuration, address and folder for that data.
set -euo pipefail
. "$(dirname "$0")/env.sh"
cd "$here/../.."
if [ "${1:-}" != beside-server ]; then
    cargo build --release --bins -p rollmill -p rollmill-serve -p rollmill-train
    bash "$here/model.sh" "$(target_dir)/release/rollmill-serve"
fi
rollmill=$(target_dir)/release/rollmill
config=${CONFIG:-examples/demo.toml}
case ${STORE:-folder}${1:+-$1} in
    folder)
        exec "$rollmill" run --config "$config" ${RUN:+--run "$RUN"}
        ;;
    s3)
        export WEED_DATA=${WEED_DATA:-runs/s3-data}
        exec bash "$here/weed.sh" bash "$here/demo.sh" beside-server
        ;;
    s3-beside-server)
        run=${RUN:-s3://rollmill/demo}
        "$rollmill" init --config "$config" "$run" --create-bucket
        "$rollmill" run --config "$config" --run "$run"
        echo "$run lies in $WEED_DATA; to look into it: WEED_DATA=$WEED_DATA bash infra/setup/weed.sh $rollmill status --run $run"
        ;;
esac
