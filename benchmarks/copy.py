"""How long a verified copy of a checkpoint takes, as a multiple of `cp` and `sync`.

Both run in turn on the same data in the same folder, and the medians are compared. The verified copy reads from the disk
what it wrote, so where the disk is the bottleneck its share of reading shows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.checkpoints import copy_checkpoint, make_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable


def main(arguments: list[str] | None = None) -> float:
    """Measure, print one line, return the ratio."""
    options = _parse(arguments)
    with tempfile.TemporaryDirectory(prefix="eaglehub-bench-", dir=options.folder) as folder:
        source, output = Path(folder, "source"), Path(folder, "output")
        make_checkpoint(source, options.size << 20, "BF16")
        subprocess.run(["cat", source / "model.safetensors"], check=True, stdout=subprocess.DEVNULL)
        plain, verified = [], []
        for _ in range(options.rounds):
            plain.append(_seconds(lambda: _plain_copy(source, output), output))
            verified.append(_seconds(lambda: copy_checkpoint(source, output, "BF16"), output))
    seconds, baseline = median(verified), median(plain)
    ratio = seconds / baseline
    print(f"copy: {ratio:.2f} of cp + sync ({seconds:.2f} s against {baseline:.2f} s, {options.size} MiB)")
    return ratio


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048, help="MiB of weights")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    parser.add_argument("--folder", default=".", help="where to write; not a memory file system")
    return parser.parse_args(arguments)


def _plain_copy(source: Path, output: Path) -> None:
    subprocess.run(["cp", "-r", source, output], check=True)
    os.sync()


def _seconds(work: Callable[[], None], output: Path) -> float:
    start = time.perf_counter()
    work()
    elapsed = time.perf_counter() - start
    shutil.rmtree(output)
    os.sync()
    return elapsed


if __name__ == "__main__":
    main()
