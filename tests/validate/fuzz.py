"""Any header and any config end in findings or a clean result: no exception, no more than `SECONDS` a case.

`python -m tests.validate.fuzz N` tries N examples, in rounds of `ROUND`, and prints the process's peak memory in MiB.
"""

from __future__ import annotations

import io
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from eaglehub.drafter.target import read_target
from eaglehub.engines import load_engine
from eaglehub.report.formats import REPORTERS
from eaglehub.validate import CATALOGUE, Settings, judge
from eaglehub.validate.report import ValidateReport
from tests.drafters import BUILDERS, NEEDS_TORCH, target_config

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 2
ROUND = 500
_BASES = sorted(set(BUILDERS) - NEEDS_TORCH)
_SOURCES = {name: BUILDERS[name].args[0]() for name in _BASES}  # type: ignore[attr-defined]
_ENGINES = {name: load_engine(name) for name in ("vllm", "vllm==0.10", "sglang", "tensorrt-llm", "none")}
_CONFIG_KEYS = sorted({key for source in _SOURCES.values() for key in source.config} | {"auto_map", "rope_parameters"})
_TENSOR_NAMES = sorted({name for source in _SOURCES.values() for name in source.tensors})
_DTYPES = ["BF16", "F16", "F32", "F64", "I64", "I32", "I8", "U64", "BOOL", "F8_E4M3", "F8_E5M2", "C64", "F4", ""]
_TYPES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8, "I64": 8, "I32": 4, "U64": 8, "C64": 8}
_MOST_AXIS = 1 << 20

words = st.sampled_from(
    [
        "llama",
        "qwen3",
        "kimi_k2",
        "deepseek_v3",
        "silu",
        "default",
        "yarn",
        "/a/b",
        "LlamaForCausalLMEagle3",
        "",
        "\x1b[2J",
    ]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.integers(-2, 200)
    | st.floats()
    | words
    | st.text(max_size=6)
)
documents: Any = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(_CONFIG_KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=10,
)
shapes = st.lists(st.integers(0, 200), max_size=2)
tensor_edits = st.fixed_dictionaries(
    {},
    optional={"dtype": st.sampled_from(_DTYPES), "shape": shapes | documents, "name": st.sampled_from(_TENSOR_NAMES)},
)
cases = st.fixed_dictionaries(
    {
        "base": st.sampled_from(_BASES),
        "config": st.dictionaries(st.sampled_from(_CONFIG_KEYS) | st.text(max_size=4), documents, max_size=4),
        "nested": st.dictionaries(st.sampled_from(_CONFIG_KEYS), documents, max_size=3),
        "unset": st.lists(st.sampled_from(_CONFIG_KEYS), max_size=3),
        "tensors": st.dictionaries(st.sampled_from(_TENSOR_NAMES), tensor_edits | st.none(), max_size=4),
        "header": st.dictionaries(st.text(max_size=4), documents, max_size=1),
        "flips": st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=2),
        "cut": st.integers(0, 40),
        # What is broken: the bytes, the header, or nothing but the meaning; the last goes deepest.
        "level": st.sampled_from([*["meaning"] * 6, "header", "bytes"]),
        "seed": st.integers(0, 255),
        "engine": st.sampled_from(sorted(_ENGINES)),
        "target": st.sampled_from([None, "llama", "kimi_k2", "gpt_oss"]),
        "values": st.booleans(),
    }
)


def examples(count: int, number: int = 0) -> Callable[[], None]:
    """The property, to be tried on that many cases, the same ones every time for the same `number`."""

    @seed(number)
    @given(case=cases)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: dict[str, Any]) -> None:
        # Of the processor: the wall clock also counts what else the machine does.
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            check(case, Path(folder))
        assert time.process_time() - start < SECONDS

    return holds


def check(case: dict[str, Any], folder: Path) -> None:
    """Write the case, judge it, and write the report in every format."""
    if case["level"] == "meaning":
        case = _clean(case) | {
            "header": {},
            "tensors": {name: _plain(edits) for name, edits in case["tensors"].items()},
        }
    if case["level"] != "bytes":
        case |= {"flips": [], "cut": 0}
    drafter = folder / "drafter"
    drafter.mkdir()
    (drafter / "config.json").write_bytes(_config(case))
    (drafter / "model.safetensors").write_bytes(_weights(case))
    target = read_target(target_config(case["target"], folder / "target")) if case["target"] else None
    engine = _ENGINES[case["engine"]]
    judgement = judge(drafter, Settings(engine=engine, target=target, values=case["values"]))
    assert judgement.exit_code in (0, 3)
    assert {finding.code for finding in judgement.findings} <= CATALOGUE.keys()
    report = ValidateReport((judgement,), engine, None, frozenset(CATALOGUE))
    for write in REPORTERS.values():
        write(report, io.StringIO())


def _clean(value: Any) -> Any:
    """Without what strict JSON refuses: such a config gets no further than the parser."""
    match value:
        case dict():
            return {key: _clean(item) for key, item in value.items() if not isinstance(key, str) or key.isprintable()}
        case list():
            return [_clean(item) for item in value]
        case float():
            return value if math.isfinite(value) else 0.5
        case int() if not isinstance(value, bool):
            return max(min(value, 2**62), -(2**62))
        case str():
            return value if value.isprintable() else "?"
    return value


def _plain(edits: dict[str, Any] | None) -> dict[str, Any] | None:
    """Edits that leave a header possible: a known type and a list of sizes."""
    if edits is None:
        return None
    edits = dict(edits)
    if edits.get("dtype") not in (*_TYPES, "I8", "BOOL", "F8_E4M3", "F8_E5M2"):
        edits.pop("dtype", None)
    shape = edits.get("shape")
    if not isinstance(shape, list) or not all(type(axis) is int and 0 <= axis <= 200 for axis in shape):
        edits.pop("shape", None)
    return edits


def _config(case: dict[str, Any]) -> bytes:
    config = _SOURCES[case["base"]].config | case["config"]
    for key, value in config.items():
        if isinstance(value, dict):
            config[key] = value | case["nested"]
    text = json.dumps({key: value for key, value in config.items() if key not in case["unset"]}, indent=1)
    return text.encode("utf-8", "surrogatepass")


def _weights(case: dict[str, Any]) -> bytes:
    """A safetensors file with an edited header, whose spans fit its shapes and types at the level of meaning."""
    entries = {
        name: {"dtype": _name(array.dtype), "shape": list(array.shape), "bytes": array.nbytes}
        for name, array in _SOURCES[case["base"]].tensors.items()
    }
    for name, edits in case["tensors"].items():
        if edits is None:
            entries.pop(name, None)
        else:
            entry = entries.pop(name, {"dtype": "BF16", "shape": [4], "bytes": 8})
            entries[edits.get("name", name)] = entry | edits
    header, position = dict(case["header"]), 0
    for name, entry in entries.items():
        size = _size(entry) if case["level"] == "meaning" else entry["bytes"]
        header[name] = {
            "dtype": entry["dtype"],
            "shape": entry["shape"],
            "data_offsets": [position, position + size],
        }
        position += size
    text = bytearray(json.dumps(header).encode("utf-8", "surrogatepass"))
    for place, byte in case["flips"]:
        text[int(place * (len(text) - 1))] = byte
    data = bytes((case["seed"] + index * 7) % 251 for index in range(1024)) * (position // 1024 + 1)
    whole = len(text).to_bytes(8, "little") + text + data[:position]
    return whole[: len(whole) - max(0, case["cut"] - 30)]


def _size(entry: dict[str, Any]) -> int:
    size = _TYPES.get(entry["dtype"], 1)
    for axis in entry["shape"] if isinstance(entry["shape"], list) else ():
        size *= axis if isinstance(axis, int) and 0 <= axis <= _MOST_AXIS else 0
    return size


def _name(dtype: Any) -> str:
    return {"bfloat16": "BF16", "float16": "F16", "float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL"}[
        dtype.name
    ]


if __name__ == "__main__":
    # In rounds: what hypothesis remembers of its cases would count as memory of the validator's.
    for round_number in range(-(-int(sys.argv[1]) // ROUND)):
        examples(ROUND, round_number)()
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    print(int(line.split()[1]) / 1024)
