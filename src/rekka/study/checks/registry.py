"""``check_study``: every check on a study, the gravest findings first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from rekka.checks.engine import Finding, Severity, Subject, load_checks, run_checks, sort_findings
from rekka.core.errors import count_of
from rekka.study.checks.evidence import Calibrations, StudyEvidence
from rekka.study.compare import load_study
from rekka.study.study import Study


def check_study(study: Study | str | Path, *, calibrations: Calibrations | None = None) -> tuple[Finding, ...]:
    """Look a study over: one finding for each check, issues first, then tips, passed and not applicable.

    Parameters
    ----------
    study : Study or path
        Finished or not; a path is a run folder.
    calibrations : mapping, optional
        ``study.calibration(case, preset, rows="train")`` of chosen models, by (preset, case). The test of fit
        takes some seconds a case; without calibrations it is not applicable.

    Examples
    --------
    >>> import rekka
    >>> [finding.code for finding in rekka.check_study("run") if finding.verdict == "issue"]
    []

    """
    load_checks("rekka.study.checks")
    known = study if isinstance(study, Study) else load_study(study)
    findings = run_checks(Subject.STUDY, StudyEvidence(known, calibrations))
    reword = known.ratings.reword_all  # what a fit says of its states was stored without their labels
    return sort_findings(replace(one, places=reword(one.places)) for one in findings)


def headline(findings: Collection[Finding]) -> str:
    """'2 issues, 5 tips; 12 checks passed, 3 not applicable'."""
    verdicts = [one.verdict for one in findings]
    issues, tips = (count_of(verdicts.count(word), word) for word in ("issue", "tip"))
    fine = count_of(verdicts.count(Severity.PASSED), "check")
    return f"{issues}, {tips}; {fine} passed, {verdicts.count(Severity.NOT_APPLICABLE)} not applicable"
