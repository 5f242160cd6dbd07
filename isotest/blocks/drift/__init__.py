"""The drift experiment: what a block makes of inputs that a common bias moves away from zero."""

from isotest.blocks.drift.experiment import FIGURES, Experiment, drift, measure_drift

__all__ = ["FIGURES", "Experiment", "drift", "measure_drift"]
