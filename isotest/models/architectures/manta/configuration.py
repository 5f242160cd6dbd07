"""The configuration of MANTa-LM, under the names and with the values of the public checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from transformers import LongformerConfig, PreTrainedConfig, T5Config

if TYPE_CHECKING:
    from collections.abc import Mapping


class MantaConfig(PreTrainedConfig):
    """MANTa-LM; the defaults are the ``config.json`` of ``almanach/manta-lm-base``.

    Args:
        vocab_size: ByT5's ids: 0 is padding, 1 the end, byte + 3, and the sentinels after them.
        byte_embedding_dim: width of everything before the blocks.
        frontier_predictor_num_layers: layers of local attention that look for frontiers.
        frontier_predictor_num_attention_heads: their heads.
        frontier_predictor_attention_window: bytes seen around each one, half on either side.
        pooling_variance_regularization: added to a block index's variance, which may be 0.
        pooling_kernel_size: width in bytes of the depthwise convolution.
        pooling_depthwise_convolution: always true; the field is the public configuration's.
        pooling_mean_pool: pool a block's bytes by their weighted mean instead of the maximum.
        pooling_spread: what twice of which divides the squared distance to a block. ``variance``
            is the paper's Gaussian. The public code divides by the ``deviation``, so that is what
            its checkpoints, whose files lack this field, are read with.
        max_length_inputs: the longest text, in bytes.
        max_length_encoder_decoder: the most blocks of a text; later ones are cut off.
        d_model: width of the blocks and of the decoder.
        d_kv: width of a head.
        d_ff: width of a feed-forward layer.
        num_layers: encoder blocks.
        num_decoder_layers: decoder blocks.
        num_heads: heads of both.
        relative_attention_num_buckets: T5's.
        relative_attention_max_distance: T5's.
        dropout_rate: everywhere.
        layer_norm_epsilon: T5's.
        initializer_factor: scales the initial weights.
        feed_forward_proj: ``gated-gelu`` as in T5 1.1 and ByT5, or ``relu``.
        is_encoder_decoder: it is.
        pad_token_id: ByT5's.
        eos_token_id: ByT5's.
        decoder_start_token_id: the padding.
        tie_word_embeddings: the head, which is not here, has weights of its own.

    Raises:
        ValueError: a convolution or a spread that no public checkpoint has.

    >>> MantaConfig().pooling_spread
    'variance'
    >>> MantaConfig.from_dict({"d_model": 512}).pooling_spread  # a public file
    'deviation'
    """

    model_type = "manta"
    attribute_map: ClassVar[dict[str, str]] = {
        "hidden_size": "d_model",
        "num_attention_heads": "num_heads",
        "num_hidden_layers": "num_layers",
        "head_dim": "d_kv",
    }

    def __init__(
        self,
        vocab_size: int = 384,
        byte_embedding_dim: int = 128,
        frontier_predictor_num_layers: int = 2,
        frontier_predictor_num_attention_heads: int = 8,
        frontier_predictor_attention_window: int = 16,
        pooling_variance_regularization: float = 1e-6,
        pooling_kernel_size: int = 3,
        pooling_depthwise_convolution: bool = True,
        pooling_mean_pool: bool = False,
        pooling_spread: Literal["variance", "deviation"] = "variance",
        max_length_inputs: int = 2048,
        max_length_encoder_decoder: int = 512,
        d_model: int = 768,
        d_kv: int = 64,
        d_ff: int = 3072,
        num_layers: int = 12,
        num_decoder_layers: int = 12,
        num_heads: int = 12,
        relative_attention_num_buckets: int = 32,
        relative_attention_max_distance: int = 128,
        dropout_rate: float = 0.1,
        layer_norm_epsilon: float = 1e-6,
        initializer_factor: float = 1.0,
        feed_forward_proj: str = "gated-gelu",
        is_encoder_decoder: bool = True,
        pad_token_id: int | None = 0,
        eos_token_id: int | list[int] | None = 1,
        decoder_start_token_id: int | None = 0,
        tie_word_embeddings: bool = False,
        **kwargs: Any,
    ) -> None:
        # No public configuration that says otherwise has a checkpoint.
        if not pooling_depthwise_convolution:
            raise ValueError("pooling_depthwise_convolution must be true: no other one is built")
        if pooling_kernel_size < 1:
            raise ValueError(f"pooling_kernel_size must be at least 1, not {pooling_kernel_size}")
        if pooling_spread not in ("variance", "deviation"):
            raise ValueError(
                f"pooling_spread must be 'variance' or 'deviation', not {pooling_spread!r}"
            )
        self.vocab_size = vocab_size
        self.byte_embedding_dim = byte_embedding_dim
        self.frontier_predictor_num_layers = frontier_predictor_num_layers
        self.frontier_predictor_num_attention_heads = frontier_predictor_num_attention_heads
        self.frontier_predictor_attention_window = frontier_predictor_attention_window
        self.pooling_variance_regularization = pooling_variance_regularization
        self.pooling_kernel_size = pooling_kernel_size
        self.pooling_depthwise_convolution = pooling_depthwise_convolution
        self.pooling_mean_pool = pooling_mean_pool
        self.pooling_spread = pooling_spread
        self.max_length_inputs = max_length_inputs
        self.max_length_encoder_decoder = max_length_encoder_decoder
        self.d_model = d_model
        self.d_kv = d_kv
        self.d_ff = d_ff
        self.num_layers = num_layers
        self.num_decoder_layers = num_decoder_layers
        self.num_heads = num_heads
        self.relative_attention_num_buckets = relative_attention_num_buckets
        self.relative_attention_max_distance = relative_attention_max_distance
        self.dropout_rate = dropout_rate
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_factor = initializer_factor
        self.feed_forward_proj = feed_forward_proj
        super().__init__(**kwargs)
        # Afterwards, since releases differ in which of these the base class knows, and overwrites.
        self.is_encoder_decoder = is_encoder_decoder
        self.pad_token_id = pad_token_id
        self.eos_token_id = eos_token_id
        self.decoder_start_token_id = decoder_start_token_id
        self.tie_word_embeddings = tie_word_embeddings

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any], **kwargs: Any) -> Any:
        """As transformers reads a ``config.json``; one without ``pooling_spread`` is public."""
        return super().from_dict({"pooling_spread": "deviation", **config_dict}, **kwargs)

    def frontier_predictor(self) -> LongformerConfig:
        """The local transformer; it sees byte embeddings, so its own vocabulary is empty."""
        window = self.frontier_predictor_attention_window
        return LongformerConfig(
            vocab_size=1,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=None,
            sep_token_id=None,
            hidden_size=self.byte_embedding_dim,
            intermediate_size=4 * self.byte_embedding_dim,
            num_hidden_layers=self.frontier_predictor_num_layers,
            num_attention_heads=self.frontier_predictor_num_attention_heads,
            attention_window=window,
            # Position 0 is padding; the rest covers the longest text in whole windows.
            max_position_embeddings=(self.max_length_inputs // window + 1) * window + 1,
            hidden_dropout_prob=self.dropout_rate,
            attention_probs_dropout_prob=self.dropout_rate,
        )

    def stack(self, *, decoder: bool) -> T5Config:
        """The encoder over blocks, or the decoder over bytes."""
        return T5Config(
            vocab_size=self.vocab_size,
            d_model=self.d_model,
            d_kv=self.d_kv,
            d_ff=self.d_ff,
            num_layers=self.num_decoder_layers if decoder else self.num_layers,
            num_heads=self.num_heads,
            relative_attention_num_buckets=self.relative_attention_num_buckets,
            relative_attention_max_distance=self.relative_attention_max_distance,
            dropout_rate=self.dropout_rate,
            layer_norm_epsilon=self.layer_norm_epsilon,
            initializer_factor=self.initializer_factor,
            feed_forward_proj=self.feed_forward_proj,
            pad_token_id=self.pad_token_id,
            eos_token_id=self.eos_token_id,
            is_decoder=decoder,
            is_encoder_decoder=False,
            use_cache=False,
            attn_implementation=self._attn_implementation,  # type: ignore[call-arg]
        )
