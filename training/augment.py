"""Augmentation at training time: levels, equalisers, stereo width and mono are drawn anew each time, in the domain of the band statistics.

Gains per band of the four parts (mid and side of accompaniments and vocals) change second-order statistics exactly: each is a product of
two parts and is multiplied by both gains. So one mix on disk gives the network many.
"""
import torch

from bands import BANDS, BINS, RATE, SEGMENTS

# Level of the vocals relative to the accompaniments in dB: standard deviation, lower and upper limit.
BALANCE = (7, -24, 10)
# Pauses of a source: the shortest, and the length of the fades, in frames.
PAUSE, FADE = 24, 3


def centres():
    """Octaves above 1 kHz of each band's centre."""
    bins = torch.cat([torch.arange(first, end, width) + (width - 1) / 2 for first, end, width in SEGMENTS])
    return torch.log2(bins.clamp(min=1) * (RATE / 2 / BINS) / 1000)


OCTAVES = centres()


class Augment:
    """Batches `[batch, 10, frames, 256]` of a bank -> mixtures with their vocals, see `mixed`. `generator` is the only source of randomness."""

    def __init__(self, seed, balance, unsung, device='cpu'):
        self.generator = torch.Generator(device).manual_seed(seed)
        self.octaves = OCTAVES.to(device)
        # Mean level of the vocals relative to the accompaniments in dB; share of the examples without vocals.
        self.balance, self.unsung = balance, unsung

    def __call__(self, batch):
        count = len(batch)
        batch = self.with_pauses(batch)
        rest, vocals = self.equaliser(count), self.equaliser(count)
        deviation, low, high = BALANCE
        balance = (self.balance + deviation * torch.randn(count, 1, generator=self.generator, device=batch.device)).clamp(low, high)
        # In examples without vocals, the right answer is silence.
        sung = (self.uniform(count, 0, 1) > self.unsung).float()
        mono = (self.uniform(count, 0, 1) > 0.15).float()
        widths = self.uniform(count, 0.5, 1.6) * mono, self.uniform(count, 0.5, 1.6) * mono
        # Negating the side swaps left and right.
        turned = torch.where(self.uniform(count, 0, 1) > 0.5, 1.0, -1.0)
        # A narrow-band or lossy recording.
        highest = self.uniform(count, 2, 4.2) + 9 * (self.uniform(count, 0, 1) > 0.15)
        heard = (self.octaves < highest).float() + 0.003
        rest, vocals = amplitude(rest) * heard, amplitude(vocals + balance) * sung * heard
        return mixed(batch, (rest, rest * widths[0] * turned), (vocals, vocals * widths[1] * turned))

    def with_pauses(self, batch):
        """Lets voices, and sometimes music, begin or end inside an example."""
        vocals, rest = self.pause(batch, 0.2), self.pause(batch, 0.08)
        rows = torch.stack([rest ** 2] * 3 + [vocals ** 2] * 3 + [rest * vocals] * 4, 1)
        return batch * rows.unsqueeze(-1)

    def pause(self, batch, share):
        """Gains `[count, frames]`, with a pause in this `share` of the examples."""
        count, _, frames, _ = batch.shape
        if frames <= PAUSE:
            return batch.new_ones(count, frames)
        length = self.uniform(count, PAUSE, frames)
        first = (self.uniform(count, 0, 1) * (frames + length) - length) + frames * 9 * (self.uniform(count, 0, 1) > share)
        frame = torch.arange(frames, device=batch.device)
        inside = torch.minimum(frame - first, first + length - frame)
        return 1 - (inside / FADE).clamp(0, 1)

    def loudness(self, count):
        """Factors for the features' reference level: a passage may be quieter or louder than the segment that is normalised with it."""
        return 10 ** (self.uniform(count, -8, 5) / 10)

    def uniform(self, count, low, high):
        return low + (high - low) * torch.rand(count, 1, generator=self.generator, device=self.generator.device)

    def equaliser(self, count):
        """dB per band `[count, 256]`: a slope and two bell filters."""
        curve = self.uniform(count, -1.5, 1.5) * self.octaves.clamp(-4, 4)
        for _ in range(2):
            width = self.uniform(count, 0.3, 1.2)
            curve = curve + self.uniform(count, -8, 6) * torch.exp(-0.5 * ((self.octaves - self.uniform(count, -4, 4)) / width) ** 2)
        return curve * (self.uniform(count, 0, 1) > 0.25)


def amplitude(decibels):
    return 10 ** (decibels / 20)


def level(count, decibels):
    """The same gain for every band of each example."""
    return torch.full((count, BANDS), amplitude(decibels))


def as_mixed(batch, balance=-4.0):
    """The examples at a fixed balance (dB), for comparable scores."""
    rest, vocals = level(len(batch), 0.0), level(len(batch), balance)
    return mixed(batch, (rest, rest), (vocals, vocals))


def mixed(batch, rest, vocals):
    """Applies gains (mid, side) `[batch, 256]` of the two sources -> `[batch, 7, frames, 256]`:

    0 |M|^2  1 |S|^2  2 Re(M S*)  3 |Vm|^2  4 |Vs|^2  5 Re(M Vm*)  6 Re(S Vs*), with M and S of the mixture.
    """
    am, as_, vm, vs = (gain.unsqueeze(1).to(batch.device) for gain in (*rest, *vocals))
    am_am, as_as, am_as, vm_vm, vs_vs, vm_vs, am_vm, as_vm, am_vs, as_vs = batch.unbind(1)
    mid_vocals, side_vocals = vm_vm * vm ** 2, vs_vs * vs ** 2
    mid_both, side_both = am_vm * am * vm, as_vs * as_ * vs
    return torch.stack([
        (am_am * am ** 2 + 2 * mid_both + mid_vocals).clamp(min=0),
        (as_as * as_ ** 2 + 2 * side_both + side_vocals).clamp(min=0),
        am_as * am * as_ + am_vs * am * vs + as_vm * as_ * vm + vm_vs * vm * vs,
        mid_vocals,
        side_vocals,
        mid_both + mid_vocals,
        side_both + side_vocals,
    ], 1)
