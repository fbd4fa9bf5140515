"""The audio side of the network: 256 bands of a 4096 / 1024 STFT of mid and side at 44.1 kHz.

Masks are constant inside a band, so that features and errors need only second-order statistics of each band. An example is
`[10, frames, 256]`, the means over a band's bins of
  0 |Am|^2  1 |As|^2  2 Re(Am As*)  3 |Vm|^2  4 |Vs|^2  5 Re(Vm Vs*)  6 Re(Am Vm*)  7 Re(As Vm*)  8 Re(Am Vs*)  9 Re(As Vs*)
with Am = (L+R)/2 and As = (L-R)/2 of the accompaniments, Vm and Vs of the vocals. Each of the two has a mean power of 1, or is silent:
their gains per band are drawn at training time (augment.py).

Training data is stored one source at a time, so that any voice can be mixed with any music (pairs.py): `[frames, 1312]`, the spectra of mid and
side in the first 256 bins (M.re, M.im, S.re, S.im, from which the narrow bands are computed), then for each of the 96 wider bands the
amplitudes of mid and side and their correlation (Re(M S*) over both amplitudes).
"""
import numpy as np
import scipy.fft

RATE, SIZE, HOP, BINS = 44100, 4096, 1024, 2048
SEGMENTS = [(0, 128, 1), (128, 256, 4), (256, 512, 8), (512, 1024, 16), (1024, 2048, 32)]  # first bin, end, bins per band
BANDS = sum((end - first) // width for first, end, width in SEGMENTS)
WIDTHS = np.concatenate([np.full((end - first) // width, width, np.float32) for first, end, width in SEGMENTS])
# Bins that a source stores exactly, and the bands that consist of them.
EXACT = 256
EXACT_BANDS = 128 + 32
COLUMNS = 4 * EXACT + 3 * (BANDS - EXACT_BANDS)
SILENCE = 1e-9
WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(SIZE) / SIZE)).astype(np.float32)


def samples_of(frames):
    return (frames - 1) * HOP + SIZE


def mid_side_spectra(x, frames):
    """`x [samples, 2]` -> M, S as complex64 `[frames, 2048]`, by one complex FFT of M + iS per frame."""
    packed = np.empty(len(x), np.complex64)
    packed.real = x[:, 0] + x[:, 1]
    packed.imag = x[:, 0] - x[:, 1]
    windowed = np.lib.stride_tricks.sliding_window_view(packed, SIZE)[::HOP][:frames] * (WINDOW * np.float32(0.25))
    spectrum = scipy.fft.fft(windowed, axis=1, overwrite_x=True)
    forward = spectrum[:, :BINS]
    mirrored = np.empty_like(forward)
    mirrored[:, 0] = spectrum[:, 0]
    mirrored[:, 1:] = spectrum[:, :BINS:-1]
    np.conj(mirrored, out=mirrored)
    return forward + mirrored, (forward - mirrored) * np.complex64(-1j)


def pooled(power):
    """`[..., 2048]` -> `[..., 256]`, the means of the bands, by pairwise sums: numpy is slow at reducing short axes."""
    def pairs(p):
        return p[..., 0::2] + p[..., 1::2]

    out, rest = [power[..., :128]], pairs(pairs(power[..., 128:]))
    for width in (4, 8, 16):
        out.append(rest[..., :32] / width)
        rest = pairs(rest[..., 32:])
    return np.concatenate([*out, rest / 32], -1)


def statistics(rest_mid, rest_side, vocals_mid, vocals_side):
    """Spectra of the accompaniments and of the vocals -> one example."""
    def real(spectrum):
        return np.ascontiguousarray(spectrum).view(np.float32)

    am, as_, vm, vs = (real(spectrum) for spectrum in (rest_mid, rest_side, vocals_mid, vocals_side))
    out = np.empty((10, len(am), BANDS), np.float32)
    for row, (a, b) in enumerate(((am, am), (as_, as_), (am, as_), (vm, vm), (vs, vs), (vm, vs), (am, vm), (as_, vm), (am, vs), (as_, vs))):
        product = a * b
        out[row] = pooled(product[..., 0::2] + product[..., 1::2])
    rest, vocals = (np.sqrt(max(float((out[row] + out[row + 1]).mean()), SILENCE)) for row in (0, 3))
    out[:3] /= rest ** 2
    out[3:6] /= vocals ** 2
    out[6:] /= rest * vocals
    return out


def source(mid, side):
    """Spectra of one source -> `[frames, 1312]`, with a mean power of 1, or silent."""
    exact = np.concatenate([np.ascontiguousarray(part[:, :EXACT]) for part in (mid.real, mid.imag, side.real, side.imag)], 1)
    m, s = (np.ascontiguousarray(spectrum).view(np.float32) for spectrum in (mid, side))
    mid_power, side_power, both = (pooled(product[:, 0::2] + product[:, 1::2]) for product in (m * m, s * s, m * s))
    amplitude = np.sqrt(max(float((mid_power + side_power).mean()), SILENCE))
    mid_power, side_power, both = (power[:, EXACT_BANDS:] for power in (mid_power, side_power, both))
    agreement = both / np.sqrt(mid_power * side_power + SILENCE ** 2)
    return np.concatenate([exact / amplitude, np.sqrt(mid_power) / amplitude, np.sqrt(side_power) / amplitude, np.clip(agreement, -1, 1)], 1)
