"""The card of what is published: of the folder and the Hub, with a licence and the target's name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from eaglehub.card import CARD, Wishes, charts_of, newest, read_card, render
from eaglehub.checkpoint.hub_errors import hub_errors
from eaglehub.errors import UsageProblem
from eaglehub.publish.package import pack_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from huggingface_hub import HfApi

    from eaglehub.card import Card, Facts
    from eaglehub.publish.package import PackedFile
    from eaglehub.publish.publish import Order
    from eaglehub.publish.remote import Remote


def _no_license() -> str:
    raise UsageProblem("nothing says under which licence", where="--license", fix="name it, as in apache-2.0")


@dataclass(frozen=True, slots=True)
class Choices:
    """What the card says that a folder does not.

    Attributes:
        license: its id on the Hub; empty takes the card's own, else the source's.
        base_model: the target's repository; empty takes what is known.
        source_model: the repository it was made from; empty takes what is known.
        ask_license: called where no licence is known; raises where nobody can be asked.
    """

    license: str = ""
    base_model: str = ""
    source_model: str = ""
    ask_license: Callable[[], str] = _no_license


class Written(NamedTuple):
    """A card, and the files that it consists of."""

    card: Card
    files: list[PackedFile]


def write_card(
    order: Order,
    facts: Facts,
    remote: Remote,
    api: HfApi | None,
    overlooked: Sequence[str],
    warn: Callable[[str], None],
) -> Written:
    """Render the card; what its owner wrote in the folder or on the Hub stays.

    `api` is None where the Hub cannot be asked; `overlooked` are the failed checks that the user chose to overlook;
    `warn` is told what the card does without.

    Raises:
        CardConflict: it was edited in both places.
        UnusableInput: a card cannot be read.
        UsageProblem: there is no licence.
        HubProblem: the Hub's card or the source cannot be read.
    """
    choices, local = order.choices, order.folder / CARD
    old = newest(read_card(local) if local.is_file() else None, _remote_card(order.repo, remote, api))
    source = choices.source_model or facts.source
    licensed = choices.license or (old and old.front.get("license"))
    wishes = Wishes(
        name=order.repo,
        base_model=choices.base_model or facts.target,
        source_model=source,
        license=choices.license if licensed else _license_of(source, api) or choices.ask_license(),
        overlooked=overlooked,
    )
    charts = charts_of(facts, warn)
    card = render(facts, wishes, charts, old)
    drawn = [pack_bytes(name, data) for name, data in charts.items()]
    return Written(card, [pack_bytes(CARD, card.text().encode()), *drawn])


def _remote_card(repo: str, remote: Remote, api: HfApi | None) -> Card | None:
    if api is None or CARD not in remote.files:
        return None
    with hub_errors(repo):
        file = api.hf_hub_download(repo, CARD, revision=remote.head or remote.start)
    return read_card(Path(file), f"{repo}/{CARD}")


def _license_of(source: str, api: HfApi | None) -> str:
    """What the source's repository says; nothing where there is none to ask."""
    if api is None or not source:
        return ""
    with hub_errors(source):
        data = api.model_info(source).card_data
    return str(data.get("license") or "") if data else ""
