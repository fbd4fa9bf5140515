"""The pipeline of demucs with a network of the size and settings of htdemucs and random weights: python3 htdemucs.py <mixture> <folder> <threads>"""
import sys
from fractions import Fraction

import soundfile
import torch
from demucs.apply import apply_model
from demucs.htdemucs import HTDemucs

from measured import measured

mixture, folder, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(threads)
sources = ['drums', 'bass', 'other', 'vocals']
model = HTDemucs(sources, bottom_channels=512, segment=Fraction(39, 5)).eval()


def work():
    mix, rate = soundfile.read(mixture, dtype='float32')
    waves = torch.from_numpy(mix.T.copy())
    mean, deviation = waves.mean(), waves.mean(0).std()
    stems = apply_model(model, ((waves - mean) / deviation)[None], shifts=0, split=True, overlap=0.25)[0] * deviation + mean
    soundfile.write(f'{folder}/vocals.wav', stems[3].numpy().T, rate, 'FLOAT')
    soundfile.write(f'{folder}/no_vocals.wav', stems[:3].sum(0).numpy().T, rate, 'FLOAT')


measured(work)
