"""Properties of transformer blocks, and what is needed to try them on anyone's.

The public names; each is loaded on first use.

>>> from isotest.testing import TokenBatch
>>> TokenBatch(sequences=1, length=2, width=4).tensor().shape
torch.Size([1, 2, 4])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotest.lazy import lazily

if TYPE_CHECKING:
    from isotest.testing.checking import check_block as check_block
    from isotest.testing.marking import (
        parametrize_with_properties as parametrize_with_properties,
    )
    from isotest.testing.outcome import PropertyOutcome as PropertyOutcome
    from isotest.testing.outcome import Result as Result
    from isotest.testing.report import BlockReport as BlockReport
    from isotest.testing.report import BlockViolationError as BlockViolationError
    from isotest.testing.strategies import attention_maps as attention_maps
    from isotest.testing.strategies import blocks as blocks
    from isotest.testing.strategies import embedding_tables as embedding_tables
    from isotest.testing.strategies import token_batches as token_batches
    from isotest.testing.token_batch import TokenBatch as TokenBatch

_HOME = {
    "BlockReport": "report",
    "BlockViolationError": "report",
    "PropertyOutcome": "outcome",
    "Result": "outcome",
    "TokenBatch": "token_batch",
    "attention_maps": "strategies",
    "blocks": "strategies",
    "check_block": "checking",
    "embedding_tables": "strategies",
    "parametrize_with_properties": "marking",
    "token_batches": "strategies",
}

__all__ = [*_HOME]


__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
