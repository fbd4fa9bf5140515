"""The network: a U-Net on 256 bands that gives masks for mid and side, a gate that refines them by the centre cue, and the graph around them."""
import copy
from functools import cache

import torch
import torch.nn as nn
import torch.nn.functional as F

from bands import BANDS, SEGMENTS, WIDTHS

# Exponent that compresses band powers: small enough that quiet bands count.
POWER = 0.15
# Lowest bands, up to 21 Hz, which are neither read nor output: they hold DC offset and nothing audible.
INAUDIBLE = 2
# Order of the features (mid, side, left, right) after swapping left and right.
SWAPPED = [0, 1, 3, 2]


@cache
def widths(device):
    """Bins of each band, copied to the device once: steps captured in a CUDA graph must not copy from the host."""
    return torch.from_numpy(WIDTHS).to(device)


def twins(channels):
    """Order of a layer's channels after swapping left and right: half of them stay, the others swap in pairs."""
    stay, pairs = channels // 2, channels // 4
    return [*range(stay), *range(stay + pairs, channels), *range(stay, stay + pairs)]


class Block(nn.Sequential):
    """Convolution, norm, ReLU. `norm`: 'batch' while a network is trained; 'none' for weights into which it is folded.

    `swapped`: orders of the inputs and outputs after swapping left and right.
    """

    def __init__(self, inputs, outputs, kernel, stride=1, dilation=(1, 1), norm='batch', active=True, swapped=(None, None)):
        padding = tuple(d * (k // 2) for d, k in zip(dilation, kernel))
        layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding, dilation, bias=norm == 'none')]
        if norm == 'batch':
            layers.append(nn.BatchNorm2d(outputs))
        super().__init__(*layers, *([nn.ReLU()] if active else []))
        self.swapped = swapped[0] or twins(inputs), swapped[1] or twins(outputs)

    def symmetries(self):
        inputs, outputs = self.swapped
        yield self[0].weight, outputs, inputs
        if self[0].bias is not None:
            yield self[0].bias, outputs, None
        for norm in self:
            if isinstance(norm, nn.BatchNorm2d):
                yield from ((tensor, outputs, None) for tensor in (norm.weight, norm.bias, norm.running_mean, norm.running_var))


def convolved(x, taps, stride=1):
    """Convolves each channel along its frames; the first and last frame are repeated as padding."""
    channels, reach = int(x.shape[1]), len(taps) // 2
    weights = torch.tensor(taps, dtype=x.dtype, device=x.device).reshape(1, 1, -1, 1).repeat(channels, 1, 1, 1)
    x = torch.cat([*[x[:, :, :1]] * reach, x, *[x[:, :, -1:]] * reach], 2)
    return F.conv2d(x, weights, stride=(stride, 1), groups=channels)


def blurred(x, stride=1, share=0.25):
    """Each frame (with a `stride` of 2, every second one) as a weighted mean of three; the outer two have the weight `share`."""
    return convolved(x, [share, 1 - 2 * share, share], stride)


# Lagrange half-band filters: the low-pass before halving the frames, and interpolation of the frames between.
LOW_PASS = [tap / 512 for tap in (3, 0, -25, 0, 150, 256, 150, 0, -25, 0, 3)]
BETWEEN = [tap / 16 for tap in (-1, 9, 9, -1)]
# Share of the blur after the low-pass, which removes a little more than the aliasing added in training.
LOW_PASSED_SHARE = 0.24


class Halved(nn.Module):
    """Every second frame, blurred, so that little depends on which ones are dropped. `closer`: for frames twice as close as in training."""

    def __init__(self):
        super().__init__()
        self.closer = False

    def forward(self, x):
        if self.closer:
            return blurred(convolved(x, LOW_PASS, 2), share=LOW_PASSED_SHARE)
        # In training, sums take a fraction of the time of a depthwise convolution.
        kept, between = x[:, :, 0::2], x[:, :, 1::2]
        return kept / 2 + (between + torch.cat([x[:, :, :1], between[:, :, :-1]], 2)) / 4


class Doubled(nn.ConvTranspose2d):
    """Doubles frames and bands; the frames between are means.

    `closer`: for frames twice as close as in training: frames are blurred, and those between are interpolated.
    """

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, (1, 2), (1, 2))
        self.closer = False

    def forward(self, x):
        if not self.closer:
            return self.learning(x)
        x = blurred(super().forward(x), share=LOW_PASSED_SHARE)
        # With an even number of taps, the first result lies before the first frame.
        between = convolved(x, BETWEEN)[:, :, 1:]
        return torch.stack([x, between], 3).flatten(2, 3)

    def learning(self, x):
        """One matrix product without moving memory: with channels last, the two bands that each band becomes are adjacent."""
        weights = self.weight[:, :, 0].permute(2, 1, 0).flatten(0, 1)
        x = F.linear(x.permute(0, 2, 3, 1), weights, self.bias.repeat(2))
        x = x.reshape(*x.shape[:2], 2 * x.shape[2], -1)
        between = (x + torch.cat([x[:, 1:], x[:, -1:]], 1)) / 2
        return torch.stack([x, between], 2).flatten(1, 2).permute(0, 3, 1, 2)


def set_apart(module, frames):
    """Dilates the convolutions of `module` in time by the factor `frames`."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.dilation = layer.dilation[0] * frames, layer.dilation[1]
            layer.padding = layer.padding[0] * frames, layer.padding[1]


class Residual(nn.Module):
    def __init__(self, channels, dilation, norm):
        super().__init__()
        self.first = Block(channels, channels, (3, 3), dilation=(dilation, 1), norm=norm)
        self.second = Block(channels, channels, (3, 3), norm=norm, active=False)

    def forward(self, x):
        return F.relu(x + self.second(self.first(x)))


class AllFrequencies(nn.Module):
    """The bottleneck: mixes all frequencies, and by dilated convolutions some seconds of time."""

    def __init__(self, channels, bands, norm, squeezed=16, hidden=192):
        super().__init__()
        self.bands, self.squeezed = bands, squeezed
        self.down = Block(channels, squeezed, (1, 1), norm=norm)
        flat = [channel * bands + band for channel in twins(squeezed) for band in range(bands)]
        self.inner = Block(squeezed * bands, hidden, (1, 1), norm=norm, swapped=(flat, None))
        self.times = nn.ModuleList([Block(hidden, hidden, (3, 1), dilation=(d, 1), norm=norm) for d in (1, 2, 4, 8)])
        self.outer = Block(hidden, squeezed * bands, (1, 1), norm=norm, swapped=(None, flat))
        self.up = Block(squeezed, channels, (1, 1), norm=norm, active=False)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        y = self.down(x).permute(0, 1, 3, 2).reshape(x.shape[0], self.squeezed * self.bands, -1, 1)
        y = self.dropout(self.inner(y))
        for layer in self.times:
            y = y + self.dropout(layer(y))
        y = self.outer(y).reshape(x.shape[0], self.squeezed, self.bands, -1).permute(0, 1, 3, 2)
        return F.relu(x + self.up(y))


class BandUNet(nn.Module):
    """Features `[batch, 4, frames, 256]` -> logits of the masks of mid and side `[batch, 2, frames, 256]`. Frames: a multiple of 8.

    Pairs of neighbouring bands become channels first, so the largest feature maps have 128 bands.
    """

    def __init__(self, norm, channels=(24, 48, 64, 96), residuals=(0, 0, 1, 2)):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1, 4, 1, BANDS))
        self.bias = nn.Parameter(torch.full((1, 4, 1, BANDS), -0.7))
        self.down, self.up, self.merge = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        before = 8
        for level, count in enumerate(channels):
            swapped = (None, None) if level else (SWAPPED + [4 + channel for channel in SWAPPED], None)
            first = Block(before, count, (3, 3), (1, 2) if level else 1, norm=norm, swapped=swapped)
            halved = [Halved()] if level else []
            self.down.append(nn.Sequential(first, *halved, *[Residual(count, 2 ** (i % 2), norm) for i in range(residuals[level])]))
            before = count
        self.middle = AllFrequencies(channels[-1], BANDS // 2 >> (len(channels) - 1), norm)
        for level in range(len(channels) - 1, 0, -1):
            self.up.append(Doubled(channels[level], channels[level - 1]))
            self.merge.append(Block(channels[level - 1], channels[level - 1], (3, 3), norm=norm))
        # Channels 0 and 1: mid of even and odd bands; 6 and 7: side.
        self.head = nn.Conv2d(channels[0], 8, 1)
        with torch.no_grad():
            self.head.weight.mul_(0.1)
            self.head.bias.fill_(-1)

    def symmetries(self):
        yield self.scale, None, SWAPPED
        yield self.bias, None, SWAPPED
        for up in self.up:
            yield up.weight, twins(up.in_channels), twins(up.out_channels)
            yield up.bias, twins(up.out_channels), None
        yield self.head.weight, None, twins(self.head.in_channels)

    def bring_closer(self):
        for module in (self.down, self.middle, self.merge):
            set_apart(module, 2)
        for module in self.modules():
            if isinstance(module, (Halved, Doubled)):
                module.closer = True

    def forward(self, features):
        x = features * self.scale + self.bias
        x = torch.cat([x[..., 0::2], x[..., 1::2]], 1)
        skips = []
        for level in self.down:
            x = level(x)
            skips.append(x)
        x = self.middle(skips.pop())
        for up, merge in zip(self.up, self.merge):
            x = merge(up(x) + skips.pop())
        x = self.head(x)
        mid, side = torch.stack([x[:, 0], x[:, 1]], -1), torch.stack([x[:, 6], x[:, 7]], -1)
        return torch.stack([mid.flatten(-2), side.flatten(-2)], 1)


class CentreGate(nn.Module):
    """Corrects the logits by how centred each band is, and how centred the estimated vocals and the mixture are as a whole.

    It starts as the identity, so training changes it only where it helps.
    """

    def __init__(self, hidden=16):
        super().__init__()
        self.inner = nn.Sequential(nn.Conv2d(10, hidden, 3, padding=1), nn.ReLU(), nn.Conv2d(hidden, hidden, 3, padding=1), nn.ReLU())
        self.outer = nn.Conv2d(hidden, 2, 1)
        self.bands = nn.Parameter(torch.zeros(1, 2, 1, BANDS))
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, features, logits):
        power = features[:, :2] ** (1 / POWER) * widths(features.device)
        masks = torch.sigmoid(logits)
        centred = [shares[:, 0:1] / (shares.sum(1, keepdim=True) + 1e-6) for shares in ((power * masks ** 2).mean((2, 3), keepdim=True), power.mean((2, 3), keepdim=True))]
        cue = (features[:, 0:1] - features[:, 1:2]) / (features[:, 0:1] + features[:, 1:2])
        whole = [share + cue * 0 for share in centred]
        place = torch.linspace(-1, 1, BANDS, device=cue.device) + cue * 0
        return logits + self.outer(self.inner(torch.cat([features, logits / 4, cue, *whole, place], 1))) + self.bands

    def symmetries(self):
        first, second = self.inner[0], self.inner[2]
        yield first.weight, twins(first.out_channels), [*SWAPPED, *range(4, first.in_channels)]
        yield second.weight, twins(second.out_channels), twins(second.in_channels)
        yield first.bias, twins(first.out_channels), None
        yield second.bias, twins(second.out_channels), None
        yield self.outer.weight, None, twins(self.outer.in_channels)


class Masks(nn.Module):
    """Features -> masks of mid and side, unaffected by swapping left and right for weights that `make_symmetric` has made symmetric."""

    def __init__(self, norm='batch', gate=True):
        super().__init__()
        self.settings = dict(norm=norm, gate=gate)
        self.unet = BandUNet(norm)
        self.gate = CentreGate() if gate else None
        make_symmetric(self)

    def forward(self, features):
        logits = self.unet(features)
        masks = torch.sigmoid(logits if self.gate is None else self.gate(features, logits))
        return masks * audible(masks)

    @torch.no_grad()
    def lower(self, logits):
        """Subtracts `logits` from those of both masks: less music is mistaken for a voice, and a little less of the voice is found."""
        last = self.unet.head if self.gate is None else self.gate.outer
        last.bias.sub_(logits)

    def with_closer_frames(self):
        """A copy for frames twice as close as in training, whose output hardly depends on where a segment begins."""
        closer = copy.deepcopy(self)
        closer.unet.bring_closer()
        if closer.gate is not None:
            set_apart(closer.gate, 2)
        return closer

    def symmetries(self):
        """Tensors, each with the permutations of its first two dimensions under which it has to be unchanged."""
        for module in self.modules():
            if module is not self and hasattr(module, 'symmetries'):
                yield from module.symmetries()


def swapped(tensor, first, second):
    tensor = tensor if first is None else tensor[first]
    return tensor if second is None else tensor[:, second]


@torch.no_grad()
def make_symmetric(net):
    """Replaces every weight by the mean of itself and its counterpart after swapping left and right."""
    for tensor, *orders in net.symmetries():
        tensor.copy_((tensor + swapped(tensor, *orders)) / 2)


def mirrored(net, learnt):
    """For every element of the tensors `learnt`, concatenated as they lie in memory: the index of its counterpart after swapping left and right."""
    orders, out = {id(tensor): orders for tensor, *orders in net.symmetries()}, []
    for tensor in learnt:
        first = sum(len(part) for part in out)
        places = torch.arange(tensor.numel()).as_strided(tensor.shape, tensor.stride())
        part = torch.empty(tensor.numel(), dtype=torch.long)
        part[places.reshape(-1)] = first + swapped(places, *orders.get(id(tensor), (None, None))).reshape(-1)
        out.append(part)
    return torch.cat(out)


def audible(like):
    return (torch.arange(BANDS, device=like.device) >= INAUDIBLE).to(like.dtype)


def relative(mid, side, left, right, loudness=1):
    """Band powers of mid, side, left and right in one tensor, relative to `loudness` times their mean over the chunk."""
    powers = torch.stack([mid, side, left, right], 1)
    powers = powers * audible(powers)
    mean = (powers[:, 0] + powers[:, 1]).mean((1, 2), keepdim=True).unsqueeze(1) * loudness
    return powers / (mean + 1e-9)


def compressed(powers):
    """The features, which are the input of the network."""
    return (powers + 1e-7) ** POWER


def left_and_right(mid, side, product):
    """Powers of left and right from those of mid and side and their product. Less exact where they cancel, which training tolerates."""
    return (mid + side + 2 * product).clamp(min=0), (mid + side - 2 * product).clamp(min=0)


def folded(net):
    """The same network without norms, which are folded into the weights and biases of the convolutions before them."""
    plain = Masks(**dict(net.settings, norm='none'))
    weights = net.state_dict()
    with torch.no_grad():
        for name, module in net.named_modules():
            if isinstance(module, Block) and net.settings['norm'] == 'batch':
                convolution, norm = module[0], module[1]
                scale = norm.weight / torch.sqrt(norm.running_var + norm.eps)
                weights[f'{name}.0.weight'] = convolution.weight * scale.reshape(-1, 1, 1, 1)
                weights[f'{name}.0.bias'] = norm.bias - norm.running_mean * scale
    plain.load_state_dict({name: weights[name] for name in plain.state_dict()})
    make_symmetric(plain)
    return plain.eval()


class Network(nn.Module):
    """The exported graph: powers of mid, side, left and right in the audible bands `[1, 4, frames, 254]`, relative to their level
    -> masks of mid and side `[1, 2, frames, 254]`.

    Frames are half as far apart as in training, so twice as many are kept at every depth, and the result hardly depends on where a song begins.
    """

    def __init__(self, masks):
        super().__init__()
        self.masks = masks.with_closer_frames()

    def forward(self, powers):
        return self.masks(compressed(F.pad(powers, (INAUDIBLE, 0))))[..., INAUDIBLE:]


class Separator(nn.Module):
    """The graph with its pre- and postprocessing: complex spectrum `[1, 4, frames, 2049]` of the mixture (L.re, L.im, R.re, R.im) -> that of the vocals."""

    def __init__(self, masks):
        super().__init__()
        self.network = Network(masks)

    def forward(self, spectrum):
        left, right = spectrum.split(2, 1)
        mid, side = (left + right) / 2, (left - right) / 2
        # Left and right are computed directly: from mid and side, a source far to one side would leave rounding errors in the other.
        powers = torch.stack([pooled(part * part).sum(1) for part in (mid, side, left, right)], 1)[..., INAUDIBLE:]
        level = powers[:, :2].sum(1).mean()
        masks = spread(F.pad(self.network(powers / (level + 1e-9)), (INAUDIBLE, 0)))
        mid, side = mid * masks[:, :1], side * masks[:, 1:]
        return torch.cat([mid + side, mid - side], 1)


def pooled(power):
    """`[batch, channels, frames, 2049]` -> `[batch, channels, frames, 256]`, the means of the bands."""
    return torch.cat([power[..., a:b] if w == 1 else F.avg_pool2d(power[..., a:b], (1, w), count_include_pad=False) for a, b, w in SEGMENTS], -1)


def spread(masks):
    """`[..., 256]` -> `[..., 2049]`: the value of a band for each of its bins; 0 for the last bin (Nyquist)."""
    out, band = [], 0
    for first, end, width in SEGMENTS:
        count = (end - first) // width
        part = masks[..., band:band + count]
        # As a matrix product, which runtimes compute fast.
        out.append(part if width == 1 else torch.matmul(part, torch.eye(count).repeat_interleave(width, 1)))
        band += count
    return torch.cat([*out, masks[..., :1] * 0], -1)
