"""The package as users get it: data files in a wheel, and no torch for anything but pickles."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.drafters import build

ROOT = Path(__file__).parent.parent

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["torch", "transformers", "vllm", "huggingface_hub"]))
from eaglehub.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["inspect", "convert", "diff"])
def test_safetensors_need_no_torch(command: str, tmp_path: Path) -> None:
    drafter = build("specforge", tmp_path / "drafter").path
    other = {"inspect": [], "convert": [tmp_path / "out"], "diff": [drafter]}[command]

    result = subprocess.run([sys.executable, "-c", WITHOUT, command, drafter, *other], capture_output=True, text=True)

    assert result.returncode == 0, result.stderr


def test_a_pickle_without_torch_says_what_to_install(tmp_path: Path) -> None:
    drafter = build("specforge", tmp_path / "drafter").path
    (drafter / "model.safetensors").rename(drafter / "pytorch_model.bin")

    result = subprocess.run([sys.executable, "-c", WITHOUT, "inspect", drafter], capture_output=True, text=True)

    assert result.returncode == 4
    assert "eaglehub[train]" in result.stderr


@pytest.mark.slow
def test_a_wheel_carries_its_data(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path / "wheels", ROOT], check=True)
    wheel = next((tmp_path / "wheels").glob("*.whl"))
    subprocess.run([*pip, "install", "--no-deps", "--target", tmp_path / "site", wheel], check=True)

    found = subprocess.run(
        [sys.executable, "-m", "eaglehub", "schema", "native-config"],
        env={"PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )

    assert found.stdout == (ROOT / "schemas" / "native-config.schema.json").read_bytes()
    assert (tmp_path / "site" / "eaglehub" / "formats" / "specforge.yaml").is_file()
    assert (tmp_path / "site" / "eaglehub" / "templates").is_dir()
