"""Trains on the banks of mix.py and sources.py; the result is a moving average of the weights.

    python3 train.py --bank work/voices+work/music --check work/check --choose work/choose --out work/base.pt --steps 8000 --processes 2
    python3 train.py --bank work/voices+work/music --bank work/songs --init work/base.pt --out work/net.pt --steps 800 --rate 5e-4
    python3 train.py --bank work/voices+work/music --bank work/songs --init work/base.pt --out work/fold.pt --hold-out hydrogen --steps 800 --rate 5e-4

`A+B`: any voice of A with any music of B. Several banks take turns, so each has the same share however large it is; one may be given twice.
The learning rate is held for a while (--hold) and then falls to zero. A run that was killed continues from <out>.state when it is started again, and
--cool <other>.state continues another run with a falling learning rate: so one long run can yield a network at any time.
"""
import argparse
import copy
import datetime
import functools
import json
import math
import os
import tempfile
import time

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing
from torch import nn

from augment import Augment, as_mixed
from checkpoint import load, save, write
from mix import sources_of
from network import Masks, compressed, folded, left_and_right, mirrored, relative
from objective import errors, objective
from pairs import paired

# Batches that measure the norms' statistics for the averaged weights.
STATISTICS_BATCHES = 40
WARM_UP = 100
# On a GPU: steps that run normally before one is captured, which allocate and set up what it needs.
BEFORE_CAPTURE = 3
# First steps of a new network, in which every example has vocals. Otherwise it first learns to output silence and stays there: after 1,500 steps
# it had 0.5 dB on the check; with these, 2.4 dB after 300.
SUNG_ONLY = 500


class Examples:
    """The examples of a bank. The CPU reads them from disk each time; to a GPU they are copied once."""

    def __init__(self, path, device):
        self.path, self.device = path, device
        self.stored = np.load(f'{path}.npy', mmap_mode='r')
        self.copied = None if torch.device(device).type == 'cpu' else torch.empty(self.stored.shape, dtype=torch.float16, device=device)
        self.count = 0

    def rows(self, numbers):
        if self.copied is None:
            return torch.from_numpy(np.stack([self.stored[number] for number in np.sort(numbers)])).float()
        while self.count <= max(numbers):
            until = min(max(numbers) + 1, self.count + 256)
            self.copied[self.count:until].copy_(torch.from_numpy(self.stored[self.count:until].copy()))
            self.count = until
        return self.copied[torch.from_numpy(np.sort(numbers)).to(self.device)].float()


# Runs of one process share the copy.
examples_of = functools.cache(Examples)


class Bank:
    """Examples of a bank, without those that have a source of `hold_out`, in an endless order.

    A bank that is still being made yields its finished examples; later ones join in the next round.
    """

    def __init__(self, path, hold_out=(), rng=None, device='cpu'):
        self.examples, self.hold_out = examples_of(path, device), set(hold_out)
        self.numbers = self.made()
        self.rng, self.order = rng, np.array([], int)

    def made(self):
        found = [number for number, names in enumerate(sources_of(self.examples.path)) if not set(names) & self.hold_out]
        if not found:
            raise SystemExit(f'The bank {self.examples.path} has no examples: make it with mix.py or sources.py, or hold out less.')
        return np.array(found)

    def rows(self, numbers):
        return self.examples.rows(numbers)

    def some(self, count):
        """The next `count` examples, in random order."""
        while len(self.order) < count:
            self.numbers = self.made()
            self.order = np.concatenate([self.order, self.rng.permutation(self.numbers)])
        now, self.order = self.order[:count], self.order[count:]
        return self.rows(now)[torch.from_numpy(self.rng.permutation(count))]


class Turns:
    """Endless batches of statistics, from the banks or pairs of banks in turn."""

    def __init__(self, banks, hold_out, size, seed, device):
        rng = np.random.default_rng(seed)
        self.banks = [[Bank(path, hold_out, rng, device) for path in text.split('+')] for text in banks]
        self.size, self.turn = size, 0
        self.generator = torch.Generator(device).manual_seed(int(rng.integers(2 ** 31)))

    def __next__(self):
        self.turn = (self.turn + 1) % len(self.banks)
        drawn = [bank.some(self.size) for bank in self.banks[self.turn]]
        if len(drawn) == 2:
            return paired(drawn[1][:, 0], drawn[0][:, 0], self.generator)
        # Vocals and accompaniments of songs (sources.py), or statistics of finished mixes (mix.py).
        return paired(drawn[0][:, 1], drawn[0][:, 0], self.generator) if drawn[0].shape[1] == 2 else drawn[0]


def features_of(mixtures, loudness=1):
    mid, side, product = mixtures[:, 0], mixtures[:, 1], mixtures[:, 2]
    powers = relative(mid, side, *left_and_right(mid, side, product), loudness)
    return compressed(powers).contiguous(memory_format=torch.channels_last)


@torch.no_grad()
def checked(net, bank):
    """Means over the examples, in dB: the SDR of vocals and accompaniments, and the level of false vocals relative to the mixture, with the voice removed."""
    net = folded(net).to(bank.examples.device)
    scores, false = [], []
    for first in range(0, len(bank.numbers), 8):
        examples = bank.rows(bank.numbers[first:first + 8])
        batch, silent = as_mixed(examples), as_mixed(examples, -200.0)
        vocals, rest, _, error, _ = errors(net(features_of(batch)), batch)
        scores.append(10 * torch.log10(torch.stack([vocals, rest]) / error))
        _, _, mixture, _, predicted = errors(net(features_of(silent)), silent)
        false.append(10 * torch.log10(predicted / mixture + 1e-9))
    vocals, rest = torch.cat(scores, 1).mean(1).tolist()
    return dict(vocals=round(vocals, 3), accompaniments=round(rest, 3), false_vocals=round(float(torch.cat(false).mean()), 2))


@torch.no_grad()
def measure_norms(net, turns, augment, autocast):
    """Measures the norms' statistics for these weights: those from training belong to other weights, and include dropout."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    net.eval()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    with torch.autocast(**autocast):
        for _ in range(STATISTICS_BATCHES if norms else 0):
            net(features_of(augment(next(turns))))


def names(text):
    return [name for name in text.split(',') if name]


def has_bf16():
    with open('/proc/cpuinfo') as file:
        flags = file.read()
    return 'avx512_bf16' in flags or 'amx_bf16' in flags


def parsed(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--bank', required=True, action='append', help='bank to train on, or voices+music; may be repeated')
    parser.add_argument('--check', help='bank to report scores on, which change nothing')
    parser.add_argument('--choose', help='bank whose scores select the best weights and end the run early')
    parser.add_argument('--patience', type=int, default=6, help='checks without a better score on --choose after which it ends')
    parser.add_argument('--out', required=True, help='checkpoint to write')
    parser.add_argument('--init', help='graph (.onnx) or checkpoint (.pt) to start from')
    parser.add_argument('--cool', help='.state of a run to continue and end: the learning rate falls at once')
    parser.add_argument('--learn', choices=['all', 'gate'], default='all')
    parser.add_argument('--no-gate', action='store_true', help='a network without the gate of the centre cue, which a run with --init can add')
    parser.add_argument('--hold-out', type=names, default=[], help='sources not to train on, separated by commas')
    parser.add_argument('--steps', type=int, default=4000)
    parser.add_argument('--minutes', type=float, default=math.inf, help='ends the run after this time, if sooner; the learning rate follows the nearer end')
    parser.add_argument('--batch', type=int, default=8, help='examples per process and step')
    parser.add_argument('--rate', type=float, default=2e-3, help='highest learning rate')
    parser.add_argument('--hold', type=float, default=0, help='share of the steps before the learning rate falls')
    parser.add_argument('--balance', type=float, default=-6.5, help='mean level of the vocals relative to the accompaniments in dB')
    parser.add_argument('--unsung', type=float, default=0.12, help='share of the examples without vocals')
    parser.add_argument('--average', type=float, default=0.995, help='weight of the past in the moving average')
    parser.add_argument('--check-every', type=int, default=600, help='steps')
    parser.add_argument('--save-every', type=float, default=3, help='minutes')
    parser.add_argument('--processes', type=int, default=1, help='processes that average their gradients: faster than threads')
    parser.add_argument('--threads', type=int, default=1, help='of each process')
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--precision', choices=['auto', 'bf16', 'fp32'], default='auto', help='of the convolutions')
    parser.add_argument('--seed', type=int, default=1)
    return parser.parse_args(arguments)


def start(options):
    if not options.init:
        return Masks(norm='batch', gate=not options.no_gate)
    return load(options.init, gate=not options.no_gate)


class Run:
    """The state of a run at a step, all of which is saved to disk."""

    def __init__(self, options, rank):
        self.options, self.rank, self.step, self.best, self.waited = options, rank, 0, None, 0
        self.state_path = f'{options.out}.state'
        # The same initial weights in all processes: newer versions of PyTorch start each with another seed.
        torch.manual_seed(options.seed)
        resumed = torch.load(self.state_path, map_location='cpu') if os.path.exists(self.state_path) else None
        cooled = torch.load(options.cool, map_location='cpu') if options.cool and not resumed else None
        saved = resumed or cooled
        self.is_new = not options.init and not options.cool
        net = Masks(**saved['settings']) if saved else start(options)
        self.net = net.to(options.device, memory_format=torch.channels_last)
        if options.learn == 'gate':
            net.unet.requires_grad_(False)
        self.learnt = [weight for weight in net.parameters() if weight.requires_grad]
        self.average = copy.deepcopy(net)
        self.averaged, self.learnt_now = list(self.average.parameters()), list(net.parameters())
        self.gradients, self.twins = self.one_gradient(), mirrored(net, self.learnt).to(options.device)
        fused = {} if torch.device(options.device).type == 'cpu' else dict(fused=True)
        self.optimizer = torch.optim.AdamW(self.learnt, lr=options.rate, weight_decay=0.01, betas=(0.9, 0.98), **fused)
        if saved:
            net.load_state_dict(saved['weights'])
            self.average.load_state_dict(saved['average'])
            self.optimizer.load_state_dict(saved['optimizer'])
        seconds = 0
        if resumed:
            self.step, self.best, self.waited, seconds = (resumed[key] for key in ('step', 'best', 'waited', 'seconds'))
        self.began_at, self.uncaptured, self.captured = time.time() - seconds, 0, None
        self.done = self.share_done()
        # The step is in the seed, so that a resumed run does not repeat its draws.
        seed = [options.seed, rank, self.step]
        self.turns = Turns(options.bank, options.hold_out, options.batch, seed, options.device)
        self.augment = Augment(int(np.random.default_rng(seed).integers(2 ** 31)), options.balance, options.unsung, options.device)
        torch.manual_seed(seed[0] * 1000 + rank * 100 + self.step)
        self.check, self.choose = (Bank(path, device=options.device) if path else None for path in (options.check, options.choose))
        kind = torch.device(options.device).type
        self.bf16 = options.precision == 'bf16' or (options.precision == 'auto' and (kind != 'cpu' or has_bf16()))
        self.autocast = dict(device_type=kind, dtype=torch.bfloat16, enabled=self.bf16, cache_enabled=False)

    def save(self):
        state = dict(
            settings=self.net.settings, weights=self.net.state_dict(), average=self.average.state_dict(), optimizer=self.optimizer.state_dict(),
            step=self.step, best=self.best, waited=self.waited, seconds=self.seconds(),
        )
        write(state, self.state_path)

    def one_gradient(self):
        """One tensor of all gradients, in the order of `learnt` and of each weight's memory; the gradients of the weights are views of it."""
        gradients = torch.zeros(sum(weight.numel() for weight in self.learnt), device=self.options.device)
        for weight, part in zip(self.learnt, gradients.split([weight.numel() for weight in self.learnt])):
            weight.grad = part.as_strided(weight.shape, weight.stride(), part.storage_offset())
        return gradients

    def seconds(self):
        return time.time() - self.began_at

    def share_done(self):
        """The share of the steps or of the minutes, whichever is larger, by the clock of the first process."""
        steps, seconds = self.step / self.options.steps, 60 * self.options.minutes
        if seconds == math.inf:
            return steps
        return max(steps, self.agreed(self.seconds() / seconds if seconds > 0 else 1))

    def rate(self):
        options, done = self.options, self.done
        falling = min(1.0, max(0.0, (done - options.hold) / (1 - options.hold))) if options.hold < 1 else 0.0
        warmed = 1 if options.cool else min(1, (self.step + 1) / WARM_UP)
        return options.rate * warmed * 0.5 * (1 + math.cos(math.pi * falling))

    def learn(self):
        """One step; returns its loss, on the device."""
        for group in self.optimizer.param_groups:
            group['lr'] = self.rate()
        self.augment.unsung = 0 if self.is_new and self.step < SUNG_ONLY else self.options.unsung
        batch = self.augment(next(self.turns))
        loss = self.derive(batch, self.augment.loudness(len(batch)).reshape(-1, 1, 1, 1))
        self.optimizer.step()
        past = min(self.options.average, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            torch._foreach_mul_(self.averaged, past)
            torch._foreach_add_(self.averaged, self.learnt_now, alpha=1 - past)
        self.step += 1
        self.done = self.share_done()
        return loss

    def derive(self, batch, loudness):
        """Computes the gradients; returns the loss. On a GPU the work is captured once as a CUDA graph and then replayed, which saves thousands of launches."""
        if self.gradients.device.type == 'cpu':
            return self.derived(batch, loudness)
        if self.uncaptured < BEFORE_CAPTURE:
            self.uncaptured += 1
            return self.derived(batch, loudness)
        if not self.captured:
            self.given, graph = (batch.clone(), loudness.clone()), torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.loss = self.derived(*self.given)
            self.captured = graph
        for place, value in zip(self.given, (batch, loudness)):
            place.copy_(value)
        self.captured.replay()
        return self.loss.clone()

    def derived(self, batch, loudness):
        # When only the gate is trained, the rest runs without dropout and with fixed norms.
        self.net.train(self.options.learn == 'all')
        x = features_of(batch, loudness)
        with torch.autocast(**self.autocast):
            masks = self.net(x)
        loss = objective(masks.float(), batch)
        self.gradients.zero_()
        loss.backward()
        with torch.no_grad():
            if self.options.processes > 1:
                torch.distributed.all_reduce(self.gradients)
                self.gradients.div_(self.options.processes)
            # Averages each with the gradient of its counterpart after swapping left and right; then clips the norm to 1.
            self.gradients.copy_((self.gradients + self.gradients[self.twins]) / 2)
            self.gradients.div_(self.gradients.norm().clamp(min=1))
        return loss.detach()

    def agreed(self, value):
        """The value of the first process, sent to all."""
        if self.options.processes == 1:
            return value
        shared = torch.tensor(float(value))
        torch.distributed.broadcast(shared, 0)
        return float(shared)

    def report(self):
        """Scores the moving average and saves it if it is the best yet. Returns the scores and whether to go on."""
        options, report = self.options, {}
        measure_norms(self.average, self.turns, self.augment, self.autocast)
        if self.check:
            report['check'] = checked(self.average, self.check)
        if self.choose:
            report['choose'] = checked(self.average, self.choose)
            score = report['choose']['vocals'] + report['choose']['accompaniments']
            if self.best is not None and score <= self.best:
                self.waited += 1
                return report, self.waited < options.patience
            self.best, self.waited = score, 0
        save(self.average, options.out)
        return report, True


def worker(rank, options, meeting):
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.backends.cudnn.benchmark = True
    if options.processes > 1:
        # A process may be suspended for as long as other work needs the machine.
        patient = datetime.timedelta(days=30)
        torch.distributed.init_process_group('gloo', init_method=f'file://{meeting}', rank=rank, world_size=options.processes, timeout=patient)
    run, parent = Run(options, rank), os.getppid()
    if rank == 0:
        print(f'{sum(weight.numel() for weight in run.learnt)} weights, steps {run.step} to {options.steps}, {"bf16" if run.bf16 else "fp32"}', flush=True)
    losses, started_at, saved_at, going = [], time.time(), time.time(), True
    while run.done < 1 and going:
        losses = [*losses[-49:], run.learn()]
        last = run.done >= 1
        if rank == 0 and (run.step % 50 == 0 or last):
            report = dict(step=run.step, loss=round(float(torch.stack(losses).mean()), 4), minutes=round((time.time() - started_at) / 60, 1))
            print(json.dumps(report), flush=True)
            if not math.isfinite(report['loss']):
                raise SystemExit('The loss is not a finite number: an example or the learning rate is at fault.')
        if run.step % options.check_every == 0 or last:
            if rank == 0:
                scores, going = run.report()
                print(json.dumps(dict(step=run.step, **scores)), flush=True)
            going = bool(run.agreed(going))
        if rank == 0 and (time.time() - saved_at > 60 * options.save_every or last or not going):
            run.save()
            saved_at = time.time()
        if options.processes > 1 and os.getppid() != parent:
            raise SystemExit('The run was ended.')


def main():
    options = parsed()
    if options.processes == 1:
        worker(0, options, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(worker, (options, os.path.join(folder, 'meeting')), nprocs=options.processes)


if __name__ == '__main__':
    main()
