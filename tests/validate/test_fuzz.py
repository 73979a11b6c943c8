"""No header and no config brings the validator down."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.validate.fuzz import examples

MEMORY_LIMIT_MIB = 500


def test_some_cases() -> None:
    examples(80)()


@pytest.mark.slow
def test_many_cases() -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.validate.fuzz", "20000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MEMORY_LIMIT_MIB
