"""The pages of `docs/` that are made of eaglehub itself: `python -m docs.generate` writes them.

What a command, a rule, a layout, an engine or a schema is stands once, in the code or the data; a test compares.
"""

from __future__ import annotations

from pathlib import Path

from docs.generate.commands import commands
from docs.generate.engines import engines
from docs.generate.layouts import layouts
from docs.generate.schemas import schemas
from eaglehub.validate.document import rules_document

_DOCS = Path(__file__).parents[1]
_REFERENCE = {"commands": commands, "layouts": layouts, "engines": engines, "schemas": schemas}


def pages() -> dict[Path, str]:
    """Text of each generated page, by its file."""
    reference = {_DOCS / "reference" / f"{name}.md": "\n".join(lines()) + "\n" for name, lines in _REFERENCE.items()}
    return {**reference, _DOCS / "rules.md": rules_document()}
