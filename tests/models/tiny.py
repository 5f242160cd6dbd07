"""Configurations small enough to run in milliseconds, one for each family of the suites."""

from __future__ import annotations

from typing import Any

VIT: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}

TRANSFORMERS: dict[str, dict[str, Any]] = {
    "vit": VIT,
    "deit": VIT,
    "beit": VIT,
    "segformer": {
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 2, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
    },
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 2, 1, 1]},
    "efficientnet": {"width_coefficient": 0.25, "hidden_dim": 320, "image_size": 64},
    "cvt": {"embed_dim": [8, 16, 32], "depth": [1, 2, 3], "num_heads": [1, 2, 2]},
    "convnext": {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "image_size": 64},
}

TIMM: dict[str, dict[str, Any]] = {
    "vit_tiny_patch16_224": {"depth": 3, "embed_dim": 24, "num_heads": 2, "img_size": 64},
    "deit_tiny_distilled_patch16_224": {
        "depth": 2,
        "embed_dim": 24,
        "num_heads": 2,
        "img_size": 64,
    },
    "beit_base_patch16_224": {"depth": 2, "embed_dim": 24, "num_heads": 2, "img_size": 64},
    "swin_tiny_patch4_window7_224": {
        "depths": (1, 1, 2, 1),
        "embed_dim": 12,
        "num_heads": (1, 2, 2, 2),
    },
    "resnet10t": {},
    "resnet18": {},
    "efficientnet_b0": {},
    "convnext_atto": {"depths": (1, 1, 2, 1), "dims": (8, 16, 24, 32)},
}
