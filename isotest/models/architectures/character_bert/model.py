"""CharacterBERT of El Boukkouri et al. (2020), https://aclanthology.org/2020.coling-main.609.

BERT whose word pieces are replaced by whole words: ELMo's character network makes a word's vector
out of its characters, and everything behind it is BERT's, transformers' own code included. Names
of parameters are those of the checkpoints published under ``helboukkouri/character-bert``, which
have them as they are or below ``character_bert.``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.models.bert.modeling_bert import (
    BertEncoder,
    BertModel,
    BertPooler,
    BertPreTrainedModel,
)

from isotest.models.architectures.character_bert.words import (
    CHARACTER_PADDING,
    CHARACTERS,
    WORD_LENGTH,
)

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


class Highway(nn.Module):
    """Highway layers (Srivastava et al. 2015): each carries a part of its input through.

    With (a, b) the two halves of one linear map of x, and g = σ(b): y = g ⊙ x + (1 − g) ⊙ relu(a).
    """

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self._layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to the same."""
        for layer in self._layers:
            transformed, gate = layer(x).chunk(2, dim=-1)
            x = torch.lerp(functional.relu(transformed), x, torch.sigmoid(gate))
        return x


class CharacterCnn(nn.Module):
    """ELMo's character network (Peters et al. 2018), which makes one vector of a word.

    Character embeddings, convolutions of several widths, the maximum over positions, activation,
    highway layers and a projection.
    """

    def __init__(self, config: CharacterBertConfig) -> None:
        super().__init__()
        self.word_length = config.max_word_length
        width = config.character_embeddings_dim
        self._char_embedding_weights = nn.Parameter(torch.empty(CHARACTERS, width))
        for k, (length, filters) in enumerate(config.cnn_filters):
            self.add_module(f"char_conv_{k}", nn.Conv1d(width, filters, length))
        self.activation = ACT2FN[config.cnn_activation]
        total = sum(filters for _, filters in config.cnn_filters)
        self._highways = Highway(total, config.num_highway_layers)
        self._projection = nn.Linear(total, config.hidden_size)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Character ids (batch, length, characters) to words' vectors (batch, length, width).

        Raises:
            ValueError: ids of another shape.
        """
        if input_ids.dim() != 3 or input_ids.shape[-1] != self.word_length:
            raise ValueError(
                f"expected character ids of shape (batch, words, {self.word_length}), found "
                f"{tuple(input_ids.shape)}"
            )
        characters = functional.embedding(input_ids.flatten(0, 1), self._char_embedding_weights)
        signal = characters.transpose(1, 2)
        strongest = [
            convolution(signal).amax(dim=-1)
            for convolution in self.children()
            if isinstance(convolution, nn.Conv1d)
        ]
        features = self._highways(self.activation(torch.cat(strongest, dim=-1)))
        words: Tensor = self._projection(features).unflatten(0, input_ids.shape[:2])
        return words


class CharacterBertEmbeddings(nn.Module):
    """BERT's embeddings with the character network in the place of the table of word pieces."""

    def __init__(self, config: CharacterBertConfig) -> None:
        super().__init__()
        self.word_embeddings = CharacterCnn(config)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **_: Any,
    ) -> Tensor:
        """The input of the first block, (batch, length, width).

        Args:
            input_ids: character ids, (batch, length, characters).
            token_type_ids: (batch, length); all 0 by default.
            position_ids: (batch or 1, length); 0, 1, … by default.
            inputs_embeds: words' vectors instead of ``input_ids``, (batch, length, width).
            _: what BERT passes for its cache, which an encoder has none of.
        """
        words: Tensor = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if position_ids is None:
            position_ids = torch.arange(words.shape[1], device=words.device).unsqueeze(0)
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(position_ids)
        placed = (
            words
            + self.token_type_embeddings(token_type_ids)
            + self.position_embeddings(position_ids)
        )
        embedded: Tensor = self.dropout(self.LayerNorm(placed))
        return embedded


class CharacterBertModel(BertModel):
    """BERT over the vectors of words: masks, blocks, pooler and outputs are ``BertModel``'s."""

    config_class = CharacterBertConfig
    base_model_prefix = "character_bert"
    # A buffer that checkpoints of earlier releases of transformers hold: 0, 1, …
    _keys_to_ignore_on_load_unexpected = [r"embeddings\.position_ids$"]  # noqa: RUF012
    _no_split_modules = ["CharacterBertEmbeddings", "BertLayer"]  # noqa: RUF012

    def __init__(self, config: CharacterBertConfig, add_pooling_layer: bool = True) -> None:
        # Not BertModel's, which would build a table of word pieces to be thrown away.
        BertPreTrainedModel.__init__(self, config)
        self.embeddings = CharacterBertEmbeddings(config)  # type: ignore[assignment]
        self.encoder = BertEncoder(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.gradient_checkpointing = False
        self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As the authors' code: BERT's, torch's own for convolutions, N(0, 1) for characters."""
        if isinstance(module, nn.Conv1d):
            bound = 1 / math.sqrt(module.in_channels * module.kernel_size[0])
            init.uniform_(module.weight, -bound, bound)
            init.uniform_(cast("Tensor", module.bias), -bound, bound)
            return
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, CharacterCnn):
            characters = torch.randn_like(module._char_embedding_weights)
            characters[[0, CHARACTER_PADDING]] = 0
            init.copy_(module._char_embedding_weights, characters)
