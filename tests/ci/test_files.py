"""The files for other people's machines, by the schemas and linters of those machines."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from eaglehub.resources import resource
from tests.ci.runner import ROOT

TEMPLATES = resource("templates", "ci")
# A template does not know where its reader has eaglehub from.
UNKNOWN, SOMEWHERE = "<owner>/eaglehub@<commit>", f"somebody/eaglehub@{'0' * 40}"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
SCHEMAS = {
    "github-workflows": [*WORKFLOWS, TEMPLATES / "github.yml"],
    "github-actions": [ROOT / "action.yml"],
    "github-issue-forms": FORMS,
    "dependabot": [ROOT / ".github" / "dependabot.yml"],
    "gitlab-ci": [TEMPLATES / "gitlab.yml"],
}


def tool(name: str) -> Path:
    """A command of the environment that the tests run in."""
    return Path(sys.executable).with_name(name)


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "files"), SCHEMAS.items(), ids=SCHEMAS)
def test_schema(schema: str, files: list[Path]) -> None:
    assert files
    command = [tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files]

    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_workflows_and_action_are_safe(tmp_path: Path) -> None:
    """Everything pinned, no expression in a script, no right too many, no credentials left behind."""
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    template = (TEMPLATES / "github.yml").read_text()
    assert template.count(UNKNOWN) == 3
    (workflows / "template.yml").write_text(template.replace(UNKNOWN, SOMEWHERE))

    done = subprocess.run(
        [tool("zizmor"), "--offline", "--no-progress", *WORKFLOWS, ROOT / "action.yml", workflows / "template.yml"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_the_job_is_one_for_kubernetes() -> None:
    import kubernetes_validate

    job = yaml.safe_load((TEMPLATES / "kubernetes.yaml").read_text())

    kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)


def test_the_job_locks_its_containers_and_takes_a_verdict_for_final() -> None:
    spec = yaml.safe_load((TEMPLATES / "kubernetes.yaml").read_text())["spec"]
    pod = spec["template"]["spec"]

    [final] = [rule["onExitCodes"] for rule in spec["podFailurePolicy"]["rules"] if rule["action"] == "FailJob"]
    assert (final["operator"], final["values"]) == ("In", [1, 2, 3])
    assert pod["restartPolicy"] == "Never"
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in (*pod["initContainers"], *pod["containers"]):
        locked = container["securityContext"]
        assert (locked["allowPrivilegeEscalation"], locked["readOnlyRootFilesystem"]) == (False, True)
        assert locked["capabilities"] == {"drop": ["ALL"]}
    [verify] = pod["containers"]
    assert verify["resources"]["limits"]["nvidia.com/gpu"] == "1"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_forms_ask_for_what_a_report_needs(form: Path) -> None:
    asked = form.read_text()

    assert "eaglehub env" in asked
    assert "eaglehub inspect DRAFTER --json" in asked


@pytest.mark.slow
def test_scripts() -> None:
    shellcheck = shutil.which("shellcheck")
    if not shellcheck:
        pytest.skip("shellcheck is not installed")

    done = subprocess.run([shellcheck, *(ROOT / ".ci").iterdir()], capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
