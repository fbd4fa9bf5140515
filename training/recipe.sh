#!/bin/sh
# The whole recipe: audio -> banks -> a network that never heard the songs -> one for each song left out, measured on it -> the one for the package.
#   ./recipe.sh <data> <work>
# Needs a build of the package (npm run build). About 110 minutes on two cores. What is there already is not made again, so a run
# that was interrupted goes on. Results: <work>/folds/<song>.json, <work>/model (model.onnx and model.json), <work>/held-out.json
set -eu
data=$1 work=$2
here=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
# numpy and torch ask for large blocks all the time: keeping them saves a third of the mixing.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8000000000 MALLOC_TOP_PAD_=100000000
# Sizes, so that smoke.sh can make next to nothing of each.
: "${PREPARE=}" "${GENERAL=3000}" "${SONGS=1500}" "${CHECK=100}" "${BASE=--epochs 5.6}" "${TUNE=--epochs 0.6 --rate 5e-4}" "${HELD_OUT=}"

made() { [ -e "$1" ]; }
evaluate() { node "$here/../dist/cli/main.js" evaluate "$@"; }
mix() { "$python" "$here/mix.py" --work "$work" --processes 2 "$@"; }
train() { "$python" "$here/train.py" --bank "$work/general" "$@"; }

made "$work/index.json" || "$python" "$here/prepare.py" --data "$data" --work "$work" --processes 2 $PREPARE
made "$work/general.json" || mix --out "$work/general" --count "$GENERAL" --songs none
made "$work/songs.json" || mix --out "$work/songs" --count "$SONGS" --songs only --seed 2
made "$work/check.json" || mix --out "$work/check" --count "$CHECK" --held-out --seed 7
made "$work/base.pt" || { train --check "$work/check" --out "$work/base.part" $BASE && mv "$work/base.part" "$work/base.pt"; }

mkdir -p "$work/folds"
for folder in "$data"/everything-is-free/*/; do
  song=$(basename "$folder")
  made "$work/folds/$song.json" && continue
  train --bank "$work/songs" --init "$work/base.pt" --hold-out "$song" --out "$work/folds/$song.pt" $TUNE
  "$python" "$here/export.py" --net "$work/folds/$song.pt" --out "$work/folds/$song"
  evaluate "$folder" --model "$work/folds/$song" --model embedded --json > "$work/folds/$song.part"
  mv "$work/folds/$song.part" "$work/folds/$song.json"
done

made "$work/model/model.json" || {
  train --bank "$work/songs" --check "$work/check" --init "$work/base.pt" --out "$work/net.pt" $TUNE
  "$python" "$here/export.py" --net "$work/net.pt" --out "$work/model"
}
made "$work/held-out.json" || {
  "$python" "$here/songs.py" --work "$work" --out "$work/held-out" $HELD_OUT
  evaluate "$work/held-out" --model "$work/model" --model embedded --json > "$work/held-out.part"
  mv "$work/held-out.part" "$work/held-out.json"
}
