"""The one loader of prompt files, in the formats people have.

- JSON lines, or one JSON array, of objects with one of these keys: `messages` (chat, SPEED-Bench), `conversations`
  (ShareGPT), `turns` (MT-Bench's and Spec-Bench's `question.jsonl`), `prompt`;
- plain text, one prompt a line.
"""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.errors import UnusableInput, UsageProblem
from eaglehub.prompts.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_SUITE_FOLDER = Path(__file__).with_name("suites")
SUITES = ("chat", "code", "maths", "multilingual", "retrieval", "long")
MIXED = "mixed"

_ROLES = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_SHAREGPT_ROLES = _ROLES | {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "observation": "tool"}


@cache
def load_suite(name: str) -> tuple[Conversation, ...]:
    """One of `SUITES`, or `mixed`: all of them, a prompt of each in turn."""
    if name != MIXED:
        return tuple(_conversations(_SUITE_FOLDER / f"{name}.jsonl"))
    rounds = itertools.zip_longest(*map(load_suite, SUITES))
    return tuple(conversation for turn in rounds for conversation in turn if conversation)


def load_prompts(source: str, limit: int | None = None) -> tuple[Conversation, ...]:
    """The first `limit` conversations of a file, of a suite of that name, or of `mixed`, all suites in turn.

    Raises:
        UsageProblem: neither a file nor a suite.
        UnusableInput: unreadable, no known format, or without prompts; the message names the line.
    """
    path = Path(source)
    if source in (MIXED, *SUITES) and not path.exists():
        return load_suite(source)[:limit]
    if not path.exists() and not path.suffix and path.name == source:
        raise UsageProblem(f"{source!r} is neither a file nor one of {', '.join((MIXED, *SUITES))}", where="--prompts")
    conversations = tuple(itertools.islice(_conversations(path), limit))
    if not conversations:
        raise UnusableInput("holds no prompts", where=path.name)
    return conversations


def _conversations(path: Path) -> Iterator[Conversation]:
    for where, entry in _entries(path):
        try:
            yield _conversation(entry)
        except ValueError as error:
            raise UnusableInput(str(error), where=where) from None


def _entries(path: Path) -> Iterator[tuple[str, Any]]:
    """Each prompt as the file has it, with its place; lines are read as they are needed."""
    try:
        with path.open(encoding="utf-8-sig") as lines:
            numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
            first = next(numbered, None)
            if first is None:
                return
            rest = itertools.chain([first], numbered)
            if path.suffix == ".txt" or not first[1].lstrip().startswith(("{", "[")):
                if path.suffix in (".json", ".jsonl"):
                    raise UnusableInput("is not JSON", where=f"{path.name} line {first[0]}")
                yield from ((f"{path.name} line {number}", line.strip()) for number, line in rest)
            elif first[1].lstrip().startswith("["):
                yield from _array(path, "".join(line for _, line in rest))
            else:
                yield from ((f"{path.name} line {number}", _json(line, path, number)) for number, line in rest)
    except UnicodeDecodeError as error:
        raise UnusableInput(f"is not UTF-8 text (byte {error.start})", where=path.name) from None
    except OSError as error:
        raise UnusableInput(f"cannot be read: {error.strerror}", where=path.name) from error


def _array(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, entry in enumerate(_json(text, path, 1), start=1):
        yield f"{path.name} entry {number}", entry


def _json(text: str, path: Path, line: int) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        what = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        line += error.lineno - 1 if isinstance(error, json.JSONDecodeError) else 0
        raise UnusableInput(f"is not valid JSON: {what}", where=f"{path.name} line {line}") from None


def _conversation(entry: Any) -> Conversation:
    if isinstance(entry, str):
        return Conversation(({"role": "user", "content": entry},))
    if not isinstance(entry, dict):
        raise ValueError("is neither an object nor a text")  # noqa: TRY004 - the loader's own kind
    key = next((key for key in _READERS if entry.get(key)), None)
    if key is None:
        raise ValueError(f"has none of the keys {', '.join(_READERS)}, or nothing in them")
    messages = tuple(_READERS[key](entry[key]))
    if not any(message["role"] == "user" for message in messages):
        raise ValueError("has no user's message")
    return Conversation(messages, str(entry.get("category") or ""))


def _read_messages(value: Any) -> Iterator[dict[str, str]]:
    for message in _objects(value):
        yield {"role": _role(message.get("role"), _ROLES), "content": _text(message.get("content"))}


def _read_sharegpt(value: Any) -> Iterator[dict[str, str]]:
    for message in _objects(value):
        role = _role(message.get("from", message.get("role")), _SHAREGPT_ROLES)
        yield {"role": role, "content": _text(message.get("value", message.get("content")))}


def _read_turns(value: Any) -> Iterator[dict[str, str]]:
    if not isinstance(value, list):
        raise ValueError("turns is no list")  # noqa: TRY004 - the loader's own kind
    for turn in value:
        yield {"role": "user", "content": _text(turn)}


def _read_prompt(value: Any) -> Iterable[dict[str, str]]:
    return _read_messages(value) if isinstance(value, list) else [{"role": "user", "content": _text(value)}]


_READERS: dict[str, Callable[[Any], Iterable[dict[str, str]]]] = {
    "messages": _read_messages,
    "conversations": _read_sharegpt,
    "turns": _read_turns,
    "prompt": _read_prompt,
}


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("its messages are no list of objects")
    yield from value


def _role(name: Any, known: dict[str, str]) -> str:
    if name not in known:
        raise ValueError(f"the role {name!r} is none of {', '.join(known)}")
    return known[name]


def _text(content: Any) -> str:
    """A text, or the texts of a list of parts."""
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a message's content is no text")
    return "".join(map(str, texts))
