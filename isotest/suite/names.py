"""Which names entries and checks may have.

A name becomes part of a pytest node id (``suite.toml::name::check``, cut at ``::`` and at the first
``[``), of a file name (the baseline's), and of ``--isotest-model NAME=SOURCE`` (cut at the first
``=``). Whatever would be cut there, or would lead into another folder, is refused here, once.
"""

from __future__ import annotations

import unicodedata

_RESERVED = frozenset("[]:/\\=")
_LONGEST = 100

NAME_PATTERN = r"^[^\u0000-\u001f\u007f\[\]:/\\=]{1,100}$"
"""For JSON Schema: what every valid name matches (``name_fault`` is stricter)."""


def name_fault(name: str) -> str | None:
    r"""What is wrong with a name, or ``None``.

    >>> name_fault("vit-base @384 (CLS, 80 %)")
    >>> name_fault("google/vit")
    "the name 'google/vit' contains '/': names may not contain / : = [ ] or \\"
    """
    if not name:
        return "the name is empty"
    if len(name) > _LONGEST:
        return f"the name {name[:20]!r}… has {len(name)} characters; at most {_LONGEST} are allowed"
    if not name.isprintable():
        return f"the name {name!r} contains an unprintable character"
    bad = sorted(_RESERVED.intersection(name))
    if bad:
        return f"the name {name!r} contains {bad[0]!r}: names may not contain / : = [ ] or \\"
    if name != name.strip() or not (name[0].isalnum() or name[0] == "_"):
        return f"the name {name!r} must begin with a letter, a digit or '_' and not end in a space"
    return None


def folded(name: str) -> str:
    """What a file system that ignores case and normal form makes of a name."""
    return unicodedata.normalize("NFC", name).casefold()
