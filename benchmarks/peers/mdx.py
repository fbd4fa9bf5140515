"""The pipeline of audio-separator for MDX networks: python3 mdx.py <mixture> <folder> <threads> <network>

What the separator reads from the file of a model and from its command line is set here; the rest is its own.
"""
import logging
import sys
import types

import numpy
import onnxruntime
import soundfile
import torch

from measured import measured

# Its module imports a converter that is used for other networks only.
sys.modules.setdefault('onnx2torch', types.ModuleType('onnx2torch'))
from audio_separator.separator.architectures.mdx_separator import MDXSeparator  # noqa: E402

mixture, folder, threads, network = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
torch.set_num_threads(threads)
own = MDXSeparator.__new__(MDXSeparator)
own.logger, own.torch_device = logging.getLogger('peer'), torch.device('cpu')
own.n_fft, own.hop_length, own.segment_size, own.dim_f = 7680, 1024, 256, 3072
own.overlap, own.batch_size, own.enable_denoise, own.compensate = 0.25, 1, False, 1.0
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(network, options, providers=['CPUExecutionProvider'])
own.model_run = lambda spectrum: session.run(None, {session.get_inputs()[0].name: spectrum.cpu().numpy()})[0]


def work():
    mix, rate = soundfile.read(mixture, dtype='float32')
    primary = numpy.asarray(own.demix(mix.T.copy())).reshape(2, -1).T.astype('float32')
    soundfile.write(f'{folder}/primary.wav', primary, rate, 'FLOAT')
    soundfile.write(f'{folder}/secondary.wav', mix - primary, rate, 'FLOAT')


measured(work)
