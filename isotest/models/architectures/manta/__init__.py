"""MANTa-LM (Godey et al. 2022): a T5 encoder over blocks of bytes that the model cuts itself."""

from isotest.models.architectures.manta.configuration import MantaConfig
from isotest.models.architectures.manta.model import MantaModel, MantaModelOutput

__all__ = ["MantaConfig", "MantaModel", "MantaModelOutput"]
