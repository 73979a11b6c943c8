"""The model card: written from what is known of a drafter, kept as its owner extends it."""

from eaglehub.card.charts import CHARTS, charts_of
from eaglehub.card.document import CARD, Card, newest, read_card
from eaglehub.card.evidence import REPORTS, VERIFICATION_FILE
from eaglehub.card.facts import Facts, read_facts
from eaglehub.card.render import Wishes, render

__all__ = [
    "CARD",
    "CHARTS",
    "REPORTS",
    "VERIFICATION_FILE",
    "Card",
    "Facts",
    "Wishes",
    "charts_of",
    "newest",
    "read_card",
    "read_facts",
    "render",
]
