"""Attention of one layer: scores, softmax rows, queries and keys, and their mergeable state."""
