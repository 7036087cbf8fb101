"""docs/cli.md from the commands themselves: ``python tests/cli_page.py`` writes it, a test compares."""

import inspect
from pathlib import Path
from typing import Any

import typer

from rekka.cli import app

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"


def describe() -> str:
    group = typer.main.get_command(app)
    parts = ["# The command line", "Written from the commands' own help by `python tests/cli_page.py`."]
    parts += [section(name, command) for name, command in group.commands.items()]
    codes = "Exit codes: 0 fine; 1 findings that stop the work, or an input that cannot be read; 2 wrong usage; 130 stopped."
    return "\n\n".join([*parts, codes]) + "\n"


def section(name: str, command: Any) -> str:
    words = inspect.cleandoc(command.help or "")
    paragraphs = ["```\n" + p.strip() + "\n```" if p.startswith("  rekka ") else p for p in words.split("\n\n")]
    text = "\n\n".join(paragraphs).replace("```\n\n```\n", "")
    lines = [f"## rekka {name}", "", text, ""]
    panel = None
    for option in command.params:
        if option.name == "help":
            continue
        heading = getattr(option, "rich_help_panel", None) or "Options"
        if heading != panel:
            lines += [""] * (panel is not None) + [f"| {heading} | |", "|---|---|"]
            panel = heading
        is_flag = option.opts[0].startswith("-")
        name = (
            "/".join([*option.opts[:1], *option.secondary_opts])
            if is_flag
            else option.metavar or option.name.upper()
        )
        metavar = f" {option.metavar}" if option.metavar and is_flag else ""
        shown = option.opts[0] if option.default is True else option.default
        default = f" Default: {shown}." if is_flag and shown not in (None, False, [], ()) else ""
        lines.append(f"| `{name}{metavar}` | {option.help}{default} |")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(describe(), encoding="utf-8")
