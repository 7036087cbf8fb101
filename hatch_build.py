"""Build hook: the documentation site, where it is built, is part of wheel and sdist."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SITE = Path("build") / "site"
WITHIN = {"wheel": "rekka/site", "sdist": str(SITE)}  # a wheel can be built from the sdist, without Sphinx


class SiteHook(BuildHookInterface):
    """Add build/site, which `make docs` makes; refuse one of another version."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add it to what is built; an editable installation reads it from build/."""
        inventory = Path(self.root) / SITE / "objects.inv"
        if version == "editable" or not inventory.is_file():
            return
        built = inventory.read_bytes().split(b"\n")[2].decode().strip()
        if built != f"# Version: {self.metadata.version}":
            raise ValueError(f"build/site is of another version ({built}). Build it again: make docs")
        build_data["force_include"][str(Path(self.root) / SITE)] = WITHIN[self.target_name]
