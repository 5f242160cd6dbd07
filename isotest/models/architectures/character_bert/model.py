"""CharacterBERT of El Boukkouri et al. (2020), https://aclanthology.org/2020.coling-main.609.

BERT whose word pieces are replaced by whole words: ELMo's character network makes a word's vector
out of its characters, and everything behind it is BERT's, transformers' own code included. Names
of parameters are those of the checkpoints published under ``helboukkouri/character-bert``, which
have them as they are or below ``character_bert.``.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import initialization as init
from transformers.models.bert.modeling_bert import (
    BertEncoder,
    BertModel,
    BertPooler,
    BertPreTrainedModel,
)

from isotest.models.architectures.character_bert.configuration import CharacterBertConfig
from isotest.models.architectures.character_bert.network import CharacterCnn
from isotest.models.architectures.character_bert.words import CHARACTER_PADDING


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
