"""MANTa-LM as a transformers model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.conversion_mapping import register_checkpoint_conversion_mapping
from transformers.core_model_loading import WeightRenaming
from transformers.models.t5.modeling_t5 import T5Stack
from transformers.utils.generic import ModelOutput

from isotest.errors import MeasurementError
from isotest.models.architectures.manta.configuration import MantaConfig
from isotest.models.architectures.manta.frontiers import MantaFrontierPredictor
from isotest.models.architectures.manta.pooling import MantaPooling

# In the public checkpoint and not here: the head, the decoder's embeddings under a second name
# beside decoder.embed_tokens, and a layer of Longformer that nothing reads.
_SURPLUS = [
    r"^lm_head\.weight$",
    r"^decoder_embeddings\.weight$",
    r"frontier_predictor\.local_transformer\.pooler\.",
]


@dataclass
class MantaModelOutput(ModelOutput):
    """What :class:`MantaModel` returns; hidden states and attentions only where asked for.

    Attributes:
        last_hidden_state: (B, M, D) of the decoder, after its final norm.
        encoder_last_hidden_state: (B, N, D) of the blocks, after the final norm.
        block_mask: (B, N), true at blocks that hold bytes.
        frontier_predictions: (B, L) probabilities that a byte opens a block.
        encoder_hidden_states: the block embeddings and each encoder block's output, (B, N, D);
            the last one after the final norm.
        decoder_hidden_states: likewise of the decoder, (B, M, D).
        encoder_attentions: of each encoder block, (B, H, N, N).
        decoder_attentions: of each decoder block, (B, H, M, M).
        cross_attentions: of each decoder block, (B, H, M, N).
    """

    last_hidden_state: Tensor | None = None
    encoder_last_hidden_state: Tensor | None = None
    block_mask: Tensor | None = None
    frontier_predictions: Tensor | None = None
    encoder_hidden_states: tuple[Tensor, ...] | None = None
    decoder_hidden_states: tuple[Tensor, ...] | None = None
    encoder_attentions: tuple[Tensor, ...] | None = None
    decoder_attentions: tuple[Tensor, ...] | None = None
    cross_attentions: tuple[Tensor, ...] | None = None


class MantaModel(PreTrainedModel):
    """Bytes, soft blocks of bytes, a T5 encoder over blocks and a T5 decoder over bytes.

    The parts, by their paths: ``byte_embeddings``, ``frontier_predictor`` (probabilities of a
    frontier), ``pooling`` (segmentation and block embeddings), ``encoder``, ``decoder``.

    The model decides how many blocks a text has, so no mask of them can be passed in. ``pooling``
    returns ``(block_embeddings, block_mask)``: a forward hook on it finds the mask as the second
    element of its output. Blocks are counted from a text's own bytes; what it is padded to, and
    with whom it shares a batch, changes nothing.
    """

    config_class = MantaConfig
    base_model_prefix = "transformer"
    main_input_name = "input_ids"
    _supports_sdpa = T5Stack._supports_sdpa  # since a release of 5.x
    _input_embed_layer = "byte_embeddings"
    _keys_to_ignore_on_load_unexpected = _SURPLUS

    def __init__(self, config: MantaConfig) -> None:
        super().__init__(config)
        self.byte_embeddings = nn.Embedding(config.vocab_size, config.byte_embedding_dim)
        self.frontier_predictor = MantaFrontierPredictor(config)
        self.pooling = MantaPooling(config)
        self.encoder = T5Stack(config.stack(decoder=False))
        self.encoder.set_input_embeddings(None)  # it sees no ids
        self.decoder = T5Stack(config.stack(decoder=True))
        self.post_init()  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        # As the public code leaves them: torch's own ranges, and T5's for what T5 has too. The
        # local transformer and the stacks are models of their own and draw theirs themselves.
        factor = self.config.initializer_factor
        if isinstance(module, nn.Linear):
            bound = factor * module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            init.uniform_(module.bias, -bound, bound)
        elif isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=factor)
        elif isinstance(module, MantaPooling):
            bound = factor * module.convolution.shape[2] ** -0.5
            init.uniform_(module.convolution, -bound, bound)
        elif isinstance(module, MantaModel):
            init.normal_(module.decoder.embed_tokens.weight, std=factor)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        *,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
    ) -> MantaModelOutput:
        """One pass over a batch of texts.

        Args:
            input_ids: (B, L) of ByT5's ids.
            attention_mask: (B, L), nonzero at bytes; all of them where absent.
            decoder_input_ids: (B, M) of ByT5's ids.
            decoder_attention_mask: (B, M), likewise.
            output_hidden_states: return the states of every block.
            output_attentions: return attentions; needs the eager implementation.

        Raises:
            MeasurementError: no decoder input; a text without bytes, or longer than
                ``max_length_inputs``.
        """
        if decoder_input_ids is None:
            raise MeasurementError(
                "MANTa-LM has a decoder and got nothing for it; pass decoder_input_ids"
            )
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        self._check_lengths(attention_mask)
        asked: dict[str, Any] = {
            "output_hidden_states": _or(output_hidden_states, self.config.output_hidden_states),
            "output_attentions": _or(output_attentions, self.config.output_attentions),
        }
        embeddings = self.byte_embeddings(input_ids)
        frontiers = self.frontier_predictor(embeddings, attention_mask)
        blocks, block_mask = self.pooling(frontiers, embeddings, attention_mask)
        encoded = self.encoder(inputs_embeds=blocks, attention_mask=block_mask, **asked)
        decoded = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=encoded.last_hidden_state,
            encoder_attention_mask=block_mask,
            use_cache=False,
            **asked,
        )
        return MantaModelOutput(
            last_hidden_state=decoded.last_hidden_state,
            encoder_last_hidden_state=encoded.last_hidden_state,
            block_mask=block_mask,
            frontier_predictions=frontiers,
            encoder_hidden_states=encoded.hidden_states,
            decoder_hidden_states=decoded.hidden_states,
            encoder_attentions=encoded.attentions,
            decoder_attentions=decoded.attentions,
            cross_attentions=decoded.cross_attentions,
        )

    def _check_lengths(self, attention_mask: Tensor) -> None:
        lengths = (attention_mask != 0).sum(-1)
        longest = self.config.max_length_inputs
        for fault, found in (
            ("holds no byte; leave empty texts out", lengths == 0),
            (f"is longer than the {longest} bytes that MANTa-LM reads; cut it", lengths > longest),
        ):
            if bool(found.any()):
                at = int(found.nonzero()[0])
                raise MeasurementError(f"text {at} of the batch ({int(lengths[at])} bytes) {fault}")


def _or(value: bool | None, default: bool | None) -> bool:
    return bool(default if value is None else value)


# From the names in almanach/manta-lm-base to those here, and back when a model is saved. Releases
# undo them in different orders, so none may match what another one gives back. And dots are not
# escaped, as nowhere in transformers: 5.0 writes one direction's pattern as the other's name.
register_checkpoint_conversion_mapping(
    MantaConfig.model_type,
    [
        WeightRenaming("^encoder.byte_embeddings.", "^byte_embeddings."),
        WeightRenaming("^encoder.frontier_predictor.", "^frontier_predictor."),
        WeightRenaming("^encoder.pooler.conv_layers.0.weight", "^pooling.convolution"),
        WeightRenaming("^encoder.pooler.out_projection.", "^pooling.out_projection."),
        WeightRenaming("^encoder.t5_encoder.block.", "^encoder.block."),
        WeightRenaming("^encoder.t5_encoder.final_layer_norm.", "^encoder.final_layer_norm."),
    ],
    overwrite=True,
)
