"""Trains on banks that mix.py made; the learning rate falls to zero, and what is kept is a moving average of the weights.

    python3 train.py --bank work/general --check work/check --out work/base.pt --epochs 4
    python3 train.py --bank work/general --bank work/songs --init work/base.pt --out work/net.pt --epochs 0.5 --rate 5e-4
    python3 train.py --bank work/general --bank work/songs --init work/base.pt --out work/fold.pt --hold-out hydrogen --epochs 0.5 --rate 5e-4

Several banks take turns, so each has the same share however large it is; an epoch is as many examples as all of them have.
"""
import argparse
import copy
import json
import math
import time

import numpy as np
import torch
from torch import nn

from augment import Augment, as_mixed
from checkpoint import from_graph, load, save
from network import Masks, features, folded
from objective import errors, objective

# Batches from which the norms' statistics are measured for the weights that are kept.
STATISTICS_BATCHES = 60


class Bank:
    """Examples of a bank, without those that have a source of `hold_out`."""

    def __init__(self, path, hold_out=()):
        self.examples = np.load(f'{path}.npy', mmap_mode='r')
        with open(f'{path}.json') as file:
            sources = json.load(file)['sources']
        self.numbers = np.array([number for number, names in enumerate(sources) if not set(names) & set(hold_out)])

    def batch(self, numbers):
        return torch.from_numpy(np.stack([self.examples[number] for number in np.sort(numbers)]).astype(np.float32))


class Turns:
    """Endless batches, one bank after the other, each in an order of its own."""

    def __init__(self, banks, size, seed):
        self.banks, self.size, self.rng = banks, size, np.random.default_rng(seed)
        self.orders, self.turn = [np.array([], int) for _ in banks], 0

    def __next__(self):
        turn = self.turn = (self.turn + 1) % len(self.banks)
        bank = self.banks[turn]
        if len(self.orders[turn]) < self.size:
            self.orders[turn] = np.concatenate([self.orders[turn], self.rng.permutation(bank.numbers)])
        now, self.orders[turn] = self.orders[turn][:self.size], self.orders[turn][self.size:]
        return bank.batch(now)


def features_of(mixtures, loudness=1):
    return features(mixtures[:, 0], mixtures[:, 1], mixtures[:, 2], loudness).contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def checked(net, bank):
    """Mean over the examples, in dB, of the SDR of vocals and accompaniments, and of the false vocals where the voice is taken away."""
    net = folded(net)
    scores, false = [], []
    for first in range(0, len(bank.numbers), 8):
        examples = bank.batch(bank.numbers[first:first + 8])
        batch, silent = as_mixed(examples), as_mixed(examples, -200.0)
        vocals, rest, _, error, _ = errors(net(features_of(batch)), batch)
        scores.append(10 * torch.log10(torch.stack([vocals, rest]) / error))
        _, _, mixture, _, predicted = errors(net(features_of(silent)), silent)
        false.append(10 * torch.log10(predicted / mixture + 1e-9))
    vocals, rest = torch.cat(scores, 1).mean(1).tolist()
    return dict(vocals=round(vocals, 3), accompaniments=round(rest, 3), false_vocals=round(float(torch.cat(false).mean()), 2))


@torch.no_grad()
def measure_norms(net, turns, augment):
    """Measures the norms' statistics for the weights as they are: those of the training belong to other weights, and to dropout."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    net.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    for _ in range(STATISTICS_BATCHES if norms else 0):
        net(features_of(augment(next(turns))))


def names(text):
    return [name for name in text.split(',') if name]


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bank', required=True, action='append', help='bank to learn from; may be given again')
    parser.add_argument('--check', help='bank to report on; its scores change nothing')
    parser.add_argument('--out', required=True, help='checkpoint to write')
    parser.add_argument('--init', help='graph (.onnx) or checkpoint (.pt) to start from')
    parser.add_argument('--learn', choices=['all', 'gate'], default='all')
    parser.add_argument('--no-gate', action='store_true', help='a network without the gate of the centre cue')
    parser.add_argument('--hold-out', type=names, default=[], help='sources to learn nothing from, with commas')
    parser.add_argument('--epochs', type=float, default=4)
    parser.add_argument('--batch', type=int, default=8)
    parser.add_argument('--rate', type=float, default=2e-3, help='highest learning rate')
    parser.add_argument('--average', type=float, default=0.995, help='weight of the past in the moving average')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args()


def start(options):
    if not options.init:
        return Masks(norm='batch', gate=not options.no_gate)
    if options.init.endswith('.onnx'):
        return from_graph(options.init, gate=not options.no_gate)
    return load(options.init)


def main():
    options = parsed()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(options.seed)
    net = start(options).to(memory_format=torch.channels_last)
    banks = [Bank(path, options.hold_out) for path in options.bank]
    check = Bank(options.check) if options.check else None
    if options.learn == 'gate':
        net.unet.requires_grad_(False)
    learnt = [weight for weight in net.parameters() if weight.requires_grad]
    average = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(learnt, lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98))
    turns, augment = Turns(banks, options.batch, options.seed), Augment(options.seed)
    examples = sum(len(bank.numbers) for bank in banks)
    steps = max(1, round(options.epochs * examples / options.batch))
    print(f'{examples} examples, {steps} steps, {sum(weight.numel() for weight in learnt)} weights to learn', flush=True)
    losses, startedAt = [], time.time()
    for step in range(steps):
        for group in optimizer.param_groups:
            group['lr'] = options.rate * min(1, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        batch = augment(next(turns))
        # Dropout and norms belong to what is learnt only.
        net.train(options.learn == 'all')
        loss = objective(net(features_of(batch, augment.loudness(len(batch)).reshape(-1, 1, 1, 1))), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        losses.append(float(loss))
        past = min(options.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for kept, weight in zip(average.parameters(), net.parameters()):
                kept.mul_(past).add_(weight, alpha=1 - past)
        last = step + 1 == steps
        if (step + 1) % 50 == 0 or last:
            report = dict(step=step + 1, loss=round(float(np.mean(losses[-50:])), 4), minutes=round((time.time() - startedAt) / 60, 1))
            if (step + 1) % 300 == 0 or last:
                measure_norms(average, turns, augment)
                save(average, options.out)
                report.update(checked(average, check) if check else {})
            print(json.dumps(report), flush=True)


if __name__ == '__main__':
    main()
