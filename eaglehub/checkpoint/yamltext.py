"""YAML that somebody else wrote: whatever is wrong with it is one kind of error, and it stays as large as it looks."""

from __future__ import annotations

from typing import Any

import yaml

# Aliases let a few lines stand for billions of nodes; nobody writes that many by hand.
_MOST_NODES = 100_000


def load_yaml(text: str) -> tuple[yaml.Node | None, Any]:
    """The document's root node, None for an empty one, and its value.

    Raises:
        yaml.YAMLError: it is no YAML, a scalar is not what it looks like, it is nested too deeply, or aliases make it
            endless or more than 100,000 nodes large. Where it is a `MarkedYAMLError`, it knows the line.
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            return None, None
        if _size(root, {}) > _MOST_NODES:
            raise yaml.YAMLError("its aliases make it too large")
        return root, loader.construct_document(root)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None


class _Loader(yaml.SafeLoader):
    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """A scalar that looks like a date or a number and is none fails as the rest of YAML does, at its line."""
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, KeyError, AttributeError, IndexError) as error:
            what = f"{str(node.value)[:40]!r} is no {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Nodes below and with this one, those of an alias counted each time; without an end it is a RecursionError."""
    if id(node) not in known:
        inner = [part for item in node.value for part in (item if isinstance(item, tuple) else (item,))]
        known[id(node)] = 1 + sum(_size(part, known) for part in inner if isinstance(part, yaml.Node))
    return known[id(node)]
