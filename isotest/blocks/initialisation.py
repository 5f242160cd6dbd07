"""How the weights of a block are drawn.

Biases are 0, the weights of LayerNorm and RMSNorm 1, in every scheme. A weight matrix (fan_in
inputs, fan_out outputs) is drawn with mean 0 and the standard deviation σ:

==============  ========  =======================================================================
scheme          shape     σ
==============  ========  =======================================================================
bert            normal    0.02 (Devlin et al. 2019, as transformers draws it; the authors' code
                          cuts the normal distribution off at 2σ)
xavier          uniform   √(2 / (fan_in + fan_out)) (Glorot & Bengio 2010, equation 16)
depth-scaled    normal    0.02, and 0.02/√N for the last map of each sublayer with a skip, of which
                          the stack has N (Radford et al. 2019, section 2.3: GPT-2)
mup             normal    0.02·√(base / fan_in), base being BERT-base's fan_in, and for queries
                          times √(64 / d_k) (Yang et al. 2021, table 8: µP)
==============  ========  =======================================================================

µP divides scores by d_k in place of √d_k. Here that factor is in the queries' weights: an untrained
block computes the same, and at BERT-base's size, the base, it is "bert". Of µP only the
initialisation is here, not its learning rates. The gate of a gated MLP has
the sizes of its hidden map, and the same σ.

Each matrix is drawn by a generator of its own, from the seed, the block's number and the matrix's
name. So the weights depend on nothing else: not on torch's global generator, which is left as it
is, and not on which other parts a block has. To switch the MLP off leaves the attention's weights
as they are.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from isotest.blocks.config import BlockConfig

STD = 0.02
"""Of BERT's and GPT-2's weights."""

_LAST = {"attention.output": "attention", "mlp.output": "mlp"}
"""The last map of each sublayer."""

_BASE = {"width": 768, "hidden": 3072, "head_width": 64}
"""µP's base shape: BERT-base, for which the standard deviation 0.02 is made."""


def initialise(block: nn.Module, config: BlockConfig, *, seed: int, number: int = 0) -> None:
    """Set all parameters of a block, in place.

    Args:
        block: its linear maps are drawn, by their dotted names below it; normalisations are reset.
        config: names the scheme and the sizes.
        seed: any whole number.
        number: which block of a stack it is.
    """
    with torch.no_grad():
        for name, part in block.named_modules():
            if isinstance(part, nn.LayerNorm | nn.RMSNorm):
                part.reset_parameters()
            elif isinstance(part, nn.Linear):
                generator = torch.Generator().manual_seed(_seed_of(seed, number, name))
                # In float32 on the CPU, whatever the block is: the same numbers everywhere.
                drawn = torch.empty(part.weight.shape, dtype=torch.float32)
                sigma = standard_deviation(config, name)
                if config.initialisation == "xavier":
                    # A uniform distribution on ±a has the standard deviation a/√3.
                    bound = math.sqrt(3) * sigma
                    drawn.uniform_(-bound, bound, generator=generator)
                else:
                    drawn.normal_(0.0, sigma, generator=generator)
                part.weight.copy_(drawn)
                if part.bias is not None:
                    part.bias.zero_()


def standard_deviation(config: BlockConfig, name: str) -> float:
    """σ of a weight matrix, as in the table above.

    Args:
        config: names the scheme and the sizes.
        name: of the linear map, such as ``"attention.query"`` or ``"mlp.output"``.

    >>> from isotest.blocks import BlockConfig
    >>> standard_deviation(BlockConfig(initialisation="depth-scaled", depth=8), "mlp.output")
    0.005
    """
    fan_in = config.hidden if name == "mlp.output" else config.width
    fan_out = config.hidden if name in ("mlp.hidden", "mlp.gate") else config.width
    match config.initialisation:
        case "bert":
            return STD
        case "xavier":
            return math.sqrt(2 / (fan_in + fan_out))
        case "depth-scaled":
            skips = {
                "attention": config.attention and config.attention_skip,
                "mlp": config.mlp and config.mlp_skip,
            }
            residual = name in _LAST and skips[_LAST[name]]
            return STD / math.sqrt(config.depth * sum(skips.values())) if residual else STD
        case "mup":
            base = _BASE["hidden" if name == "mlp.output" else "width"]
            sigma = STD * math.sqrt(base / fan_in)
            if name == "attention.query":
                sigma *= math.sqrt(_BASE["head_width"] / config.head_width)
            return sigma


def _seed_of(seed: int, number: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed} {number} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
