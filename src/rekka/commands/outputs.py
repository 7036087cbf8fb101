"""Where a command may write: never over an input, and besides what --out names only over files of rekka's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rekka.core.files import refuse_file, refuse_foreign, refuse_inputs


def check_folder(
    folder: Path, files: Sequence[Path], inputs: Iterable[Path], is_ours: Callable[[Path], bool]
) -> None:
    """Refuse, before the work, a folder that is a file or a run, and files in it that are inputs or not ours."""
    from rekka.study.store import refuse_run

    refuse_file(folder)
    refuse_run(folder)
    refuse_inputs(files, inputs)
    refuse_foreign(files, is_ours)
