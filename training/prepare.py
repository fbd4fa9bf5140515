"""Decodes the audio that the recipe uses into 16-bit arrays and lists it in `<work>/index.json`; makes singing from speech, and music.
Existing arrays are kept.

    python3 prepare.py --data ../../shared/data --work work [--stems more/songs] [--sung-minutes 20] [--espeak-minutes 30] [--arranged-minutes 60]

A folder of --stems has a folder for each song, with vocals.* and either one file of the accompaniments or the other stems, which are summed. A stem may
also be a folder of files, which are summed. A song without vocals counts as music, one with nothing but vocals as a voice.
"""
import argparse
import glob
import json
import multiprocessing
import os
import subprocess

import numpy as np

from arrangements import arrangement
from bands import RATE
from mix import HELD_OUT
from singing import sung_from_speech
from speakers import speech
from synths import synthesized

# How the names of speech recordings begin.
SPEECH = ('librispeech', 'kerstin', 'nathalie')
PIECE_SECONDS = 40
AUDIO = ('.wav', '.flac', '.ogg', '.mp3', '.m4a', '.opus', '.aif', '.aiff')
# Names of one file of everything but the vocals, and of mixtures, which are not stems.
ACCOMPANIMENTS = ('accompaniments', 'accompaniment', 'instrumental', 'instrumentals', 'no_vocals', 'backing')
MIXTURES = ('mixture', 'mix', 'master')
# Minutes of singing per task.
SUNG_MINUTES = 5


def decoded(path, channels):
    command = ['ffmpeg', '-nostdin', '-v', 'error', '-i', path, '-f', 's16le', '-ac', str(channels), '-ar', str(RATE), '-']
    return np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, np.int16).reshape(-1, channels)


def stored(work, kind, name, make):
    """Writes the array that `make` returns, unless it exists; returns its entry in the index, with the level of each second."""
    path = os.path.join(work, 'audio', f'{kind}-{name}.npy')
    if not os.path.exists(path):
        np.save(f'{path}.part.npy', make())
        os.replace(f'{path}.part.npy', path)
    pcm = np.load(path, mmap_mode='r')
    seconds = len(pcm) // RATE
    whole = pcm[:seconds * RATE].astype(np.float32).reshape(seconds, -1) / 32768
    return dict(name=name, path=os.path.abspath(path), frames=len(pcm), levels=[round(float(v), 6) for v in np.sqrt((whole ** 2).mean(1))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--data', required=True, help='folder with everything-is-free, voices and instrumental')
    parser.add_argument('--work', required=True, help='folder for what the recipe makes')
    parser.add_argument('--stems', action='append', default=[], help='folder of further songs in stems; may be given again')
    parser.add_argument('--sung-minutes', type=float, default=20, help='singing to make from the speech of the voices')
    parser.add_argument('--espeak-minutes', type=float, default=30, help='singing to make from the speech of espeak-ng')
    parser.add_argument('--arranged-minutes', type=float, default=60, help='music to make with fluidsynth')
    parser.add_argument('--synthesized-minutes', type=float, default=30, help='electronic music to make without samples')
    parser.add_argument('--processes', type=int, default=1)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    os.makedirs(os.path.join(options.work, 'audio'), exist_ok=True)
    index = dict(songs={}, voices=[], instrumental=[])
    for folder in sorted(glob.glob(os.path.join(options.data, 'everything-is-free', '*', ''))):
        song = os.path.basename(os.path.dirname(folder))
        index['songs'][song] = {
            stem: stored(options.work, 'song', f'{song}-{stem}', lambda: decoded(glob.glob(f'{folder}{stem}.*')[0], 2))
            for stem in ('vocals', 'accompaniments')
        }
    index['parts'] = parts_of(options.work, os.path.join(options.data, 'everything-is-free-stems'), index['songs'])
    for folder in options.stems:
        add_stems(index, options.work, folder)
    for path in sorted(glob.glob(os.path.join(options.data, 'instrumental', '*.*'))):
        index['instrumental'].append(stored(options.work, 'instrumental', os.path.basename(path).split('.')[0], lambda: decoded(path, 2)))
    spoken = []
    for path in sorted(glob.glob(os.path.join(options.data, 'voices', '*.*'))):
        name = os.path.basename(path).split('.')[0]
        is_speech = name.startswith(SPEECH)
        entry = stored(options.work, 'voice', name, lambda: decoded(path, 1))
        index['voices'].append(dict(entry, kind='speech' if is_speech else 'sung'))
        # No singing is made from sources on which networks are compared.
        if is_speech and name not in HELD_OUT:
            spoken.append((name, lambda path=entry['path']: np.load(path, mmap_mode='r')[:, 0]))
    with multiprocessing.Pool(options.processes) as pool:
        for name, read in spoken:
            add_singing(index, options, pool, name, read, options.sung_minutes / len(spoken))
        if options.espeak_minutes > 0:
            # Singing is about twice as long as its speech. 40 s a minute are more than needed, because phrases are drawn at random, some repeatedly.
            add_singing(index, options, pool, 'espeak', lambda: speech(options.espeak_minutes * 40, options.seed), options.espeak_minutes)
        add_pieces(index, options, pool, 'arrangements', arrangement, options.arranged_minutes)
        add_pieces(index, options, pool, 'synthesized', synthesized, options.synthesized_minutes)
    with open(os.path.join(options.work, 'index.json'), 'w') as file:
        json.dump(index, file)


def parts_of(work, folder, songs):
    """The single stems of the songs, voices (`vox` in their names) and music; each is named after its song, so that they are held out together."""
    parts = dict(voices=[], music=[])
    for path in sorted(path for song in songs for path in glob.glob(os.path.join(folder, song, '*.*'))):
        song, part = os.path.basename(os.path.dirname(path)), os.path.basename(path).split('.')[0]
        entry = stored(work, 'part', f'{song}-{part}', lambda: decoded(path, 2))
        parts['voices' if 'vox' in part else 'music'].append(dict(entry, name=song))
    return parts


def add_stems(index, work, folder):
    for song in sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()):
        stems = stems_of(os.path.join(folder, song))
        vocals = stems.pop('vocals', None)
        rest = next((stems[name] for name in ACCOMPANIMENTS if name in stems), None)
        rest = rest or [path for name, paths in stems.items() if name not in MIXTURES for path in paths]
        name = f'{os.path.basename(os.path.normpath(folder))}-{song}'
        if vocals and rest:
            paths = dict(vocals=vocals, accompaniments=rest)
            index['songs'][name] = {stem: stored(work, 'song', f'{name}-{stem}', lambda: summed(paths[stem])) for stem in paths}
        elif vocals:
            index['voices'].append(dict(stored(work, 'voice', name, lambda: summed(vocals, 1)), kind='sung'))
        elif rest:
            index['instrumental'].append(stored(work, 'instrumental', name, lambda: summed(rest)))


def stems_of(song):
    """Audio files of each stem: a file named after it as in MUSDB18-HQ, or a folder of parts as in MoisesDB."""
    stems = {}
    for entry in sorted(os.scandir(song), key=lambda each: each.name):
        paths = sorted(glob.glob(os.path.join(glob.escape(entry.path), '**', '*'), recursive=True)) if entry.is_dir() else [entry.path]
        paths = [path for path in paths if path.lower().endswith(AUDIO)]
        if paths:
            stems.setdefault((entry.name if entry.is_dir() else os.path.splitext(entry.name)[0]).lower(), []).extend(paths)
    return stems


def summed(paths, channels=2):
    stems = [decoded(path, channels) for path in paths]
    total = np.zeros((max(len(pcm) for pcm in stems), channels), np.int32)
    for pcm in stems:
        total[:len(pcm)] += pcm
    return np.clip(total, -32768, 32767).astype(np.int16)


def add_pieces(index, options, pool, name, piece, minutes):
    if minutes > 0:
        count = max(1, round(minutes * 60 / PIECE_SECONDS))
        tasks = [(PIECE_SECONDS, [options.seed, number]) for number in range(count)]
        index['instrumental'].append(stored(options.work, 'instrumental', name, lambda: np.concatenate(pool.starmap(piece, tasks))))


def add_singing(index, options, pool, name, read, minutes):
    parts = max(1, round(minutes / SUNG_MINUTES))

    def sung():
        pcm = read()
        return np.concatenate(pool.starmap(sung_from_speech, [(pcm, minutes * 60 / parts, [options.seed, part]) for part in range(parts)]))[:, None]

    if minutes > 0:
        index['voices'].append(dict(stored(options.work, 'voice', f'{name}-sung', sung), kind='made'))


if __name__ == '__main__':
    main()
