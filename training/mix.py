"""Makes a bank of examples: random mixes of voices and instrumental music as band statistics (see bands.py).

    python3 mix.py --work work --out work/general --count 3000 --songs none
    python3 mix.py --work work --out work/songs --count 1500 --songs only --seed 2
    python3 mix.py --work work --out work/check --count 120 --held-out --seed 7

A bank records the sources of every example, so that one bank serves all folds: train.py --hold-out leaves examples out by source.
The levels of the two parts are chosen later (see augment.py).
"""
import argparse
import json
import multiprocessing
import os

import numpy as np
import scipy.fft

from bands import BINS, HOP, RATE, mid_side_spectra, samples_of, statistics

FRAMES = 256
# Never trained on: the sources on which networks are compared.
HELD_OUT = {'trance-phrases-and-adlibs', 'nathalie-dutch', 'helland-orchestral-piano-rock', 'gm3-hip-hop-beats'}
# Shares of the kinds of voices, where there are sources of each.
VOICE_SHARES = dict(song=0.25, sung=0.32, made=0.31, speech=0.12)
# Shares of the stereo images of a mono voice.
IMAGES = dict(dry=0.25, room=0.4, wide=0.2, panned=0.15)
SONG_REST_SHARE = 0.3
# Share of the examples that are passages of a song as it is.
ALIGNED_SHARE = 0.2
# Share at the end of a source that is not trained on, so that networks can be selected by it.
LAST_SHARE = 0.1
AUDIBLE = 1e-4
HALF_FLOAT = 6e4


def gain(decibels):
    return np.float32(10 ** (decibels / 20))


def level(x):
    return float(np.sqrt((x * x).mean()))


class Mixer:
    """Draws examples, which depend on the seed alone."""

    def __init__(self, work, held_out, seed, frames=FRAMES, songs='any', stretch='whole'):
        """`songs`: whether the songs with true stems take part: in `any` example, `none`, or `only` in such examples.

        `stretch`: which part of every source that is not a song: the `whole`, the `first` part for training, or the `last` for selection.
        """
        self.rng = np.random.default_rng(seed)
        self.only_songs = songs == 'only'
        self.frames, self.samples = frames, samples_of(frames)
        with open(os.path.join(work, 'index.json')) as file:
            index = json.load(file)

        def wanted(name):
            return (name.removesuffix('-sung') in HELD_OUT) == held_out

        def opened(entry):
            levels, x = np.array(entry['levels']), np.load(entry['path'], mmap_mode='r')
            cut = int(len(levels) * (1 - LAST_SHARE))
            if stretch != 'whole' and entry['name'] not in index['songs']:
                levels, x = (levels[:cut], x[:cut * RATE]) if stretch == 'first' else (levels[cut:], x[cut * RATE:])
            active = np.flatnonzero(levels > 0.05 * np.quantile(levels, 0.95) + 1e-4)
            return dict(entry, x=x, frames=len(x), active=active)

        self.songs = {name: {stem: opened(dict(entry, name=name)) for stem, entry in stems.items()} for name, stems in index['songs'].items() if wanted(name) and songs != 'none'}
        self.voices = dict(song=[stems['vocals'] for stems in self.songs.values()], sung=[], made=[], speech=[])
        for entry in index['voices']:
            # Scores use real recordings only, so that they do not depend on whether singing was made from them.
            if wanted(entry['name']) and not (held_out and entry['kind'] == 'made'):
                self.voices[entry['kind']].append(dict(opened(entry), name=entry['name'].removesuffix('-sung')))
        self.instrumental = [opened(entry) for entry in index['instrumental'] if wanted(entry['name'])]
        self.rests = [stems['accompaniments'] for stems in self.songs.values()]
        self.single_stems = {kind: [opened(entry) for entry in entries if entry['name'] in self.songs] for kind, entries in index['parts'].items()}
        if not any(self.voices.values()) or not (self.instrumental or self.rests):
            raise SystemExit('Nothing to mix: there are no voices or no accompaniment.')

    def example(self):
        """The statistics `[10, FRAMES, 256]` and the names of the sources."""
        while True:
            vocals, rest, sources = self.parts()
            if level(rest) < AUDIBLE or (self.only_songs and not set(sources) & set(self.songs)):
                continue
            spectra = [self.equalised(mid_side_spectra(x.astype(np.float32), self.frames)) for x in (rest, vocals)]
            if self.rng.random() < 0.2:  # a narrow-band or lossy recording
                cut = int(self.rng.uniform(5000, 17000) / RATE * 2 * BINS)
                for spectrum in (*spectra[0], *spectra[1]):
                    spectrum[:, cut:] *= 0.003
            return statistics(*spectra[0], *spectra[1]), sources

    def parts(self):
        rng, draw = self.rng, self.rng.random()
        if draw < ALIGNED_SHARE and self.songs:
            name = list(self.songs)[rng.integers(len(self.songs))]
            song, speed = self.songs[name], self.speed(0.2)
            start = self.place(song['vocals'])
            vocals, rest = (self.read(song[stem], start, speed) for stem in ('vocals', 'accompaniments'))
            return (vocals, rest, [name]) if rng.random() < 0.6 else (self.turned(vocals), self.turned(rest), [name])
        rest, sources = self.accompaniment()
        vocals, voice = self.voice()
        return vocals, rest, sources + voice

    def voice(self, image=None):
        rng = self.rng
        kinds = [kind for kind in VOICE_SHARES if self.voices[kind]]
        shares = np.array([VOICE_SHARES[kind] for kind in kinds])
        pool = self.voices[kinds[rng.choice(len(kinds), p=shares / shares.sum())]]
        source = pool[rng.integers(len(pool))]
        x = self.read(source, self.place(source), self.speed(0.25))
        if source['name'] in self.songs:
            return (self.turned(x) if rng.random() < 0.7 else x), [source['name']]
        return self.imaged(x, source, image or rng.choice(list(IMAGES), p=list(IMAGES.values()))), [source['name']]

    def imaged(self, x, source, image):
        """A mono voice in stereo."""
        rng = self.rng
        if image == 'dry':
            return x
        if image == 'room':
            return self.room(x)
        if image == 'panned':
            pan = rng.uniform(-0.8, 0.8)
            return self.room(x * np.array([min(1, 1 - pan), min(1, 1 + pan)], np.float32))
        # Doubled left and right, sometimes with a lead in the centre.
        wide = np.stack([x[:, 0], self.read(source, self.place(source), self.speed(0.25))[:, 0]], 1)
        return self.room(wide if rng.random() < 0.5 else x + np.float32(0.6) * wide)

    def accompaniment(self):
        rng, mix, names = self.rng, np.zeros((self.samples, 2), np.float32), []
        for _ in range(1 if rng.random() < 0.6 else 2):
            is_song = self.rests and (rng.random() < SONG_REST_SHARE or not self.instrumental)
            pool = self.rests if is_song else self.instrumental
            source = pool[rng.integers(len(pool))]
            x = self.read(source, self.place(source), self.speed(0.2))
            x = self.turned(x) if rng.random() < 0.6 else x
            mix += x * np.float32(0.1 / (level(x) + 1e-3)) * gain(rng.uniform(-8, 0))
            names.append(source['name'])
        return mix, names

    def place(self, source):
        """A position in the source, in samples, near a second that is not silent."""
        active = source['active']
        second = active[self.rng.integers(len(active))] if len(active) else 0
        return int((second + self.rng.uniform(-1, 0.5)) * RATE)

    def speed(self, amount):
        return 1.0 if self.rng.random() < 0.2 else float(np.exp(self.rng.uniform(-amount, amount)))

    def read(self, source, start, speed):
        """A passage as float stereo, resampled by linear interpolation; silence beyond the ends."""
        needed = int(self.samples * speed) + 2
        out = np.zeros((needed, 2), np.float32)
        first, end = max(0, start), min(source['frames'], start + needed)
        if end > first:
            out[first - start:end - start] = source['x'][first:end]
        out /= 32768
        if speed == 1:
            return out[:self.samples]
        places = np.arange(self.samples) * speed
        whole = places.astype(np.int64)
        part = (places - whole).astype(np.float32)[:, None]
        return out[whole] * (1 - part) + out[whole + 1] * part

    def turned(self, x):
        """Changes the stereo image: width, panning, sides swapped, polarity."""
        rng, draw = self.rng, self.rng.random()
        width = 0.0 if draw < 0.15 else rng.uniform(0.2, 1.8) if draw < 0.75 else 1.0
        matrix = np.array([[1, 1], [1, -1]]) @ np.diag([1, width]) @ np.array([[0.5, 0.5], [0.5, -0.5]])
        if rng.random() < 0.4:
            pan = rng.uniform(-0.7, 0.7)
            matrix = np.diag([min(1, 1 - pan), min(1, 1 + pan)]) @ matrix
        if rng.random() < 0.5:
            matrix = matrix[::-1]
        return x @ np.ascontiguousarray(matrix.T, np.float32) * np.float32(rng.choice([-1, 1]))

    def room(self, x, seconds=(0.15, 1.2), wet=(-18, -4)):
        """Adds stereo reverberation, at `wet` dB relative to the source; `seconds`: ranges of the decay time."""
        rng, longest = self.rng, seconds[1] / 1.2
        seconds = rng.uniform(*seconds)
        length = int(RATE * min(seconds, longest))
        decay = np.exp(-6.9 * np.arange(length, dtype=np.float32) / (seconds * RATE))[:, None]
        response = rng.standard_normal((length, 2)).astype(np.float32) * decay
        size = scipy.fft.next_fast_len(len(x) + length, real=True)
        heard = scipy.fft.irfft(scipy.fft.rfft(x, size, axis=0) * scipy.fft.rfft(response, size, axis=0), size, axis=0)[:len(x)]
        return x + heard * np.float32(level(x) / (level(heard) + 1e-6)) * gain(rng.uniform(*wet))

    def equalised(self, spectra):
        rng = self.rng
        if rng.random() < 0.3:
            return list(spectra)
        octaves = np.log2(np.maximum(np.arange(BINS), 1) * (RATE / 2 / BINS) / 1000)
        curve = rng.uniform(-2, 2) * np.clip(octaves, -4, 4)
        for _ in range(rng.integers(0, 4)):
            curve = curve + rng.uniform(-10, 7) * np.exp(-0.5 * ((octaves - rng.uniform(-4, 4)) / rng.uniform(0.3, 1.2)) ** 2)
        return [spectrum * gain(curve) for spectrum in spectra]


def sources_of(bank):
    """The names of the sources of each example in a bank, even while it is being made; empty before it is begun."""
    # Twice, because the file is renamed when the bank is finished, which may be in between.
    for path in (f'{bank}.json', f'{bank}.begun.json', f'{bank}.json'):
        if os.path.exists(path):
            with open(path) as file:
                return json.load(file)['sources']
    return []


def part_of_bank(task):
    options, first, count, path = task
    return fill(path, first, count, Mixer(options.work, options.held_out, [options.seed, first], songs=options.songs, stretch=options.stretch))


def fill(path, first, count, maker):
    """Writes the maker's next examples into a bank. Returns the names of the sources of each."""
    bank = np.lib.format.open_memmap(path, mode='r+')
    sources = []
    for number in range(first, first + count):
        example, names = maker.example()
        bank[number] = np.clip(example, -HALF_FLOAT, HALF_FLOAT)
        sources.append(names)
    return sources


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--work', required=True, help='folder that prepare.py filled')
    parser.add_argument('--out', required=True, help='bank to write: <out>.npy and <out>.json')
    parser.add_argument('--count', type=int, default=3000, help='examples of 6 s')
    parser.add_argument('--songs', choices=['any', 'none', 'only'], default='any', help='whether the songs with true stems take part')
    parser.add_argument('--held-out', action='store_true', help='mix the sources that are held out, instead of the others')
    parser.add_argument('--stretch', choices=['whole', 'first', 'last'], default='whole', help='of the sources that are no songs, the part to use')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--processes', type=int, default=1)
    options = parser.parse_args()
    path, step = f'{options.out}.npy', 20
    np.lib.format.open_memmap(path, mode='w+', dtype=np.float16, shape=(options.count, 10, FRAMES, 256)).flush()
    tasks = [(options, first, min(step, options.count - first), path) for first in range(0, options.count, step)]
    sources = []
    with multiprocessing.Pool(options.processes) as pool:
        for part in pool.imap(part_of_bank, tasks):
            sources += part
            print(f'{len(sources)} of {options.count}', flush=True)
    with open(f'{options.out}.json', 'w') as file:
        json.dump(dict(seconds=FRAMES * HOP / RATE, sources=sources), file)


if __name__ == '__main__':
    main()
