"""Exact statistics of hidden representations, their error bars and their mergeable state."""
