"""`eaglehub card`: what stands in it, and what must not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.cli_runner import run
from tests.drafters import build
from tests.publish.reports import FINETUNE, UPGRADE, evaluation, extend, robust

if TYPE_CHECKING:
    from pathlib import Path


def front(text: str) -> dict:
    return yaml.safe_load(text.split("---\n")[1])


def test_the_conventions_of_drafters(drafter: Path) -> None:
    result = run("card", drafter, "--base-model", "acme/target", "--license", "apache-2.0", "--source-model", "a/b")

    assert front(result.stdout) == {
        "license": "apache-2.0",
        "library_name": "vllm",
        "pipeline_tag": "text-generation",
        "base_model": "acme/target",
        "tags": ["speculative-decoding", "eagle3"],
    }
    assert "made from [a/b](https://huggingface.co/a/b)" in result.stdout
    assert not (drafter / "README.md").exists()


def test_the_name_of_a_licence_goes_with_it(drafter: Path) -> None:
    own = {"license": "other", "license_name": "llama", "license_link": "LICENSE", "language": "en"}
    (drafter / "README.md").write_text(f"---\n{yaml.safe_dump(own)}---\n")

    assert own.items() <= front(run("card", drafter).stdout).items()
    renewed = front(run("card", drafter, "--license", "mit").stdout)
    assert (renewed["license"], renewed["language"]) == ("mit", "en")
    assert not {"license_name", "license_link"} & set(renewed)


def test_the_figures_of_the_report(drafter: Path) -> None:
    report = json.loads((drafter / "eaglehub-verify.json").read_text())
    text = run("card", drafter).stdout

    acceptance = report["acceptance"]
    assert f"{acceptance['acceptance_length']:.3f}" in text
    rates = [f"{rate:.3f}" for rate in acceptance["per_position_acceptance_rates"]]
    assert f"| {' | '.join(rates)} |" in text
    assert "**pass**" in text
    assert report["hardware"]["cpu"] in text
    assert "vLLM 0.0.fake, v1 model runner" in text


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    build("vllm-3.1", tmp_path / "drafter")

    result = run("card", tmp_path / "drafter")

    assert "eaglehub-verify.json is missing, so the card has nothing of it" in result.stderr
    assert set(front(result.stdout)) == {"library_name", "pipeline_tag", "tags"}
    assert "eagle3.1" in front(result.stdout)["tags"]
    for heading in ("## Acceptance", "## Verification", "## Where it comes from"):
        assert heading not in result.stdout
    assert "it has not been verified in an engine" in result.stdout
    assert "None" not in result.stdout


def test_what_was_done_to_it_and_what_that_changed(drafter: Path) -> None:
    extend(drafter / "eaglehub.json", upgrade=UPGRADE, finetune=FINETUNE)
    (drafter / "eaglehub-evaluate.json").write_text(json.dumps(evaluation(drafter)))

    result = run("card", drafter, "--write")

    assert result.stderr == ""
    text = (drafter / "README.md").read_text()
    for figure in ("| before | 1.601 (1.501 to 1.701)", "| after | 1.599", "| before | 1.654", "| after | 1.765"):
        assert figure in text
    assert "| long context | 1.777 (1.677 to 1.877) | 1.777 (1.677 to 1.877) |" in text
    assert "keeping 99.9 % of the acceptance length (98.0 % to 101.0 %)" in text
    assert "  - exact: the logits are unchanged" in text
    assert "fine-tuned (norms) for 12 steps on 45678 tokens" in text
    assert "training data: 321 conversations, digest abab" in text
    assert "longest trained length: 987 tokens" in text
    assert (drafter / "eaglehub-suites.png").read_bytes().startswith(b"\x89PNG")


def test_long_contexts_templates_and_system_prompts(drafter: Path) -> None:
    report = drafter / "eaglehub-verify.json"
    extend(report, robust=robust(), compared=json.loads(report.read_text())["drafter"] | {"name": "other"})

    run("card", drafter, "--write")

    text = (drafter / "README.md").read_text()
    assert "| of plain chat | against other |" in text
    assert "| plain chat | 30 | 2.500 (2.400 to 2.600) |  | +0.100 ± 0.020 |" in text
    assert "| long context, up to 1024 tokens | 900 | 2.300 (2.200 to 2.400) | 0.920 ± 0.050 | +0.100 ± 0.020 |" in text
    assert "| without the first token | 29 | 2.200 (2.100 to 2.300) | 0.880 ± 0.050 | +0.100 ± 0.020 |" in text
    for chart in ("contexts", "conditions"):
        assert f"](eaglehub-{chart}.png)" in text
        assert (drafter / f"eaglehub-{chart}.png").read_bytes().startswith(b"\x89PNG")


def test_training_that_was_of_no_use_is_said(drafter: Path) -> None:
    extend(drafter / "eaglehub.json", finetune=FINETUNE | {"kept": False})
    text = run("card", drafter).stdout
    assert "its weights are those of before" in text
    assert "1.765" not in text


def test_how_each_engine_is_started(tmp_path: Path) -> None:
    build("vllm-3.1", tmp_path / "vllm")
    build("vllm-3.1", tmp_path / "source")
    assert run("convert", tmp_path / "source", tmp_path / "sglang", "--to", "sglang").exit_code == 0

    vllm, sglang = (
        run("card", tmp_path / name, "--base-model", "acme/target", "--name", "acme/drafter").stdout
        for name in ("vllm", "sglang")
    )

    assert 'vllm serve acme/target --speculative-config \'{"method": "eagle3", "model": "acme/drafter"' in vllm
    assert "SGLang would not read this layout as meant (EH" in vllm
    assert "--speculative-draft-model-path acme/drafter" in sglang
    assert "## Serving" not in run("card", tmp_path / "vllm").stdout


def test_a_report_of_other_weights_says_nothing(drafter: Path) -> None:
    config = json.loads((drafter / "config.json").read_text()) | {"transformers_version": "5"}
    (drafter / "config.json").write_text(json.dumps(config))

    result = run("card", drafter)

    assert "was made of other weights or another config.json" in result.stderr
    assert "## Acceptance" not in result.stdout


def test_written_beside_the_drafter_and_renewed(drafter: Path) -> None:
    assert run("card", drafter, "--write").exit_code == 0
    card = drafter / "README.md"
    assert (drafter / "eaglehub-acceptance.png").read_bytes().startswith(b"\x89PNG")
    assert "![Acceptance by draft position](eaglehub-acceptance.png)" in card.read_text()
    card.write_text(card.read_text().replace("## Limits", "## Changed limits") + "\n## Thanks\n\nTo all.\n")

    assert run("card", drafter, "--license", "mit", "--write").exit_code == 0

    text = card.read_text()
    assert front(text)["license"] == "mit"
    assert "## Limits" in text
    assert "Changed limits" not in text
    assert "## Thanks\n\nTo all." in text


def test_drawn_alike_each_time(drafter: Path) -> None:
    run("card", drafter, "--write")
    first = (drafter / "eaglehub-acceptance.png").read_bytes()
    run("card", drafter, "--write")
    assert (drafter / "eaglehub-acceptance.png").read_bytes() == first


def test_names_from_files_cannot_write_markdown(drafter: Path) -> None:
    report = json.loads((drafter / "eaglehub-verify.json").read_text())
    hostile = "x`|\n# heading\n<script>alert(1)</script> [a](http://b) {{ 7*7 }}"
    report["target"]["name"] = report["checks"][0]["summary"] = report["hardware"]["cpu"] = hostile
    (drafter / "eaglehub-verify.json").write_text(json.dumps(report))

    text = run("card", drafter).stdout

    assert "\n# heading" not in text
    assert "<script>" not in text.replace("`x| # heading <script>alert(1)</script> [a](http://b) {{ 7*7 }}`", "")
    assert "[a](http" not in text.replace("`x| # heading <script>alert(1)</script> [a](http://b) {{ 7*7 }}`", "")
    assert "49" not in text.split("## Verification")[1].split("## ")[0]


@pytest.mark.parametrize("name", ["eaglehub.json", "README.md", "config.json"])
def test_damaged_files_are_one_line(drafter: Path, name: str) -> None:
    (drafter / name).write_bytes(b'{"tool": "\xff"}')
    result = run("card", drafter)
    assert (result.exit_code, result.stdout) == (3, "")
    assert sum(line.startswith("error: ") for line in result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "line", ["date: 2026-13-45", "base_model: {org: model}", 'base_model: "a\\n```\\nb"', "a: &a [*a]"]
)
def test_front_matter_that_cannot_be(drafter: Path, line: str) -> None:
    (drafter / "README.md").write_text(f"---\n{line}\n---\nMine.\n")
    result = run("card", drafter, "--write")
    assert result.exit_code == 3
    assert "error: README.md: " in result.stderr
    assert (drafter / "README.md").read_text().endswith("Mine.\n")


def test_front_matter_that_json_cannot_say(drafter: Path) -> None:
    (drafter / "README.md").write_text("---\nreleased: 2026-01-31\nrates: {1: 0.5, two: 0.25}\n---\n")
    assert run("card", drafter, "--write").exit_code == 0
    once = (drafter / "README.md").read_bytes()
    assert run("card", drafter, "--write").exit_code == 0
    assert (drafter / "README.md").read_bytes() == once


def test_a_folder_in_the_place_of_the_card(drafter: Path) -> None:
    (drafter / "README.md").mkdir()
    result = run("card", drafter, "--write")
    assert result.exit_code == 4
    assert f"{drafter / 'README.md'}: cannot write it: " in result.stderr


def test_no_charts_without_matplotlib(drafter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    result = run("card", drafter)
    assert "the card has no charts" in result.stderr
    assert "eaglehub-acceptance.png" not in result.stdout
