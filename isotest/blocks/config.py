"""What a synthetic transformer block is made of: one switch or size a field."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from isotest.errors import BlockError
from isotest.source import did_you_mean

LayerNormPlace = Literal["post", "pre", "none"]
Normalisation = Literal["layernorm", "rmsnorm"]
Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]
Initialisation = Literal["bert", "xavier", "depth-scaled", "mup"]

_SIZES = ("width", "heads", "hidden", "depth")
_SWITCHES = ("attention", "attention_skip", "mlp", "mlp_skip", "causal", "bias", "gated")
_CHOICES: dict[str, tuple[str, ...]] = {
    "layer_norm": get_args(LayerNormPlace),
    "normalisation": get_args(Normalisation),
    "activation": get_args(Activation),
    "initialisation": get_args(Initialisation),
}


def _fault(text: str) -> BlockError:
    return BlockError(f"BlockConfig: {text}")


@dataclass(frozen=True)
class BlockConfig:
    """Sizes and switches of a block, or of a stack of equal blocks.

    The defaults are one layer of BERT-base (Devlin et al. 2019).

    Attributes:
        width: D, entries of a representation.
        heads: H; each works on D / H entries.
        hidden: width of the MLP's hidden layer.
        depth: blocks of a stack; a block by itself needs it only for "depth-scaled".
        attention: whether there is an attention sublayer. Without it, its skip and its
            normalisation are gone, too.
        attention_skip: whether the attention's input is added to its output.
        mlp: whether there is an MLP sublayer; as ``attention``.
        mlp_skip: whether the MLP's input is added to its output.
        layer_norm: where a normalisation is. "post": after each sublayer and its skip (Vaswani et
            al. 2017, BERT); "pre": in front of each sublayer, beside the skip (GPT-2, ViT, Llama);
            "none".
        causal: whether a position sees only itself and those before it.
        bias: whether linear maps add one.
        activation: of the MLP. "gelu" is x·Φ(x), "gelu_tanh" its approximation (Hendrycks & Gimpel
            2016), "silu" is x·σ(x).
        initialisation: how weights are drawn, see :mod:`isotest.blocks.initialisation`.
        layer_norm_eps: ε, added to the variance in LayerNorm, to the mean square in RMSNorm.
        normalisation: which one it is. "layernorm" is (x − x̄)/√(var(x) + ε)·γ + β (Ba et al.
            2016); "rmsnorm" is x/√(mean(x²) + ε)·γ (Zhang & Sennrich 2019), which takes no mean
            off and shifts nothing.
        gated: whether the MLP is output(activation(gate(x))·hidden(x)), entry by entry, in place of
            output(activation(hidden(x))) (Shazeer 2020; Llama).

    Raises:
        BlockError: a value that cannot be, naming the field.

    >>> BlockConfig(width=64, heads=4).head_width
    16
    >>> BlockConfig(width=64, heads=5)
    Traceback (most recent call last):
    isotest.errors.BlockError: BlockConfig: expected width to be a multiple of heads, ...
    """

    width: int = 768
    heads: int = 12
    hidden: int = 3072
    depth: int = 1
    attention: bool = True
    attention_skip: bool = True
    mlp: bool = True
    mlp_skip: bool = True
    layer_norm: LayerNormPlace = "post"
    causal: bool = False
    bias: bool = True
    activation: Activation = "gelu"
    initialisation: Initialisation = "bert"
    layer_norm_eps: float = 1e-12
    normalisation: Normalisation = "layernorm"
    gated: bool = False

    def __post_init__(self) -> None:
        for name in _SIZES:
            value: Any = getattr(self, name)
            if type(value) is not int or value < 1:
                raise _fault(f"expected {name} to be a whole number of at least 1, found {value!r}")
        for name in _SWITCHES:
            value = getattr(self, name)
            if type(value) is not bool:
                raise _fault(f"expected {name} to be true or false, found {value!r}")
        for name, known in _CHOICES.items():
            value = getattr(self, name)
            if value not in known:
                hint = did_you_mean(str(value), known)
                raise _fault(f"unknown {name} {value!r}{hint}")
        eps: Any = self.layer_norm_eps
        if type(eps) not in (int, float) or not (math.isfinite(eps) and eps > 0):
            raise _fault(f"expected layer_norm_eps to be a positive number, found {eps!r}")
        if self.width % self.heads:
            raise _fault(
                f"expected width to be a multiple of heads, found width = {self.width} and "
                f"heads = {self.heads}"
            )
        if not (self.attention or self.mlp):
            raise _fault(
                "attention and mlp are both false, so nothing is left; leave one of them on"
            )

    @property
    def head_width(self) -> int:
        """d_k = D / H, entries of a head's queries, keys and values."""
        return self.width // self.heads

    def to_dict(self) -> dict[str, Any]:
        """All fields by name: what makes profiles of two blocks comparable."""
        return asdict(self)

    @classmethod
    def bert(cls) -> BlockConfig:
        """A layer of BERT-base (Devlin et al. 2019)."""
        return cls()

    @classmethod
    def san(cls) -> BlockConfig:
        """Pure attention, as in the theory of rank collapse: no skip, MLP, bias or LayerNorm."""
        return cls(attention_skip=False, mlp=False, layer_norm="none", bias=False)

    @classmethod
    def vit(cls) -> BlockConfig:
        """A block of ViT-B (Dosovitskiy et al. 2021), which normalises first."""
        return cls(layer_norm="pre", layer_norm_eps=1e-6)

    @classmethod
    def modern(cls) -> BlockConfig:
        """A block as of Llama (Touvron et al. 2023), without its positions and its causal mask.

        It normalises first, by RMSNorm, its MLP is gated, and nothing has a bias. The hidden layer
        is two thirds as wide as BERT-base's, so that three maps have as many weights as two
        (Shazeer 2020, section 3).

        >>> config = BlockConfig.modern()
        >>> config.layer_norm, config.normalisation, config.activation, config.hidden
        ('pre', 'rmsnorm', 'silu', 2048)
        """
        return cls(
            hidden=2048,
            layer_norm="pre",
            bias=False,
            activation="silu",
            layer_norm_eps=1e-6,
            normalisation="rmsnorm",
            gated=True,
        )
