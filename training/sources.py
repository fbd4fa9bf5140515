"""Makes a bank of single sources, voices or music, that are mixed at training time (pairs.py); or of the vocals and accompaniments of songs, unmixed.

    python3 sources.py --work work --of voices --out work/voices --count 12000
    python3 sources.py --work work --of music --out work/music --count 10000
    python3 sources.py --work work --of songs --out work/songs --count 3000

So any voice is mixed with any music, and mixes hardly ever repeat. Each source is changed more than in mix.py: other formants, harmonies and
choirs, echoes, chops, vocoders, distortion, compression, pumping, filter sweeps. Of the songs with true stems, every stem is a source too.
"""
import argparse
import json
import multiprocessing
import os

import numpy as np
import scipy.fft

from bands import BINS, COLUMNS, HOP, RATE, SIZE, mid_side_spectra, source
from effects import chopped, echoed, shifted, vocoded
from mix import AUDIBLE, FRAMES, VOICE_SHARES, Mixer, fill, gain, level

IMAGES = dict(dry=0.2, room=0.32, wide=0.16, panned=0.12, harmony=0.12, choir=0.08)
# Probabilities that music has one, two, ... layers.
LAYERS = (0.45, 0.35, 0.2)
# The same for music of the songs with true stems, most of whose layers are single stems; and the share of layers from other music.
STEM_LAYERS, ELSEWHERE = (0.2, 0.2, 0.2, 0.15, 0.15, 0.1), 0.15
# Octaves above 1 kHz of each bin.
OCTAVES = np.log2(np.maximum(np.arange(BINS), 1) * (RATE / 2 / BINS) / 1000)
# Lowest quefrencies of the cepstrum, which hold the formants.
LIFTER = 40


class Sources(Mixer):
    def __init__(self, work, of, seed, songs='none'):
        super().__init__(work, False, seed, songs='any' if songs == 'only' or of == 'songs' else 'none', stretch='first')
        self.of, self.only_songs = of, songs == 'only'
        if self.only_songs:
            self.voices = dict(song=self.voices['song'] + self.single_stems['voices'], sung=[], made=[], speech=[])
            self.rests = self.rests + self.single_stems['music']

    def chance(self, share):
        return self.rng.random() < share

    def drawn(self, pool):
        """A random source, with a probability that grows with the square root of its length."""
        weights = np.sqrt([len(source['active']) + 1 for source in pool])
        return pool[self.rng.choice(len(pool), p=weights / weights.sum())]

    def example(self):
        """One or two sources `[1 or 2, FRAMES, 1312]`, and the names of the recordings."""
        while True:
            if self.of == 'songs':
                planes, names = self.song()
            else:
                x, names = self.voice() if self.of == 'voices' else self.music()
                planes = [x]
            if level(planes[-1]) > AUDIBLE:
                return np.stack([self.spectra(x, voice) for voice, x in zip((self.of != 'music', False), planes)]), names

    def spectra(self, x, voice):
        """The source's statistics, after effects that are cheap on spectra: equalisers and sweeps."""
        mid, side = self.equalised(mid_side_spectra(x.astype(np.float32), self.frames))
        if self.chance(0.12):
            curve = self.sweep()
            mid, side = mid * curve, side * curve
        if voice and self.chance(0.5):
            curve = self.throat(mid, side)
            mid, side = mid * curve, side * curve
        if self.chance(0.25):
            curve = self.backing() if voice else self.heavy()
            mid, side = mid * curve, side * curve
        if voice and self.chance(0.2):  # hollow: less mid
            mid = mid * gain(self.rng.uniform(-12, -2))
        return source(mid.astype(np.complex64), side.astype(np.complex64))

    def song(self):
        """Vocals and accompaniments of the same passage of a song."""
        rng, name = self.rng, list(self.songs)[self.rng.integers(len(self.songs))]
        speed, stems = self.speed(0.3), self.songs[name]
        start = self.place(stems['vocals'])
        vocals, rest = (self.read(stems[stem], start, speed) for stem in ('vocals', 'accompaniments'))
        if rng.random() < 0.5:
            vocals, rest = self.turned(vocals), self.turned(rest)
        if rng.random() < 0.5:
            vocals, rest = self.driven(vocals), self.driven(rest)
        return [vocals, rest], [name]

    def voice(self):
        rng = self.rng
        kinds = [kind for kind in VOICE_SHARES if self.voices[kind]]
        shares = np.array([VOICE_SHARES[kind] for kind in kinds])
        pool = self.voices[kinds[rng.choice(len(kinds), p=shares / shares.sum())]]
        chosen = self.drawn(pool)
        x, names = self.driven(self.read(chosen, self.place(chosen), self.speed(0.3))), [chosen['name']]
        if chosen['name'] not in self.songs:
            return self.treated(self.stood(x, chosen, pool)), names
        x = self.treated(self.placed(x))
        while self.chance(0.3):  # backing voices of any song
            other = self.drawn(pool)
            more = self.treated(self.placed(self.read(other, self.place(other), self.speed(0.3))))
            x = x + more * np.float32(level(x) / (level(more) + 1e-3)) * gain(rng.uniform(-15, 0))
            names.append(other['name'])
        return x, names

    def placed(self, x):
        x = self.turned(x) if self.chance(0.7) else x
        return self.room(x) if self.chance(0.3) else x

    def treated(self, x):
        if self.chance(0.15):
            harmony = shifted(x, 2 ** (self.rng.choice([-12, -7, -5, -3, -2, 2, 3, 4, 7, 12]) / 12))
            x = harmony if self.chance(0.5) else x + harmony * gain(self.rng.uniform(-9, 0))
        x = chopped(self.rng, x) if self.chance(0.08) else x
        x = vocoded(self.rng, x) if self.chance(0.06) else x
        x = self.room(x, (1, 3.6), (-3, 10)) if self.chance(0.12) else x  # distant
        return echoed(self.rng, x) if self.chance(0.25) else x

    def stood(self, x, chosen, pool):
        """Places a mono voice in stereo."""
        image = self.rng.choice(list(IMAGES), p=list(IMAGES.values()))
        if image == 'harmony':
            start, speed = self.place(chosen), self.speed(0.15)
            x = self.read(chosen, start, speed)
            for interval in self.rng.choice([-12, -5, -4, -3, 3, 4, 5, 7, 12], self.rng.integers(1, 3)):
                x = x + self.panned(self.read(chosen, start, speed * 2 ** (interval / 12)) * gain(self.rng.uniform(-12, -1)))
            return self.room(x)
        if image == 'choir':
            for _ in range(self.rng.integers(2, 6)):
                other = chosen if self.chance(0.6) else self.drawn(pool)
                more = self.read(other, self.place(other), self.speed(0.25))
                x = x + self.panned(more) * np.float32(level(x) / (level(more) + 1e-3)) * gain(self.rng.uniform(-6, 2))
            return self.room(x)
        return self.imaged(x, chosen, image)

    def panned(self, x):
        pan = self.rng.uniform(-1, 1)
        return x * np.array([min(1, 1 - pan), min(1, 1 + pan)], np.float32)

    def music(self):
        rng, mix, names = self.rng, np.zeros((self.samples, 2), np.float32), []
        layers = STEM_LAYERS if self.only_songs else LAYERS
        for number in range(1 + rng.choice(len(layers), p=layers)):
            own = self.only_songs and (number == 0 or not self.chance(ELSEWHERE))
            chosen = self.drawn(self.rests if own else self.instrumental)
            x = self.driven(self.read(chosen, self.place(chosen), self.speed(0.25)))
            if self.chance(0.06):
                x = x[::-1]
            x = self.turned(x) if self.chance(0.6) else x
            x = self.room(x) if self.chance(0.1) else x
            mix = mix + x * np.float32(0.1 / (level(x) + 1e-3)) * gain(rng.uniform(-8, 0))
            names.append(chosen['name'])
        mix = self.pumped(mix) if self.chance(0.15) else mix
        return (self.driven(mix) if self.chance(0.3) else mix), names

    def driven(self, x):
        """Sometimes compresses or overdrives."""
        if self.chance(0.25):
            blocks = np.sqrt((x[:len(x) // 512 * 512] ** 2).reshape(-1, 1024).mean(1)) + 1e-3
            slow = np.maximum(blocks, np.convolve(blocks, np.ones(9) / 9, 'same'))
            curve = (slow / slow.max()) ** -self.rng.uniform(0.2, 0.7)
            x = x * np.interp(np.arange(len(x)), np.arange(len(curve)) * 512 + 256, np.minimum(curve, 8)).astype(np.float32)[:, None]
        if self.chance(0.1):
            drive = self.rng.uniform(1, 6) / (np.abs(x).max() + 1e-3)
            x = np.tanh(x * np.float32(drive)) / np.float32(drive)
        return x

    def pumped(self, x):
        """Ducks the music on every beat, as a compressor keyed by the kick drum does."""
        beat = self.rng.uniform(0.35, 1) * RATE
        phase = (np.arange(len(x)) / beat + self.rng.random()) % 1
        floor = gain(self.rng.uniform(-18, -4))
        return x * (floor + (1 - floor) * np.minimum(1, phase / self.rng.uniform(0.3, 0.9))).astype(np.float32)[:, None]

    def backing(self):
        """Gains of a band-pass, as on backing voices: no lows, and often no highs."""
        lowest, highest = self.rng.uniform(-2.5, -0.3), self.rng.uniform(1, 4)
        slope = self.rng.uniform(12, 48)
        return gain(-slope * (np.clip(lowest - OCTAVES, 0, 3) + np.clip(OCTAVES - highest, 0, 3)))

    def heavy(self):
        """Gains that boost what is below 60 to 150 Hz, where most of the power of electronic music is."""
        return gain(self.rng.uniform(4, 16) * np.clip(self.rng.uniform(-4, -2.7) - OCTAVES, 0, 1))

    def sweep(self):
        """Gains `[FRAMES, BINS]` of a low-pass or high-pass whose corner moves by some octaves."""
        rng = self.rng
        time = np.arange(self.frames) * (HOP / RATE)
        corner = rng.uniform(-2, 3) + rng.uniform(0, 2.5) * np.sin(2 * np.pi * (time * rng.uniform(0.05, 1.5) + rng.random()))
        over = np.clip((OCTAVES - corner[:, None]) * rng.choice([-1, 1], p=[0.35, 0.65]), 0, 4)
        return gain(-rng.uniform(9, 24) * over).astype(np.float32)

    def throat(self, mid, side):
        """Gains that shift the formants of a voice by up to 20 %, as if of another singer."""
        amplitude = np.abs(mid) + np.abs(side) + np.float32(1e-5)
        full = np.concatenate([amplitude, amplitude[:, -1:]], 1)
        cepstrum = scipy.fft.irfft(np.log(full), axis=1)
        cepstrum[:, LIFTER:SIZE - LIFTER] = 0
        envelope = scipy.fft.rfft(cepstrum, axis=1).real[:, :BINS]
        places = np.minimum(np.arange(BINS) / np.exp(self.rng.uniform(-0.18, 0.18)), BINS - 1.001)
        whole = places.astype(int)
        part = (places - whole).astype(np.float32)
        moved = envelope[:, whole] * (1 - part) + envelope[:, whole + 1] * part
        return np.exp(np.clip(moved - envelope, -2.5, 2.5)).astype(np.float32)


def part_of_bank(task):
    options, first, count, path = task
    return fill(path, first, count, Sources(options.work, options.of, [options.seed, first], options.songs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--work', required=True, help='folder that prepare.py filled')
    parser.add_argument('--of', required=True, choices=['voices', 'music', 'songs'], help='songs: vocals and accompaniments of the same passage')
    parser.add_argument('--out', required=True, help='bank to write: <out>.npy and <out>.json')
    parser.add_argument('--count', type=int, default=3000, help='examples of 6 s')
    parser.add_argument('--songs', choices=['none', 'only'], default='none', help='whether voices or music are those of the songs with true stems')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--processes', type=int, default=1)
    options = parser.parse_args()
    path, begun, step = f'{options.out}.npy', f'{options.out}.begun.json', 20
    shape, names = (options.count, 2 if options.of == 'songs' else 1, FRAMES, COLUMNS), []
    # The seed of every task is the number of its first example, so an interrupted bank continues as it would have.
    if os.path.exists(begun) and os.path.exists(path) and np.load(path, mmap_mode='r').shape == shape:
        with open(begun) as file:
            names = json.load(file)['sources']
    else:
        np.lib.format.open_memmap(path, mode='w+', dtype=np.float16, shape=shape).flush()
    tasks = [(options, first, min(step, options.count - first), path) for first in range(len(names), options.count, step)]
    with multiprocessing.Pool(options.processes) as pool:
        for part in pool.imap(part_of_bank, tasks):
            names += part
            print(f'{len(names)} of {options.count}', flush=True)
            with open(f'{begun}.part', 'w') as file:
                json.dump(dict(of=options.of, seconds=FRAMES * HOP / RATE, sources=names), file)
            os.replace(f'{begun}.part', begun)
    os.replace(begun, f'{options.out}.json')


if __name__ == '__main__':
    main()
