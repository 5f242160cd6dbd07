"""The causes that a diagnosis can name, and the numbers that each is seen by."""

from __future__ import annotations

DUPLICATES = "duplicated representations"
ROGUE = "rogue dimensions"
DRIFT = "drift"
WITHIN = "within-sequence collapse"
CONCENTRATION = "spectral concentration"
HEADS = "saturated attention heads"

EVIDENCE = {
    DUPLICATES: ("duplicate_share", "duplicate_pairs", "duplicate_pairs_within"),
    ROGUE: ("rogue_share", "dimension_share", "massive_ratio"),
    DRIFT: ("drift_share", "drift_norm"),
    WITHIN: ("rank_residual", "intra_similarity"),
    CONCENTRATION: ("spectral_anisotropy", "effective_rank", "centered_anisotropy"),
    HEADS: ("attention_entropy_lowest", "attention_row_max"),
}
"""What is shown of a cause; the first one that was measured is where it is seen to start."""

SHARED_ENERGY = "1 - rank_residual²"
"""What a rank residual's causes have shares of: of a sequence's energy, what positions share."""
