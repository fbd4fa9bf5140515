"""Mixes stored sources, one voice and one piece of music each (bands.py), at training time.

The correlation of two sources is exact in the bands of up to four bins, where it matters. In the wider bands, above 2.8 kHz, it is drawn at
random, distributed as for independent sources.
"""
import torch

from bands import BANDS, EXACT, EXACT_BANDS
from network import widths

NARROW = 128
# Frames overlap by three quarters, so neighbouring ones are correlated.
NEXT_FRAME = 0.24
# The bins of a band are not equally loud, so their mean varies more than that of as many equal ones.
UNEVEN = 1.25
MOST_IN_COMMON = 0.7


def bands_of(products):
    """`[..., 256]` bins -> `[..., 160]` bands."""
    wide = products[..., NARROW:]
    return torch.cat([products[..., :NARROW], wide.reshape(*wide.shape[:-1], -1, 4).mean(-1)], -1)


def parts(sources):
    """-> spectra (M.re, M.im, S.re, S.im) `[count, frames, 256]` of the exact bins; amplitudes of mid and side and their correlation `[count, frames, 96]`."""
    exact, rest = sources[..., :4 * EXACT], sources[..., 4 * EXACT:]
    return exact.split(EXACT, -1), rest.split(BANDS - EXACT_BANDS, -1)


def paired(rests, vocals, generator):
    """Music and voices `[count, frames, 1312]` -> statistics `[count, 10, frames, 256]` (see bands.py)."""
    (amr, ami, asr, asi), (am, as_, a_both) = parts(rests)
    (vmr, vmi, vsr, vsi), (vm, vs, v_both) = parts(vocals)
    exact = [
        amr * amr + ami * ami, asr * asr + asi * asi, amr * asr + ami * asi,
        vmr * vmr + vmi * vmi, vsr * vsr + vsi * vsi, vmr * vsr + vmi * vsi,
        amr * vmr + ami * vmi, asr * vmr + asi * vmi, amr * vsr + ami * vsi, asr * vsr + asi * vsi,
    ]
    a_other, v_other = ((1 - both ** 2).clamp(min=0).sqrt() for both in (a_both, v_both))
    mm, sm, ms, ss = in_common(am.shape, am.device, generator)
    wide = [
        am * am, as_ * as_, am * as_ * a_both,
        vm * vm, vs * vs, vm * vs * v_both,
        am * vm * mm, as_ * vm * (a_both * mm + a_other * sm), am * vs * (v_both * mm + v_other * ms),
        as_ * vs * (a_both * (v_both * mm + v_other * ms) + a_other * (v_both * sm + v_other * ss)),
    ]
    return torch.cat([bands_of(torch.stack(exact, 1)), torch.stack(wide, 1)], -1)


def in_common(shape, device, generator):
    """Random correlations of four pairs of independent parts, distributed like their means over a band's bins."""
    count, frames, bands = shape
    noise = torch.randn(4, count, frames + 2, bands, generator=generator, device=device)
    noise = (noise[:, :, 1:-1] + NEXT_FRAME * (noise[:, :, 2:] + noise[:, :, :-2])) / (1 + 2 * NEXT_FRAME ** 2) ** 0.5
    return (noise * UNEVEN / (2 * widths(device)[EXACT_BANDS:]).sqrt()).clamp(-MOST_IN_COMMON, MOST_IN_COMMON)
