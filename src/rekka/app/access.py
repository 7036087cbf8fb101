"""Secrets of a server: the token of its address, the cookie's session, the token of its forms."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from urllib.parse import urlencode

HOST = "127.0.0.1"


def new_secret() -> str:
    """A random text that nobody guesses."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Access:
    """Secrets of one server: ``token`` of the address, ``session`` of the cookie, ``form`` of its forms."""

    port: int
    token: str = field(default_factory=new_secret, repr=False)
    session: str = field(default_factory=new_secret, repr=False)
    form: str = field(default_factory=new_secret, repr=False)

    @property
    def address(self) -> str:
        """Address that the browser opens."""
        return f"http://{HOST}:{self.port}/?{urlencode({'token': self.token})}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names under which this server may be asked."""
        return f"{HOST}:{self.port}", f"localhost:{self.port}"

    @property
    def cookie(self) -> str:
        """Name of the cookie; cookies are shared by all ports of a machine."""
        return f"rekka-{self.port}"

    def admits(self, cookies: dict[str, str]) -> bool:
        """Whether a browser has the cookie."""
        return is_same(cookies.get(self.cookie, ""), self.session)


def is_same(given: str, secret: str) -> bool:
    """Compare in a time that says nothing about the secret."""
    return hmac.compare_digest(given.encode(), secret.encode())
