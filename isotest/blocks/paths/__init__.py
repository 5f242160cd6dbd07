"""A network with fixed attention maps as a sum over paths, counted, drawn, and added up exactly."""

from isotest.blocks.paths.enumeration import all_paths, count_paths, sample_paths
from isotest.blocks.paths.evaluation import evaluate
from isotest.blocks.paths.length import PathLength, contributions
from isotest.blocks.paths.model import fixed_model
from isotest.blocks.paths.network import FixedNetwork
from isotest.blocks.paths.stack import fixed_stack

__all__ = [
    "FixedNetwork",
    "PathLength",
    "all_paths",
    "contributions",
    "count_paths",
    "evaluate",
    "fixed_model",
    "fixed_stack",
    "sample_paths",
]
