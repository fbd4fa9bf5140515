"""Scores the songs with a second implementation, in numpy and torch, for `reference` in the manifest of the model in the package.

    python3 reference.py --model ../models/embedded --songs <data>/everything-is-free

Written from the manifest alone: spectra, chunks and their inverse share no code with the package, whose tests must get the same figures.
"""
import argparse
import json
import os

import numpy as np
import soundfile
import torch

from checkpoint import from_graph
from network import Separator

FFT, HOP, RATE = 4096, 512, 44100
WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)).astype(np.float32)
TOLERANCE_DB = 0.05


def spectrum(planes):
    """`[channels, samples]` -> `[channels, frames, 2049]`, complex."""
    padded = np.pad(planes, ((0, 0), (FFT // 2, FFT // 2)), mode='reflect')
    frames = np.lib.stride_tricks.sliding_window_view(padded, FFT, axis=1)[:, ::HOP]
    return np.stack([np.fft.rfft(channel * WINDOW).astype(np.complex64) for channel in frames])


def waves(spectra, samples):
    frames = spectra.shape[1]
    out = np.zeros((len(spectra), (frames - 1) * HOP + FFT))
    weight = np.zeros(out.shape[1])
    for frame in range(frames):
        place = slice(frame * HOP, frame * HOP + FFT)
        out[:, place] += np.fft.irfft(spectra[:, frame]) * WINDOW
        weight[place] += WINDOW ** 2
    return (out / np.maximum(weight, 1e-8))[:, FFT // 2:FFT // 2 + samples]


@torch.no_grad()
def vocals_of(separator, mixture, chunk):
    """Processes chunks of `frames`, each with `overlapFrames` of context on both sides, padded with zeros to a multiple of 8."""
    mixed = spectrum(mixture)
    vocals = np.zeros_like(mixed)
    length, around, count = chunk['frames'], chunk['overlapFrames'], mixed.shape[1]
    for start in range(0, count, length):
        first, last = max(0, start - around), min(count, start + length + around)
        seen = mixed[:, first:last]
        seen = np.pad(seen, ((0, 0), (0, -(last - first) % 8), (0, 0)))
        left, right = seen
        parts = torch.from_numpy(np.stack([left.real, left.imag, right.real, right.imag])[None])
        found = separator(parts)[0].numpy()[:, start - first:min(count, start + length) - first]
        vocals[:, start:start + found.shape[1]] = np.stack([found[0] + 1j * found[1], found[2] + 1j * found[3]])
    return waves(vocals, mixture.shape[1])


def u_sdr(truth, estimate):
    truth = truth.astype(np.float64)
    return 10 * np.log10(np.sum(truth ** 2) / np.sum((truth - estimate) ** 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', required=True, help='folder with model.onnx and model.json; the figures are written into the latter')
    parser.add_argument('--songs', required=True, help='folder of songs, each with vocals.* and accompaniments.* at 44.1 kHz')
    options = parser.parse_args()
    torch.set_num_threads(1)
    manifest_path = os.path.join(options.model, 'model.json')
    with open(manifest_path) as file:
        manifest = json.load(file)
    separator = Separator(from_graph(os.path.join(options.model, manifest['file']), gate=True)).eval()
    songs = {}
    for song in sorted(os.listdir(options.songs)):
        if not os.path.isdir(os.path.join(options.songs, song)):
            continue
        stems = {os.path.splitext(name)[0]: os.path.join(options.songs, song, name) for name in os.listdir(os.path.join(options.songs, song))}
        truths = [soundfile.read(stems[stem], dtype='float32', always_2d=True)[0].T for stem in ('vocals', 'accompaniments')]
        samples = min(truth.shape[1] for truth in truths)
        truths = [truth[:, :samples] for truth in truths]
        mixture = truths[0] + truths[1]
        vocals = vocals_of(separator, mixture, manifest['chunk'])
        scores = [u_sdr(truth, estimate) for truth, estimate in zip(truths, (vocals, mixture - vocals))]
        songs[song] = dict(seconds=round(samples / RATE, 1), vocals=round(scores[0], 2), accompaniments=round(scores[1], 2))
        print(song, songs[song], flush=True)
    manifest['reference'] = dict(
        what='uSDR in dB of a second implementation (training/reference.py) on whole songs of the album Everything is Free, '
        'mixture = vocals + accompaniments in float, cut to the shorter stem',
        songs=songs,
        tolerance_db=TOLERANCE_DB,
    )
    with open(manifest_path, 'w') as file:
        json.dump(manifest, file, indent=2, ensure_ascii=False)
        file.write('\n')


if __name__ == '__main__':
    main()
