"""The configuration of a CharacterBERT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import PreTrainedConfig

from isotest.models.architectures.character_bert.words import WORD_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

# ELMo's: width of the filter, number of filters.
_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

# In published configurations, of parts that are not in the base model: the head that predicts
# words, and the table of word pieces.
_ELSEWHERE = ("mlm_vocab_size", "vocab_size", "pad_token_id")


class CharacterBertConfig(PreTrainedConfig):
    """The architecture of a CharacterBERT; the default is the published base model.

    Args:
        character_embeddings_dim: width of a character's embedding.
        cnn_activation: after the maximum over a word's positions.
        cnn_filters: width and number of the filters of each convolution.
        num_highway_layers: between the filters and the projection to ``hidden_size``.
        max_word_length: ids of a word.
        hidden_size: as in BERT, and so are those that follow.
        num_hidden_layers: blocks.
        num_attention_heads: of a block.
        intermediate_size: width of a block's MLP.
        hidden_act: activation of a block's MLP.
        hidden_dropout_prob: in training.
        attention_probs_dropout_prob: in training.
        max_position_embeddings: most words of a sequence.
        type_vocab_size: kinds of segments.
        initializer_range: standard deviation of initial weights.
        layer_norm_eps: of every layer norm.
    """

    model_type = "character_bert"
    # Asked for by BERT's parts; neither a decoder nor cross-attention was ever built on characters.
    is_decoder = False
    add_cross_attention = False

    def __init__(
        self,
        character_embeddings_dim: int = 16,
        cnn_activation: str = "relu",
        cnn_filters: Sequence[Sequence[int]] = _FILTERS,
        num_highway_layers: int = 2,
        max_word_length: int = WORD_LENGTH,
        hidden_size: int = 768,
        num_hidden_layers: int = 12,
        num_attention_heads: int = 12,
        intermediate_size: int = 3072,
        hidden_act: str = "gelu",
        hidden_dropout_prob: float = 0.1,
        attention_probs_dropout_prob: float = 0.1,
        max_position_embeddings: int = 512,
        type_vocab_size: int = 2,
        initializer_range: float = 0.02,
        layer_norm_eps: float = 1e-12,
        **kwargs: Any,
    ) -> None:
        for key in _ELSEWHERE:
            kwargs.pop(key, None)
        self.character_embeddings_dim = character_embeddings_dim
        self.cnn_activation = cnn_activation
        self.cnn_filters = [list(filters) for filters in cnn_filters]
        self.num_highway_layers = num_highway_layers
        self.max_word_length = max_word_length
        self.hidden_size = hidden_size
        self.num_hidden_layers = num_hidden_layers
        self.num_attention_heads = num_attention_heads
        self.intermediate_size = intermediate_size
        self.hidden_act = hidden_act
        self.hidden_dropout_prob = hidden_dropout_prob
        self.attention_probs_dropout_prob = attention_probs_dropout_prob
        self.max_position_embeddings = max_position_embeddings
        self.type_vocab_size = type_vocab_size
        self.initializer_range = initializer_range
        self.layer_norm_eps = layer_norm_eps
        super().__init__(**kwargs)
