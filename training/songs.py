"""Writes song folders for `stemwork evaluate`: mixes of the held-out sources (see mix.py).

    python3 songs.py --work work --out work/held-out

The name of a folder says how its voice is placed in stereo: dry in the centre, in a room, doubled wide, or panned.
"""
import argparse
import os

import numpy as np
import soundfile

from bands import HOP, RATE
from mix import IMAGES, Mixer, gain, level


def balanced(rng, vocals, rest):
    """Gives the vocals a level that is usual in songs; makes some songs mono."""
    ratio = level(vocals) / (level(rest) + 1e-9)
    if ratio > 1e-3 and level(rest) > 1e-4:
        vocals = vocals * gain(np.clip(rng.normal(-4, 5), -16, 10)) / np.float32(ratio)
    if rng.random() < 0.2:
        half = np.full((2, 2), 0.5, np.float32)
        vocals, rest = vocals @ half, rest @ half
    return vocals, rest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--work', required=True, help='folder that prepare.py filled')
    parser.add_argument('--out', required=True, help='folder for the songs')
    parser.add_argument('--count', type=int, default=16)
    parser.add_argument('--seconds', type=float, default=30)
    parser.add_argument('--seed', type=int, default=11)
    options = parser.parse_args()
    mixer = Mixer(options.work, True, options.seed, int(options.seconds * RATE / HOP))
    for number in range(options.count):
        image = list(IMAGES)[number % len(IMAGES)]
        rest, _ = mixer.accompaniment()
        vocals, rest = balanced(mixer.rng, mixer.voice(image)[0], rest)
        folder = os.path.join(options.out, f'{image}-{number // len(IMAGES) + 1}')
        os.makedirs(folder, exist_ok=True)
        peak = max(1, float(np.abs(vocals + rest).max()), float(np.abs(vocals).max()), float(np.abs(rest).max()))
        for stem, planes in (('vocals', vocals), ('accompaniments', rest)):
            soundfile.write(os.path.join(folder, f'{stem}.wav'), planes / peak, RATE, 'PCM_24')


if __name__ == '__main__':
    main()
