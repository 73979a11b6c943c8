"""Extraction with vLLM: the worker runs in a process group of its own; its shards are stored as they appear."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eaglehub.errors import EnvironmentProblem
from eaglehub.features.store import Features

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from eaglehub.features.encode import Sample
    from eaglehub.features.extraction import Source
    from eaglehub.features.store import Store

_WORKER = Path(__file__).with_name("vllm_process") / "worker.py"
_POLL_S = 0.2
_BATCH_TOKENS = 8192
_ENVIRONMENT = {
    # The engine in the worker's own process: a second one would cost an import of torch and gain nothing here.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # The target's final norm is applied inside its workers, whose functions come by pickle from the worker itself.
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def fill(source: Source, stores: Sequence[Store], progress: Callable[[int], None]) -> None:
    """Extract every shard that the stores lack; `progress` is told the bytes of each.

    Raises:
        EnvironmentProblem: vLLM failed; the message is its own.
    """
    work = [(store, number) for store in stores for number in store.missing()]
    with tempfile.TemporaryDirectory(prefix="eaglehub-features-vllm-") as name:
        folder = Path(name)
        (folder / "request.json").write_text(json.dumps(_request(source, work, folder)), encoding="utf-8")
        with _started(folder) as process:
            for place, (store, number) in enumerate(work):
                features = _shard(_await(folder / f"{place}.safetensors", process), store, number)
                store.write_shard(number, features)
                progress(sum(each.aux.nbytes + each.head_input.nbytes for each in features))


def _request(source: Source, work: Sequence[tuple[Store, int]], folder: Path) -> dict[str, Any]:
    longest = max(_length(sample, store) for store, number in work for sample in store.extraction.shards[number])
    engine = {
        "model": str(source.folder.absolute()),
        "dtype": source.compute_dtype,
        "seed": 0,
        "max_model_len": longest + 2,
        # A prompt is prefilled in one piece: then all its states come from one pass.
        "max_num_batched_tokens": max(_BATCH_TOKENS, longest + 2),
        "trust_remote_code": source.trust_remote_code,
        "tensor_parallel_size": source.tensor_parallel_size,
        "distributed_executor_backend": source.executor,
    }
    return {
        "engine": {key: value for key, value in engine.items() if value is not None},
        "cpu_engine": {"enforce_eager": True, "kv_cache_memory_bytes": 1 << 30},
        "layer_ids": list(work[0][0].extraction.layer_ids),
        "num_layers": source.target.num_hidden_layers,
        "folder": str(folder),
        "shards": [[_sample(each, store) for each in store.extraction.shards[number]] for store, number in work],
    }


def _sample(sample: Sample, store: Store) -> dict[str, Any]:
    count = store.extraction.max_tokens + store.extraction.lookahead if sample.answer is None else 0
    return {"tokens": [*sample.prompt, *(sample.answer or ())], "count": count}


def _length(sample: Sample, store: Store) -> int:
    asked = _sample(sample, store)
    return len(asked["tokens"]) + int(asked["count"])


@contextlib.contextmanager
def _started(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(_WORKER), str(folder / "request.json")],
            env=os.environ | _ENVIRONMENT | {"PYTHONPATH": _python_path()},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdin:
                process.stdin.close()


def _python_path() -> str:
    """With the worker's folder, where vLLM finds the connector by its bare name in every process."""
    return os.pathsep.join(filter(None, [str(_WORKER.parent), os.environ.get("PYTHONPATH")]))


def _await(file: Path, process: subprocess.Popen[bytes]) -> Path:
    while not file.exists():
        if process.poll() is not None and not file.exists():
            raise EnvironmentProblem(f"vLLM could not run the target: {_reason(file.parent)}", where="--engine vllm")
        time.sleep(_POLL_S)
    return file


def _reason(folder: Path) -> str:
    error = folder / "error"
    if error.exists():
        return error.read_text(encoding="utf-8").splitlines()[0][:300]
    lines = (folder / "log").read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[-1][:300] if lines else "it ended without a word"


def _shard(file: Path, store: Store, number: int) -> list[Features]:
    from safetensors.torch import load_file

    tensors = load_file(file)
    file.unlink()
    features = []
    for index, sample in enumerate(store.extraction.shards[number]):
        tokens, aux, head = (tensors[f"{index}.{name}"] for name in ("tokens", "aux", "head_input"))
        end = store.answer_end(tokens.tolist(), sample)
        features.append(Features(tokens, len(sample.prompt), end, aux, head, sample.earlier))
    return features
