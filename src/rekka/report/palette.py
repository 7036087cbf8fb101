"""The colours of the charts: one set as variables of the page, light and dark, one set for files on white paper.

Method colours are the Okabe-Ito hues, darker or lighter, until a mark has a contrast of 3:1 to its surface. Text
has 4.5:1 (WCAG 2.2). Green is z-score, as in the paper's figures. Every method has its own shape, too: colour is
never alone in saying which is which. Cells of heat maps have one ramp (cividis) in both modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PAGE_FONT = "system-ui, sans-serif"
PRINT_FONT = "Liberation Sans"  # the only family that vl-convert brings along

# name on the page: on a light surface, on a dark one
CSS_VARIABLES: dict[str, tuple[str, str]] = {
    "--surface": ("#ffffff", "#14181d"),
    "--ink": ("#1b1f24", "#e8eaed"),
    "--muted": ("#59616b", "#a4acb6"),
    "--line": ("#dfe3e8", "#333a43"),
    "--accent": ("#0060a0", "#7cc4ff"),
    "--band": ("#8cb7d4", "#436583"),
    "--haze": ("#d6e5f0", "#263543"),
    "--failed": ("#d3d7dc", "#3d444d"),
    "--good": ("#00754f", "#4cd3a5"),
    "--bad": ("#b3350b", "#ff9a70"),
    "--method-max": ("#0072b2", "#56b4e9"),
    "--method-minmax": ("#b07a00", "#e69f00"),
    "--method-zscore": ("#008a5e", "#2bc592"),
    "--method-boxcox": ("#c2417c", "#f08bbb"),
    "--method-5": ("#5b3fa0", "#b9a5ff"),
    "--method-6": ("#9a3300", "#f5793a"),
    "--method-7": ("#4d4d4d", "#c9ccd1"),
    "--method-8": ("#00798c", "#9fe3f5"),
    "--method-9": ("#6b6100", "#d8c94a"),
    "--method-10": ("#7b1e3b", "#ffc2d4"),
}
FIXED = ("max", "minmax", "zscore", "boxcox")  # the paper's methods have the same colours in every report
FURTHER = ("5", "6", "7", "8", "9", "10")  # for other methods in the order of the study
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
    "M0,-1L0.29,-0.4L0.95,-0.31L0.48,0.15L0.59,0.81L0,0.5L-0.59,0.81L-0.48,0.15L-0.95,-0.31L-0.29,-0.4Z",
    "M-1,-0.4H1V0.4H-1Z",
)
# cividis (Nunez, Anderton, Renslow 2018) at equal distances, without its darkest fifth
RAMP = ("#31446b", "#4d556c", "#666970", "#7d7c78", "#958f78", "#aea371", "#c8b866", "#e4cf5b", "#fee838")
ON_RAMP = ("#000000", "#ffffff")  # text on cells


@dataclass(frozen=True)
class Palette:
    """``methods`` are the colours of ``FIXED`` and then of ``FURTHER``; ``background`` is behind a whole chart.

    ``band`` and ``haze`` are the accent, paler and palest: an interval of the parameters, and one of what will be.
    """

    ink: str
    muted: str
    line: str
    surface: str
    accent: str
    band: str
    haze: str
    failed: str
    good: str
    bad: str
    methods: tuple[str, ...]
    font: str
    background: str


_METHOD_VARIABLES = tuple(f"--method-{name}" for name in FIXED + FURTHER)
_ROLES = ("ink", "muted", "line", "surface", "accent", "band", "haze", "failed", "good", "bad")

PAGE = Palette(
    **{role: f"var(--{role})" for role in _ROLES},
    methods=tuple(f"var({name})" for name in _METHOD_VARIABLES),
    font=PAGE_FONT,
    background="transparent",
)
PRINT = Palette(
    **{role: CSS_VARIABLES[f"--{role}"][0] for role in _ROLES},
    methods=tuple(CSS_VARIABLES[name][0] for name in _METHOD_VARIABLES),
    font=PRINT_FONT,
    background="#ffffff",
)


def place_of(method: str, methods: Sequence[str]) -> int:
    """A method's place among colours and shapes: its own for the paper's, the next free for others."""
    if method in FIXED:
        return FIXED.index(method)
    others = [name for name in methods if name not in FIXED]
    place = others.index(method) if method in others else len(others)
    return len(FIXED) + place % len(FURTHER)


def shade(share: float) -> str:
    """The ramp's colour at a share of its length, 0 the darkest."""
    where = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    below = min(int(where), len(RAMP) - 2)
    low, high = _parts(RAMP[below]), _parts(RAMP[below + 1])
    mixed = (round(a + (b - a) * (where - below)) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def ink_on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour: never less than 4.5:1."""
    return max(ON_RAMP, key=lambda ink: contrast(ink, colour))


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2, relative luminance)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)
