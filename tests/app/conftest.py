"""A workspace, its application, and a browser that has the cookie."""

import threading
import warnings
from contextlib import contextmanager, suppress

import pytest

with warnings.catch_warnings(), suppress(ImportError):
    warnings.simplefilter("ignore")  # that it would rather have httpx2 than httpx; it works alike with both
    import starlette.testclient  # noqa: F401

PORT = 8765
OURS = f"http://127.0.0.1:{PORT}"


@contextmanager
def serving(workspace):
    """A server of a workspace in a thread; its access."""
    import uvicorn

    from rekka.app.access import Access
    from rekka.app.server import create_app, listen

    with listen(0) as listening:
        access = Access(listening.getsockname()[1])
        server = uvicorn.Server(uvicorn.Config(create_app(workspace, access), log_level="warning", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield access
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="session")
def serve():
    """The function that serves a workspace, as a context."""
    return serving


@pytest.fixture
def workspace(tmp_path):
    pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")
    from rekka.app.workspace import Workspace

    return Workspace(tmp_path / "workspace")


@pytest.fixture
def access(workspace):
    from rekka.app.access import Access

    return Access(PORT)


@pytest.fixture
def application(workspace, access):
    from rekka.app.server import create_app

    return create_app(workspace, access, most_upload=100_000)


@pytest.fixture
def stranger(application):
    """A client without the cookie; the queue does not run."""
    from starlette.testclient import TestClient

    return TestClient(application, base_url=OURS, follow_redirects=False)


@pytest.fixture
def browser(stranger, access):
    """A client that has opened the address."""
    assert stranger.get("/", params={"token": access.token}).status_code == 303
    stranger.headers["Origin"] = OURS
    return stranger


@pytest.fixture
def send(browser, access):
    """Post a form of ours."""

    def post(address, **fields):
        return browser.post(address, data={"form_token": access.form} | fields)

    return post


@pytest.fixture
def upload(browser, access):
    """Upload a file by the form of the start page."""

    def post(name, content, **more):
        return browser.post("/tables", data={"form_token": access.form}, files={"table": (name, content)}, **more)

    return post
