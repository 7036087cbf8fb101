"""Names within a document in the language of a report."""

from __future__ import annotations

from typing import Any

from rekka.core.language import NO_COMPONENTS
from rekka.report.document import Document
from rekka.report.text import Words

OF_COMPONENTS = ("case", "cases", "there_by_case")  # fields with names of components


def name_components(document: Document, words: Words) -> Document:
    """The document with a name in this language for the component of a table that has no components.

    Its texts that are put into words later have the name by themselves.
    """
    name = words.component(NO_COMPONENTS)
    if name == NO_COMPONENTS or all(one.case != NO_COMPONENTS for one in document.cases):
        return document
    return Document.model_validate(_rename(document.model_dump(), name))


def _rename(value: Any, name: str, field: str = "") -> Any:
    """Plain data with the name in the fields of components."""
    if isinstance(value, dict):
        return {_rename(key, name, field): _rename(inner, name, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_rename(inner, name, field) for inner in value)
    return name if value == NO_COMPONENTS and field in OF_COMPONENTS else value
