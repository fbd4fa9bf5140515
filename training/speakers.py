"""Generated speech by the voices of espeak-ng, from which singing is made: many languages and timbres, syllables that are common in songs."""
import subprocess
import tempfile

import numpy as np
import scipy.signal
import soundfile

from bands import RATE

LANGUAGES = ('en', 'en-us', 'de', 'fr-fr', 'es', 'it', 'pt', 'cmn', 'ja', 'sv', 'nl', 'pl', 'fi', 'tr', 'ru', 'hi')
TIMBRES = ('', '+f1', '+f2', '+f3', '+f4', '+f5', '+m1', '+m2', '+m3', '+m4', '+m5', '+m6', '+m7', '+klatt', '+klatt2')
SYLLABLES = (
    'la na me you love oh yeah day night way light fire sky time rain ma lo vi sa ke to ne wo ra mi ho we are free go down river long stay away '
    'never ever moon sun sea heart blue home hey now feel real dream high low run fall call all so no more open close strong song'
).split()


def speech(seconds, seed):
    """16-bit mono `[seconds * RATE]`, sentences of changing speakers."""
    rng = np.random.default_rng(seed)
    parts, total = [], 0
    while total < seconds * RATE:
        part = sentence(rng)
        parts.append(part)
        total += len(part)
    return np.concatenate(parts)[:int(seconds * RATE)]


def sentence(rng):
    voice = str(rng.choice(LANGUAGES)) + str(rng.choice(TIMBRES))
    words = ' '.join(rng.choice(SYLLABLES, rng.integers(8, 16)))
    with tempfile.NamedTemporaryFile(suffix='.wav') as file:
        command = ['espeak-ng', '-v', voice, '-p', str(rng.integers(20, 80)), '-s', str(rng.integers(110, 180)), '-w', file.name, words]
        subprocess.run(command, capture_output=True, check=True)
        samples, rate = soundfile.read(file.name, dtype='float32')
    resampled = scipy.signal.resample_poly(samples, RATE, rate)
    return (np.clip(resampled / (np.abs(resampled).max() + 1e-9), -1, 1) * 30000).astype(np.int16)
