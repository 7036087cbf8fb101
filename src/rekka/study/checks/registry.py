"""``check_study``: every check on a study, in the order of their codes."""

from __future__ import annotations

from pathlib import Path

from rekka.study.checks import baselines, cases, choices, failures, fits, golden
from rekka.study.checks.evidence import Calibrations, Evidence
from rekka.study.checks.findings import Check, Finding, sort_findings
from rekka.study.compare import load_study
from rekka.study.study import Study

_ALL = (*fits.CHECKS, *failures.CHECKS, *cases.CHECKS, *choices.CHECKS, *baselines.CHECKS, *golden.CHECKS)
CHECKS: tuple[Check, ...] = tuple(sorted(_ALL, key=lambda one: one.code))


def check_study(study: Study | str | Path, *, calibrations: Calibrations | None = None) -> tuple[Finding, ...]:
    """Look a study over: one finding for each check, issues first, then tips, passed and not applicable.

    Parameters
    ----------
    study : Study or path
        Finished or not; a path is a run folder.
    calibrations : mapping, optional
        ``study.calibration(case, preset, rows="train")`` of chosen models, by (preset, case). The test of fit
        takes some seconds a case; without calibrations it is not applicable.

    """
    evidence = Evidence(study if isinstance(study, Study) else load_study(study), calibrations)
    return sort_findings(check.run(evidence) for check in CHECKS)
