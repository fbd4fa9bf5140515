"""Effects that producers use on voices, `[samples, 2]`: echoes, pitch shifting, chops, a vocoder."""
import numpy as np
import scipy.fft

from bands import RATE
from mix import gain

GRAIN, SLICE_FADE = 4096, 220
FRAME, STEP, BANDS = 1024, 256, 28


def echoed(rng, x):
    delay, fall, out = int(rng.uniform(0.08, 0.6) * RATE), gain(rng.uniform(-14, -4)), x.copy()
    crossed = rng.random() < 0.4
    for _ in range(3):
        x = (x[:-delay, ::-1] if crossed else x[:-delay]) * fall
        if not len(x):
            break
        out[-len(x):] += x
    return out


def shifted(x, ratio):
    """Pitch shifted at the same tempo, by grains that are read at another speed: as rough as a harmonizer."""
    out, window = np.zeros_like(x), np.hanning(GRAIN).astype(np.float32)[:, None]
    inside = (np.arange(GRAIN) - GRAIN / 2) * ratio
    for first in range(0, len(x) - GRAIN, GRAIN // 4):
        places = np.clip(first + GRAIN / 2 + inside, 0, len(x) - 2)
        whole = places.astype(int)
        part = (places - whole).astype(np.float32)[:, None]
        out[first:first + GRAIN] += (x[whole] * (1 - part) + x[whole + 1] * part) * window / 2
    return out


def chopped(rng, x):
    """Slices of equal length, some of which are silent, repeated or reversed."""
    length, out = int(rng.uniform(0.07, 0.35) * RATE), x.copy()
    fade = np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / SLICE_FADE).astype(np.float32)[:, None]
    changes, before = rng.choice(['as it is', 'silent', 'repeated', 'reversed'], len(x) // length, p=[0.5, 0.2, 0.2, 0.1]), None
    for number, change in enumerate(changes):
        here = slice(number * length, (number + 1) * length)
        now = before if change == 'repeated' and before is not None else x[here][::-1] if change == 'reversed' else x[here]
        out[here] = now * fade * np.float32(change != 'silent')
        before = now
    return out


def vocoded(rng, x):
    """A chord of sawtooth waves with a little noise, shaped in each band by the envelope of the voice."""
    time = np.arange(len(x)) / RATE
    root, chord = rng.uniform(55, 220), rng.choice(np.array([[0, 4, 7], [0, 3, 7], [0, 7, 12], [0, 0.1, 12]]))
    carrier = sum(((time * root * 2 ** (note / 12) + rng.random()) % 1) * 2 - 1 for note in chord) + 0.3 * rng.standard_normal(len(x))
    voice, tones = (spectra(signal) for signal in (x.mean(1), carrier))
    edges = np.unique(np.geomspace(2, FRAME // 2, BANDS).astype(int))
    level, own = (np.sqrt(np.add.reduceat(np.abs(spectrum) ** 2, edges[:-1], 1) + 1e-9) for spectrum in (voice, tones))
    gains = np.repeat(level / own, np.diff(edges), 1)
    tones[:, edges[0]:edges[-1]] *= gains
    tones[:, :edges[0]] = 0
    tones[:, edges[-1]:] = 0
    out = np.zeros(len(x) + FRAME, np.float32)
    window = np.hanning(FRAME).astype(np.float32)
    for number, frame in enumerate(scipy.fft.irfft(tones, FRAME, axis=1).astype(np.float32)):
        out[number * STEP:number * STEP + FRAME] += frame * window
    wet = out[:len(x), None]
    loud = np.sqrt((x ** 2).mean() / ((wet ** 2).mean() + 1e-9)).astype(np.float32)
    dry = np.float32(rng.choice([0, 0.3]))
    return wet * loud * np.ones(2, np.float32) + dry * x


def spectra(signal):
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(signal, (0, FRAME)).astype(np.float32), FRAME)[::STEP]
    return scipy.fft.rfft(frames * np.hanning(FRAME).astype(np.float32), axis=1)
