"""A model card as a document: front matter, the blocks that eaglehub writes, and what its owner wrote around them.

A block stands between `<!-- eaglehub:begin NAME -->` and `<!-- eaglehub:end NAME -->`; all else is the owner's and is
never touched. A stamp at the end says how two copies of a card (in a folder, on the Hub) have to do with each other, so
that an edit of either is noticed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import yaml

from eaglehub.checkpoint.files import read_small_file
from eaglehub.checkpoint.yamltext import load_yaml
from eaglehub.errors import EaglehubError, UnusableInput

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CARD = "README.md"
TAGS = ("speculative-decoding", "eagle3", "eagle3.1")

_FRONT = re.compile(r"\A---\n(?P<yaml>.*?)^---[ ]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(
    r"^<!-- eaglehub:begin (?P<name>[a-z-]+) -->\n(?P<text>.*?)^<!-- eaglehub:end (?P=name) -->(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MARKER = re.compile(r"^<!-- eaglehub:(?:begin|end)\b.*$", re.MULTILINE)
_STAMP = re.compile(
    r"^<!-- eaglehub:own (?P<digest>[0-9a-f]{16}) (?P<made>from|beside) (?P<folder>[0-9a-f]{16}|nothing) -->\n?",
    re.MULTILINE,
)


class CardConflict(EaglehubError):
    """A card was edited in two places, and choosing one would lose what stands in the other."""

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the text: a block by its name, or the owner's under an empty one."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """What eaglehub knew when it last wrote a card.

    Attributes:
        digest: of all that is not in blocks; empty when it never wrote it.
        made: `from` the folder's card, or `beside` it, from the Hub's own.
        folder: digest of the folder's card then, or `nothing`.
    """

    digest: str = ""
    made: str = "from"
    folder: str = "nothing"


@dataclass(frozen=True, slots=True)
class Card:
    """A parsed card.

    Attributes:
        front: the front matter.
        segments: the text, in order.
        stamp: as it was read.
    """

    front: Mapping[str, Any]
    segments: tuple[Segment, ...]
    stamp: Stamp = Stamp()

    @property
    def own_text(self) -> str:
        """What the owner wrote."""
        return "\n\n".join(text for part in self.segments if not part.name and (text := part.text.strip()))

    @property
    def digest(self) -> str:
        """Of all that is not in blocks."""
        # YAML, since front matter may hold what JSON cannot: dates, and keys that are no texts.
        content = f"{yaml.safe_dump(dict(self.front), sort_keys=True)}\0{self.own_text}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def edited(self) -> bool:
        """Whether its owner has changed anything since eaglehub wrote it."""
        return self.digest != self.stamp.digest

    def holds(self, other: Card) -> bool:
        """Whether every line of the other owner's text is in this one's."""
        return set(other.own_text.split("\n")) <= {"", *self.own_text.split("\n")}

    def text(self) -> str:
        """The whole document, with a fresh stamp."""
        front = yaml.safe_dump(dict(self.front), sort_keys=False, allow_unicode=True, width=1 << 16)
        parts = [f"---\n{front}---"]
        for part in self.segments:
            text = part.text.strip("\n")
            if part.name:
                text = f"<!-- eaglehub:begin {part.name} -->\n{text}\n<!-- eaglehub:end {part.name} -->"
            if text.strip():
                parts.append(text)
        stamp = f"<!-- eaglehub:own {self.digest} {self.stamp.made} {self.stamp.folder} -->"
        return "\n\n".join([*parts, stamp]) + "\n"


def read_card(path: Path, where: str = CARD) -> Card:
    """The card in a file.

    Raises:
        UnusableInput: it is no UTF-8 text, or `parse_card` refuses it.
    """
    try:
        return parse_card(read_small_file(path, where).decode("utf-8"), where)
    except UnicodeDecodeError as error:
        raise UnusableInput(f"is not UTF-8 text (byte {error.start})", where=where, fix="save it as UTF-8") from None


def parse_card(text: str, where: str = CARD) -> Card:
    """Take a card apart.

    Raises:
        UnusableInput: front matter that is no YAML mapping, or a block without a beginning or an end.
    """
    text = text.replace("\r\n", "\n").lstrip("\ufeff")
    front: Any = {}
    if found := _FRONT.match(text):
        front, text = _load(found["yaml"], where), text[found.end() :]
    stamp = _STAMP.search(text)
    text = _STAMP.sub("", text)
    segments, position = [], 0
    for block in _BLOCK.finditer(text):
        segments += [Segment("", text[position : block.start()]), Segment(block["name"], block["text"])]
        position = block.end()
    segments.append(Segment("", text[position:]))
    for part in segments:
        if lone := _MARKER.search(part.text):
            what = f"has {lone[0]} without its counterpart"
            raise UnusableInput(what, where=where, fix="restore the other marker, or delete this one")
    kept = tuple(part for part in segments if part.name or part.text.strip())
    return Card(front, kept, Stamp(**stamp.groupdict()) if stamp else Stamp())


def update(old: Card | None, new: Card) -> Card:
    """The old card with the new one's blocks and front matter: the owner's text stays where it is.

    A block that the new card lacks goes; one that the old card lacks comes after its predecessor. A key of the front
    matter whose new value is None goes as well.
    """
    old = old or Card({}, ())
    fresh = {part.name: part for part in new.segments}
    segments = [fresh.pop(part.name, None) if part.name else part for part in old.segments]
    kept = [part for part in segments if part]
    place = 0
    for part in new.segments:
        if part.name in fresh:
            kept.insert(place, part)
            place += 1
        else:
            place = kept.index(part) + 1
    tags = [*_as_list(new.front.get("tags")), *_own_tags(old.front)]
    front = {**new.front, "tags": tags, **{key: value for key, value in old.front.items() if key not in new.front}}
    return Card({key: value for key, value in front.items() if value is not None}, tuple(kept), old.stamp)


def newest(local: Card | None, remote: Card | None) -> Card | None:
    """Of the folder's card and the Hub's, the one whose owner's text is to be kept, stamped with where it is from.

    Raises:
        CardConflict: both were edited, differently.
    """
    made = "beside" if remote and remote.edited else remote.stamp.made if remote else ""
    if local is None:
        return remote and replace(remote, stamp=replace(remote.stamp, made=made))
    ours, theirs = Stamp(made="from", folder=local.digest), Stamp(made=made, folder=local.digest)
    if remote is None:
        return replace(local, stamp=ours)
    if local.digest in (remote.digest, remote.stamp.digest, remote.stamp.folder):
        return replace(remote, stamp=theirs)
    if (not remote.edited and remote.stamp.made == "from") or local.holds(remote):
        return Card({**remote.front, **local.front}, local.segments, ours)
    if remote.holds(local):
        return Card({**local.front, **remote.front}, remote.segments, theirs)
    raise CardConflict(
        "the card was edited here and on the Hub",
        where=CARD,
        fix=f"bring the Hub's text into the folder's {CARD}, or remove that file to keep the Hub's",
    )


def _load(text: str, where: str) -> dict[str, Any]:
    try:
        _, front = load_yaml(text)
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", -1) + 2
        what = f"its front matter is not YAML (line {line})"
        raise UnusableInput(what, where=where, fix="correct it") from error
    if front is None:
        return {}
    if not isinstance(front, dict) or not all(isinstance(key, str) for key in front):
        raise UnusableInput("its front matter is not a mapping", where=where, fix="write key: value lines")
    return front


def _as_list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list) else [value] if isinstance(value, str) else []


def _own_tags(front: Mapping[str, Any]) -> list[Any]:
    return [tag for tag in _as_list(front.get("tags")) if tag not in TAGS]
