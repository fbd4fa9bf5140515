#!/bin/sh
# The whole recipe in about two minutes, to check that it works: every step with next to no data. The networks are useless.
#   ./smoke.sh <data> <work>
# Needs a build of the package (npm run build). Reads only a little of <data>, as excerpts in <work>/some.
set -eu
data=$(realpath "$1") work=$2
here=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
cut() { ffmpeg -nostdin -v error -y -ss "$1" -t 20 -i "$data/$2" "$work/some/$3"; }

mkdir -p "$work/some/everything-is-free/first" "$work/some/everything-is-free/second" "$work/some/voices" "$work/some/instrumental"
for stem in vocals accompaniments; do
  cut 60 "everything-is-free/lithium/$stem.ogg" "everything-is-free/first/$stem.wav"
  cut 60 "everything-is-free/hydrogen/$stem.ogg" "everything-is-free/second/$stem.wav"
done
for name in nathalie-dutch kerstin-german house-vocals; do cut 0 "voices/$name.ogg" "voices/$name.wav"; done
for name in mdn-band-stems gm3-hip-hop-beats; do cut 0 "instrumental/$name.ogg" "instrumental/$name.wav"; done

export PREPARE='--sung-minutes 0.4 --espeak-minutes 0.2 --arranged-minutes 1 --synthesized-minutes 0.7' VOICES=24 MUSIC=24 SONGS=16 CHECK=8
export BASE='--steps 8 --batch 4' TUNE='--steps 4 --batch 4 --rate 5e-4' HELD_OUT='--count 2 --seconds 8'
"$here/recipe.sh" "$work/some" "$work"

# Training can continue from the graph in the package: its weights, read back and exported again, give the same file (with Debian's PyTorch).
shipped="$here/../models/embedded/model.onnx"
"$python" "$here/export.py" --net "$shipped" --out "$work/again"
cmp "$shipped" "$work/again/model.onnx"
"$python" "$here/train.py" --bank "$work/voices+$work/music" --check "$work/check" --init "$shipped" --out "$work/further.pt" --steps 2 --batch 4

# The mean of a network before and after more steps.
"$python" "$here/mean.py" --net "$work/base.pt" --net "$work/net.pt" --bank "$work/voices+$work/music" --out "$work/mean.pt"

# The same on a machine that gets its audio in parcels, those with music late. Takes a minute, little of it for training.
"$python" "$here/rented.py" pack --work "$work" --out "$work/parcels" --bytes 1e6
mkdir "$work/arrived"
mv "$work"/parcels/*/index.json "$work"/parcels/*/voice-* "$work/arrived"
"$python" "$here/rented.py" run --parcels "$work/arrived" --work "$work/rented" --minutes 1 --first 20 --device cpu --batch 2 &
sleep 10
for parcel in "$work"/parcels/*/; do mv "$parcel"* "$work/arrived" 2> /dev/null || true; done
wait $!
for net in base net first second; do test -s "$work/rented/$net.pt"; done

# The same seed gives the same weights, even with two processes.
for run in first second; do
  mkdir -p "$work/$run"
  "$python" "$here/train.py" --bank "$work/voices+$work/music" --out "$work/$run/net.pt" --steps 2 --batch 2 --processes 2
done
cmp "$work/first/net.pt" "$work/second/net.pt"
