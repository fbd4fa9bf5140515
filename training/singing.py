"""Singing from speech: spectral envelopes of the speech, voiced parts stretched, on melodies with glides and vibrato."""
import numpy as np
import scipy.signal

from bands import RATE

HOP, SIZE, LIFTER = 220, 2048, 60
SCALES = ([0, 2, 4, 5, 7, 9, 11], [0, 2, 3, 5, 7, 8, 10])
HIGHEST_HERTZ = 15000
# Lengths of notes in seconds: of phrases sung at about the speed of speech, and of those with held vowels; the share of the latter.
SPOKEN_NOTES, HELD_NOTES, HELD_SHARE = (0.15, 0.25, 0.4, 0.6, 1.0), (1.0, 1.6, 2.5, 4.0, 6.0), 0.15
# Brings noise and sines that follow one envelope to the level that they have in speech: their spectra have other scales.
BREATH_GAIN = 7


def sung_from_speech(pcm, seconds, seed, held_share=HELD_SHARE):
    """`pcm`: 16-bit mono speech; returns 16-bit mono singing of that length, from phrases of 3 to 6 s, or of 0.4 to 1.2 s whose vowels are held."""
    rng = np.random.default_rng(seed)
    phrases, total = [], 0
    while total < seconds * RATE:
        held = rng.random() < held_share
        length = int((rng.uniform(0.4, 1.2) if held else rng.uniform(3, 6)) * RATE)
        start = int(rng.integers(max(1, len(pcm) - length)))
        phrase = sung(pcm[start:start + length].astype(np.float32) / 32768, rng, held)
        pause = np.zeros(int(rng.uniform(0, 0.6) * RATE), np.float32)
        phrases += [phrase, pause]
        total += len(phrase) + len(pause)
    return (np.concatenate(phrases)[:int(seconds * RATE)] * 30000).astype(np.int16)


def sung(x, rng, held):
    envelope, voiced = analysed(x / (np.abs(x).max() + 1e-6))
    rate = np.where(voiced > 0.5, rng.uniform(6, 25) if held else rng.uniform(1.3, 3.0), rng.uniform(0.8, 1.2))
    ends = np.concatenate([[0], np.cumsum(rate)])
    places = np.interp(np.arange(int(ends[-1])), ends[:-1], np.arange(len(voiced)))
    before = np.minimum(places.astype(int), len(voiced) - 1)
    after, part = np.minimum(before + 1, len(voiced) - 1), (places - before)[:, None].astype(np.float32)
    envelope = envelope[before] * (1 - part) + envelope[after] * part
    voiced = scipy.signal.lfilter([0.25], [1, -0.75], voiced[before])
    hertz = melody(len(before), rng, HELD_NOTES if held else SPOKEN_NOTES)
    out = harmonics(envelope, voiced, hertz, rng) + breath(envelope, voiced, rng)
    return (out / (np.abs(out).max() + 1e-9) * 0.6).astype(np.float32)


def analysed(x):
    """Smooth spectral envelope `[frames, bins]` by the cepstrum, and how voiced each frame is."""
    _, _, spectrum = scipy.signal.stft(x, RATE, nperseg=SIZE, noverlap=SIZE - HOP)
    cepstrum = np.fft.irfft(np.log(np.abs(spectrum.T) + 1e-6), axis=1)
    cepstrum[:, LIFTER:-LIFTER] = 0
    envelope = np.exp(np.fft.rfft(cepstrum, axis=1).real).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, (SIZE // 2, SIZE)), SIZE)[::HOP][:len(envelope)]
    power = np.abs(np.fft.rfft(frames - frames.mean(1, keepdims=True), 2 * SIZE, axis=1)) ** 2
    correlation = np.fft.irfft(power, axis=1)[:, :SIZE]
    peak = correlation[:, RATE // 450:RATE // 70].max(1) / (correlation[:, 0] + 1e-9)
    return envelope, scipy.signal.medfilt(((peak > 0.45) & (correlation[:, 0] > 1e-2)).astype(float), 7)


def melody(frames, rng, notes):
    """Fundamental of each frame in Hz: notes of a scale, glides, vibrato and some drift."""
    step = HOP / RATE
    scale, base, note = SCALES[rng.integers(2)], 12 * np.log2(rng.uniform(90, 380) / 440), int(rng.integers(7))
    semitones, at = np.zeros(frames), 0
    while at < frames:
        length = max(1, int(rng.choice(notes) / step * rng.uniform(0.8, 1.2)))
        semitones[at:at + length] = base + scale[note % 7] + 12 * (note // 7)
        note = int(np.clip(note + rng.integers(-3, 4), -3, 9))
        at += length
    keep = np.exp(-step / rng.uniform(0.015, 0.06))
    semitones = scipy.signal.lfilter([1 - keep], [1, -keep], semitones, zi=[semitones[0] * keep])[0]
    time = np.arange(frames) * step
    vibrato = rng.uniform(0, 0.5) * np.sin(2 * np.pi * rng.uniform(4.5, 6.5) * time) * (np.sin(1.7 * time) * 0.5 + 0.5)
    drift = scipy.signal.lfilter([0.02], [1, -0.98], rng.standard_normal(frames)) * rng.uniform(0.1, 0.8)
    return 440 * 2 ** ((semitones + vibrato + drift) / 12)


def harmonics(envelope, voiced, hertz, rng):
    frames, formants = len(hertz), rng.uniform(0.85, 1.2)
    places = np.arange(frames * HOP) / HOP
    phase = np.cumsum(2 * np.pi * np.interp(places, np.arange(frames), hertz) / RATE)
    out = np.zeros(len(places), np.float32)
    for number in range(1, int(min(80, HIGHEST_HERTZ / hertz.min())) + 1):
        partial = number * hertz
        bins = np.minimum(partial / formants * SIZE / RATE, SIZE // 2 - 1).astype(int)
        amplitude = envelope[np.arange(frames), bins] * voiced * (partial < HIGHEST_HERTZ)
        if amplitude.max() > 1e-6:
            out += (np.interp(places, np.arange(frames), amplitude) * np.sin(number * phase)).astype(np.float32)
    return out


def breath(envelope, voiced, rng):
    """Noise under the envelope: consonants, and a little in voiced parts."""
    noise = rng.standard_normal(len(envelope) * HOP)
    _, _, spectrum = scipy.signal.stft(noise, RATE, nperseg=SIZE, noverlap=SIZE - HOP)
    amount = (1 - voiced) * rng.uniform(0.6, 1.2) + voiced * 10 ** (rng.uniform(-30, -14) / 20)
    frames = min(len(envelope), spectrum.shape[1])
    shaped = spectrum[:, :frames] * (envelope[:frames] * amount[:frames, None]).T
    _, out = scipy.signal.istft(shaped, RATE, nperseg=SIZE, noverlap=SIZE - HOP)
    out = np.pad(out, (0, max(0, len(noise) - len(out))))[:len(noise)]
    return (BREATH_GAIN * out).astype(np.float32)
