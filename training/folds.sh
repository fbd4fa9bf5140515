#!/bin/sh
# Leave one song out: for each song a network that learns nothing from it, exported and measured on it by `stemwork evaluate`.
#   ./folds.sh <data> <work> [options of train.py]      for example ./folds.sh ../../shared/data work --epochs 8
# Needs <work>/train.npy of mix.py and a build of the package (npm run build). Results: <work>/folds/<song>.json
set -eu
data=$1 work=$2
shift 2
here=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$work/folds"
for folder in "$data"/everything-is-free/*/; do
  song=$(basename "$folder")
  "$python" "$here/train.py" --bank "$work/train" --out "$work/folds/$song.pt" --hold-out "$song" "$@"
  "$python" "$here/export.py" --net "$work/folds/$song.pt" --out "$work/folds/$song"
  node "$here/../dist/cli/main.js" evaluate "$folder" --model "$work/folds/$song" --model embedded --json > "$work/folds/$song.json"
done
