"""What somebody asks for, tables and a few options, made into a plan: on its own, or on top of a plan there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rekka.core.errors import BadOption
from rekka.data.options import ReadingOptions
from rekka.data.partition import PAPER_SEED
from rekka.data.tables import is_folder
from rekka.scaling.fitting import BEYOND, METHODS
from rekka.study.compare import BOTH, DEFAULT, resume_run, run_plan
from rekka.study.describing import describe_tables
from rekka.study.methods import SHRINKING
from rekka.study.plan import StudyPlan, default_clock, make_plan, read_plan
from rekka.study.runner import RunOptions
from rekka.study.store import load_plan
from rekka.study.study import Study

GROUPS = {"paper": METHODS, "beyond": BEYOND, "small": SHRINKING, "all": (*METHODS, *BEYOND, *SHRINKING)}


class Request(NamedTuple):
    """``tables``: files, one study file, or none for the built-in inventory. ``options``: what was given of
    [partition] and [study]; what was not is the plan's own, or the default.
    """  # noqa: D205

    tables: Sequence[Path] = ()
    reading: ReadingOptions = ReadingOptions()
    options: Mapping[str, Mapping[str, Any]] = {}


def begin_study(request: Request, out: Path, how: RunOptions = DEFAULT) -> Study:
    """Run a new study in a new run folder."""
    base, read = _study_file(request), request.reading
    if base is None:
        return run_plan(_plan(request, out), how=how, out=out)
    if read.mapping or read.changes or read.nbi:
        raise BadOption(
            f"{base.name} says itself how its tables are read; options that say it again are not applied. "
            "Change its [data], or give the tables instead of it."
        )
    plan = move_plan(read_plan(base), base.parent, out)
    return run_plan(_change(plan, request), how=how, out=out)


def continue_study(request: Request, out: Path, how: RunOptions = DEFAULT) -> Study:
    """Go on with a run; what is asked for besides must be what the run already does."""
    expected = _change(load_plan(out), request)
    if request.tables:
        expected = make_plan(**expected.model_dump() | {"data": _describe(request, out)})
    return resume_run(out.absolute(), None, how, expected)


def move_plan(plan: StudyPlan, before: Path, after: Path) -> StudyPlan:
    """The same plan with its paths counted from another folder."""
    if plan.data.kind != "tables":
        return plan
    joins = [dict(join) | {"file": str(before / join["file"])} for join in plan.data.mapping.get("join", [])]
    mapping = plan.data.mapping | ({"join": joins} if joins else {})
    how = ReadingOptions(mapping, nbi=plan.data.nbi, allow=plan.data.allow)
    data = describe_tables([before / one for one in plan.data.source], how, after)
    return make_plan(**plan.model_dump() | {"data": data})


def _study_file(request: Request) -> Path | None:
    if len(request.tables) != 1 or is_folder(request.tables[0]):
        return None
    return request.tables[0] if request.tables[0].suffix.lower() == ".toml" else None


def _plan(request: Request, out: Path) -> StudyPlan:
    return make_plan(data=_describe(request, out), **_translate(request.options))


def _describe(request: Request, out: Path) -> dict[str, Any]:
    if not request.tables:
        return {"kind": "inventory", "seed": PAPER_SEED}
    return describe_tables(request.tables, request.reading, out)


def _change(plan: StudyPlan, request: Request) -> StudyPlan:
    changed = plan.model_dump()
    changed["data"]["allow"] = tuple(dict.fromkeys((*plan.data.allow, *request.reading.allow)))
    for section, values in _translate(request.options).items():
        if "paper" in values.get("presets", ()) and "paper" not in plan.study.presets:
            changed["study"]["clock"] = default_clock(values["presets"])  # the paper's; otherwise the plan's own
        changed[section] = changed[section] | values
    return make_plan(**changed)


def _translate(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options with groups of methods and presets spelled out."""
    found = {section: dict(values) for section, values in options.items() if values}
    study = found.get("study", {})
    if "methods" in study:
        study["methods"] = tuple(dict.fromkeys(m for name in study["methods"] for m in GROUPS.get(name, (name,))))
    if "presets" in study:
        study["presets"] = tuple(p for name in study["presets"] for p in (BOTH if name == "both" else (name,)))
    return found
