"""Where a model keeps its stem, its blocks and its final norm.

Most models need no entry here: their blocks are the one big list of alike modules, what enters the
first block is the embedding output, and the norm that takes the last block's output is final. The
table holds the families for which that reading is wrong, and why.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from isotest.errors import SourceError
from isotest.models.probe import neighbours
from isotest.models.select import channels_first, first, length_first, second

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor, nn


@dataclass(frozen=True)
class Place:
    """What is observed: a module's output or input, at one of its calls.

    Attributes:
        path: dotted path of the module.
        side: its output, or what enters it.
        call: which of its calls in one forward pass, from 0.
        calls: how often it runs in one.
    """

    path: str
    side: Literal["output", "input"] = "output"
    call: int = 0
    calls: int = 1


@dataclass(frozen=True)
class Stack:
    """A stem, blocks that follow each other, and a final norm: one curve, or a part of one.

    Attributes:
        stem: layer ``0``; ``None`` where it is yet to be found, or where nothing yields it.
        blocks: layers ``1`` … ``n``.
        final: the final norm (or top convolution); ``None`` where there is none.
        name: in front of its layers' names where a model has several stacks.
        stream: whose positions its layers have; ``""``: those of the model's only input.
        tokens: from raw output of three dimensions to (batch, length, width).
        maps: from raw output of four dimensions to (batch, channels, height, width).
    """

    stem: Place | None
    blocks: tuple[Place, ...]
    final: Place | None
    name: str = ""
    stream: str = ""
    tokens: Callable[[Any], Tensor] = first
    maps: Callable[[Any], Tensor] = first


@dataclass(frozen=True)
class Anatomy:
    """The parts of a model that are observed.

    Attributes:
        stacks: in forward order.
        positions: whether each position of a map is a representation, as in a transformer.
        made: streams whose valid positions the model makes itself, as in
            :attr:`isotest.models.loaded.LoadedModel.made`.
    """

    stacks: tuple[Stack, ...]
    positions: bool = False
    made: Mapping[str, tuple[str, Callable[[Any], Tensor]]] = field(default_factory=dict)


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
    stacks = tuple(_completed(stack, module, inputs, what) for stack in known.stacks)
    return replace(known, stacks=stacks)


def _completed(stack: Stack, module: nn.Module, inputs: Mapping[str, Tensor], what: str) -> Stack:
    """With the stem and the final norm that one forward pass shows."""
    if stack.stem is not None:
        return stack
    if not stack.blocks:
        raise SourceError(
            f"source {what!r}: no recognisable layers in {type(module).__name__} (no list of alike "
            "blocks); name the modules to observe in the suite entry, as in layers = "
            f"[{', '.join(map(repr, _callable(module)[:3]))}]"
        )
    paths = [block.path for block in stack.blocks]
    stem, final = neighbours(module, inputs, what, paths)
    # Where the stem is no module, or shared between stacks: what enters the first block.
    place = Place(paths[0], "input") if stem is None or stack.name else Place(stem)
    return replace(stack, stem=place, final=None if final is None else Place(final))


def outline(module: nn.Module) -> Anatomy:
    """What can be told without a forward pass: the table's entry, or merely the blocks, if any."""
    for cls in type(module).__mro__:
        # Subclasses share the layout of the class that is in the table.
        known = _FAMILIES.get(f"{cls.__module__.partition('.')[0]}.{cls.__name__}")
        if known is not None:
            return known(module)
    if getattr(getattr(module, "config", None), "is_encoder_decoder", False):
        halves = [
            Stack(None, places(blocks, half), None, name=half, stream=half)
            for half in ("encoder", "decoder")
            if (part := getattr(module, half, None)) is not None and (blocks := _repeated(part))
        ]
        if len(halves) == 2:
            return Anatomy(tuple(halves))
    return Anatomy((Stack(None, places(_repeated(module)), None),))


def places(paths: Sequence[str], below: str = "") -> tuple[Place, ...]:
    """The outputs of these modules."""
    return tuple(Place(f"{below}.{path}" if below else path) for path in paths)


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


def _callable(module: nn.Module) -> list[str]:
    """Paths of the children that run themselves; of a list, which never does, its members."""
    from torch import nn

    return [
        path
        for name, child in module.named_children()
        for path in (
            [f"{name}.{member}" for member, _ in child.named_children()]
            if isinstance(child, nn.ModuleList)
            else [name]
        )
    ]


def _children(module: nn.Module, path: str) -> tuple[Place, ...]:
    return places([f"{path}.{name}" for name, _ in module.get_submodule(path).named_children()])


def _one(
    stem: str,
    blocks: tuple[Place, ...],
    final: str | None,
    maps: Callable[[Any], Tensor] = first,
    *,
    positions: bool = False,
) -> Anatomy:
    """An anatomy of a single stack, whose parts run once."""
    last = None if final is None else Place(final)
    return Anatomy((Stack(Place(stem), blocks, last, maps=maps),), positions)


def _segformer(module: nn.Module) -> Anatomy:
    # The first stage does the patch embedding itself: its input is the image.
    if hasattr(module, "encoder"):  # as in transformers 5.0: three lists, a stage ends in its norm
        return _one(
            "encoder.patch_embeddings.0",
            _children(module, "encoder.layer_norm"),
            final=None,
            positions=True,
        )
    return _one(
        "stages.0.patch_embeddings", _children(module, "stages"), final=None, positions=True
    )


def _cvt(module: nn.Module) -> Anatomy:
    # As above. Its maps are flattened, as Godey et al. (2023) count it with the convolutions.
    return _one("encoder.stages.0.embedding", _children(module, "encoder.stages"), final=None)


def _van(module: nn.Module) -> Anatomy:
    # As above; transformers had it once, under the same names.
    return _one("encoder.stages.0.embeddings", _children(module, "encoder.stages"), final=None)


def _efficientnet(module: nn.Module) -> Anatomy:
    # The top convolution takes the place of a final norm.
    return _one("embeddings", _children(module, "encoder.blocks"), "encoder.top_activation")


def _timm_efficientnet(module: nn.Module) -> Anatomy:
    # Blocks are stages here, as in timm's own features; the top convolution's norm acts, too.
    return _one("bn1", _children(module, "blocks"), "bn2")


def _timm_resnet(module: nn.Module) -> Anatomy:
    # Stages are attributes, not a list; timm's own first feature is before the pooling.
    return _one("act1", places(["layer1", "layer2", "layer3", "layer4"]), final=None)


def _timm_swin(module: nn.Module) -> Anatomy:
    # Maps with their channels last, whose positions are the tokens.
    return _one(
        "patch_embed", _children(module, "layers"), "norm", maps=channels_first, positions=True
    )


def _albert(module: nn.Module) -> Anatomy:
    # Layers share their weights: a group of them runs for several layers in turn.
    config: Any = module.config
    share = config.num_hidden_layers / config.num_hidden_groups
    groups = [int(layer / share) for layer in range(config.num_hidden_layers)]
    blocks = tuple(
        Place(
            f"encoder.albert_layer_groups.{group}",
            call=groups[:layer].count(group),
            calls=groups.count(group),
        )
        for layer, group in enumerate(groups)
    )
    return Anatomy((Stack(Place("encoder.embedding_hidden_mapping_in"), blocks, None),))


def _xlnet(module: nn.Module) -> Anatomy:
    # Inside, the length comes before the batch.
    blocks = _children(module, "layer")
    return Anatomy((Stack(Place("layer.0", "input"), blocks, final=None, tokens=length_first),))


def _canine(module: nn.Module) -> Anatomy:
    # Characters, then a quarter as many molecules, then characters again: three lengths, three
    # stacks, under the names of Clark et al. (2022).
    return Anatomy(
        (
            Stack(
                Place("initial_char_encoder.layer.0", "input"),
                _children(module, "initial_char_encoder.layer"),
                None,
                name="characters",
                stream="characters",
            ),
            Stack(
                Place("chars_to_molecules"),
                _children(module, "encoder.layer"),
                None,
                name="molecules",
                stream="molecules",
            ),
            Stack(
                Place("projection"),
                _children(module, "final_char_encoder.layer"),
                None,
                name="upsampled",
                stream="characters",
            ),
        )
    )


def _wav2vec2(module: nn.Module) -> Anatomy:
    # The convolutions in front, each with its norm, are a list of alike modules, too.
    return Anatomy((Stack(None, _children(module, "encoder.layers"), None),))


def _manta(module: nn.Module) -> Anatomy:
    # The encoder reads blocks of bytes that the model cuts itself, and how many a text has, too.
    encoder = Stack(
        Place("pooling"),
        _children(module, "encoder.block"),
        Place("encoder.final_layer_norm"),
        name="encoder",
        stream="blocks",
    )
    decoder = Stack(
        Place("decoder.block.0", "input"),
        _children(module, "decoder.block"),
        Place("decoder.final_layer_norm"),
        name="decoder",
        stream="decoder",
    )
    return Anatomy((encoder, decoder), made={"blocks": ("pooling", second)})


_FAMILIES: Mapping[str, Callable[[nn.Module], Anatomy]] = {
    "transformers.SegformerModel": _segformer,
    "transformers.CvtModel": _cvt,
    "transformers.EfficientNetModel": _efficientnet,
    "transformers.AlbertModel": _albert,
    "transformers.XLNetModel": _xlnet,
    "transformers.CanineModel": _canine,
    "transformers.VanModel": _van,
    "transformers.Wav2Vec2Model": _wav2vec2,
    "transformers.HubertModel": _wav2vec2,
    "isotest.VanModel": _van,
    "isotest.MantaModel": _manta,
    "timm.EfficientNet": _timm_efficientnet,
    "timm.ResNet": _timm_resnet,
    "timm.SwinTransformer": _timm_swin,
    "timm.SwinTransformerV2": _timm_swin,
}
