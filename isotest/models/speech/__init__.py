"""Recordings to the inputs of speech models: resampled, normalised, padded, masked."""
