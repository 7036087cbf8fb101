"""Tables of inspections as a state or a prefecture exports them: a column of ratings for each component."""

from datetime import date, timedelta

import numpy as np
import polars as pl

RATES = (0.30, 0.14, 0.09, 0.06, 0.035, 0.02, 0.02, 0.02, 0.02)  # departures a year from 9, 8, ..., 1
ROMAN_RATES = (0.07, 0.05, 0.03)
ENGLISH = ("Deck Condition", "Superstructure Condition", "Substructure Condition")
JAPANESE = ("床版", "主桁", "橋脚")
NUMERALS = ("Ⅰ", "Ⅱ", "Ⅲ", "Ⅳ")


def draw_states(rng, rates, start, years, ratio):
    """State (0-based) after some years of a pure-birth chain that leaves k at the rate ``ratio`` times rates[k]."""
    state, left = start, years
    while state < len(rates):
        left -= rng.exponential(1 / (rates[state] * ratio))
        if left < 0:
            break
        state += 1
    return state


def repair(rng, state):
    """State after a repair: renewed, or a little better."""
    return 1 if rng.random() < 0.5 else state - 1


def state_export(bridges=400, visits=5, *, seed=1, components=ENGLISH):
    """Ratings 9 to 0 of three components, N on culverts, some repairs; numbers and texts of each bridge."""
    rng = np.random.default_rng(seed)
    rows = []
    for bridge in range(bridges):
        built = int(rng.integers(1955, 2005))
        adt, length, width = int(rng.lognormal(8, 1)), float(rng.lognormal(3.3, 0.6)), float(rng.uniform(7, 16))
        steel, culvert = bool(rng.random() < 0.4), bool(rng.random() < 0.06)
        road = "Interstate" if adt > 8000 else "State" if adt > 2000 else "Local"
        ratio = (adt / 3000) ** 0.2 * (1.3 if steel else 1.0)
        first = date(2012, 1, 1) + timedelta(days=int(rng.integers(0, 700)))
        age = first.year - built
        renewed = [age if rng.random() < 0.3 else min(age, int(rng.integers(3, 25))) for _ in components]
        states = [min(draw_states(rng, RATES, 0, years, ratio), 6) for years in renewed]
        for visit in range(visits):
            if visit:
                states = [draw_states(rng, RATES, state, 2.0, ratio) for state in states]
                states = [repair(rng, state) if state > 3 and rng.random() < 0.06 else state for state in states]
            ratings = ["N" if culvert else str(9 - state) for state in states]
            day = first + timedelta(days=int(730.5 * visit + rng.integers(-40, 40)))
            facts = (str(built), str(adt), f"{length:.1f}", f"{width:.1f}", "Steel" if steel else "Concrete", road)
            rows.append((f"{17000 + bridge:06d}", day.isoformat(), *ratings, *facts))
    names = ("Year Built", "ADT", "Structure Length", "Deck Width", "Material", "Route Class")
    return pl.DataFrame(rows, schema=["Structure Number", "Inspection Date", *components, *names], orient="row")


def prefecture_export(bridges=300, visits=4, *, seed=2):
    """Ratings Ⅰ to Ⅳ of three components in columns, by fiscal year."""
    rng = np.random.default_rng(seed)
    rows = []
    for bridge in range(bridges):
        built, length = int(rng.integers(1955, 2005)), float(rng.lognormal(3.0, 0.7))
        first = int(rng.integers(2004, 2009))
        states = [min(draw_states(rng, ROMAN_RATES, 0, rng.uniform(2, 20), 1.0), 2) for _ in JAPANESE]
        for visit in range(visits):
            if visit:
                states = [draw_states(rng, ROMAN_RATES, state, 5.0, 1.0) for state in states]
            ratings = [NUMERALS[state] for state in states]
            rows.append((f"橋{bridge:04d}", str(first + 5 * visit), *ratings, str(built), f"{length:.1f}"))
    return pl.DataFrame(rows, schema=["橋梁", "点検年度", *JAPANESE, "架設年", "橋長(m)"], orient="row")


def by_component(table):
    """The same records with a column for the component and one for its rating, 部材 and 判定区分."""
    others = [name for name in table.columns if name not in JAPANESE]
    long = table.unpivot(JAPANESE, index=others, variable_name="部材", value_name="判定区分")
    return long.select("橋梁", "部材", "点検年度", "判定区分", *others[2:])
