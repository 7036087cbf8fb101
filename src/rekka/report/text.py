"""Words and numbers as a person reads them: names of methods, lists, and a format for each kind of number.

A missing number is a dash; none is ever "nan", "inf" or "-0.000".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import partial

from rekka.core.language import ENGLISH as ENGLISH
from rekka.core.language import LANGUAGES as LANGUAGES
from rekka.core.language import Words as Words
from rekka.core.language import load_words as load_words
from rekka.forecast.first_passage import LONGEST


def name_method(method: str, words: Words) -> str:
    """A method as the page calls it; a chain by its links: 'boxcox+zscore' is 'Box-Cox+z-score'."""
    return words.method(method)


def join_names(names: Iterable[str], words: Words) -> str:
    """Names one after the other, as this language separates them."""
    return words.join(names, "comma")


def join_sentences(sentences: Iterable[str], words: Words) -> str:
    """Sentences one after the other; empty ones are left out."""
    return words.join(sentence for sentence in sentences if sentence)


def slug(text: str) -> str:
    """The key of a term: 'no finite maximum' is no_finite_maximum."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


MISSING = "\u2013"
INFINITE = "\u221e"
MINUS = "\u2212"
TIMES_TEN = "\u00d710"
ACCURACY_DIGITS, LOSS_DIGITS, P_DIGITS = 4, 3, 3
LARGE = 1e7  # from here on a number is shown with a power of ten
FIRST_POWER, LAST_POWER = -4, 5  # of ten, between which a figure is shown without one
SHORT_SECONDS = 0.1  # below it a fourth decimal is needed
_RAISED = str.maketrans("-0123456789", "\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")

Real = float | int | None
Show = Callable[[Real], str]


def show_number(value: Real, digits: int = LOSS_DIGITS, *, signed: bool = False) -> str:
    """So many decimals, with commas between thousands; ``signed`` shows a plus too, as differences have it."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value) or abs(value) >= LARGE:
        return show_figure(value, signed=signed)
    text = f"{abs(value):,.{digits}f}"
    return _sign(value, text, signed) + text


def show_figure(value: Real, digits: int = 3, *, signed: bool = False) -> str:
    """So many significant digits, whatever the size: 45.4, 0.0472, 1.29 times 10 to the power of -5."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return _sign(value, "1", signed) + INFINITE
    mantissa, _, power = f"{abs(value):.{digits - 1}e}".partition("e")
    exponent = int(power)
    if value == 0:
        text = "0"
    elif FIRST_POWER <= exponent <= LAST_POWER:
        text = f"{float(f'{mantissa}e{power}'):,.{max(digits - 1 - exponent, 0)}f}"
    else:
        text = f"{mantissa}{TIMES_TEN}{str(exponent).translate(_RAISED)}"
    return _sign(value, text, signed) + text


show_count = partial(show_number, digits=0)
show_accuracy = partial(show_number, digits=ACCURACY_DIGITS)  # as in the paper
show_loss = partial(show_number, digits=LOSS_DIGITS)
show_accuracy_difference = partial(show_number, digits=ACCURACY_DIGITS, signed=True)
show_loss_difference = partial(show_number, digits=LOSS_DIGITS, signed=True)


def show_seconds(value: Real) -> str:
    """Three digits, however short."""
    if value is None or not math.isfinite(value):
        return show_number(value)
    return show_number(value, 3 if value >= SHORT_SECONDS else 4)


def show_years(value: Real) -> str:
    """One decimal. Beyond the years for which a forecast lets covariates advance, only that it is beyond them."""
    return f">{LONGEST}" if value is not None and value > LONGEST else show_number(value, 1)


def show_years_difference(value: Real) -> str:
    """One decimal and the sign."""
    if value is not None and abs(value) > LONGEST:
        return f"<{MINUS}{LONGEST}" if value < 0 else f">{LONGEST}"
    return show_number(value, 1, signed=True)


def show_p(value: Real) -> str:
    """A probability by its three decimals; a smaller one is below them, not 0."""
    least = 10.0**-P_DIGITS
    return f"<{least:.{P_DIGITS}f}" if value is not None and 0 <= value < least else show_number(value, P_DIGITS)


def show_share(value: Real, digits: int = 0) -> str:
    """In percent. What is neither none nor all is not shown as 0 % or 100 %."""
    if value is None or not math.isfinite(value):
        return show_number(value)
    least = 10.0**-digits
    if 0 < value < 1:
        if 100 * value <= least / 2:
            return f"<{least:.{digits}f}%"
        if 100 * (1 - value) <= least / 2 * (1 + 1e-9):
            return f">{100 - least:.{digits}f}%"
        return f"{show_number(100 * value, digits)}%"
    return f"{show_number(100 * value, 0)}%"


def show_level(level: float) -> str:
    """The confidence of intervals: 95%, 97.5%."""
    return f"{100 * level:.6g}%"


def show_range(low: Real, high: Real, show: Show, words: Words) -> str:
    """'0.640 to 0.739'; one figure where both ends look the same, a dash where there is neither."""
    first, last = show(low), show(high)
    return first if first == last else words("number.range", low=first, high=last)


def show_estimate(value: Real, low: Real, high: Real, show: Show, words: Words) -> str:
    """'0.690 (0.640 to 0.739)', or the figure alone where it has no interval."""
    if _is_missing(value) or (_is_missing(low) and _is_missing(high)):
        return show(value)
    ends = words("number.range", low=show(low), high=show(high))
    return words("number.estimate", value=show(value), range=ends)


def _is_missing(value: Real) -> bool:
    return value is None or math.isnan(value)


def _sign(value: float, text: str, signed: bool) -> str:
    """Nothing before what rounds to zero."""
    if not any(digit in text for digit in "123456789"):
        return ""
    return MINUS if value < 0 else "+" if signed and value > 0 else ""
