"""Checkpoint -> a folder with model.onnx (opset 16, weights as float16) and model.json, which `stemwork evaluate --model <folder>` takes.

    python3 export.py --net work/net.pt --out work/model [--name my-net --version 0.2.0]

The manifest is that of ../models/embedded, whose interface the graph has too, without the figures measured with those weights.
"""
import argparse
import hashlib
import inspect
import json
import os
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from bands import BANDS
from checkpoint import from_graph, load
from network import INAUDIBLE, Network, folded

EMBEDDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'models', 'embedded')
# Fields that belong to the weights in the package, not to the interface.
FIGURES = ('results', 'speed', 'reference', 'training', 'score')


def with_half_weights(model):
    """Stores large weights as float16 and casts them when the graph is loaded: half the size, the same speed."""
    kept, casts = [], []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size > 256:
            kept.append(numpy_helper.from_array(values.astype(np.float16), f'{tensor.name}_h'))
            casts.append(helper.make_node('Cast', [f'{tensor.name}_h'], [tensor.name], to=TensorProto.FLOAT, name=f'cast_{tensor.name}'))
        else:
            kept.append(tensor)
    nodes = list(model.graph.node)
    for field, values in (('initializer', kept), ('node', [*casts, *nodes])):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(values)
    onnx.checker.check_model(model)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--net', required=True, help='checkpoint (.pt), or graph (.onnx) to read back')
    parser.add_argument('--out', required=True, help='folder to write')
    parser.add_argument('--name', default='tiny-band-unet')
    parser.add_argument('--version', default='0.0.0')
    parser.add_argument('--lower', type=float, default=0, help='subtracted from the logits of the masks, so that less music is mistaken for a voice')
    options = parser.parse_args()
    torch.set_num_threads(1)
    # The exporter warns of intended constants; onnx.checker and `compare` below verify the result.
    warnings.simplefilter('ignore')
    os.makedirs(options.out, exist_ok=True)
    path = os.path.join(options.out, 'model.onnx')
    net = folded(load(options.net))
    net.lower(options.lower)
    powers = torch.rand(1, 4, 64, BANDS - INAUDIBLE, generator=torch.Generator().manual_seed(1)) ** 4
    frames = dict(powers={2: 'frames'}, masks={2: 'frames'})
    # The default exporter of newer versions needs another package and writes another opset.
    traced = dict(dynamo=False) if 'dynamo' in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(Network(net).eval(), powers, path, opset_version=16, input_names=['powers'], output_names=['masks'], dynamic_axes=frames, **traced)
    graph = onnx.load(path)
    # The exporter does not infer the output's dimensions: a batch of one, and the frames and bands of the input.
    for found, known in zip(graph.graph.output[0].type.tensor_type.shape.dim, graph.graph.input[0].type.tensor_type.shape.dim):
        if not found.dim_value:
            found.CopyFrom(known)
    onnx.save(with_half_weights(graph), path)
    compare(path, net, powers)
    with open(os.path.join(EMBEDDED, 'model.json')) as file:
        manifest = {key: value for key, value in json.load(file).items() if key not in FIGURES}
    with open(path, 'rb') as file:
        content = file.read()
    parameters = sum(weight.numel() for weight in net.parameters())
    manifest.update(name=options.name, version=options.version, bytes=len(content), sha256=hashlib.sha256(content).hexdigest(), parameters=parameters)
    with open(os.path.join(options.out, 'model.json'), 'w') as file:
        json.dump(manifest, file, indent=2)
    print(f'{path}: {len(content)} bytes, {parameters} parameters, sha256 {manifest["sha256"]}')


@torch.no_grad()
def compare(path, net, powers):
    """Checks that the weights read back from the graph give the network's output, up to float16 rounding."""
    expected = Network(net).eval()(powers)
    found = Network(from_graph(path, gate=net.settings['gate'])).eval()(powers)
    difference = float((expected - found).abs().max() / expected.abs().max())
    if difference > 5e-3:
        raise SystemExit(f'The weights in {path} differ from the checkpoint by {difference:.1e} of the peak.')


if __name__ == '__main__':
    main()
