"""The properties that blocks are tried on, a module for each kind."""
