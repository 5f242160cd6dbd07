"""Architectures that no installed library carries, written from their papers.

They are ordinary transformers models: :func:`register` makes ``AutoConfig`` and ``AutoModel`` know
their model types, and from then on they are built, saved and loaded like any other.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_ARCHITECTURES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "character_bert": (
        "isotest.models.architectures.character_bert.model",
        {"AutoConfig": "CharacterBertConfig", "AutoModel": "CharacterBertModel"},
    ),
    "manta": (
        "isotest.models.architectures.manta",
        {"AutoConfig": "MantaConfig", "AutoModel": "MantaModel"},
    ),
    "van": (
        "isotest.models.architectures.van",
        {
            "AutoConfig": "VanConfig",
            "AutoModel": "VanModel",
            "AutoModelForImageClassification": "VanForImageClassification",
        },
    ),
}
"""Model type to module and, by the auto class that is to know it, the name of each class."""

MODEL_TYPES = tuple(_ARCHITECTURES)
"""The model types that are written here."""


def register(*model_types: str) -> None:
    """Make transformers' auto classes know model types of this package.

    Only the modules of the types asked for are imported. A type that transformers knows is left as
    it is, so calling this twice changes nothing, and a release that brings an architecture of its
    own under one of the names goes first.

    Args:
        model_types: those of interest, whether they are written here or not; all that are written
            here where none is named.

    >>> from transformers import AutoConfig
    >>> register("van")
    >>> AutoConfig.for_model("van").depths
    [3, 3, 12, 3]
    """
    import transformers

    for model_type in model_types or MODEL_TYPES:
        if model_type not in _ARCHITECTURES or model_type in transformers.CONFIG_MAPPING:
            continue
        path, names = _ARCHITECTURES[model_type]
        module = import_module(path)
        classes: dict[str, Any] = {auto: getattr(module, name) for auto, name in names.items()}
        config = classes.pop("AutoConfig")
        for auto, model in classes.items():
            getattr(transformers, auto).register(config, model)
        # Last: its presence says that all of this has happened.
        transformers.AutoConfig.register(model_type, config)
