"""The key ``ablate`` of an entry: which parts of every block are switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict

from isotest.models.ablations.ablation import NAMED
from isotest.source import MODEL_SCHEMES, parse_source
from isotest.suite.checks import fault
from isotest.suite.experiments import TASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import InitErrorDetails

    from isotest.suite.spec import SuiteFile

AblationName = Literal["full", "san", "san+mlp", "san+skip", "authors-san+mlp"]


class Switches(TypedDict, total=False):
    """An ``ablate`` table: what is false is switched off in every block."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=True)  # type: ignore[misc]

    attention_skip: Annotated[
        bool, Field(description="whether the attention's input is added to its output")
    ]
    mlp_skip: Annotated[bool, Field(description="whether the MLP's input is added to its output")]
    mlp: Annotated[
        bool, Field(description="whether there is an MLP; if not, its skip and norm are gone, too")
    ]
    layer_norm: Annotated[bool, Field(description="whether the norms inside the blocks act")]


EXPECTED = (
    f"one of {', '.join(NAMED)}, or a table of attention_skip, mlp_skip, mlp and layer_norm, each "
    "true or false"
)


def ablation_faults(suite: SuiteFile) -> Iterator[InitErrorDetails]:
    """Entries whose blocks cannot be ablated, whatever is loaded."""
    for index, model in enumerate(suite.models):
        if model.ablate is None or suite.modality == TASKS:
            continue  # there, no key of this name has a place
        where = ("models", index, "ablate")
        scheme = parse_source(model.source, MODEL_SCHEMES).scheme
        if scheme == "block":
            text = (
                "'ablate' is for models of transformers; a synthetic block has these switches in "
                "its 'config'"
            )
        elif suite.modality == "embeddings":
            text = (
                "'ablate' is for models that are fed samples; this suite's modality is 'embeddings'"
            )
        elif scheme == "timm":
            text = "'ablate' is for models of transformers; timm: brings others"
        elif model.ablate == {}:
            text = f"expected {EXPECTED}"
        else:
            continue
        yield fault(text, where, model.ablate)
