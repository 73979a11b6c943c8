"""`eaglehub validate`: start-up against Click's own, reading speed against the disk's, and peak memory.

The headers are read within `HEADER_LIMIT` times what `python -c "import click"` takes; with values, the weights are
read at `SPEED_LIMIT` of the speed at which the same files are read and thrown away, in less than `MEMORY_LIMIT_MIB`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.startup import CLICK
from eaglehub.checkpoint import OutputTensor, numpy_dtype, write_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

HEADER_LIMIT = 4.0
SPEED_LIMIT = 0.6
MEMORY_LIMIT_MIB = 250
_VALIDATE = [sys.executable, "-m", "eaglehub", "validate", "--format", "text"]
# Peak memory of the process itself: ru_maxrss would remember the size of the one that started it.
_MEASURED = """
import sys
from eaglehub.cli.main import main
code = main(["validate", *sys.argv[1:]])
[line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(int(line.split()[1]) / 1024, file=sys.stderr)
sys.exit(code)
"""
_BLOCK = 16 << 20


def make_drafter(folder: Path, nbytes: int) -> None:
    """Write a sound drafter in vLLM's layout whose embedding and head make about `nbytes` of bfloat16."""
    hidden, inner = 2048, 4096
    vocab = nbytes // (2 * 2 * hidden)
    config = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        "hidden_size": hidden,
        "target_hidden_size": hidden,
        "vocab_size": vocab,
        "draft_vocab_size": vocab,
        "num_hidden_layers": 1,
        "num_attention_heads": 16,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": inner,
        "num_aux_hidden_states": 3,
        "eagle_aux_hidden_state_layer_ids": [2, 14, 25],
        "max_position_embeddings": 8192,
        "torch_dtype": "bfloat16",
    }
    shapes = {
        "embed_tokens.weight": (vocab, hidden),
        "fc.weight": (hidden, 3 * hidden),
        "layers.0.self_attn.q_proj.weight": (2048, 2 * hidden),
        "layers.0.self_attn.k_proj.weight": (512, 2 * hidden),
        "layers.0.self_attn.v_proj.weight": (512, 2 * hidden),
        "layers.0.self_attn.o_proj.weight": (hidden, 2048),
        "layers.0.mlp.gate_proj.weight": (inner, hidden),
        "layers.0.mlp.up_proj.weight": (inner, hidden),
        "layers.0.mlp.down_proj.weight": (hidden, inner),
        "lm_head.weight": (vocab, hidden),
    }
    norms = ("input_layernorm", "hidden_norm", "post_attention_layernorm")
    shapes |= {f"layers.0.{norm}.weight": (hidden,) for norm in norms} | {"norm.weight": (hidden,)}
    noise = np.random.default_rng(0).standard_normal((512, 6144), np.float32).astype(numpy_dtype("BF16"))

    def blocks(shape: tuple[int, ...]) -> Iterator[npt.NDArray[np.generic]]:
        if len(shape) == 1:
            yield noise[0, : shape[0]]
        for start in range(0, shape[0] if len(shape) > 1 else 0, len(noise)):
            yield noise[: shape[0] - start, : shape[1]]

    tensors = [OutputTensor(name, "BF16", shape, lambda shape=shape: blocks(shape)) for name, shape in shapes.items()]
    write_checkpoint(folder, tensors, {"config.json": json.dumps(config).encode()})


def header_ratio(folder: Path, runs: int = 15) -> float:
    """Median time of `validate --no-values` over that of importing Click; the two take turns."""
    ours = [*_VALIDATE, "--no-values", str(folder)]
    pairs = [(_seconds(ours), _seconds(CLICK)) for _ in range(runs + 1)][1:]
    mine, clicks = zip(*pairs, strict=True)
    return statistics.median(mine) / statistics.median(clicks)


def value_speed(folder: Path, rounds: int = 3) -> tuple[float, float]:
    """Bytes a second of `validate`, whole run, and of reading the files and throwing them away; both from the disk."""
    nbytes = sum(file.stat().st_size for file in folder.iterdir())
    ours, disk = [], []
    for _ in range(rounds):
        _forget(folder)
        disk.append(_plain_read(folder))
        _forget(folder)
        ours.append(_seconds([*_VALIDATE, str(folder)]))
    return nbytes / statistics.median(ours), nbytes / statistics.median(disk)


def peak_mib(folder: Path) -> float:
    """Peak resident memory of `validate`."""
    done = subprocess.run([sys.executable, "-c", _MEASURED, str(folder)], check=True, capture_output=True, text=True)
    return float(done.stderr.split()[-1])


def _forget(folder: Path) -> None:
    """Drop the files from the page cache, so that they come from the disk."""
    for file in folder.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _plain_read(folder: Path) -> float:
    buffer = bytearray(_BLOCK)
    start = time.perf_counter()
    for file in folder.iterdir():
        with file.open("rb", buffering=0) as stream:
            while stream.readinto(buffer):
                pass
    return time.perf_counter() - start


def _seconds(command: list[str]) -> float:
    # An installed tool has its bytecode cached.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def main(arguments: list[str] | None = None) -> None:
    """Measure and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048, help="MiB of weights")
    parser.add_argument("--folder", default=".", help="where to write; not a memory file system")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="eaglehub-bench-", dir=options.folder) as folder:
        drafter = Path(folder, "drafter")
        make_drafter(drafter, options.size << 20)
        print(f"validate --no-values: {header_ratio(drafter):.2f}x of importing click (limit {HEADER_LIMIT}x)")
        ours, disk = value_speed(drafter)
        print(
            f"validate: {ours / disk:.2f} of the disk's speed (limit {SPEED_LIMIT}; {ours / 1e6:.0f} of "
            f"{disk / 1e6:.0f} MB/s, {options.size} MiB)"
        )
        print(f"validate: {peak_mib(drafter):.0f} MiB of memory (limit {MEMORY_LIMIT_MIB} MiB)")


if __name__ == "__main__":
    main()
