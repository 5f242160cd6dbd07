"""VAN as models of transformers: the network and the network with a classifier."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import (
    BaseModelOutputWithPoolingAndNoAttention,
    ImageClassifierOutputWithNoAttention,
)

from isotest.models.architectures.van.configuration import VanConfig
from isotest.models.architectures.van.stages import LayerScale, VanEncoder


class VanPreTrainedModel(PreTrainedModel):
    """What a VAN has in common with its classifier: names and initial weights."""

    config_class = VanConfig
    base_model_prefix = "van"
    main_input_name = "pixel_values"
    input_modalities = "image"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As the authors' code: convolutions by their fan-out, N(0, 2 / fan-out)."""
        if isinstance(module, nn.Conv2d):
            fan_out = math.prod(module.kernel_size) * module.out_channels // module.groups
            init.normal_(module.weight, std=math.sqrt(2.0 / fan_out))
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            init.trunc_normal_(module.weight, std=self.config.initializer_range)
            init.zeros_(module.bias)
        elif isinstance(module, LayerScale):
            init.constant_(module.weight, self.config.layer_scale_init_value)
        else:
            super()._init_weights(module)  # type: ignore[no-untyped-call]


class VanModel(VanPreTrainedModel):
    """The stages, and the mean over the positions of the last one's map.

    ``hidden_states`` holds one (batch, channels, height, width) map a stage; there is no entry for
    the embedding of the image, which is the first part of the first stage.
    """

    def __init__(self, config: VanConfig) -> None:
        super().__init__(config)
        self.encoder = VanEncoder(config)
        # Published checkpoints hold this norm, and nothing ever read it: the last stage has its
        # own. It is here so that what they hold and what is built are the same.
        self.layernorm = nn.LayerNorm(config.hidden_sizes[-1], eps=config.layer_norm_eps)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        pixel_values: Tensor,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> BaseModelOutputWithPoolingAndNoAttention | tuple[Any, ...]:
        """One forward pass.

        Args:
            pixel_values: (batch, channels, height, width).
            output_hidden_states: whether to return each stage's map.
            return_dict: whether to return named outputs; the configuration's choice by default.
        """
        maps = self.encoder(pixel_values)
        wanted = _choice(output_hidden_states, self.config.output_hidden_states)
        output = BaseModelOutputWithPoolingAndNoAttention(
            last_hidden_state=maps[-1],
            pooler_output=maps[-1].mean(dim=(-2, -1)),
            hidden_states=tuple(maps) if wanted else None,
        )
        return output if _choice(return_dict, self.config.return_dict) else output.to_tuple()


class VanForImageClassification(VanPreTrainedModel):
    """A VAN with a linear classifier on the pooled map."""

    def __init__(self, config: VanConfig) -> None:
        super().__init__(config)
        self.van = VanModel(config)
        self.classifier = nn.Linear(config.hidden_sizes[-1], config.num_labels or 0)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        pixel_values: Tensor,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> ImageClassifierOutputWithNoAttention | tuple[Any, ...]:
        """One forward pass.

        Args:
            pixel_values: (batch, channels, height, width).
            labels: (batch,), for a loss.
            output_hidden_states: whether to return each stage's map.
            return_dict: whether to return named outputs; the configuration's choice by default.
        """
        features = self.van(pixel_values, output_hidden_states, return_dict=True)
        logits = self.classifier(features.pooler_output)
        output = ImageClassifierOutputWithNoAttention(
            loss=None
            if labels is None
            else self.loss_function(labels=labels, pooled_logits=logits, config=self.config),
            logits=logits,
            hidden_states=features.hidden_states,
        )
        return output if _choice(return_dict, self.config.return_dict) else output.to_tuple()


def _choice(asked: bool | None, configured: bool | None) -> bool:
    return bool(configured if asked is None else asked)
