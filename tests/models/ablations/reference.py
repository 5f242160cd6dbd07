"""Blocks of six families with four switches, written out on copied weights, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from isotest.models.ablations import Ablation

Map = Callable[[Tensor], Tensor]


def attend(query: Tensor, key: Tensor, value: Tensor, allowed: Tensor, bias: Any = 0) -> Tensor:
    """Softmax attention of one sequence, (H, L, d) each; the outputs of all heads side by side."""
    scores = (query @ key.transpose(-1, -2) + bias) / math.sqrt(query.shape[-1])
    heads = scores.masked_fill(~allowed, -math.inf).softmax(-1) @ value
    outputs: Tensor = heads.transpose(0, 1).flatten(1)
    return outputs


def heads(x: Tensor, count: int) -> Tensor:
    split: Tensor = x.unflatten(-1, (count, -1)).transpose(0, 1)
    return split


def post_norm(
    x: Tensor, attention: Map, norm: Map, mlp: Map, mlp_norm: Map, switches: Ablation
) -> Tensor:
    y = attention(x)
    if switches.attention_skip:
        y = x + y
    if switches.layer_norm:
        y = norm(y)
    if not switches.mlp:
        return y
    z = mlp(y)
    if switches.mlp_skip:
        z = y + z
    return mlp_norm(z) if switches.layer_norm else z


def pre_norm(
    x: Tensor, attention: Map, norm: Map, mlp: Map, mlp_norm: Map, switches: Ablation
) -> Tensor:
    y = attention(norm(x) if switches.layer_norm else x)
    if switches.attention_skip:
        y = x + y
    if not switches.mlp:
        return y
    z = mlp(mlp_norm(y) if switches.layer_norm else y)
    return y + z if switches.mlp_skip else z


def layer_norm(module: Any) -> Map:
    def normalise(x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + module.eps).sqrt()
        output: Tensor = centred / scale * module.weight + module.bias
        return output

    return normalise


def rms_norm(module: Any) -> Map:
    def normalise(x: Tensor) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + module.variance_epsilon).sqrt()
        output: Tensor = x / scale * module.weight
        return output

    return normalise


def gelu(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def affine(module: Any) -> Map:
    return lambda x: x @ module.weight.T + (0 if module.bias is None else module.bias)


def chain(*maps: Map) -> Map:
    """One map after the other."""

    def through(x: Tensor) -> Tensor:
        for each in maps:
            x = each(x)
        return x

    return through


def bidirectional(valid: Tensor) -> Tensor:
    return valid.expand(len(valid), -1)


def causal(valid: Tensor) -> Tensor:
    return bidirectional(valid).tril()


def separate(query: Any, key: Any, value: Any, output: Any, count: int, allowed: Tensor) -> Map:
    """Attention whose queries, keys and values have matrices of their own."""

    def attention(x: Tensor) -> Tensor:
        q, k, v = (heads(affine(part)(x), count) for part in (query, key, value))
        return affine(output)(attend(q, k, v, allowed))

    return attention


def bert(model: Any, x: Tensor, valid: Tensor, switches: Ablation) -> Tensor:
    for layer in model.encoder.layer:
        own = layer.attention.self
        x = post_norm(
            x,
            separate(
                own.query, own.key, own.value, layer.attention.output.dense, 2, bidirectional(valid)
            ),
            layer_norm(layer.attention.output.LayerNorm),
            chain(affine(layer.intermediate.dense), gelu, affine(layer.output.dense)),
            layer_norm(layer.output.LayerNorm),
            switches,
        )
    return x


def albert(model: Any, x: Tensor, valid: Tensor, switches: Ablation) -> Tensor:
    layer = model.encoder.albert_layer_groups[0].albert_layers[0]
    own = layer.attention
    for _ in range(3):
        x = post_norm(
            x,
            separate(own.query, own.key, own.value, own.dense, 2, bidirectional(valid)),
            layer_norm(own.LayerNorm),
            chain(affine(layer.ffn), gelu_tanh, affine(layer.ffn_output)),
            layer_norm(layer.full_layer_layer_norm),
            switches,
        )
    return x


def xlnet(model: Any, x: Tensor, valid: Tensor, switches: Ablation) -> Tensor:
    length, width = x.shape
    # Padding still sees itself.
    allowed = bidirectional(valid) | torch.eye(length, dtype=torch.bool)
    distance = (torch.arange(length)[:, None] - torch.arange(length)).double()
    angles = distance[..., None] / 10000 ** (torch.arange(0, width, 2).double() / width)
    places = torch.cat([angles.sin(), angles.cos()], -1)
    for layer in model.layer:
        own = layer.rel_attn

        def attention(y: Tensor, own: Any = own) -> Tensor:
            q, k, v = (torch.einsum("ih,hnd->nid", y, part) for part in (own.q, own.k, own.v))
            r = torch.einsum("ijh,hnd->nijd", places, own.r)
            position = torch.einsum("nid,nijd->nij", q + own.r_r_bias[:, None], r)
            vectors = attend(q + own.r_w_bias[:, None], k, v, allowed, position)
            output: Tensor = vectors @ own.o.flatten(1).T
            return output

        x = post_norm(
            x,
            attention,
            layer_norm(own.layer_norm),
            chain(affine(layer.ff.layer_1), gelu, affine(layer.ff.layer_2)),
            layer_norm(layer.ff.layer_norm),
            switches,
        )
    return x


def gpt2(model: Any, x: Tensor, valid: Tensor, switches: Ablation) -> Tensor:
    def conv(module: Any) -> Map:
        return lambda y: y @ module.weight + module.bias

    for block in model.h:

        def attention(y: Tensor, own: Any = block.attn) -> Tensor:
            q, k, v = (heads(part, 2) for part in conv(own.c_attn)(y).chunk(3, -1))
            return conv(own.c_proj)(attend(q, k, v, causal(valid)))

        x = pre_norm(
            x,
            attention,
            layer_norm(block.ln_1),
            chain(conv(block.mlp.c_fc), gelu_tanh, conv(block.mlp.c_proj)),
            layer_norm(block.ln_2),
            switches,
        )
    return layer_norm(model.ln_f)(x)


def llama(model: Any, x: Tensor, valid: Tensor, switches: Ablation) -> Tensor:
    length = len(x)
    frequency = 1 / 10000 ** (torch.arange(0, 8, 2).double() / 8)
    turn = torch.polar(torch.ones(length, 4).double(), torch.arange(length)[:, None] * frequency)

    def rotated(y: Tensor) -> Tensor:
        """Entries i and i + 4 of a head are the parts of a complex number."""
        turned = torch.complex(y[..., :4], y[..., 4:]) * turn
        return torch.cat([turned.real, turned.imag], -1)

    for layer in model.layers:

        def attention(y: Tensor, own: Any = layer.self_attn) -> Tensor:
            query = rotated(heads(affine(own.q_proj)(y), 2))
            key = rotated(heads(affine(own.k_proj)(y), 1))
            value = heads(affine(own.v_proj)(y), 1)  # both heads of queries share it
            return affine(own.o_proj)(attend(query, key, value, causal(valid)))

        def mlp(y: Tensor, own: Any = layer.mlp) -> Tensor:
            gate = affine(own.gate_proj)(y)
            return affine(own.down_proj)(gate * gate.sigmoid() * affine(own.up_proj)(y))

        x = pre_norm(
            x,
            attention,
            rms_norm(layer.input_layernorm),
            mlp,
            rms_norm(layer.post_attention_layernorm),
            switches,
        )
    return rms_norm(model.norm)(x)


def vit(model: Any, x: Tensor, valid: Tensor, switches: Ablation) -> Tensor:
    for layer in model.layers:
        own = layer.attention
        x = pre_norm(
            x,
            separate(own.q_proj, own.k_proj, own.v_proj, own.o_proj, 2, bidirectional(valid)),
            layer_norm(layer.layernorm_before),
            chain(affine(layer.mlp.fc1), gelu, affine(layer.mlp.fc2)),
            layer_norm(layer.layernorm_after),
            switches,
        )
    return layer_norm(model.layernorm)(x)


REFERENCES = {
    "bert": bert,
    "albert": albert,
    "xlnet": xlnet,
    "gpt2": gpt2,
    "llama": llama,
    "vit": vit,
}
