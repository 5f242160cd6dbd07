"""How likely each byte is to open a block, from the bytes around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional
from transformers import LongformerModel

if TYPE_CHECKING:
    from isotest.models.architectures.manta.configuration import MantaConfig


class MantaFrontierPredictor(nn.Module):
    """A transformer with sliding-window attention, a linear layer and a sigmoid."""

    def __init__(self, config: MantaConfig) -> None:
        super().__init__()
        self.window = config.frontier_predictor_attention_window
        self.local_transformer = LongformerModel(
            config.frontier_predictor(), add_pooling_layer=False
        )
        self.output_projection = nn.Linear(config.byte_embedding_dim, 1)

    def forward(self, embeddings: Tensor, attention_mask: Tensor) -> Tensor:
        """Frontier probabilities.

        Args:
            embeddings: (B, L, E) of the bytes.
            attention_mask: (B, L), nonzero at bytes.

        Returns:
            (B, L), between 0 and 1; of no meaning at padding.
        """
        length = embeddings.shape[1]
        # To whole windows, which Longformer would do itself, with a warning.
        surplus = -length % self.window
        mask = functional.pad((attention_mask != 0).long(), (0, surplus))
        states = self.local_transformer(
            inputs_embeds=functional.pad(embeddings, (0, 0, 0, surplus)),
            attention_mask=mask,
            # A text's own positions, from 1; Longformer would count padding on the left.
            position_ids=mask.cumsum(-1) * mask,
        ).last_hidden_state
        probabilities: Tensor = self.output_projection(states[:, :length]).squeeze(-1).sigmoid()
        return probabilities
