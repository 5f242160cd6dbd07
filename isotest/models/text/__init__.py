"""Texts to sequences of ids: encoders, packing, padding, masks."""
