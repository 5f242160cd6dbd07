"""Queries, keys and masks of a model's attention, seen while it runs."""
