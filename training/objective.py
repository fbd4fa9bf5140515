"""The training objective, from band statistics and masks alone: the error of the vocals, which equals that of the accompaniments."""
import torch

from network import widths

# Relative to the mixture's power: an error 30 dB below it is good enough, with or without vocals.
ENOUGH = 1e-3
# Power of a mixture below which it is silent, where pauses have left nothing of a sparse source.
SILENT = 1e-6


def errors(masks, batch):
    """`batch` as from `augment.mixed` -> powers per example: vocals, accompaniments, mixture, error, predicted vocals."""
    m, s, _, vm, vs, m_vm, s_vs = batch.unbind(1)
    mid, side = masks.unbind(1)
    rest = (m - 2 * m_vm + vm).clamp(min=0) + (s - 2 * s_vs + vs).clamp(min=0)
    predicted = mid ** 2 * m + side ** 2 * s
    error = (predicted + vm + vs - 2 * (mid * m_vm + side * s_vs)).clamp(min=0)
    return [(power * widths(masks.device)).sum((1, 2)) for power in (vm + vs, rest, m + s, error, predicted)]


def objective(masks, batch):
    """Mean logarithm of the error relative to the mixture: a proxy for the mean SDR of songs. It weighs loud and quiet vocals alike."""
    _, _, mixture, error, _ = errors(masks, batch)
    return torch.log(error / mixture.clamp(min=SILENT) + ENOUGH).mean()
