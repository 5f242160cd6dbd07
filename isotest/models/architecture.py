"""What makes two models comparable, and what makes them the same: digests of a base model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor, nn

# Keys of a transformers configuration that don't decide what an observed layer computes in eval
# mode: bookkeeping, labels and losses of a head, the pooler, dropout, initialisation, outputs.
_NOT_COMPUTATION = re.compile(
    r"^(_.*|transformers_version|architectures|auto_map|(torch_)?dtype|name_or_path"
    r"|id2label|label2id|num_labels|problem_type|.*_loss_.*|semantic_.*|use_auxiliary_head|pooler_.*"
    r"|.*dropout.*|drop_.*|.*_drop_rate|layerdrop|initializer_.*|encoder_stride"
    r"|output_.*|return_dict|use_cache|out_features|out_indices|stage_names|use_mask_token"
    r"|chunk_size_feed_forward|gradient_checkpointing|tie_word_embeddings)$"
)


def architecture(module: nn.Module) -> dict[str, str]:
    """What a baseline is comparable with: ``class``, ``parameters``, ``config``.

    ``parameters`` digests the shapes of all parameters and buffers that a checkpoint holds, without
    their names: releases of transformers rename modules (``encoder.layer.0`` of a ViT in 5.0 is
    ``layers.0`` in 5.24), and a baseline has to outlive that. ``config`` digests what decides the
    computation. A head, its labels, dropout probabilities, paths, dtype
    and library versions are in neither, so that a fine-tuned checkpoint is comparable with the
    untrained model of its architecture.

    >>> from torch import nn
    >>> architecture(nn.Linear(2, 3)) == architecture(nn.Linear(2, 3))
    True
    >>> architecture(nn.Linear(2, 3)) == architecture(nn.Linear(3, 2))
    False
    """
    shapes = sorted(list(tensor.shape) for _, tensor in _state(module))
    return {
        "class": type(module).__name__,
        "parameters": _digest(shapes),
        "config": _digest(_computation(module)),
    }


def weights_fingerprint(module: nn.Module) -> str:
    """sha256 over all parameters and buffers in name order: names, shapes, dtypes, bytes.

    ``num_batches_tracked`` of batch norms counts training steps and changes no output: left out.

    >>> import torch
    >>> from torch import nn
    >>> from isotest.models.seeding import seeded
    >>> with seeded(0):
    ...     a = nn.Linear(2, 2)
    >>> with seeded(0):
    ...     b = nn.Linear(2, 2)
    >>> weights_fingerprint(a) == weights_fingerprint(b)
    True
    >>> with torch.no_grad():
    ...     _ = b.bias.add_(1e-7)
    >>> weights_fingerprint(a) == weights_fingerprint(b)
    False
    """
    state = [item for item in _state(module) if not item[0].endswith("num_batches_tracked")]
    # hashlib lets go of the interpreter lock, so the tensors are hashed side by side.
    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(lambda item: _bytes_digest(item[1]), state))
    return _digest(
        [
            [name, list(tensor.shape), str(tensor.dtype), digest]
            for (name, tensor), digest in zip(state, digests, strict=True)
        ]
    )


def _state(module: nn.Module) -> list[tuple[str, Tensor]]:
    """What a checkpoint holds, in name order; without the pooler, which no observed layer sees.

    Whether there is a pooler depends on the head class that a model was saved from.
    """
    import torch

    return sorted(
        (name, tensor)
        for name, tensor in module.state_dict().items()
        if isinstance(tensor, torch.Tensor) and not name.startswith("pooler.")
    )


def _computation(module: nn.Module) -> dict[str, Any]:
    config: Any = getattr(module, "config", None)
    if not hasattr(config, "to_dict"):
        return {}
    common: set[str] = set()
    if any(cls.__module__.startswith("transformers.") for cls in type(config).__mro__):
        from transformers import PreTrainedConfig

        # Every configuration of transformers has these: bookkeeping that comes and goes.
        common = set(PreTrainedConfig().to_dict()) - {"model_type"}
    return _decisive({key: value for key, value in config.to_dict().items() if key not in common})


def _decisive(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _decisive(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if not _NOT_COMPUTATION.match(str(key))
    }


def _bytes_digest(tensor: Tensor) -> str:
    import torch

    flat = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    buffer: Any = flat.numpy()
    return hashlib.sha256(buffer).hexdigest()


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
