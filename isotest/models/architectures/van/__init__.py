"""VAN, the visual attention network of Guo et al. (2022), https://arxiv.org/abs/2202.09741.

Four stages; each halves the resolution (the first divides it by four) with an overlapping patch
embedding, runs L blocks and ends in a layer norm over the channels. A block is

    x ← x + λ₁ ⊙ attention(BN(x))
    x ← x + λ₂ ⊙ mlp(BN(x))

with learnt λ per channel. Names of modules, spelling included, are those of transformers' former
``VanModel``, so that the checkpoints published under ``Visual-Attention-Network/van-*`` load.
"""

from isotest.models.architectures.van.configuration import VanConfig
from isotest.models.architectures.van.model import VanForImageClassification, VanModel

__all__ = ["VanConfig", "VanForImageClassification", "VanModel"]
