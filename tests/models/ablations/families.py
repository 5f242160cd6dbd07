"""Tiny models of each family, with random weights, and batches with padding to feed them."""

from __future__ import annotations

from typing import Any

import torch
import transformers

_SIZES = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "intermediate_size": 24,
}
_TEXT = {**_SIZES, "vocab_size": 50}
_IMAGE = {**_SIZES, "image_size": 16, "patch_size": 4}
_CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", _TEXT),
    "roberta": ("Roberta", _TEXT),
    "xlm-roberta": ("XLMRoberta", _TEXT),
    "camembert": ("Camembert", _TEXT),
    "electra": ("Electra", {**_TEXT, "embedding_size": 16}),
    "albert": ("Albert", {**_TEXT, "embedding_size": 8}),
    "albert-groups": (
        "Albert",
        {**_TEXT, "embedding_size": 8, "num_hidden_groups": 3, "inner_group_num": 2},
    ),
    "xlnet": ("XLNet", {"d_model": 16, "n_layer": 3, "n_head": 2, "d_inner": 24, "vocab_size": 50}),
    "gpt2": (
        "GPT2",
        {
            "n_embd": 16,
            "n_layer": 3,
            "n_head": 2,
            "vocab_size": 50,
            "bos_token_id": 1,
            "eos_token_id": 1,
        },
    ),
    "llama": ("Llama", {**_TEXT, "num_key_value_heads": 1}),
    "mistral": ("Mistral", {**_TEXT, "num_key_value_heads": 1}),
    "qwen2": ("Qwen2", {**_TEXT, "num_key_value_heads": 2}),
    "vit": ("ViT", _IMAGE),
    "deit": ("DeiT", _IMAGE),
}
FAMILIES = tuple(_CONFIGS)


def model(family: str) -> Any:
    """A model in float64 and eval mode, in which no weight is at a special value."""
    name, config = _CONFIGS[family]
    module = getattr(transformers, f"{name}Model")(getattr(transformers, f"{name}Config")(**config))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return module.double().eval()


def batch(family: str) -> dict[str, torch.Tensor]:
    """Two images; or two texts, the second of which is shorter."""
    generator = torch.Generator().manual_seed(1)
    if family in ("vit", "deit"):
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=generator).double()}
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    return {
        "input_ids": torch.randint(5, 50, (2, 7), generator=generator),
        "attention_mask": mask,
    }


@torch.no_grad()
def states(module: Any, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """All hidden states, as the library collects them."""
    output = module(**inputs, output_hidden_states=True)
    return [*output.hidden_states, output.last_hidden_state]
