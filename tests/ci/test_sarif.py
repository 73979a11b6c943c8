"""SARIF by its own schema; the models are generated from the standard's, with nothing more allowed than it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run
from tests.validate.cases import build, load

if TYPE_CHECKING:
    from pathlib import Path

CASES = {
    "clean": {"base": "vllm-3"},
    "strange": {
        "base": "vllm-3",
        "config": {"auto_map": {"AutoConfig": "x"}, "_name_or_path": "/a b/c"},
        "files": {"code %41 #1? <b>.py": "pass"},
    },
    "no-drafter": load("bad")["EH101-no-config"],
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_schema(case: dict[str, object], tmp_path: Path) -> None:
    from fluidattacks_core.sarif import SarifLog

    log = json.loads(run("validate", build(case, tmp_path / "drafter"), "--format", "sarif").stdout)

    SarifLog.model_validate(log)
    log["runs"][0]["results"].append({"nonsense": 1})
    with pytest.raises(ValueError, match="nonsense"):
        SarifLog.model_validate(log)
