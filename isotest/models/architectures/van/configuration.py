"""The configuration of a VAN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import PreTrainedConfig

if TYPE_CHECKING:
    from collections.abc import Sequence


class VanConfig(PreTrainedConfig):
    """The architecture of a VAN; the default is VAN-Base (VAN-B2 in the paper's later versions).

    Args:
        image_size: edge of the images it is trained on; the network takes any.
        num_channels: of an image.
        patch_sizes: kernel of each stage's patch embedding.
        strides: stride of each stage's patch embedding.
        hidden_sizes: channels of each stage.
        depths: blocks of each stage.
        mlp_ratios: hidden channels of the MLP as multiples of a stage's channels.
        hidden_act: activation after the first projections of attention and MLP.
        initializer_range: standard deviation of the classifier's weights.
        layer_norm_eps: of the norm at the end of a stage.
        layer_scale_init_value: what every λ is at first.
        drop_path_rate: stochastic depth of the last block; rises linearly from 0.
        dropout_rate: in the MLP.

    Raises:
        ValueError: the lists are not of one length.
    """

    model_type = "van"

    def __init__(
        self,
        image_size: int = 224,
        num_channels: int = 3,
        patch_sizes: Sequence[int] = (7, 3, 3, 3),
        strides: Sequence[int] = (4, 2, 2, 2),
        hidden_sizes: Sequence[int] = (64, 128, 320, 512),
        depths: Sequence[int] = (3, 3, 12, 3),
        mlp_ratios: Sequence[int] = (8, 8, 4, 4),
        hidden_act: str = "gelu",
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-6,
        layer_scale_init_value: float = 1e-2,
        drop_path_rate: float = 0.0,
        dropout_rate: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self.image_size = image_size
        self.num_channels = num_channels
        self.patch_sizes = list(patch_sizes)
        self.strides = list(strides)
        self.hidden_sizes = list(hidden_sizes)
        self.depths = list(depths)
        self.mlp_ratios = list(mlp_ratios)
        self.hidden_act = hidden_act
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        self.layer_scale_init_value = layer_scale_init_value
        self.drop_path_rate = drop_path_rate
        self.dropout_rate = dropout_rate
        lists = ("patch_sizes", "strides", "hidden_sizes", "depths", "mlp_ratios")
        lengths = {name: len(getattr(self, name)) for name in lists}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"expected one entry a stage in each list, found {lengths}")
        super().__init__(**kwargs)
