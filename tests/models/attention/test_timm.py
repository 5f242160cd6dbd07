"""The attention of timm's models against the softmax that they compute when nothing is fused."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import timm
import torch
from timm.models.vision_transformer import ParallelScalingBlock
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from isotest.models.attention.call import AttentionCall, NotObservable
from isotest.models.attention.timm import _FUSED, _UNFUSED, TimmObserver, _arguments, observer
from tests.models.attention.witness import Seen, hooks, loaded, probabilities, watched
from tests.models.tiny import TIMM

if TYPE_CHECKING:
    from torch import Tensor, nn

VIT = TIMM["vit_tiny_patch16_224"]
SMALL = {"embed_dim": 24, "depth": 2, "num_heads": 2, "img_size": 64}
SWIN = {"depths": (2, 1), "embed_dim": 8, "num_heads": (1, 2), "img_size": 56, "patch_size": 4}
FOUR = {"embed_dims": (8, 8, 16, 16), "num_heads": (1, 1, 2, 2), "depths": (1, 1, 1, 1)}

# Name, arguments, and how many layers of attention there are.
MODELS: dict[str, tuple[str, dict[str, Any], int]] = {
    "vit": ("vit_tiny_patch16_224", VIT, 3),
    "vit with norms of queries and keys": ("vit_tiny_patch16_224", VIT | {"qk_norm": True}, 3),
    "vit in parallel": ("test_vit4", {"block_fn": ParallelScalingBlock} | SMALL, 2),
    "deit": ("deit_tiny_distilled_patch16_224", SMALL, 2),
    "beit": ("beit_base_patch16_224", SMALL, 2),
    "eva02, rotary": ("eva02_tiny_patch14_224", SMALL | {"img_size": 56}, 2),
    "dinov3, rotary": ("vit_small_patch16_dinov3", SMALL, 2),
    "rotary, in groups": (
        "vit_small_patch16_rope_224",
        SMALL | {"embed_dim": 32, "num_heads": 4, "num_kv_heads": 2, "qkv_fused": False},
        2,
    ),
    "swin": ("swin_tiny_patch4_window7_224", SWIN | {"window_size": 7}, 3),
    "swin, windows not filled": ("swin_tiny_patch4_window7_224", SWIN | {"window_size": 4}, 3),
    "swin v2": ("swinv2_tiny_window8_256", SWIN | {"img_size": 64, "window_size": 8}, 3),
    "swin v2, windows not filled": ("swinv2_tiny_window8_256", SWIN | {"window_size": 5}, 3),
    "relative positions": ("vit_relpos_small_patch16_224", SMALL, 2),
    "reduced keys": ("pvt_v2_b0", FOUR, 4),
    "convolutions first": (
        "fastvit_sa12",
        {"layers": (1, 1, 1, 1), "embed_dims": (8, 8, 8, 32)},
        1,
    ),
    "metaformer": ("caformer_s18", {}, 12),
    "grids": ("maxvit_rmlp_pico_rw_256", {"img_size": 64}, 22),
    "blocks": ("coatnet_pico_rw_224", {"img_size": 64}, 7),
    "mask units": ("hiera_tiny_224", {"embed_dim": 8, "num_heads": 1, "img_size": (64, 64)}, 12),
}


class Softmax(TorchFunctionMode):
    """Keeps what every softmax returns."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Tensor] = []

    def __torch_function__(
        self, function: Any, _types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        value = function(*args, **(kwargs or {}))
        if function in (torch.Tensor.softmax, functional.softmax):
            self.kept.append(value)
        return value


@cache
def model(name: str, **arguments: Any) -> nn.Module:
    torch.manual_seed(0)
    module: nn.Module = timm.create_model(name, num_classes=0, **arguments)
    with torch.no_grad():
        for parameter in module.parameters():
            # Also the biases that start at zero; and scores far from zero.
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return module.double()


def image(arguments: dict[str, Any]) -> Tensor:
    size = arguments.get("img_size", 64)
    height, width = (size, size) if isinstance(size, int) else size
    return torch.randn(2, 3, height, width, generator=torch.Generator().manual_seed(1)).double()


def fuse(module: nn.Module, fused: bool) -> None:
    for child in module.modules():
        if hasattr(child, "fused_attn"):
            setattr(child, "fused_attn", fused)  # noqa: B010 - a module, to mypy, holds tensors


def softmaxes(module: nn.Module, x: Tensor) -> list[Tensor]:
    fuse(module.eval(), False)
    softmax = Softmax()
    with torch.inference_mode(), softmax:
        module(x)
    return softmax.kept


def seen_of(module: nn.Module, x: Tensor, *, fused: bool) -> Seen:
    fuse(module, fused)
    seen = watched(module, {"x": x}, observer)
    for child in module.modules():
        assert getattr(child, "fused_attn", fused) is fused
    return seen


def calls_of(module: nn.Module, x: Tensor) -> list[AttentionCall]:
    return [call for calls in seen_of(module, x, fused=True).calls.values() for call in calls]


@pytest.mark.parametrize("kind", MODELS)
def test_equals_the_librarys_softmax(kind: str) -> None:
    name, arguments, layers = MODELS[kind]
    module, x = model(name, **arguments), image(arguments)
    expected = softmaxes(module, x)
    assert len(expected) == layers
    for fused in (True, False):
        seen = seen_of(module, x, fused=fused)
        assert not seen.unseen
        calls = [call for calls in seen.calls.values() for call in calls]
        assert len(calls) == len(seen.calls) == layers
        for call, probability in zip(calls, expected, strict=True):
            if probability.dim() == 5:
                probability = probability.transpose(1, 2).flatten(0, 1)
            torch.testing.assert_close(probabilities(call), probability, rtol=0, atol=1e-10)
            assert not call.cross
    # Rows of one image stand next to each other, and images do not mix.
    for call, alone in zip(calls, calls_of(module, x[:1]), strict=True):
        half = len(call.query) // 2
        torch.testing.assert_close(call.query[:half], alone.query, rtol=0, atol=1e-10)


def test_every_class_that_is_called_known_is_tested() -> None:
    tested = {
        f"{type(child).__module__}.{type(child).__qualname__}"
        for name, arguments, _ in MODELS.values()
        for child in model(name, **arguments).modules()
    }
    assert {*_FUSED, *_UNFUSED} <= tested


@pytest.mark.parametrize("kind", [kind for kind in MODELS if "not filled" in kind])
def test_what_fills_up_windows_is_no_query(kind: str) -> None:
    name, arguments, _ = MODELS[kind]
    module, x = model(name, **arguments), image(arguments)
    for path, calls in seen_of(module, x, fused=True).calls.items():
        (call,) = calls
        # The map of the second stage is a quarter of the first one's.
        side = x.shape[-1] // (4 if path.startswith("layers.0") else 8)
        assert call.queries is not None
        assert int(call.queries.sum()) == 2 * side**2
        # What fills up is zero, so its queries are the bias, all alike; those of the image differ.
        queries = call.query.transpose(1, 2)
        filled, real = queries[~call.queries], queries[call.queries]
        assert torch.equal(filled, filled[:1].expand_as(filled))
        assert not (real == filled[0]).flatten(1).all(1).any()


def test_shifted_windows_see_their_neighbours_only() -> None:
    name, arguments, _ = MODELS["swin"]
    seen = seen_of(model(name, **arguments), image(arguments), fused=True)
    unshifted, shifted = (seen.calls[f"layers.0.blocks.{n}.attn"][0] for n in (0, 1))
    assert unshifted.allowed is None
    # The map of 14×14 is shifted by 3: its first window of 7×7 is whole, the last one is four
    # pieces of 4 or 3 rows and columns, each of which sees itself.
    assert shifted.allowed is not None
    first, *_, last = shifted.allowed[:4, 0]
    assert bool(first.all())
    assert int(last.sum()) == sum((a * b) ** 2 for a in (4, 3) for b in (4, 3))
    assert shifted.bias is not None
    assert shifted.bias.min() > -10


UNKNOWN = {
    "attention over channels": ("xcit_nano_12_p16_224", {"img_size": 64}, "timm.models.xcit.XCA"),
    "talking heads": (
        "cait_xxs24_224",
        {"img_size": 64, "depth": 1},
        "timm.models.cait.TalkingHeadAttn",
    ),
    "a softmax of its own": ("levit_128s", {}, "timm.models.levit.Attention"),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_is_not_known_is_named(kind: str) -> None:
    name, arguments, cls = UNKNOWN[kind]
    module = model(name, **arguments)
    size = 224 if name == "levit_128s" else 64
    for fused in (True, False):
        seen = seen_of(module, torch.randn(2, 3, size, size).double(), fused=fused)
        assert not seen.calls
        assert any(f" {cls} " in reason for reason in seen.unseen.values())


def test_a_model_is_as_it_was_after_a_failure() -> None:
    module = model("vit_tiny_patch16_224", **VIT)
    fuse(module, False)

    def refuse(*_: Any) -> None:
        raise RuntimeError("stop")

    watching = TimmObserver().observed(loaded(module), refuse)
    with pytest.raises(RuntimeError, match="stop"), torch.inference_mode(), watching:
        module(image(VIT))
    assert hooks(module) == 0
    assert not any(getattr(child, "fused_attn", False) for child in module.modules())
    assert len(softmaxes(module, image(VIT))) == 3


def qk() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(2, 4, 5, 8, generator=generator), torch.randn(
        2, 2, 6, 8, generator=generator
    )


HIDDEN = torch.tensor([False, False, True, False, False, True])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"scale": 0.5},
        {"is_causal": True},
        {"attn_mask": ~HIDDEN.expand(5, 6)},
        {"attn_mask": ~HIDDEN.expand(2, 1, 1, 6)},
        {"attn_mask": torch.linspace(-3, 3, 120).view(1, 4, 5, 6)},
        {"attn_mask": torch.linspace(-3, 3, 30).view(5, 6).masked_fill(HIDDEN, -torch.inf)},
        {"attn_mask": torch.zeros(5, 6).masked_fill(HIDDEN, torch.finfo(torch.float32).min)},
    ],
)
def test_arguments_mean_what_torch_says(arguments: dict[str, Any]) -> None:
    query, key = qk()
    call = _arguments(query, key, key, enable_gqa=True, **arguments)
    assert isinstance(call, AttentionCall)
    assert call.bias is None or bool(call.bias.abs().max() <= 3)
    # With the unit vectors as values, the output is the probabilities.
    values = torch.eye(6).expand(2, 2, 6, 6)
    expected = functional.scaled_dot_product_attention(
        query, key, values, enable_gqa=True, **arguments
    )
    torch.testing.assert_close(probabilities(call), expected, rtol=0, atol=1e-6)


def test_heads_that_see_different_keys_are_named() -> None:
    query, key = qk()
    mask = torch.zeros(4, 5, 6)
    mask[1, :, 0] = -torch.inf
    found = _arguments(query, key, key, mask)
    assert isinstance(found, NotObservable)
    assert "heads" in found.reason
