"""Pages from templates, in the reader's language; notices that outlive a redirect; pages of errors.

A template renders the whole page, or, for htmx, one of its blocks. Everything that data gave is escaped by the
templates, and control characters in it are shown, not obeyed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from datetime import datetime
from functools import cache
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rekka.app.access import Access
from rekka.app.workspace import NotThere as NotThere
from rekka.core.errors import RekkaError
from rekka.core.language import ENGLISH, LANGUAGES, Words, load_words, say
from rekka.core.terminal import show_text

Tone = Literal["note", "good", "bad"]
FRAME = "base.html"
NOTICE, LANGUAGE = "rekka-notice", "rekka-language"  # cookies
YEAR = 365 * 24 * 3600  # seconds
_ACCEPTED = re.compile(r"\s*([a-z]{2})\b[^,;]*(?:;\s*q=([\d.]+))?", re.IGNORECASE)


def is_partial(request: Request) -> bool:
    """Whether htmx asks, for a part of a page; not where it restores a page of the browser's history."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


def find_language(request: Request) -> str:
    """Language that was chosen, or the first of the browser's that we have."""
    chosen = request.cookies.get(LANGUAGE)
    if chosen in LANGUAGES:
        return chosen
    accepted = _ACCEPTED.findall(request.headers.get("accept-language", ""))
    ordered = sorted(accepted, key=lambda one: -_weigh(one[1]))
    return next((lang.lower() for lang, _ in ordered if lang.lower() in LANGUAGES), ENGLISH)


def _weigh(quality: str) -> float:
    try:
        return float(quality or 1)
    except ValueError:
        return 0.0


def words_of(request: Request) -> Words:
    """Words in the reader's language."""
    return load_words(find_language(request))


def render(
    request: Request, template: str, status: int = 200, block: str | None = None, **values: Any
) -> HTMLResponse:
    """A page, or with ``block`` this part of it where htmx asks for it."""
    words, partial = words_of(request), is_partial(request)
    access: Access = request.app.state.access
    notices, told = values.pop("notices", []), _read_notice(request)
    shown = {
        "words": words,
        "lang": words.lang,
        "languages": {one: load_words(one)("page.language") for one in LANGUAGES},
        "path": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "form_token": access.form,
        "csrf": lambda: Markup('<input type="hidden" name="form_token" value="{}">').format(access.form),
        "notices": [*told, *notices],
        **values,
    }
    found = environment().get_template(template)
    if block is not None and partial:
        home = found if block in found.blocks else environment().get_template(FRAME)
        text = "".join(home.blocks[block](home.new_context(shown)))
    else:
        text = found.render(shown)
    response = HTMLResponse(text, status, headers={"Vary": "HX-Request"})
    if told:
        response.delete_cookie(NOTICE)
    return response


@cache
def environment() -> Environment:
    """Templates; names and sentences that data gave are escaped, and their control characters shown."""
    found = Environment(
        loader=PackageLoader("rekka.app", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_calm,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["name"] = show_name
    found.filters["size"] = show_size
    found.filters["moment"] = show_moment
    return found


def _calm(value: Any) -> Any:
    """Show control characters; None is nothing."""
    if value is None:
        return ""
    if isinstance(value, Markup):
        return Markup(show_text(value))
    return show_text(value) if isinstance(value, str) else value


def show_name(name: str) -> Markup:
    """A name that data gave, apart from the direction of writing around it."""
    return Markup("<bdi>{}</bdi>").format(show_text(name))


def show_size(size: float) -> str:
    """'12 kB', '3.4 MB'."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def show_moment(moment: datetime) -> str:
    """'2026-11-19 14:05', by the clock of this machine."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


# Notices


def redirect(request: Request, address: str, key: str = "", tone: Tone = "note", **values: Any) -> Response:
    """Lead to another page, which shows the sentence of ``key`` once; htmx loads it as a whole."""
    if is_partial(request):
        response: Response = Response(status_code=200, headers={"HX-Redirect": address})
    else:
        response = RedirectResponse(address, 303)
    if key:
        text = base64.urlsafe_b64encode(json.dumps([tone, say(key, **values)]).encode()).decode()
        response.set_cookie(NOTICE, f"{text}.{_sign(request, text)}", httponly=True, samesite="strict", max_age=60)
    return response


def _read_notice(request: Request) -> list[tuple[str, str]]:
    text, _, signature = request.cookies.get(NOTICE, "").partition(".")
    if not text or not hmac.compare_digest(signature.encode(), _sign(request, text).encode()):
        return []
    tone, said = json.loads(base64.urlsafe_b64decode(text))
    return [(tone, words_of(request).format(said))]


def _sign(request: Request, text: str) -> str:
    access: Access = request.app.state.access
    return hmac.new(access.session.encode(), text.encode(), hashlib.sha256).hexdigest()


def explain_error(error: BaseException, words: Words) -> str:
    """An error's sentence in the reader's language, as far as it is known there."""
    return words.reword(str(error)) or str(error)


# Errors


async def show_error(request: Request, error: Exception) -> Response:
    """The page of an error: what is not there, a wrong input, or a fault of ours."""
    words = words_of(request)
    if isinstance(error, NotThere):
        return _render_error(request, 404, words("app.error.not_there"))
    if isinstance(error, HTTPException):
        known = {404: "not_there", 405: "method", 413: "too_large"}.get(error.status_code)
        return _render_error(request, error.status_code, words(f"app.error.{known}") if known else error.detail)
    if isinstance(error, RekkaError):
        return _render_error(request, 400, explain_error(error, words))
    return _render_error(request, 500, words("app.error.ours"))


def _render_error(request: Request, status: int, sentence: str) -> Response:
    """A page with the sentence; htmx puts it in the place of notices, so that what was typed stays."""
    shown = [] if status == 404 and not is_partial(request) else [("bad", sentence)]
    response = render(request, "error.html", status, "notices", sentence=sentence, notices=shown, code=status)
    if is_partial(request):
        response.headers.update({"HX-Retarget": "#notices", "HX-Reswap": "outerHTML"})
    return response


def render_refusal(request: Request) -> Response:
    """The page for a browser without the cookie: how to come in."""
    words = words_of(request)
    text = environment().get_template("refusal.html").render(words=words, lang=words.lang)
    return HTMLResponse(text, 403)


# Language


def local_path(address: str) -> str:
    """A path of this server, or the start page where an address leads elsewhere."""
    found = urlsplit(address)
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in unquote(address)
    return address if plain and not (found.scheme or found.netloc) and address.isprintable() else "/"


async def choose_language(request: Request) -> Response:
    """Keep the language in a cookie, and go back."""
    form = await request.form()
    chosen, back = str(form.get("lang")), local_path(str(form.get("back", "/")))
    response = redirect(request, back)
    if chosen in LANGUAGES:
        response.set_cookie(LANGUAGE, chosen, httponly=True, samesite="strict", max_age=YEAR)
    return response
