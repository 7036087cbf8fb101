"""Who may ask the server: this machine's browser, with the token of the address that was printed.

    Host            only 127.0.0.1:port and localhost:port, so that no foreign name can lead here (DNS rebinding)
    token           in the address that is opened; exchanged for a cookie, without which nothing but styles is sent
    Origin          of what changes something: only pages of ours; without it Sec-Fetch-Site or Referer must say so
    form token      of what changes something, too: a field of the form, or a header
    headers         no script or style but ours, no frame, no address sent elsewhere, nothing kept by a cache

It is a wrapper around the whole application, so that no page can be forgotten.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rekka.app.access import Access, is_same
from rekka.app.pages import render_refusal

SAFE = ("GET", "HEAD")
FORM_TOKEN, FORM_TOKEN_HEADER = "form_token", "X-Form-Token"
UPLOADS = ("/tables",)  # takes files; it compares the form's token itself, before anything is stored
MOST_FORM = 4_000_000  # bytes of a form without files
OPEN = "/assets/"  # styles and scripts of the package, which hold nothing of anybody's
URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # not no-referrer, with which forms are sent with the Origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class AccessGuard:
    """Wrapper that refuses requests before any page sees them, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        send = _with_headers(send)
        refused = self._refuse(request)
        if refused is None and request.method not in SAFE:
            refused, receive = await self._check_form(request, receive)
        await (self.app if refused is None else refused)(scope, receive, send)

    def _refuse(self, request: Request) -> Response | None:
        """Refusal of a request by its headers alone, or the exchange of the token; None if it may go on."""
        access, headers = self.access, request.headers
        if headers.getlist("host") not in [[host] for host in access.hosts]:
            return PlainTextResponse("This server answers to 127.0.0.1 and localhost alone.", 403)
        if request.method not in SAFE and not is_ours(headers):
            return PlainTextResponse("This request comes from another site.", 403)
        if request.method in SAFE and request.url.path.startswith(OPEN):
            return None
        token = request.query_params.get("token")
        if token is not None and request.method in SAFE:
            if not is_same(token, access.token):
                return render_refusal(request)
            response = RedirectResponse("/", 303)
            response.set_cookie(access.cookie, access.session, httponly=True, samesite="strict")
            return response
        return None if access.admits(request.cookies) else render_refusal(request)

    async def _check_form(self, request: Request, receive: Receive) -> tuple[Response | None, Receive]:
        """Compare the form's token; the body that was read for it is given to the page again."""
        if is_same(request.headers.get(FORM_TOKEN_HEADER, ""), self.access.form):
            return None, receive
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == MULTIPART and request.url.path in UPLOADS:
            return None, receive
        refused = PlainTextResponse("The form is not of this page, or of an earlier start. Load it again.", 403)
        if kind != URLENCODED:
            return refused, receive
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_FORM:
                return PlainTextResponse("The form is too large.", 413), receive
        given = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).get(FORM_TOKEN, [])
        if len(given) != 1 or not is_same(given[0], self.access.form):
            return refused, receive
        return None, _repeat(body, receive)


def is_ours(headers: Headers) -> bool:
    """Whether a request was sent by a page of this server, as far as the browser says where it comes from."""
    ours = f"http://{headers['host']}"
    if "origin" in headers:
        return headers.getlist("origin") == [ours]
    if "sec-fetch-site" in headers:
        return headers["sec-fetch-site"] in ("same-origin", "none")
    came_from = urlsplit(headers.get("referer", ""))
    return f"{came_from.scheme}://{came_from.netloc}" == ours


def _repeat(body: bytes, receive: Receive) -> Receive:
    """A body that was read already, once more; then what follows it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def _with_headers(send: Send) -> Send:
    """Add the headers to an answer, but those that it has, such as how long a style is kept."""

    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with
