"""``init:MODEL_TYPE?seed=0``: a transformers architecture at its real size, weights untrained."""

from __future__ import annotations

from isotest.models.checkpoint import from_configuration
from isotest.models.configuration import default_configuration
from isotest.models.registry import Built, Request, seed_of
from isotest.models.seeding import seeded


def build(request: Request) -> Built:
    """The base model of a model type in the library's default configuration, seeded.

    Raises:
        SourceError: an unknown model type, option or configuration key.
    """
    source = request.source
    source.require_options({"seed"})
    seed = seed_of(source)
    config = default_configuration(source.location, request.config, str(source))
    with seeded(seed):
        module = from_configuration(config, str(source), weights=request.weights)
    return Built(module, libraries=("transformers",))
