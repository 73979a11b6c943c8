"""The loader of prompt files, and the suites that come with eaglehub."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from eaglehub.errors import EaglehubError, UnusableInput, UsageProblem
from eaglehub.prompts import SUITES, Conversation, digest, load_prompts, load_suite

if TYPE_CHECKING:
    from pathlib import Path

ASKED = {"role": "user", "content": "Why is the sky blue?"}
ANSWER = {"role": "assistant", "content": "Because of scattering."}
AGAIN = {"role": "user", "content": "And at night?"}


def _lines(*entries: Any) -> str:
    return "".join(json.dumps(entry) + "\n" for entry in entries)


FORMATS = {
    "messages.jsonl": _lines({"messages": [ASKED]}),
    "parts.jsonl": _lines({"messages": [{"role": "user", "content": [{"type": "text", "text": ASKED["content"]}]}]}),
    "sharegpt.jsonl": _lines({"id": "a", "conversations": [{"from": "human", "value": ASKED["content"]}]}),
    "sharegpt.json": json.dumps([{"conversations": [{"from": "human", "value": ASKED["content"]}]}], indent=2),
    "question.jsonl": _lines({"question_id": 81, "category": "writing", "turns": [ASKED["content"]]}),
    "throughput_2k.jsonl": _lines({"messages": [ASKED], "category": "low_entropy", "question_id": "x"}),
    "prompt.jsonl": _lines({"prompt": ASKED["content"]}),
    "plain.txt": "\n" + ASKED["content"] + "\n\n",
    "plain": ASKED["content"],
    "bom.jsonl": "\ufeff" + _lines({"messages": [ASKED]}),
}


@pytest.mark.parametrize("name", FORMATS)
def test_the_formats_people_have(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FORMATS[name], encoding="utf-8")
    (conversation,) = load_prompts(str(tmp_path / name))
    assert conversation.messages == (ASKED,)


def test_the_same_prompts_have_the_same_digest_in_every_format(tmp_path: Path) -> None:
    digests = set()
    for name, text in FORMATS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        digests.add(digest(load_prompts(str(tmp_path / name))))
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("messages", "prompt", "answered"),
    [
        ([ASKED], [ASKED], False),
        ([ASKED, ANSWER], [ASKED], True),
        ([ASKED, ANSWER, AGAIN], [ASKED, ANSWER, AGAIN], False),
        ([ASKED, ANSWER, AGAIN, ANSWER], [ASKED, ANSWER, AGAIN], True),
        ([ASKED, AGAIN], [ASKED], False),
    ],
)
def test_where_no_assistant_answered_the_target_does(messages: Any, prompt: Any, answered: bool) -> None:
    conversation = Conversation(tuple(messages))
    assert conversation.prompt == tuple(prompt)
    assert conversation.answered is answered


BAD = {
    "not-json.jsonl": ("{oops\n", "line 1: is not valid JSON"),
    "second.jsonl": (_lines({"messages": [ASKED]}) + "nonsense\n", "second.jsonl line 2: is not valid JSON"),
    "text.jsonl": ("just a text\n", "is not JSON"),
    "no-key.jsonl": (_lines({"question": "?"}), "has none of the keys messages, conversations, turns, prompt"),
    "role.jsonl": (_lines({"messages": [{"role": "wizard", "content": "?"}]}), "the role 'wizard'"),
    "content.jsonl": (_lines({"messages": [{"role": "user", "content": None}]}), "content is no text"),
    "image.jsonl": (_lines({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}), "is no text"),
    "no-user.jsonl": (_lines({"messages": [ANSWER]}), "has no user's message"),
    "number.json": ("[1]", "number.json entry 1: is neither an object nor a text"),
    "list.jsonl": (_lines({"messages": {"role": "user"}}), "are no list of objects"),
    "empty.jsonl": ("", "holds no prompts"),
    "latin.txt": (b"caf\xe9\n", "is not UTF-8 text"),
    "deep.jsonl": ('{"messages": ' + "[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    content, message = BAD[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UnusableInput) as caught:
        load_prompts(str(tmp_path / name))
    assert message in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_only_as_many_lines_are_read_as_are_needed(tmp_path: Path) -> None:
    file = tmp_path / "long.jsonl"
    file.write_text(_lines({"messages": [ASKED]}, {"messages": [AGAIN]}) + "broken\n")
    assert len(load_prompts(str(file), 2)) == 2


@pytest.mark.parametrize("source", ["no-such-file.jsonl", "folder"])
def test_a_missing_file(tmp_path: Path, source: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UnusableInput, match="cannot be read"):
        load_prompts(str(tmp_path / source))


def test_an_unknown_suite_is_named_with_those_that_exist() -> None:
    with pytest.raises(UsageProblem, match="neither a file nor one of mixed, chat") as caught:
        load_prompts("chatt")
    assert isinstance(caught.value, EaglehubError)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_has_questions_for_the_target(name: str) -> None:
    suite = load_suite(name)
    assert len(suite) >= 4
    assert all(conversation.category == name and not conversation.answered for conversation in suite)


def test_the_mixed_suite_takes_turns() -> None:
    assert [conversation.category for conversation in load_prompts("mixed", len(SUITES))] == list(SUITES)
    assert len(load_suite("mixed")) == sum(len(load_suite(name)) for name in SUITES)


def test_long_documents_are_long() -> None:
    assert all(len(conversation.prompt[-1]["content"].split()) > 400 for conversation in load_suite("long"))
