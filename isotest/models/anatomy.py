"""Where a model keeps its stem, its blocks and its final norm.

Most models need no entry here: their blocks are the one big list of alike modules, what enters the
first block is the embedding output, and the norm that takes the last block's output is final. The
table holds the families for which that reading is wrong, and why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isotest.errors import SourceError
from isotest.models.probe import neighbours
from isotest.models.select import channels_first, first

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor, nn


@dataclass(frozen=True)
class Anatomy:
    """The parts of a model that are observed, as dotted paths.

    Attributes:
        stem: layer ``0``; ``None`` where no module yields what enters the first block.
        blocks: layers ``1`` … ``n``.
        final: the final norm (or top convolution); ``None`` where there is none.
        select: from the raw output of a four-dimensional layer to (batch, channels, h, w).
        positions: whether each position of a map is a representation, as in a transformer.
    """

    stem: str | None
    blocks: tuple[str, ...]
    final: str | None
    select: Callable[[Any], Tensor] = first
    positions: bool = False


def anatomy(module: nn.Module, inputs: Mapping[str, Tensor], what: str) -> Anatomy:
    """The anatomy of ``module``, from the table or by looking at one forward pass.

    Args:
        module: the base model, in eval mode.
        inputs: keyword inputs of one blank sample.
        what: the source as text, for messages.

    Raises:
        SourceError: no repeated blocks are recognisable, or the forward pass fails.
    """
    known = outline(module)
    if known.stem is not None:
        return known
    blocks = known.blocks
    if not blocks:
        raise SourceError(
            f"source {what!r}: no recognisable layers in {type(module).__name__} (no list of alike "
            "blocks); name the modules to observe in the suite entry, as in layers = "
            f"[{', '.join(repr(name) for name, _ in list(module.named_children())[:3])}]"
        )
    stem, final = neighbours(module, inputs, what, blocks[0], blocks[-1])
    return Anatomy(stem, blocks, final)


def outline(module: nn.Module) -> Anatomy:
    """What can be told without a forward pass: the table's entry, or merely the blocks, if any."""
    for cls in type(module).__mro__:
        # Subclasses share the layout of the class that is in the table.
        known = _FAMILIES.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
        if known is not None:
            return known(module)
    return Anatomy(None, _repeated(module), None)


def _repeated(module: nn.Module) -> tuple[str, ...]:
    """The children of the list of alike modules that holds the most parameters."""
    from torch import nn

    best: tuple[int, tuple[str, ...]] = (0, ())
    for path, child in module.named_modules():
        if not path or not isinstance(child, nn.ModuleList | nn.Sequential):
            continue
        members = list(child.named_children())
        # A lone member is a block if it has parts; a chain of bare Linears is one, not several.
        alike = len({type(member) for _, member in members}) == 1
        if not alike or not any(True for _ in members[0][1].children()):
            continue
        size = sum(parameter.numel() for parameter in child.parameters())
        if size > best[0]:
            best = (size, tuple(f"{path}.{name}" for name, _ in members))
    return best[1]


def _children(module: nn.Module, path: str) -> tuple[str, ...]:
    return tuple(f"{path}.{name}" for name, _ in module.get_submodule(path).named_children())


def _segformer(module: nn.Module) -> Anatomy:
    # The first stage does the patch embedding itself: its input is the image.
    if hasattr(module, "encoder"):  # as in transformers 5.0: three lists, a stage ends in its norm
        return Anatomy(
            "encoder.patch_embeddings.0",
            _children(module, "encoder.layer_norm"),
            final=None,
            positions=True,
        )
    return Anatomy(
        "stages.0.patch_embeddings", _children(module, "stages"), final=None, positions=True
    )


def _cvt(module: nn.Module) -> Anatomy:
    # As above. Its maps are flattened, as Godey et al. (2023) count it with the convolutions.
    return Anatomy("encoder.stages.0.embedding", _children(module, "encoder.stages"), final=None)


def _efficientnet(module: nn.Module) -> Anatomy:
    # The top convolution takes the place of a final norm.
    return Anatomy("embeddings", _children(module, "encoder.blocks"), "encoder.top_activation")


def _timm_efficientnet(module: nn.Module) -> Anatomy:
    # Blocks are stages here, as in timm's own features; the top convolution's norm acts, too.
    return Anatomy("bn1", _children(module, "blocks"), "bn2")


def _timm_resnet(module: nn.Module) -> Anatomy:
    # Stages are attributes, not a list; timm's own first feature is before the pooling.
    return Anatomy("act1", ("layer1", "layer2", "layer3", "layer4"), final=None)


def _timm_swin(module: nn.Module) -> Anatomy:
    # Maps with their channels last, whose positions are the tokens.
    return Anatomy(
        "patch_embed", _children(module, "layers"), "norm", select=channels_first, positions=True
    )


_FAMILIES: Mapping[str, Callable[[nn.Module], Anatomy]] = {
    "transformers.SegformerModel": _segformer,
    "transformers.CvtModel": _cvt,
    "transformers.EfficientNetModel": _efficientnet,
    "timm.EfficientNet": _timm_efficientnet,
    "timm.ResNet": _timm_resnet,
    "timm.SwinTransformer": _timm_swin,
    "timm.SwinTransformerV2": _timm_swin,
}
