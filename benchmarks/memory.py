"""Peak memory of a verified copy and of a cast, as a share of the 250 MiB they may use whatever the size."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.checkpoints import make_checkpoint

_LIMIT_MIB = 250
# VmHWM starts afresh with the program; ru_maxrss would remember the size of the process that started it.
_MEASURED = """
import sys
from pathlib import Path
from benchmarks.checkpoints import copy_checkpoint
source, destination, dtype = sys.argv[1:]
copy_checkpoint(Path(source), Path(destination), dtype)
[line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(int(line.split()[1]) / 1024)
"""


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Measure, print one line for each kind of work, return MiB by kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2048, help="MiB of weights")
    parser.add_argument("--folder", default=".", help="where to write")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="eaglehub-bench-", dir=options.folder) as folder:
        source = Path(folder, "source")
        make_checkpoint(source, options.size << 20, "F32")
        peaks = {kind: _peak(source, Path(folder, kind), dtype) for kind, dtype in (("copy", "F32"), ("cast", "BF16"))}
    for kind, peak in peaks.items():
        print(f"memory of a {kind}: {peak / _LIMIT_MIB:.2f} of {_LIMIT_MIB} MiB ({peak:.0f} MiB, {options.size} MiB)")
    return peaks


def _peak(source: Path, destination: Path, dtype: str) -> float:
    command = [sys.executable, "-c", _MEASURED, str(source), str(destination), dtype]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
