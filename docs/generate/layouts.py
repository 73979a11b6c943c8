"""Every layout, from its format spec."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import eaglehub.formats
from docs.generate.markdown import CONVENTIONS, code, plain, table, yes
from eaglehub.drafter.drafter import FLAGS
from eaglehub.formats.spec import load_format

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eaglehub.formats.spec import FormatSpec, Signature, Writer

_KINDS = {"llama": "llama", "qwen3": "qwen3 (q/k norms)", "mla": "MLA"}
_ASKED = {"true": "asked when true", "missing": "asked when missing"}
_ASKED = {"true": "asked when true", "missing": "asked when missing"}


def layouts() -> Iterator[str]:
    """Lines of the page."""
    specs = [load_format(file) for file in sorted(Path(eaglehub.formats.__path__[0]).glob("*.yaml"))]
    yield "# Layouts"
    yield ""
    yield "Each layout is a file in `eaglehub/formats/`. This page is made of them. The words are in the"
    yield "[glossary](../glossary.md), and [layer ids](../layer-ids.md) has a page of its own. `eaglehub formats NAME`"
    yield "prints one of them."
    rows = (
        (f"[{spec.id}](#{spec.id})", spec.title, yes(spec.detect), yes(spec.writer), _ids(spec) or "-")
        for spec in specs
    )
    yield from ("", *table(("layout", "who", "read", "written", "nested layer ids"), rows))
    for spec in specs:
        yield from _format(spec)


def _format(spec: FormatSpec) -> Iterator[str]:
    yield from ("", f"## {spec.id}", "", f"**{spec.title}.** {plain(spec.about)}")
    if spec.detect:
        yield from ("", "Recognised by any of these:", "")
        yield from (f"- {_signature(signature)}" for signature in spec.detect)
    if spec.renames:
        yield from ("", "Tensors:", "")
        kept = ((code(rule.source), code(rule.canonical)) for rule in spec.renames)
        dropped = ((code(rule.source), f"dropped: {rule.reason}") for rule in spec.drops)
        yield from table(("in the file", "in vLLM's terms"), (*kept, *dropped))
    yield from _meanings(spec)
    if spec.writer:
        yield from _writing(spec.writer)


def _signature(signature: Signature) -> str:
    wanted = [f"{code(key)} is {_value(value)}" for key, value in signature.config.items()]
    wanted += [f"a tensor {code(name)}" for name in signature.tensors]
    wanted += [f"file metadata {code(signature.metadata)}"] if signature.metadata else []
    unwanted = [code(name) for name in (*signature.without_config, *signature.without_tensors)]
    text = " and ".join(wanted) + (f", without {', '.join(unwanted)}" if unwanted else "")
    return f"{text} ({signature.strength})"


def _value(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return "there" if value is None else " or ".join(code(json.dumps(each).strip('"')) for each in values)


def _meanings(spec: FormatSpec) -> Iterator[str]:
    rows = [
        (code(name), ", ".join(map(code, spec.flags[name].keys)), _reason(_ASKED, spec.flags[name].ask, why))
        for name in FLAGS
        if (why := spec.flags[name].why)
    ]
    if spec.layer_ids.nested or spec.layer_ids.why:
        known = {"": "asked", **CONVENTIONS}
        rows += [
            ("layer ids", code(spec.layer_ids.nested), _reason(known, spec.layer_ids.convention, spec.layer_ids.why))
        ]
    if spec.rope:
        rows += [("RoPE base", "", plain(spec.rope["why"]))]
    if spec.drop_keys:
        rows += [
            ("dropped keys", ", ".join(map(code, spec.drop_keys)), "; ".join(dict.fromkeys(spec.drop_keys.values())))
        ]
    if rows:
        yield from ("", "What its keys mean:", "", *table(("what", "where", "how it is read"), rows))


def _reason(words: dict[str, str], value: str, why: str) -> str:
    return f"{words[value]}: {plain(why)}" if why else words[value]


def _writing(writer: Writer) -> Iterator[str]:
    kinds = ", ".join(f"{_KINDS[kind]} as {code(name)}" for kind, name in writer.architectures.items())
    yield from ("", f"Written for {kinds}.")
    if writer.layer_ids:
        places = (f"{code(path)} ({CONVENTIONS[str(name)]})" for path, name in writer.layer_ids.items())
        yield f"Layer ids go to {', '.join(places)}."
    if writer.cannot:
        yield from ("", "It cannot hold:", "")
        yield from (f"- {code(trait)}: {reason}" for trait, reason in writer.cannot.items())


def _ids(spec: FormatSpec) -> str:
    return {"": "asked", **CONVENTIONS}[spec.layer_ids.convention] if spec.layer_ids.nested else ""
