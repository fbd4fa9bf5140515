"""Averages the weights of a network before and after more steps, which is often better than either, and measures its norms anew.

    python3 mean.py --net work/base.pt --net work/further.pt --bank work/voices+work/music --out work/mean.pt
"""
import argparse

import torch

from augment import Augment
from checkpoint import load, save
from train import Turns, measure_norms

BATCH, BALANCE, UNSUNG = 16, -6.5, 0.12


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--net', required=True, action='append', help='checkpoint (.pt) with its norms; given twice or more')
    parser.add_argument('--bank', required=True, action='append', help='bank that the norms are measured on, as for train.py')
    parser.add_argument('--out', required=True, help='checkpoint to write')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    nets = [load(path) for path in options.net]
    mean = nets[0]
    with torch.no_grad():
        for weights in zip(*(net.parameters() for net in nets)):
            weights[0].copy_(torch.stack(weights).mean(0))
    turns = Turns(options.bank, [], BATCH, options.seed, 'cpu')
    measure_norms(mean, turns, Augment(options.seed, BALANCE, UNSUNG), dict(device_type='cpu', enabled=False))
    save(mean, options.out)


if __name__ == '__main__':
    main()
