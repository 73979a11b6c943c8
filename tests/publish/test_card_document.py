"""The card as a document: what eaglehub renews, and what it must never touch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eaglehub.card.document import Card, CardConflict, Segment, newest, parse_card, update
from eaglehub.errors import UnusableInput

FRESH = Card({"license": "mit", "tags": ["eagle3"]}, (Segment("about", "new"), Segment("limits", "few\n")))
OLD = """---
datasets: [mine]
license: mit
tags:
- eagle3
- ours
---
Before everything.

<!-- eaglehub:begin about -->
old
<!-- eaglehub:end about -->

## Our own section

With `code` and a line of `---`:

---

<!-- eaglehub:begin gone -->
old
<!-- eaglehub:end gone -->
After everything.
"""


def test_blocks_are_renewed_in_place() -> None:
    text = update(parse_card(OLD), FRESH).text()

    assert text.index("Before everything.") < text.index("new") < text.index("few") < text.index("## Our own section")
    assert "old" not in text
    assert text.index("With `code` and a line of `---`:\n\n---\n") < text.index("After everything.")
    assert "datasets:\n- mine\n" in text


def test_a_card_without_blocks_gets_them_in_front() -> None:
    text = update(parse_card("# The source's card\n\nText.\n"), FRESH).text()
    assert text.index("new") < text.index("few") < text.index("# The source's card\n\nText.")


def test_what_was_written_is_read_again() -> None:
    written = update(parse_card(OLD), FRESH)
    again = parse_card(written.text())
    assert not again.edited
    assert again.text() == written.text()
    assert update(again, FRESH).text() == written.text()
    assert parse_card(written.text().replace("\n", "\r\n")).text() == written.text()


@pytest.mark.parametrize(
    ("before", "after"),
    [("With `code`", "With more code"), ("- mine", "- theirs"), ("- ours", "- ours\n- theirs")],
)
def test_an_owners_edit_is_noticed(before: str, after: str) -> None:
    assert parse_card(update(parse_card(OLD), FRESH).text().replace(before, after)).edited


def test_another_version_of_a_block_is_no_edit() -> None:
    assert not parse_card(update(parse_card(OLD), FRESH).text().replace("few", "many")).edited


class Copies:
    """A card in a folder and on the Hub, and what becomes of them at each publication."""

    def __init__(self, local: str | None = None, remote: str | None = None) -> None:
        self.local, self.remote = local, remote

    def publish(self) -> str:
        cards = [parse_card(text) if text is not None else None for text in (self.local, self.remote)]
        self.remote = update(newest(*cards), FRESH).text()
        return self.remote


def test_the_hubs_edits_survive_however_often_the_folder_is_published() -> None:
    for local in (OLD, "# The source's card\n", None):
        copies = Copies(local)
        copies.publish()
        copies.remote += "\n## On the Hub\n"
        for _ in range(3):
            assert "## On the Hub" in copies.publish()
        assert copies.publish() == copies.publish()


def test_the_folders_edits_are_published() -> None:
    copies = Copies("# Card\n\nFirst.\n")
    copies.publish()
    copies.local = "# Card\n\nSecond.\n"
    assert "Second." in copies.publish()
    assert "First." not in copies.publish()


def test_edits_in_both_places_are_a_conflict_until_one_has_both() -> None:
    copies = Copies("# Card\n\nFirst.\n")
    copies.publish()
    copies.remote += "\nTheirs.\n"
    copies.local += "\nOurs.\n"
    with pytest.raises(CardConflict, match="edited here and on the Hub"):
        copies.publish()
    copies.local += "\nTheirs.\n"
    assert "Ours.\n\nTheirs." in copies.publish()


def test_the_folder_cannot_take_back_what_the_hub_has_of_its_own() -> None:
    copies = Copies("# Card\n")
    copies.publish()
    copies.remote += "\nTheirs.\n"
    copies.publish()
    copies.local = "# Another\n"
    with pytest.raises(CardConflict):
        copies.publish()
    copies.local = None
    assert "Theirs." in copies.publish()


def test_front_matter_of_both_is_kept() -> None:
    ours = parse_card("---\nlicense: mit\n---\n")
    theirs = parse_card("---\nlicense: other\nlanguage: en\n---\n")
    assert newest(ours, theirs).front == {"license": "mit", "language": "en"}


def test_a_card_on_the_hub_and_none_here() -> None:
    copies = Copies(None, "---\nlicense: mit\n---\n# By hand\n")
    assert "# By hand" in copies.publish()
    copies.local = "# Written later\n"
    with pytest.raises(CardConflict):
        copies.publish()
    copies = Copies(FRESH.text(), "# By hand\n")
    assert "# By hand" in copies.publish()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("---\na: b: c\n---\n", "front matter is not YAML \\(line 2\\)"),
        ("---\n- a\n---\n", "is not a mapping"),
        ("<!-- eaglehub:begin about -->\ntext\n", "without its counterpart"),
        ("text\n<!-- eaglehub:end about -->\n", "without its counterpart"),
        ("<!-- eaglehub:begin a -->\n<!-- eaglehub:begin b -->\n<!-- eaglehub:end a -->\n", "without its counterpart"),
    ],
)
def test_damaged_cards(text: str, what: str) -> None:
    with pytest.raises(UnusableInput, match=what):
        parse_card(text)


LINES = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=20)
)


@given(LINES, LINES)
def test_any_text_around_the_blocks_survives(before: list[str], after: list[str]) -> None:
    own = ["\n".join(lines).strip() for lines in (["# mine", *before], [*after, "end"])]
    text = f"{own[0]}\n\n<!-- eaglehub:begin about -->\nold\n<!-- eaglehub:end about -->\n\n{own[1]}\n"

    renewed = update(parse_card(text), FRESH).text()

    assert own[0] in renewed
    assert own[1] in renewed
    assert parse_card(renewed).text() == renewed
