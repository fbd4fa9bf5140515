"""Decodes the audio that the recipe uses into 16-bit arrays and lists it in `<work>/index.json`; makes singing from speech.

    python3 prepare.py --data ../../shared/data --work work [--sung-minutes 20]
"""
import argparse
import glob
import json
import os
import subprocess

import numpy as np

from bands import RATE
from singing import sung_from_speech

# Quarter seconds of silence join the clips of a file.
SPEECH = ('librispeech', 'kerstin', 'nathalie')


def decoded(path, channels):
    command = ['ffmpeg', '-nostdin', '-v', 'error', '-i', path, '-f', 's16le', '-ac', str(channels), '-ar', str(RATE), '-']
    return np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, np.int16).reshape(-1, channels)


def stored(work, kind, name, pcm):
    """Writes the array; returns its entry in the index, with the level of each second."""
    path = os.path.join(work, 'audio', f'{kind}-{name}.npy')
    np.save(path, pcm)
    seconds = len(pcm) // RATE
    whole = pcm[:seconds * RATE].astype(np.float32).reshape(seconds, -1) / 32768
    return dict(name=name, path=os.path.abspath(path), frames=len(pcm), levels=[round(float(v), 6) for v in np.sqrt((whole ** 2).mean(1))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--data', required=True, help='folder with everything-is-free, voices and instrumental')
    parser.add_argument('--work', required=True, help='folder for what the recipe makes')
    parser.add_argument('--sung-minutes', type=float, default=20, help='singing to make from the speech of the voices')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    os.makedirs(os.path.join(options.work, 'audio'), exist_ok=True)
    index = dict(songs={}, voices=[], instrumental=[])
    for folder in sorted(glob.glob(os.path.join(options.data, 'everything-is-free', '*', ''))):
        song = os.path.basename(os.path.dirname(folder))
        index['songs'][song] = {
            stem: stored(options.work, 'song', f'{song}-{stem}', decoded(glob.glob(f'{folder}{stem}.*')[0], 2))
            for stem in ('vocals', 'accompaniments')
        }
    for path in sorted(glob.glob(os.path.join(options.data, 'instrumental', '*.*'))):
        index['instrumental'].append(stored(options.work, 'instrumental', os.path.basename(path).split('.')[0], decoded(path, 2)))
    for path in sorted(glob.glob(os.path.join(options.data, 'voices', '*.*'))):
        name = os.path.basename(path).split('.')[0]
        pcm = decoded(path, 1)
        is_speech = name.startswith(SPEECH)
        index['voices'].append(dict(stored(options.work, 'voice', name, pcm), kind='speech' if is_speech else 'sung'))
        if is_speech and options.sung_minutes > 0:
            sung = sung_from_speech(pcm[:, 0], options.sung_minutes * 60 / len(SPEECH), options.seed)
            index['voices'].append(dict(stored(options.work, 'voice', f'{name}-sung', sung[:, None]), kind='made'))
        print(name, flush=True)
    with open(os.path.join(options.work, 'index.json'), 'w') as file:
        json.dump(index, file)


if __name__ == '__main__':
    main()
