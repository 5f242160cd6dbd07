"""Properties of transformer blocks, and what is needed to try them on anyone's."""
