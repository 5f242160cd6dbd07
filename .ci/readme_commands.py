"""Print the commands that the README asks a newcomer to type, one a line.

A command is the one line of a fenced block after a ``<!-- command -->`` comment; CI runs what
this prints, so the README cannot say anything else than what works.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

_COMMAND = re.compile(r"^<!-- command -->\n```\w*\n([^\n]+)\n```$", re.MULTILINE)

for command in _COMMAND.findall(Path(sys.argv[1]).read_text(encoding="utf-8")):
    sys.stdout.write(f"{command}\n")
