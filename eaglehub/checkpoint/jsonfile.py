"""Strict JSON: what two readers could understand differently, or what cannot be written back, is refused."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn

from eaglehub.checkpoint.files import describe_impostor, read_small_file
from eaglehub.errors import UnusableInput

if TYPE_CHECKING:
    from pathlib import Path

_DEPTH_LIMIT = 64
_INTEGER_DIGITS = 20


def read_json_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file, which messages call by its name.

    Raises:
        UnusableInput: it cannot be read, or `parse_json_object` refuses it.
    """
    return parse_json_object(read_small_file(path, path.name), path.name)


def parse_json_object(data: bytes, where: str) -> dict[str, Any]:
    """The JSON object in `data`.

    Raises:
        UnusableInput: not UTF-8, not JSON, not an object, a key given twice, NaN or Infinity, a number no float or
            64-bit integer holds, half a surrogate pair, nesting beyond 64 levels.
    """
    if impostor := describe_impostor(data):
        raise UnusableInput(impostor.what, where=where, fix=impostor.fix, code="EH102")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_integer,
        )
    except UnicodeDecodeError as error:
        raise UnusableInput(f"is not UTF-8 text (byte {error.start})", where=where, code="EH105") from None
    except RecursionError:
        raise UnusableInput("is nested too deeply", where=where, code="EH105") from None
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: {error.msg} at line {error.lineno} column {error.colno}"
        raise UnusableInput(message, where=where, code="EH105") from None
    except ValueError as error:
        raise UnusableInput(str(error), where=where, code="EH105") from None
    if not isinstance(value, dict):
        raise UnusableInput("must hold a JSON object ({...})", where=where, code="EH105")
    _check_tree(value, where)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"gives the key {twice!r} twice")
    return result


def _refuse_constant(literal: str) -> NoReturn:
    raise ValueError(f"holds {literal}, which is not JSON")


def _finite(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise ValueError(f"holds {literal[:30]}, too large for a float")
    return number


def _integer(literal: str) -> int:
    if len(literal) > _INTEGER_DIGITS:
        raise ValueError(f"holds {literal[:30]}, too large for an integer")
    return int(literal)


def _check_tree(root: dict[str, Any], where: str) -> None:
    pending: list[tuple[Any, int]] = [(root, 1)]
    while pending:
        value, depth = pending.pop()
        if depth > _DEPTH_LIMIT:
            raise UnusableInput(f"is nested more than {_DEPTH_LIMIT} levels deep", where=where, code="EH105")
        match value:
            case dict():
                pending.extend((item, depth + 1) for pair in value.items() for item in pair)
            case list():
                pending.extend((item, depth + 1) for item in value)
            case str() if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
                raise UnusableInput(f"holds half a surrogate pair in {value!r}", where=where, code="EH105")
