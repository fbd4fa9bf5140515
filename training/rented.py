"""Trains on a machine rented by the minute, with little bandwidth to it and no network from it: audio travels as Opus, and banks are made there
while the network trains on what there is.

    python3 rented.py pack --work work --out parcels --bytes 48e6            # here: makes folders of at most this many bytes
    python3 rented.py run --parcels arrived --work /dev/shm/work --minutes 9 # there: starts at once; parcels may arrive later, in any order
    ls /dev/shm/work/*.pt                                                    # base.pt, net.pt, and one for each held-out song

Move the files of a parcel into the folder of `run` when they are complete. Needs scipy, soundfile and, there, `nice`. Held-out sources stay here, where the
networks are measured.
"""
import argparse
import glob
import json
import multiprocessing
import os
import subprocess
import sys
import time

import numpy as np
import scipy.signal

from bands import RATE
from mix import HELD_OUT, sources_of

HERE = os.path.dirname(os.path.abspath(__file__))
PIECE = 300 * RATE
OPUS_RATE = 48000
# kbit/s, for songs, their single voices and single stems of music, other music, and mono voices.
BITRATES = dict(songs=64, stem_voices=64, stem_music=48, music=44, voices=24)
# Name: arguments of sources.py, and the share of the CPUs.
BANKS = {
    'voices': (['--of', 'voices', '--count', '26000', '--seed', '11'], 1 / 2),
    'music': (['--of', 'music', '--count', '22000', '--seed', '12'], 3 / 8),
    'songs-voices': (['--of', 'voices', '--songs', 'only', '--count', '5000', '--seed', '13'], 1 / 4),
    'songs-music': (['--of', 'music', '--songs', 'only', '--count', '5000', '--seed', '14'], 1 / 4),
    'songs': (['--of', 'songs', '--count', '2500', '--seed', '15'], 1 / 8),
}
SONGS = [name for name in BANKS if name.startswith('songs')]
# Every bank needs all of these, because sources.py opens them all; the banks of the songs need everything.
GENERAL = {'voices', 'music'}
# Share of the time for the base; the network with all songs and those that hold one out share the rest.
BASE_SHARE = 0.82
# It starts from weights that were not trained on the songs either.
BASE = ['--init', os.path.join(HERE, 'base.pt'), '--hold', '0.6', '--rate', '2.5e-3', '--average', '0.999', '--unsung', '0.2', '--seed', '5']
TUNE = ['--hold', '0.3', '--rate', '1.8e-3', '--average', '0.998', '--balance', '-9.5', '--unsung', '0.3']


def groups(index):
    """Entries of the index that are trained on, by kind."""
    def wanted(entries):
        return [entry for entry in entries if entry['name'].removesuffix('-sung') not in HELD_OUT]

    return dict(
        songs=[entry for stems in index['songs'].values() for entry in stems.values()], stem_voices=index['parts']['voices'],
        stem_music=index['parts']['music'], music=wanted(index['instrumental']), voices=wanted(index['voices']),
    )


def base_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def read_index(folder):
    with open(os.path.join(folder, 'index.json')) as file:
        return json.load(file)


def encoded(task):
    path, number, rate, folder = task
    pcm = np.load(path, mmap_mode='r')
    out = os.path.join(folder, f'{base_of(path)}@{number}.opus')
    command = ['ffmpeg', '-nostdin', '-v', 'error', '-y', '-f', 's16le', '-ar', str(RATE), '-ac', str(pcm.shape[1]), '-i', '-', '-c:a', 'libopus', '-b:a', f'{rate}k', '-f', 'ogg', out]
    subprocess.run(command, input=np.ascontiguousarray(pcm[number * PIECE:(number + 1) * PIECE]).tobytes(), check=True)
    return out


def pack(options):
    """Packs the audio into parcels."""
    index, tasks = read_index(options.work), []
    os.makedirs(options.out)
    for kind, entries in groups(index).items():
        for entry in entries:
            tasks += [(entry['path'], number, BITRATES[kind], options.out) for number in range(-(-entry['frames'] // PIECE))]
    with multiprocessing.Pool(options.processes) as pool:
        files = [path for path in pool.imap_unordered(encoded, tasks)]
    # What training needs first comes first: voices and music.
    order = {base_of(entry['path']): kind in GENERAL for kind, entries in groups(index).items() for entry in entries}
    files.sort(key=lambda path: (not order[base_of(path).split('@')[0]], -os.path.getsize(path)))
    room = [options.bytes - os.path.getsize(os.path.join(options.work, 'index.json'))]
    for path in files:
        size = os.path.getsize(path)
        parcel = next((number for number, left in enumerate(room) if left >= size), len(room))
        room += [options.bytes] * (parcel == len(room))
        room[parcel] -= size
        os.makedirs(os.path.join(options.out, str(parcel + 1)), exist_ok=True)
        os.rename(path, os.path.join(options.out, str(parcel + 1), os.path.basename(path)))
    with open(os.path.join(options.out, '1', 'index.json'), 'w') as file:
        json.dump(index, file)
    print(f'{len(files)} files in {len(room)} parcels')


def decoded(task):
    """Joins all pieces of a source into an array like that of prepare.py."""
    import soundfile
    paths, frames, out = task
    pieces = [scipy.signal.resample_poly(soundfile.read(path, dtype='float32', always_2d=True)[0], RATE // 300, OPUS_RATE // 300, axis=0) for path in paths]
    pcm = np.clip(np.round(np.concatenate(pieces) * 32768), -32768, 32767).astype(np.int16)[:frames]
    np.save(out, np.concatenate([pcm, np.zeros((frames - len(pcm), pcm.shape[1]), np.int16)]))
    return out


class Arrivals:
    """Decodes each source once all of its pieces have arrived; knows which are missing."""

    def __init__(self, options, pool):
        self.folder, self.pool, self.begun, self.results = options.parcels, pool, set(), []
        index = read_index(self.folder)
        self.waiting = {}
        for kind, entries in groups(index).items():
            for entry in entries:
                base = base_of(entry['path'])
                entry['path'] = os.path.join(options.work, 'audio', f'{base}.npy')
                self.waiting[entry['path']] = kind, [os.path.join(self.folder, f'{base}@{number}.opus') for number in range(-(-entry['frames'] // PIECE))], entry['frames']
        with open(os.path.join(options.work, 'index.json'), 'w') as file:
            json.dump(index, file)

    def look(self):
        here = set(glob.glob(os.path.join(glob.escape(self.folder), '*.opus')))
        for path, (_, pieces, frames) in self.waiting.items():
            if path not in self.begun and here.issuperset(pieces):
                self.begun.add(path)
                self.results.append(self.pool.apply_async(decoded, ((pieces, frames, path),)))
        for result in [result for result in self.results if result.ready()]:
            self.results.remove(result)
            del self.waiting[result.get()]

    def lacks(self, bank):
        return any(bank in SONGS or kind in GENERAL for kind, _, _ in self.waiting.values())


def made(work, bank):
    """How many examples of a bank are finished."""
    return len(sources_of(os.path.join(work, bank)))


def started(options, name, *arguments, command=()):
    log = open(os.path.join(options.work, f'{name}.log'), 'a')
    return subprocess.Popen([*command, sys.executable, *map(str, arguments)], stdout=log, stderr=subprocess.STDOUT)


def run(options):
    """Trains networks on arriving parcels. Gives up if anything fails, or parcels are missing after `--patience` seconds: waiting costs as much as training."""
    os.environ.update(OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1')
    begun_at, processors, processes = time.time(), os.cpu_count(), {}
    os.makedirs(os.path.join(options.work, 'audio'))
    with multiprocessing.Pool(processors) as pool:
        while not os.path.exists(os.path.join(options.parcels, 'index.json')):
            time.sleep(0.1)
        arrivals = Arrivals(options, pool)
        while True:
            arrivals.look()
            if arrivals.waiting and not arrivals.results and time.time() - begun_at > options.patience:
                raise SystemExit(f'Parts of {len(arrivals.waiting)} sources have not arrived, {next(iter(arrivals.waiting))} among them.')
            for name, (arguments, share) in BANKS.items():
                # The banks of the songs are needed later, so they start later.
                if name in processes or arrivals.lacks(name) or (name in SONGS and made(options.work, 'music') < options.first * 4):
                    continue
                out, many = os.path.join(options.work, name), max(1, int(processors * share))
                processes[name] = started(options, name, os.path.join(HERE, 'sources.py'), '--work', options.work, '--out', out, '--processes', many, *arguments, command=('nice',))
            if 'learn' not in processes and all(made(options.work, bank) >= options.first for bank in ('voices', 'music')):
                left = options.minutes - (time.time() - begun_at) / 60
                processes['learn'] = started(options, 'learn', __file__, 'learn', '--work', options.work, '--minutes', left, '--batch', options.batch, '--device', options.device)
            for name, process in processes.items():
                if process.poll():
                    raise SystemExit(f'{name} failed: see {os.path.join(options.work, name)}.log')
            if 'learn' in processes and processes['learn'].poll() == 0:
                break
            time.sleep(0.2)
    for process in processes.values():
        process.terminate()


def learn(options):
    """Trains base, network and folds for `run`, in one process, so that banks are copied to the device once."""
    import train
    ends_at = time.time() + options.minutes * 60
    songs = list(read_index(options.work)['songs'])

    def bank(text):
        return ['--bank', '+'.join(os.path.join(options.work, name) for name in text.split('+'))]

    def learnt(name, seconds, *more):
        out = os.path.join(options.work, f'{name}.part')
        usual = ['--device', options.device, '--batch', str(options.batch), '--steps', '1000000', '--save-every', '1000', '--check-every', '6000', '--minutes', str(seconds / 60)]
        train.worker(0, train.parsed([*usual, '--out', out, *bank('voices+music'), *more]), None)
        os.rename(out, os.path.join(options.work, f'{name}.pt'))
        os.remove(f'{out}.state')

    learnt('base', options.minutes * 60 * BASE_SHARE, *BASE)
    # The first bank has nothing of the songs: with fewer such examples, the scores of all other music fall.
    mixed = [*bank('voices+music'), *bank('songs-voices+music'), *bank('voices+songs-music'), *bank('songs-voices+songs-music'), *bank('songs')]
    while not all(made(options.work, name) for name in SONGS):
        time.sleep(0.2)
    for number, song in enumerate([None, *songs]):
        # At least one step, even if measuring the norms has used up the time.
        seconds = max(1, (ends_at - time.time()) / (1 + len(songs) - number))
        learnt(song or 'net', seconds, *mixed, '--init', os.path.join(options.work, 'base.pt'), *TUNE, *(['--hold-out', song] if song else []))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    packs, runs, learns = (verbs.add_parser(verb.__name__, help=verb.__doc__.split('.')[0]) for verb in (pack, run, learn))
    for verb, does in ((packs, pack), (runs, run), (learns, learn)):
        verb.set_defaults(does=does)
        verb.add_argument('--work', required=True, help='folder that prepare.py filled; for run, a folder to create and fill')
    packs.add_argument('--out', required=True, help='folder to create')
    packs.add_argument('--bytes', type=float, required=True, help='largest size of a parcel')
    packs.add_argument('--processes', type=int, default=2)
    runs.add_argument('--parcels', required=True, help='folder in which the files of all parcels arrive')
    runs.add_argument('--patience', type=float, default=120, help='seconds after which all parcels must have arrived')
    runs.add_argument('--first', type=int, default=1000, help='examples of voices, and of music, with which training begins')
    for verb in (runs, learns):
        verb.add_argument('--minutes', type=float, required=True, help='in all')
        verb.add_argument('--batch', type=int, default=32)
        verb.add_argument('--device', default='cuda')
    options = parser.parse_args()
    options.does(options)


if __name__ == '__main__':
    main()
