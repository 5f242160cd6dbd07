"""The properties that blocks are tried on, a module for each kind."""

from isotest.testing.properties.attention import ATTENTION_PROPERTIES
from isotest.testing.properties.module import MODULE_PROPERTIES

PROPERTIES = MODULE_PROPERTIES + ATTENTION_PROPERTIES
"""All of them, in the order in which they are tried."""
