"""Trains on a bank that mix.py made; the learning rate falls to zero, and what is kept is a moving average of the weights.

    python3 train.py --bank work/train --check work/check --out work/net.pt --epochs 8
    python3 train.py --bank work/train --out work/net.pt --init ../models/embedded/model.onnx --learn gate --epochs 3
    python3 train.py --bank work/train --out work/fold.pt --hold-out hydrogen

With `--init` a network without norms starts from the weights of a shipped graph (norms are folded into them); else it starts from scratch
with GroupNorm, whose statistics are the same in training and use.
"""
import argparse
import copy
import json
import math
import time

import numpy as np
import torch

from checkpoint import from_graph, load, save
from network import Masks, features
from objective import errors, objective


class Bank:
    """Examples of a bank, without those that have a source of `hold_out`."""

    def __init__(self, path, hold_out=()):
        self.examples = np.load(f'{path}.npy', mmap_mode='r')
        with open(f'{path}.json') as file:
            sources = json.load(file)['sources']
        self.numbers = np.array([number for number, names in enumerate(sources) if not set(names) & set(hold_out)])

    def batch(self, numbers):
        return torch.from_numpy(np.stack([self.examples[number] for number in np.sort(numbers)]).astype(np.float32))


def features_of(batch):
    return features(batch[:, 0], batch[:, 1], batch[:, 2])


@torch.no_grad()
def checked(net, bank):
    """Mean over the examples with vocals, in dB, of the SDR of vocals and accompaniments, and false vocals in the others."""
    net.eval()
    scores, false = [], []
    for first in range(0, len(bank.numbers), 8):
        batch = bank.batch(bank.numbers[first:first + 8])
        vocals, rest, mixture, error, predicted = (power.tolist() for power in errors(net(features_of(batch)), batch))
        for v, a, m, e, p in zip(vocals, rest, mixture, error, predicted):
            if v > 1e-4 * m:
                scores.append([10 * math.log10(v / e), 10 * math.log10(max(a, 1e-9) / e)])
            else:
                false.append(10 * math.log10(p / m + 1e-9))
    mean = np.mean(np.array(scores), 0) if scores else [float('nan')] * 2
    return dict(vocals=round(float(mean[0]), 3), accompaniments=round(float(mean[1]), 3), false_vocals=round(float(np.mean(false)), 2) if false else None)


def names(text):
    return [name for name in text.split(',') if name]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bank', required=True, help='bank to learn from')
    parser.add_argument('--check', help='bank to report on; its scores change nothing')
    parser.add_argument('--out', required=True, help='checkpoint to write')
    parser.add_argument('--init', help='graph (.onnx) or checkpoint (.pt) to start from')
    parser.add_argument('--learn', choices=['all', 'gate'], default='all')
    parser.add_argument('--no-gate', action='store_true', help='a network without the gate of the centre cue')
    parser.add_argument('--hold-out', type=names, default=[], help='sources to learn nothing from, with commas')
    parser.add_argument('--epochs', type=float, default=8)
    parser.add_argument('--batch', type=int, default=12)
    parser.add_argument('--rate', type=float, default=1e-3, help='highest learning rate')
    parser.add_argument('--average', type=float, default=0.99, help='weight of the past in the moving average')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def start(options):
    if not options.init:
        return Masks(norm='group', gate=not options.no_gate)
    if options.init.endswith('.onnx'):
        return from_graph(options.init, gate=not options.no_gate)
    return load(options.init)


def main():
    options = parsed()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    net = start(options)
    bank = Bank(options.bank, options.hold_out)
    check = Bank(options.check) if options.check else None
    if options.learn == 'gate':
        net.unet.requires_grad_(False)
    learnt = [weight for weight in net.parameters() if weight.requires_grad]
    average = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(learnt, lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98))
    steps = max(1, round(options.epochs * len(bank.numbers) / options.batch))
    print(f'{len(bank.numbers)} examples, {steps} steps, {sum(weight.numel() for weight in learnt)} weights to learn', flush=True)
    if check:
        print(json.dumps(dict(step=0, **checked(average, check))), flush=True)
    order, losses, startedAt = np.array([], int), [], time.time()
    for step in range(steps):
        for group in optimizer.param_groups:
            group['lr'] = options.rate * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        if len(order) < options.batch:
            order = np.concatenate([order, rng.permutation(bank.numbers)])
        batch, order = bank.batch(order[:options.batch]), order[options.batch:]
        # Dropout belongs to what is learnt only.
        net.train(options.learn == 'all')
        loss = objective(net(features_of(batch)), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        losses.append(float(loss))
        past = min(options.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for kept, weight in zip(average.state_dict().values(), net.state_dict().values()):
                kept.mul_(past).add_(weight, alpha=1 - past)
        if (step + 1) % 100 == 0 or step + 1 == steps:
            report = dict(step=step + 1, loss=round(float(np.mean(losses[-100:])), 4), minutes=round((time.time() - startedAt) / 60, 1))
            print(json.dumps(dict(report, **(checked(average, check) if check else {}))), flush=True)
            save(average, options.out)


if __name__ == '__main__':
    main()
