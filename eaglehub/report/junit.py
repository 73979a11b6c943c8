"""JUnit XML, as CI servers show it: a suite a drafter, a case a rule or check."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO
from xml.etree import ElementTree as ET

from eaglehub.report.cases import CasesReport
from eaglehub.report.text import escaped

if TYPE_CHECKING:
    from eaglehub.report.cases import Case, Suite
    from eaglehub.report.report import Report


def write_junit(report: Report, stream: TextIO) -> None:
    """Write the document; the command line offers the format for reports with cases alone."""
    if not isinstance(report, CasesReport):
        raise TypeError(f"a report of kind {report.kind} has no cases")
    root = ET.Element("testsuites", name="eaglehub")
    for suite in report.suites():
        _write_suite(root, suite)
    ET.indent(root)
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    stream.write(ET.tostring(root, encoding="unicode") + "\n")


def _write_suite(root: ET.Element, suite: Suite) -> None:
    element = ET.SubElement(root, "testsuite", name=escaped(suite.name))
    element.set("tests", str(len(suite.cases)))
    element.set("failures", str(sum(bool(case.failure) for case in suite.cases)))
    element.set("skipped", str(sum(bool(case.skipped) for case in suite.cases)))
    for case in suite.cases:
        name = f"{case.code} {case.title}"
        _write_case(ET.SubElement(element, "testcase", classname=escaped(suite.name), name=name), case)


def _write_case(element: ET.Element, case: Case) -> None:
    output = "\n".join(map(escaped, case.output))
    if case.failure:
        ET.SubElement(element, "failure", message=escaped(case.failure), type=case.code).text = output
    elif case.skipped:
        ET.SubElement(element, "skipped", message=escaped(case.skipped))
    elif output:
        ET.SubElement(element, "system-out").text = output
