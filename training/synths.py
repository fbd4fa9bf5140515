"""Generated electronic music without samples: pads, basses, arpeggios and leads of sawtooth and square waves, filter sweeps, drums of noise and sines.

Many leads have glides, vibrato and formants like a voice, but formants that do not move: they teach what is not a voice.
"""
import numpy as np
import scipy.signal

from arrangements import PROGRESSIONS, SCALES
from bands import RATE

SIZE, HOP = 2048, 512
FORMANTS = ((800, 1150, 2900), (400, 1700, 2600), (270, 2140, 2950), (450, 800, 2830), (325, 700, 2700))


def synthesized(seconds, seed):
    """16-bit stereo `[seconds * RATE, 2]`."""
    rng = np.random.default_rng(seed)
    track = Track(rng, seconds)
    mix = np.zeros((track.samples, 2), np.float32)
    layers = ((track.pad, 0.7), (track.pad, 0.2), (track.bass, 0.8), (track.arpeggio, 0.5), (track.lead, 0.5), (track.lead, 0.25), (track.drums, 0.7))
    for layer, share in layers:
        if rng.random() < share:
            mix += normal(layer()) * np.float32(10 ** (rng.uniform(-10, 0) / 20))
    return (mix / (np.abs(mix).max() + 1e-6) * rng.uniform(12000, 30000)).astype(np.int16)


def normal(x):
    return x / np.float32(np.sqrt((x * x).mean()) + 1e-6)


class Track:
    def __init__(self, rng, seconds):
        self.rng, self.samples = rng, int(seconds * RATE)
        self.beat = 60 / rng.uniform(70, 170)
        self.bars = int(seconds / self.beat / 4) + 1
        self.key, self.scale = int(rng.integers(-6, 6)), SCALES[rng.integers(len(SCALES))]
        self.progression = PROGRESSIONS[rng.integers(len(PROGRESSIONS))]

    def hertz(self, degree, octave):
        return 261.63 * 2 ** ((self.key + self.scale[degree % 7]) / 12 + octave + degree // 7)

    def wave(self, hertz, shape):
        """A sawtooth or square wave with little aliasing (PolyBLEP); `hertz` per sample."""
        step = hertz / RATE
        phase = (np.cumsum(step) + self.rng.random()) % 1

        def saw(at):
            start, end = at / step, (at - 1) / step
            smooth = np.where(at < step, 2 * start - start * start - 1, np.where(at > 1 - step, end * end + 2 * end + 1, 0))
            return 2 * at - 1 - smooth

        return saw(phase) - (saw((phase + 0.5) % 1) if shape == 'square' else 0)

    def note(self, out, beat, beats, hertz, voices, shape, attack, release):
        """Adds a note of `voices` detuned waves, spread from left to right."""
        first, length = int(beat * self.beat * RATE), int((beats * self.beat + release) * RATE)
        length = min(length, len(out) - first)
        if length < 64:
            return
        time = np.arange(length) / RATE
        envelope = np.minimum(1, time / attack) * np.clip((length / RATE - time) / release, 0, 1)
        curve = hertz if np.ndim(hertz) else np.full(length, hertz)
        curve = np.pad(curve[:length], (0, max(0, length - len(curve))), mode='edge')
        for voice in range(voices):
            place = (voice + 0.5) / voices
            x = self.wave(curve * 2 ** (self.rng.normal(0, 0.1 if voices > 1 else 0) / 12), shape) * envelope
            out[first:first + length] += np.stack([x * np.sqrt(1 - place), x * np.sqrt(place)], 1)

    def filtered(self, x):
        """Applies a moving low-pass and sometimes the fixed formants of a vowel."""
        rng = self.rng
        hertz, _, spectrum = scipy.signal.stft(x.T, RATE, nperseg=SIZE, noverlap=SIZE - HOP)
        time = np.arange(spectrum.shape[-1]) * HOP / RATE
        turns = time * rng.choice([0.05, 0.13, 0.25 / self.beat, 1 / self.beat]) + rng.random()
        corner = rng.uniform(-1, 3.5) + rng.uniform(0, 2) * np.sin(2 * np.pi * turns)
        octaves = np.log2(np.maximum(hertz, 20) / 1000)[:, None]
        decibels = -rng.choice([12, 24]) * np.maximum(0, octaves - corner)
        decibels = decibels + rng.uniform(0, 12) * np.exp(-((octaves - corner) / 0.25) ** 2)
        if rng.random() < 0.25:
            vowel = np.array(FORMANTS[rng.integers(len(FORMANTS))]) * rng.uniform(0.85, 1.2)
            decibels = decibels - 18 + sum(18 * np.exp(-0.5 * ((hertz[:, None] - formant) / 130) ** 2) for formant in vowel)
        _, y = scipy.signal.istft(spectrum * 10 ** (decibels / 20), RATE, nperseg=SIZE, noverlap=SIZE - HOP)
        return y.T[:self.samples].astype(np.float32)

    def empty(self):
        return np.zeros((self.samples, 2), np.float32)

    def pad(self):
        rng, out = self.rng, self.empty()
        shape, voices, octave, attack = rng.choice(['saw', 'square']), int(rng.integers(1, 5)), int(rng.integers(-1, 1)), rng.uniform(0.005, 0.8)
        beats = float(rng.choice([4, 4, 2, 1]))
        for number in range(int(self.bars * 4 / beats)):
            root = self.progression[int(number * beats) // 4 % 4]
            for step in (0, 2, 4, 6)[:rng.integers(3, 5)]:
                self.note(out, number * beats, beats, self.hertz(root + step, octave), voices, shape, attack, rng.uniform(0.05, 0.5))
        return self.filtered(out)

    def bass(self):
        rng, out = self.rng, self.empty()
        shape, rhythm = rng.choice(['saw', 'square']), rng.random(8) < rng.uniform(0.3, 1)
        for bar in range(self.bars):
            for eighth in np.flatnonzero(rhythm):
                root = self.progression[bar % 4] + (7 if rng.random() < 0.15 else 0)
                self.note(out, bar * 4 + eighth / 2, 0.45, self.hertz(root, -3), 1, shape, 0.004, 0.04)
        return self.filtered(out)

    def arpeggio(self):
        rng, out = self.rng, self.empty()
        shape, steps = rng.choice(['saw', 'square']), rng.integers(0, 8, 8)
        for bar in range(self.bars):
            for sixteenth in range(16):
                if rng.random() < 0.85:
                    degree = self.progression[bar % 4] + (0, 2, 4, 7)[steps[sixteenth % 8] % 4] + 7 * (steps[sixteenth % 8] // 4)
                    self.note(out, bar * 4 + sixteenth / 4, 0.2, self.hertz(int(degree), 0), 1, shape, 0.003, rng.uniform(0.02, 0.2))
        return self.filtered(out)

    def lead(self):
        """A melody with glides and vibrato."""
        rng, out, beat, degree, before = self.rng, self.empty(), 0.0, int(self.rng.integers(0, 7)), None
        shape, voices, octave = rng.choice(['saw', 'square']), int(rng.integers(1, 4)), int(rng.integers(-1, 2))
        glide, depth = rng.uniform(0.005, 0.08), rng.uniform(0, 0.6)
        while beat < self.bars * 4:
            beats = float(rng.choice([0.25, 0.5, 0.5, 1, 1, 2]))
            if rng.random() < 0.8:
                hertz = self.hertz(degree, octave)
                time = np.arange(int(beats * self.beat * RATE) + 1) / RATE
                away = 12 * np.log2((before or hertz) / hertz) * np.exp(-time / glide)
                shake = depth * np.sin(2 * np.pi * rng.uniform(4, 7) * time) * np.minimum(1, time * 2)
                self.note(out, beat, beats, hertz * 2 ** ((away + shake) / 12), voices, shape, 0.01, 0.06)
                before = hertz
            degree = int(np.clip(degree + rng.integers(-3, 4), -3, 10))
            beat += beats
        return self.filtered(out)

    def drums(self):
        rng, out = self.rng, self.empty()
        kick, snare, hat = self.kick(), self.snare(), self.hat()
        where = rng.random(16) < 0.12
        where[[0, 4, 8, 12] if rng.random() < 0.6 else [0, 6, 10]] = True
        every = int(rng.choice([1, 2, 4]))
        for bar in range(self.bars):
            for sixteenth in range(16):
                for sound, played, loud in ((kick, where[sixteenth], 1), (snare, sixteenth in (4, 12), 0.8), (hat, sixteenth % every == 0, 0.35)):
                    first = int((bar * 4 + sixteenth / 4) * self.beat * RATE)
                    length = min(len(sound), len(out) - first)
                    if played and length > 0:
                        out[first:first + length] += sound[:length, None] * np.float32(loud * rng.uniform(0.7, 1))
        return out

    def kick(self):
        time = np.arange(int(0.35 * RATE)) / RATE
        hertz = self.rng.uniform(40, 60) + self.rng.uniform(80, 250) * np.exp(-time / 0.03)
        return (np.sin(2 * np.pi * np.cumsum(hertz) / RATE) * np.exp(-time / self.rng.uniform(0.06, 0.15))).astype(np.float32)

    def snare(self):
        time = np.arange(int(0.3 * RATE)) / RATE
        noise = self.rng.standard_normal(len(time)) * np.exp(-time / self.rng.uniform(0.03, 0.12))
        return (0.5 * noise + 0.6 * np.sin(2 * np.pi * self.rng.uniform(150, 230) * time) * np.exp(-time / 0.05)).astype(np.float32)

    def hat(self):
        time = np.arange(int(0.2 * RATE)) / RATE
        noise = np.diff(self.rng.standard_normal(len(time) + 2), 2)
        return (0.3 * noise * np.exp(-time / self.rng.uniform(0.01, 0.06))).astype(np.float32)
