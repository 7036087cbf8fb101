"""Colours of the page and its charts, and the style sheet of the page; nothing heavy is imported for them."""

from __future__ import annotations

from importlib import resources

STYLE = "rekka.css"  # name of the style sheet as a file

# name on the page: on a light surface, on a dark one
CSS_VARIABLES: dict[str, tuple[str, str]] = {
    "--surface": ("#ffffff", "#14181d"),
    "--ink": ("#1b1f24", "#e8eaed"),
    "--muted": ("#59616b", "#a4acb6"),
    "--line": ("#dfe3e8", "#333a43"),
    "--accent": ("#0060a0", "#7cc4ff"),
    "--band": ("#6ba3cb", "#4a80ad"),
    "--haze": ("#bad5e9", "#2c4a66"),
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
    "--state-1": ("#339ed4", "#0073b0"),
    "--state-2": ("#3d8dcc", "#3e7dc0"),
    "--state-3": ("#427dc5", "#5e88d1"),
    "--state-4": ("#586bb4", "#8f8fd7"),
    "--state-5": ("#6857a1", "#bd94d9"),
    "--state-6": ("#734485", "#e19dcf"),
    "--state-7": ("#773161", "#faacb7"),
    "--state-8": ("#741e3f", "#ffbda1"),
    "--state-9": ("#6a0e23", "#ffd491"),
    "--state-10": ("#5e0001", "#ffeb80"),
}
# Colours that the charts do not have: light, dark.
COLOURS = {"--warn": ("#8a5300", "#f2b84b"), "--wash": ("#f5f7f9", "#1b2027")}


def write_style() -> str:
    """The style sheet of every page."""
    return _write_colours() + (resources.files("rekka.report") / "templates" / "page.css").read_text("utf-8")


def _write_colours() -> str:
    """The palette as variables: light, dark where the system or the reader asks for it, light on paper."""
    every = CSS_VARIABLES | COLOURS
    light, dark = ("".join(f"{name}:{both[n]};" for name, both in every.items()) for n in (0, 1))
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media print{{:root:root:root{{color-scheme:light;{light}}}}}\n"
    )
