"""CharacterBERT: words as characters, and the model that reads them."""

from isotest.models.architectures.character_bert.words import WORD_LENGTH, word_ids

__all__ = ["WORD_LENGTH", "word_ids"]
