"""`eaglehub report`, and the pages that other commands write: what stands on them, and that nothing gets out."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli_runner import run
from tests.drafters import build
from tests.pages.samples import acceptance, evaluation, finetuning, upgrading, verification

if TYPE_CHECKING:
    from pathlib import Path


class Outline(HTMLParser):
    """Tags, attributes, and the visible text by element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append(" ".join(data.split()))


def store(folder: Path, report: dict[str, Any], name: str = "report.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(report))
    return path


def html(path: Path) -> Outline:
    result = run("report", path, "--format", "html")
    assert result.exit_code == 0, result.stderr
    return Outline(result.stdout)


def test_the_verdict_comes_first_then_what_is_wrong(tmp_path: Path) -> None:
    page = html(store(tmp_path, verification()))
    body = page.words[page.words.index("\u2717 Fail") :]
    causes = ["diagnosis.cause: what diagnosis.cause is about", "lossless.batch: what lossless.batch is about"]
    order = ["What is wrong", *causes, "If the file were read otherwise", "Acceptance by draft position", "Checks"]
    places = [body.index(each) for each in order]
    assert places == sorted(places)
    assert {"75.0%", "25.0%", "320.0 (2.03\u00d7)", "a newer vLLM", "A GPU"} <= {
        word for text in body for word in (text, *text.split(maxsplit=1)[1:], text.removeprefix("NVIDIA ")[:5])
    }


def test_each_condition_stands_beside_plain_chat(tmp_path: Path) -> None:
    words = html(store(tmp_path, verification())).words
    for title, names in {
        "Acceptance length by context length": ["plain chat", "up to 512 tokens", "up to 2048 tokens", "1.80 (72%)"],
        "Acceptance length by template": ["plain chat", "without the template", "1.75 (70%)"],
        "Acceptance length under odd system prompts": [
            "plain chat",
            "odd system prompts",
            "2.00 (80%)",
            "+0.000 \u00b1 0.020",
        ],
    }.items():
        shown = words[words.index(title) :][:24]
        assert [name for name in names if name not in shown] == []


def test_the_page_loads_nothing_and_runs_nothing(tmp_path: Path) -> None:
    page = html(store(tmp_path, verification()))
    assert not {"script", "img", "iframe", "object", "embed"} & set(page.tags)
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | (names & {"src", "srcset"})
    assert [value for name, value in page.attributes if name == "href"] == ["data:,"]
    assert "url(" not in " ".join(page.words)


def test_a_hostile_name_is_text(tmp_path: Path) -> None:
    path = store(tmp_path, verification())
    page = run("report", path, "--format", "html").stdout
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;|`x`\\x1b[31m" in page
    page = run("report", path, "--format", "markdown").stdout
    assert "\\<script\\>alert(1)\\</script\\>\\|\\`x\\`\\\\x1b\\[31m" in page
    assert "\x1b" not in page + run("report", path).stdout


def test_markdown_has_tables_that_hold_together(tmp_path: Path) -> None:
    page = run("report", store(tmp_path, verification()), "--format", "markdown").stdout
    assert page.startswith("## \u2717 Fail: ")
    tables = [block.splitlines() for block in page.split("\n\n") if block.startswith("|")]
    assert len(tables) >= 5
    for table in tables:
        widths = {row.replace("\\|", "").count("|") for row in table}
        assert len(widths) == 1, table
        assert set(table[1]) <= set("| -:")
    assert "| 16 users | 132.1 (1.66\u00d7)" in page


def test_only_what_was_measured_is_shown(tmp_path: Path) -> None:
    report = verification() | {"acceptance": None, "compared_acceptance": None, "fast": [], "robust": []}
    page = html(store(tmp_path, report)).words
    assert "Checks" in page
    assert not [word for word in page if "draft position" in word or "Speed" in word or "Acceptance" in word]
    del report["fast"]
    assert html(store(tmp_path, report)).words == page


def test_text_is_the_page_for_a_terminal(tmp_path: Path) -> None:
    text = run("report", store(tmp_path, verification())).stdout
    assert text.split()[0] == "\u2717"
    assert "tokens/s, all users, with drafter" in text


def test_two_are_compared(tmp_path: Path) -> None:
    before, after = verification(), verification()
    before["drafter"]["name"], after["drafter"]["name"] = "old", "new"
    after["acceptance"] = acceptance([0.8, 0.6, 0.4])
    after["drafter"]["config"] |= {"norm_output": False}
    after["drafter"]["tensors"][0]["sha256"] = "e" * 64
    after["checks"][1]["verdict"] = "pass"
    files = store(tmp_path, before, "a.json"), store(tmp_path, after, "b.json")
    result = run("report", *files, "--format", "markdown")
    assert result.exit_code == 0
    page = result.stdout
    assert page.startswith("## new against old")
    assert "2.500 \u2192 2.800" in page
    assert "+0.300 (+12.0%)" in page
    assert "| lossless.batch | \u2717 fail | \u2713 pass |" in page
    assert "| norm\\_output | True | False |" in page
    assert "| fc.weight | 0123456789ab | eeeeeeeeeeee |" in page

    after["prompts"]["digest"] = "d" * 64
    page = run("report", files[0], store(tmp_path, after, "b.json"), "--format", "markdown").stdout
    assert page.startswith("## ! Not measured alike: new against old")
    assert "Different: the prompts." in page


def test_the_same_drafter_twice_is_told_apart_by_file(tmp_path: Path) -> None:
    files = store(tmp_path, verification(), "a.json"), store(tmp_path, verification(), "b.json")
    assert "(b.json) against" in run("report", *files, "--format", "markdown").stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"kind": "env"}', "there is no page for a report of kind 'env' (there is one for verify,"),
        ("{}", "is not a report of eaglehub"),
        ('{"kind": ["verify"]}', "there is no page for a report of kind ['verify']"),
        ('{"kind": "verify"}', "is not as eaglehub writes it: $: "),
        ("[", "report.json"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "report.json").write_text(content)
    result = run("report", tmp_path / "report.json")
    assert (result.exit_code, result.stdout) == (3, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_wrong_usage(tmp_path: Path) -> None:
    path = store(tmp_path, verification())
    other = tmp_path / "validate.json"
    assert run("validate", build("vllm-3", tmp_path / "drafter").path, "--output", f"json={other}").exit_code == 0
    assert run("report", path, other).exit_code == 2
    assert run("report", path, path, path).exit_code == 2
    assert run("report", path, "--json").exit_code == 2
    assert run("report", tmp_path / "absent.json").exit_code == 3


@pytest.mark.parametrize("kind", ["convert", "validate"])
def test_pages_of_other_commands(tmp_path: Path, kind: str) -> None:
    source = build("specforge", tmp_path / "source").path
    stored = tmp_path / "stored.json"
    arguments = {"convert": ["--dry-run"], "validate": []}[kind]
    run(kind, source, *arguments, "--output", f"json={stored}")
    page = run("report", stored, "--format", "markdown").stdout
    assert "EH711" in page if kind == "validate" else "midlayer" in page
    assert len(html(stored).words) > 20


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        (
            evaluation(),
            [
                "## old and new on org/target, without a server",
                "- **ratio of lengths, plain**: 130.0% (120.0% to 140.0%)",
                "| plain | 1.750 (1.650 to 1.850) ",
                "| step 2 | 2.00 ",
            ],
        ),
        (
            upgrading(),
            [
                "## upgraded: old upgraded to EAGLE 3.1",
                "- **acceptance length kept**: 100.0% (95 % interval 90.0% to 110.0%)",
                "| EH207 | note | rope\\_theta | a RoPE base |  |",
                "| fc\\_norm | False | True | upgraded: a norm |",
            ],
        ),
        (
            finetuning(),
            [
                "## \u2713 Kept: old fine-tuned",
                "1 tensor trained for 20 steps; the best was step 10.",
                "| step 10 | 1.900 ",
            ],
        ),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_pages_of_measurements(tmp_path: Path, report: dict[str, Any], shown: list[str]) -> None:
    path = store(tmp_path, report)
    page = run("report", path, "--format", "markdown")
    assert page.exit_code == 0, page.stderr
    assert [line for line in shown if line not in page.stdout] == []
    assert len(html(path).words) > 20


def test_a_command_makes_its_own_page(tmp_path: Path) -> None:
    drafter = build("specforge", tmp_path / "drafter").path
    judged = run("validate", drafter, "--format", "markdown")
    converted = run("convert", drafter, "--dry-run", "--output", f"html={tmp_path / 'page.html'}")
    assert (judged.exit_code, converted.exit_code) == (1, 0)
    assert "1 drafter checked as served by vllm" in judged.stdout
    assert "drafter: specforge to vllm" in Outline((tmp_path / "page.html").read_text()).words
