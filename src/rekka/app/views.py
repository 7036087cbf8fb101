"""Values that the template of a table's page shows: choices of selects, headings and sorted columns."""

from __future__ import annotations

from typing import Any

from rekka.app.changes import RULES, TAB
from rekka.app.description import (
    LISTS,
    MOST_COLUMNS,
    NO_ROLE,
    NOT_RATED,
    OFF_SCALE,
    ROLES,
    SourceColumn,
    TableDescription,
)
from rekka.core.language import Words, say
from rekka.data.mapping import DATE_FORMATS

KEYS = "app.reading."
FEW_COLUMNS = 15  # of which those without a role are shown with the others
BOTH_ORDERS = {"dmy_mdy": "dmy,mdy", "mdy_dmy": "mdy,dmy"}
ENCODINGS = ("utf-8", "cp932", "latin-1", "utf-16")
MARKS = {",": "comma", ";": "semicolon", TAB: "tab", "|": "bar"}
RULE_CHOICES = {
    "upward": ("set_aside", "restart", "keep", "keep_all", "error"),
    "repairs": ("set_aside", "restart", "ignore"),
    "same_day": ("worst", "first", "last", "set_aside", "error"),
    "interval": ("set_aside", "error"),
    "missing": ("set_aside", "level", "error"),
    "outside": ("set_aside", "error"),
}
PAIRED_ROLES = (NO_ROLE, *(role for role in LISTS if role in ("covariate", "category")))

Choice = tuple[str, str]  # value and text


def describe_page(table: TableDescription, words: Words) -> dict[str, Any]:
    """Values of the page, in a language."""
    shown = list(table.shown)
    plain = [(place, one) for place, one in shown if one.role == NO_ROLE]
    folded = plain if len(table.columns) > FEW_COLUMNS else []
    return {
        "read": table,
        "notes": [words.reword(note) or note for note in table.notes],
        "columns": [one for one in shown if one not in folded],
        "folded": folded,
        "hidden": max(0, len(table.columns) - len(shown)),
        "more_columns": MOST_COLUMNS,
        "roles": _list_roles(table, words),
        "places": _list_places(table, words),
        "date_formats": [_list_formats(table, name, words) for name in ("inspection", "completed", "repair")],
        "files": _list_file_choices(table, words),
        "rules": _list_rules(table, words),
        "heading": lambda name: words.get(f"{KEYS}field.{name}", name),
        "told": lambda key, **values: words.format(say(f"{KEYS}{key}", **values)),
        "speak": words.format,
        "reword": lambda text: words.reword(text) or text,
        "can_join": table.kind == "inspections",
    }


def _list_roles(table: TableDescription, words: Words) -> Any:
    """Roles that a column can have, as choices."""

    def list_choices(column: SourceColumn) -> list[Choice]:
        roles = list(PAIRED_ROLES if table.kind == "transitions" else ROLES)
        if column.role not in roles:
            roles.append(column.role)
        return [(role, words(f"{KEYS}role.{role or 'none'}")) for role in roles]

    return list_choices


def _list_places(table: TableDescription, words: Words) -> list[Choice]:
    """Places on a scale: the best, others, none, not inspected."""
    if table.scale is None:
        return []
    most = len(table.scale.ratings)
    numbers = [(str(place), str(place)) for place in range(2, most + 1)]
    return [
        ("1", words(f"{KEYS}scale.best")),
        *numbers,
        (str(NOT_RATED), words(f"{KEYS}scale.not_rated")),
        (str(OFF_SCALE), words(f"{KEYS}scale.off")),
    ]


def _list_formats(table: TableDescription, name: str, words: Words) -> dict[str, Any]:
    """Formats of some dates: what is chosen, the choices, and a pattern of the user's own."""
    given = getattr(table.plan.dates, name)
    chosen = given if isinstance(given, str) else ",".join(given)
    choices = [(one, words(f"{KEYS}format.{one}")) for one in DATE_FORMATS]
    choices += [(value, words(f"{KEYS}format.{key}")) for key, value in BOTH_ORDERS.items()]
    own = "" if chosen in dict(choices) else chosen
    return {"name": name, "chosen": chosen, "choices": choices, "pattern": own}


def _list_file_choices(table: TableDescription, words: Words) -> dict[str, Any]:
    """Choices of the format of a file, each with what is chosen."""
    given = table.plan.table
    auto = ("", words(f"{KEYS}file.recognise"))
    encodings = [auto, *((one, one) for one in dict.fromkeys([*ENCODINGS, given.encoding or ENCODINGS[0]]))]
    chosen = TAB if given.separator == "\t" else given.separator or ""
    marks = [auto, *((mark, words(f"{KEYS}file.{name}")) for mark, name in MARKS.items())]
    points = [(".", words(f"{KEYS}file.point")), (",", words(f"{KEYS}file.comma"))]
    return {
        "encoding": (given.encoding or "", encodings),
        "separator": (chosen, marks),
        "decimal": (given.decimal, points),
    }


def _list_rules(table: TableDescription, words: Words) -> list[dict[str, Any]]:
    """Rules with their choices; the longest gap is a number."""
    given = table.plan.rules
    found = []
    for name in RULES:
        chosen = getattr(given, name)
        choices = [(one, words(f"{KEYS}choice.{one}")) for one in RULE_CHOICES.get(name, ())]
        shown = f"{chosen:g}" if isinstance(chosen, float) else chosen or ""
        found.append({"name": name, "label": words(f"{KEYS}rule.{name}"), "chosen": shown, "choices": choices})
    return found
