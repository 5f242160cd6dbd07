"""What attention computes inside any module: recognised in the operations that torch runs."""
