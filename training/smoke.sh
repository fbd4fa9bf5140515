#!/bin/sh
# The whole recipe in about a minute, to see that it works: prepare -> mix -> train -> export -> evaluate. The network is worth nothing.
#   ./smoke.sh <data> <work>
# Needs a build of the package (npm run build). Reads only a little of <data>, by links in <work>/some.
set -eu
data=$(realpath "$1") work=$2
here=$(dirname "$0")
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$work/some/everything-is-free/song" "$work/some/voices" "$work/some/instrumental" "$work/songs"
for stem in vocals accompaniments; do
  ffmpeg -nostdin -v error -y -ss 60 -t 20 -i "$data/everything-is-free/lithium/$stem.ogg" "$work/some/everything-is-free/song/$stem.wav"
done
ffmpeg -nostdin -v error -y -t 20 -i "$data/voices/nathalie-dutch.ogg" "$work/some/voices/nathalie-dutch.wav"
ffmpeg -nostdin -v error -y -t 20 -i "$data/voices/house-vocals.ogg" "$work/some/voices/house-vocals.wav"
for name in mdn-band-stems gm3-hip-hop-beats; do
  ffmpeg -nostdin -v error -y -t 20 -i "$data/instrumental/$name.ogg" "$work/some/instrumental/$name.wav"
done
"$python" "$here/prepare.py" --data "$work/some" --work "$work" --sung-minutes 0.2
"$python" "$here/mix.py" --work "$work" --out "$work/train" --count 24
"$python" "$here/mix.py" --work "$work" --out "$work/check" --count 8 --held-out --seed 2
"$python" "$here/train.py" --bank "$work/train" --check "$work/check" --out "$work/scratch.pt" --hold-out song --epochs 1 --batch 4
"$python" "$here/train.py" --bank "$work/train" --out "$work/gate.pt" --init "$here/../models/embedded/model.onnx" --learn gate --epochs 1 --batch 4
"$python" "$here/songs.py" --work "$work" --out "$work/songs" --count 2 --seconds 6
for net in scratch gate; do "$python" "$here/export.py" --net "$work/$net.pt" --out "$work/$net"; done
node "$here/../dist/cli/main.js" evaluate "$work/songs" --model "$work/scratch" --model "$work/gate" --model embedded
