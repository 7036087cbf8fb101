"""Messages for what pydantic refuses: options that people write, and files that rekka wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from rekka.core.errors import BadOption, InputError, bad_option, did_you_mean

_NEEDED = {  # by pydantic's kinds of error
    "model_type": "a section of keys", "list_type": "a list", "string_type": "text",
    "bool_type": "true or false", "bool_parsing": "true or false",
    "int_type": "a whole number", "int_parsing": "a whole number", "int_from_float": "a whole number",
    "float_type": "a number", "float_parsing": "a number", "finite_number": "a finite number",
    "greater_than": "a number above {gt:g}", "greater_than_equal": "a number of at least {ge}",
}  # fmt: skip

NEWER = "A newer rekka wrote it: update this one, or use that one."


def read_day(option: str, value: Any, rest: str) -> date:
    """Read a date; of a year the day that ``rest`` says, "-01-01" or "-12-31"."""
    if isinstance(value, date):
        return date(value.year, value.month, value.day)  # a moment of a day is that day
    text = str(value).strip()
    try:
        return date.fromisoformat(text + rest if re.fullmatch(r"\d{4}", text) else text)
    except ValueError:
        raise BadOption(
            f"{option} is {value!r}; a date such as 2008-12-31 or a year such as 2008 is needed.", option=option
        ) from None


def find_invalid(error: ValidationError) -> tuple[str, str]:
    """Place and message of the first fault in a file that rekka wrote."""
    first = error.errors()[0]
    return ".".join(map(str, first["loc"])) or "the text itself", first["msg"]


def explain_invalid(error: ValidationError, where: str, model: type[BaseModel], whole: str) -> InputError:
    """Error for the first fault in what a user wrote: a key that is not known, a value that is not understood.

    ``where`` names the file or the argument, ``whole`` what ``model`` describes, such as "A mapping".
    """
    first = error.errors()[0]
    path = [str(part) for part in first["loc"] if not re.fullmatch(r"str|int|float|.*[\[-].*", str(part))]
    place = ".".join(path)
    kind, found, about = first["type"], first["input"], first.get("ctx", {})
    if kind == "extra_forbidden":
        *section, key = path
        choices = list(_find_section(model, section).model_fields)
        can_hold = f"{'.'.join(section) or whole} can hold {', '.join(choices)}."
        return BadOption(f"{where}: {place} is not known. {can_hold}{did_you_mean(key, choices)}", key=place)
    if kind == "missing":
        return BadOption(f"{where}: {place} is needed and not given.", key=place)
    if kind == "literal_error":
        choices = [one[1] or one[0] for one in re.finditer(r"'(.*?)'|\d+", about["expected"])]
        return bad_option(
            f"{where}: {place}", found, [c if c.isidentifier() or c.isdigit() else repr(c) for c in choices]
        )
    if kind in _NEEDED:
        needed = _NEEDED[kind].format(**about)
        return BadOption(f"{where}: {place} is {found!r}; {needed} is needed.", key=place)
    message = first["msg"].removeprefix("Value error, ")
    return BadOption(f"{where}: {place}: {message}{'' if message.endswith('?') else '.'}", key=place)


def _find_section(model: type[BaseModel], path: Sequence[str]) -> type[BaseModel]:
    """Model that holds the keys of a section, such as columns, or join.0."""
    for name in path:
        field = model.model_fields.get(name)
        model = model if field is None else next(_list_models(field.annotation), model)
    return model


def _list_models(kind: Any) -> Any:
    """Models that a type is made of: itself, or those of a list or a union."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
    for part in get_args(kind):
        yield from _list_models(part)


def choose_remedy(error: ValidationError, newest: int, otherwise: str) -> str:
    """Remedy for a file that was refused: one of a newer version than ``newest`` needs a newer rekka."""
    given = [one["input"] for one in error.errors() if one["loc"] == ("version",)]
    return NEWER if any(isinstance(one, int) and one > newest for one in given) else otherwise
