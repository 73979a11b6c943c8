"""Write the pages."""

from __future__ import annotations

from docs.generate import pages

for page, text in pages().items():
    page.parent.mkdir(exist_ok=True)
    page.write_text(text, encoding="utf-8")
