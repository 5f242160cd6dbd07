"""The synthetic transformer block, and the experiments on it."""
