"""Uploaded tables: streamed from the request into the workspace, refused as soon as they are too large."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import IO, Any

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from rekka.app.access import is_same
from rekka.app.security import FORM_TOKEN, FORM_TOKEN_HEADER, MULTIPART
from rekka.app.workspace import TABLES, StoredTable, Workspace
from rekka.core.files import writing

FILE = "table"  # the form's field
MOST_FILES, MOST_FIELD = 20, 1000  # files of one form, bytes of a field that is no file
AROUND = 10_000  # bytes of a form around its files


class _Form:
    """Parts of a form as they come: the form's token first, then files, each written to its place."""

    def __init__(self, workspace: Workspace, secret: str, *, admitted: bool) -> None:
        self.workspace, self.secret, self.admitted = workspace, secret, admitted
        self.tables: list[tuple[str, Any]] = []  # the name and place of each file
        self._header, self._value, self._headers = b"", b"", dict[bytes, bytes]()
        self._field, self._text = "", b""
        self._file: IO[bytes] | None = None
        self.stack = ExitStack()

    def callbacks(self) -> Any:
        """Functions that the parser calls."""
        names = ("part_begin", "part_data", "part_end", "header_field", "header_value", "header_end")
        return {f"on_{name}": getattr(self, name) for name in (*names, "headers_finished")}

    def part_begin(self) -> None:
        self._headers, self._text, self._field = {}, b"", ""

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def header_end(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header, self._value = b"", b""

    def headers_finished(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._field = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            return
        if not self.admitted:
            raise HTTPException(403, "The form is not of this page, or of an earlier start. Load it again.")
        if self._field != FILE or len(self.tables) >= MOST_FILES:
            raise HTTPException(400, "The form has files that were not asked for.")
        name = options[b"filename"].decode("utf-8", "replace")
        if not name:  # a form that was sent without a file
            return
        _, place = self.workspace.new_table(name)
        self.tables.append((name, place))
        self._file = self.stack.enter_context(self.stack.enter_context(writing(place)).open("wb"))

    def part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > MOST_FIELD:
            raise HTTPException(400, "A field of the form is too long.")

    def part_end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        elif self._field == FORM_TOKEN:
            self.admitted = self.admitted or is_same(self._text.decode("utf-8", "replace"), self.secret)


async def receive_tables(request: Request, most: int) -> list[StoredTable]:
    """The tables of a form, listed in the workspace; nothing is kept of a form that is refused."""
    _refuse_large(request, most)
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != MULTIPART.encode() or b"boundary" not in options:
        raise HTTPException(400, "The form has no files.")
    workspace: Workspace = request.app.state.workspace
    secret: str = request.app.state.access.form
    form = _Form(workspace, secret, admitted=is_same(request.headers.get(FORM_TOKEN_HEADER, ""), secret))
    parser, received = MultipartParser(options[b"boundary"], form.callbacks()), 0
    try:
        async for chunk in request.stream():
            received += len(chunk)
            if received > most + AROUND:
                raise HTTPException(413)
            await run_in_threadpool(parser.write, chunk)
        parser.finalize()
        if not form.admitted:
            raise HTTPException(403, "The form is not of this page, or of an earlier start. Load it again.")
        await run_in_threadpool(form.stack.close)  # flushed, and in their places
    except BaseException as error:
        try:
            form.stack.__exit__(*sys.exc_info())  # takes unfinished files away, and names the disk's errors
        finally:
            for _, place in form.tables:
                workspace.drop(TABLES, place.parent)
        if isinstance(error, FormParserError):
            raise HTTPException(400, "The form cannot be read.") from None
        raise
    return [workspace.add_table(place, name) for name, place in form.tables]


def _refuse_large(request: Request, most: int) -> None:
    """Refuse a form by its length before anything of it is read."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most + AROUND:
        raise HTTPException(413)
