"""Documents with all that the page shows of a network, made up: members, history, trust, backtests."""

import json
import random
from collections.abc import Sequence

from rekka.report.document import BacktestPart, BacktestYear, Document, HistoryYear, MembersPart, TrustPart

FAN_YEARS = (0, 5, 10, 15, 20, 30)
BASE_YEAR = 2025
THERE, NEXT, OUTSIDE = 1, 0, 2  # tabs
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
REMARK = {"say": "page.missing"}  # any sentence of the language files


def fill_document(document: Document, count: int = 60, *, alone: bool = False) -> Document:
    """The document with parts that older runs, or studies without dates, leave empty."""
    assert document.network is not None
    cases = [one.case for one in document.cases][: 1 if alone else None]
    states = max(len(one.expected) for one in document.network.years)
    threshold = max(min(4, states), 2)
    members = make_members(cases, states, threshold, count)
    there = members.tab.count(THERE)
    history = [
        HistoryYear(case=case, year=year, members=300, reached=there + 3 * (year - BASE_YEAR))
        for case in (None, *cases)
        for year in range(BASE_YEAR - 9, BASE_YEAR + 1)
    ]
    network = document.network.model_copy(
        update={
            "base": f"{BASE_YEAR}-01-01",
            "history": tuple(history),
            "first_seen": f"{BASE_YEAR - 9}-04-01",
            "last_seen": f"{BASE_YEAR - 1}-12-24",
            "every": members,
        }
    )
    levels = ("good", "caution", "do_not_use")
    trust = [TrustPart(case=None, level="caution", reason=REMARK)] + [
        TrustPart(case=case, level=levels[n % 3], reason=REMARK, others=(REMARK,)) for n, case in enumerate(cases)
    ]
    backtests = tuple(_make_backtest(case, threshold) for case in cases)
    return document.model_copy(update={"network": network, "trust": tuple(trust), "backtests": backtests})


def make_members(cases: Sequence[str], states: int, threshold: int, count: int) -> MembersPart:
    """So many members of bridges with two each, the soonest at the threshold first."""
    draw = random.Random(1)
    rows = []
    for n in range(count):
        tab = draw.choices((THERE, NEXT, OUTSIDE), (1, 6, 1))[0]
        state = draw.randint(threshold, states) if tab == THERE else draw.randint(1, threshold - 1)
        median = 0.0 if tab == THERE else draw.uniform(0, 60)
        visits = range(BASE_YEAR - 2 - 4 * draw.randint(1, 5), BASE_YEAR - 1, 4)
        past = ",".join(f"{year}.5:{min(state, 1 + place)}" for place, year in enumerate(visits))
        fan = ""
        for year in FAN_YEARS:
            middle = min(states, state + int(year / 12))
            fan += DIGITS[max(state, middle - 1)] + DIGITS[middle] + DIGITS[min(states, middle + 1)]
        rows.append((median, n, tab, state, past, fan, draw.uniform(0, 90), draw.lognormvariate(0, 0.4)))
    rows.sort()
    return MembersPart(
        cases=tuple(cases),
        case=tuple(n % len(cases) for _, n, *_ in rows),
        bridge=tuple(f"B-{n // 2:05d}" for _, n, *_ in rows),
        member=tuple(f"M-{n % 2}" for _, n, *_ in rows),
        tab=tuple(row[2] for row in rows),
        state=tuple(row[3] for row in rows),
        threshold=(threshold,) * len(cases),
        seen=tuple(f"{BASE_YEAR - 1}-0{1 + row[1] % 9}-01" for row in rows),
        soon=tuple(1 / (1 + row[0]) for row in rows),
        median=tuple(row[0] for row in rows),
        calendar=tuple(BASE_YEAR + int(row[0]) for row in rows),
        past=tuple(row[4] for row in rows),
        fan_years=FAN_YEARS,
        fan=tuple(row[5] for row in rows),
        remarks=(REMARK,),
        remark=tuple((0,) if row[2] == OUTSIDE else () for row in rows),
        covariates=("age_at_inspection_1",),
        values=(tuple(row[6] for row in rows),),
        ratios=(tuple(row[7] for row in rows),),
        frailty=tuple(row[7] for row in rows),
        latitude=tuple(35 + 0.3 * draw.random() for _ in rows),
        longitude=tuple(136 + 0.5 * draw.random() for _ in rows),
    )


def _make_backtest(case: str, threshold: int) -> BacktestPart:
    years = tuple(
        BacktestYear(
            year=2015 + n,
            visits=90,
            observed=20 + n,
            expected=19.5 + n,
            predicted_low=14 + n,
            predicted_high=27 + n,
        )
        for n in range(1, 5)
    )
    return BacktestPart(
        case=case, until="2015-12-31", model=None, certified=True, visits=360, bridges=120, horizon=4.5,
        score=0.21, no_change_score=0.25, difference=-0.04, low=-0.06, high=-0.02, threshold=threshold, years=years,
    )  # fmt: skip


def read_document(text: str) -> Document:
    """A document of the last version before members, history, trust and backtests."""
    return Document.model_validate(json.loads(text) | {"version": 3})
