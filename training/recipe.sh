#!/bin/sh
# The whole recipe: audio -> banks -> a network that never heard the songs -> one for each song left out, evaluated on it -> the one for the package.
#   ./recipe.sh <data> <work>
# Needs a build of the package (npm run build). Takes some hours on two cores. What exists is not made again, and training continues where it
# stopped, so to continue a run that was interrupted or killed, start it again. Results: <work>/folds/<song>.json, <work>/model (model.onnx and model.json),
# <work>/held-out.json
# PYTHON: the interpreter, for a newer PyTorch. DEVICE: cpu, or cuda with PROCESSES=1. SONGS=0: the result is the network that never heard the songs,
# so it is evaluated on the songs, and no folds are needed.
set -eu
data=$1 work=$2
here=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
# numpy and torch allocate large blocks all the time: keeping them saves a third of the time of mixing.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8000000000 MALLOC_TOP_PAD_=100000000
# Sizes, which smoke.sh sets to next to nothing.
: "${PREPARE=}" "${VOICES=12000}" "${MUSIC=9000}" "${SONGS=3000}" "${CHECK=100}" "${HELD_OUT=}" "${PROCESSES=2}" "${DEVICE=cpu}"
: "${BASE=--steps 12000 --hold 0.5 --rate 2.5e-3 --average 0.999}" "${TUNE=--steps 450 --rate 6e-4 --average 0.99 --balance -9.5 --unsung 0.4}" "${EXPORT=--lower 0.4}"

made() { [ -e "$1" ]; }
evaluate() { node "$here/../dist/cli/main.js" evaluate "$@"; }
mix() { "$python" "$here/mix.py" --work "$work" --processes "$PROCESSES" "$@"; }
bank() { made "$work/$1.json" || "$python" "$here/sources.py" --work "$work" --processes "$PROCESSES" --out "$work/$@"; }
train() { "$python" "$here/train.py" --bank "$work/voices+$work/music" --processes "$PROCESSES" --device "$DEVICE" "$@"; }
tune() {
  train --bank "$work/songs-voices+$work/music" --bank "$work/voices+$work/songs-music" --bank "$work/songs-voices+$work/songs-music" --bank "$work/songs" --init "$work/base.pt" "$@" $TUNE
}

made "$work/index.json" || "$python" "$here/prepare.py" --data "$data" --work "$work" --processes "$PROCESSES" $PREPARE
bank voices --of voices --count "$VOICES" --seed 1
bank music --of music --count "$MUSIC" --seed 2
made "$work/check.json" || mix --out "$work/check" --count "$CHECK" --held-out --seed 7
made "$work/choose.json" || mix --out "$work/choose" --count "$CHECK" --songs none --stretch last --seed 9
made "$work/base.pt" || {
  train --check "$work/check" --choose "$work/choose" --out "$work/base.part" $BASE && mv "$work/base.part" "$work/base.pt" && rm "$work/base.part.state"
}

learnt=base
if [ "$SONGS" != 0 ]; then
  bank songs-voices --of voices --songs only --count "$SONGS" --seed 3
  bank songs-music --of music --songs only --count "$SONGS" --seed 4
  bank songs --of songs --count "$SONGS" --seed 5
  mkdir -p "$work/folds"
  for folder in "$data"/everything-is-free/*/; do
    song=$(basename "$folder")
    made "$work/folds/$song.json" && continue
    tune --hold-out "$song" --out "$work/folds/$song.pt"
    "$python" "$here/export.py" --net "$work/folds/$song.pt" --out "$work/folds/$song" $EXPORT
    evaluate "$folder" --model "$work/folds/$song" --model embedded --json > "$work/folds/$song.part"
    mv "$work/folds/$song.part" "$work/folds/$song.json"
  done
  made "$work/net.pt" || { tune --check "$work/check" --out "$work/net.part" && mv "$work/net.part" "$work/net.pt" && rm -f "$work/net.part.state"; }
  learnt=net
fi

made "$work/model/model.json" || "$python" "$here/export.py" --net "$work/$learnt.pt" --out "$work/model" $EXPORT
made "$work/held-out.json" || {
  "$python" "$here/songs.py" --work "$work" --out "$work/held-out" $HELD_OUT
  evaluate "$work/held-out" --model "$work/model" --model embedded --json > "$work/held-out.part"
  mv "$work/held-out.part" "$work/held-out.json"
}
