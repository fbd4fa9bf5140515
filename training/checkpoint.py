"""Weights on disk: checkpoints of the recipe, and the weights inside a shipped graph."""
import os

import onnx
import onnx.numpy_helper
import torch

from network import Masks


def save(net, path):
    write(dict(settings=net.settings, weights={name: tensor.cpu() for name, tensor in net.state_dict().items()}), path)


def write(content, path):
    """Atomic: the file is complete or unchanged, even if the process is killed."""
    torch.save(content, f'{path}.part')
    os.replace(f'{path}.part', path)


def load(path, gate=None):
    """Loads a checkpoint (.pt), or the weights of a graph (.onnx), such as that of the package. With `gate`, a missing gate starts as the identity."""
    if path.endswith('.onnx'):
        return from_graph(path, gate is not False)
    saved = torch.load(path, map_location='cpu')
    net = Masks(**dict(saved['settings'], gate=saved['settings']['gate'] or bool(gate)))
    net.load_state_dict({**net.state_dict(), **saved['weights']})
    return net


def from_graph(path, gate):
    """A network without norms with the weights of a graph of export.py; a gate that the graph lacks starts as the identity."""
    graph = onnx.load(path).graph
    stored = {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy()) for tensor in graph.initializer}
    casts = {node.output[0]: node.input[0] for node in graph.node if node.op_type == 'Cast' and node.input[0] in stored}

    def value(name):
        return stored[casts.get(name, name)].float()

    def parameter(name):
        return next(tensor.float() for key, tensor in stored.items() if key.removesuffix('_h').endswith(f'.{name}') and tensor.dim() == 4)

    # Nodes come in the order in which the layers run. Trained layers have a bias; those that blur frames have none.
    learnt = [node for node in graph.node if node.op_type in ('Conv', 'ConvTranspose') and len(node.input) == 3]
    layers = [[value(name) for name in node.input[1:]] for node in learnt]
    net = Masks(norm='none', gate=gate)
    modules = in_order(net.unet)
    with torch.no_grad():
        net.unet.scale.copy_(parameter('scale'))
        net.unet.bias.copy_(parameter('bias'))
        if gate and len(layers) > len(modules):
            modules += [net.gate.inner[0], net.gate.inner[2], net.gate.outer]
            net.gate.bands.copy_(parameter('bands'))
        for module, (weight, bias) in zip(modules, layers):
            module.weight.copy_(weight)
            module.bias.copy_(bias)
    return net


def in_order(unet):
    convolutions = (torch.nn.Conv2d, torch.nn.ConvTranspose2d)

    def inside(*modules):
        return [layer for module in modules for layer in module.modules() if isinstance(layer, convolutions)]

    middle = unet.middle
    found = inside(*unet.down, middle.down, middle.inner, *middle.times, middle.outer, middle.up)
    for up, merge in zip(unet.up, unet.merge):
        found += inside(up, merge)
    return [*found, unet.head]
