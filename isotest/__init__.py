"""isotest: gate model training on the geometry of hidden representations."""

__version__ = "0.1.0"
