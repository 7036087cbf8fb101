"""The documentation site: `rekka docs`, what a wheel gets, the search, and the built pages in a browser."""

import os
import re
import subprocess
import sys
import webbrowser
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_cli import call

import rekka
from rekka.core.documentation import find_documentation

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(file.relative_to(DOCS).with_suffix("").as_posix() for file in DOCS.rglob("*.md"))
STARTS = ("index", "start-engineer", "start-statistician", "start-researcher", "limits", "ja/index")


def put_site(folder, version=rekka.__version__):
    """A site as far as `rekka docs` looks at it."""
    (folder / "ja").mkdir(parents=True)
    (folder / "objects.inv").write_bytes(
        f"# Sphinx inventory version 2\n# Project: rekka\n# Version: {version}\n".encode() + b"\x78\x9c"
    )
    for page in ("index.html", "ja/index.html"):
        (folder / page).write_text("<h1>rekka</h1>")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A source tree with Markdown, and no site."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").touch()
    package = tmp_path / "src" / "rekka"
    package.mkdir(parents=True)
    monkeypatch.setattr("rekka.core.documentation.PACKAGE", package)
    return tmp_path


def test_docs_opens_the_site_that_was_installed(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "rekka"
    put_site(package / "site")
    monkeypatch.setattr("rekka.core.documentation.PACKAGE", package)
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = package / "site" / "index.html"
    assert call("docs", "--no-open").stdout == f"{page}\n"
    assert opened == []
    done = call("docs", "--lang", "ja")
    assert (done.exit_code, done.stdout) == (0, f"{package / 'site' / 'ja' / 'index.html'}\n")
    assert opened == [(package / "site" / "ja" / "index.html").as_uri()]


def test_docs_of_a_checkout_say_how_to_build_it_and_where_the_markdown_is(checkout):
    done = call("docs")
    assert done.exit_code == 1
    assert f"not built. Build it with: make docs. The same pages as Markdown: {checkout / 'docs'}" in done.stderr
    put_site(checkout / "build" / "site")
    assert call("docs", "--no-open").stdout == f"{checkout / 'build' / 'site' / 'index.html'}\n"


def test_a_site_of_another_version_is_not_opened(checkout):
    put_site(checkout / "build" / "site", "0.9.0")
    done = call("docs")
    assert done.exit_code == 1
    assert "there is one of version 0.9.0" in done.stderr


def test_an_installation_without_site_and_source_says_so(tmp_path):
    found = find_documentation("en", tmp_path / "lib" / "python" / "rekka")
    assert found.page is found.markdown is found.built is None


def test_an_unknown_language_is_told():
    assert "--lang is 'fr'; it can be en, ja." in call("docs", "--lang", "fr").stderr


def test_every_page_has_a_place_in_the_navigation():
    scope = {"__file__": str(DOCS / "conf.py")}
    exec((DOCS / "conf.py").read_text(), scope)
    named = [page for pages in scope["navigation"].values() for page in pages]
    assert len(named) == len(set(named))
    assert set(named) == set(PAGES) - {"index"}
    sys.path.remove(str(DOCS / "_site"))


def test_start_pages_are_one_page_each():
    for name in STARTS:
        assert len((DOCS / f"{name}.md").read_text().splitlines()) <= 90, name


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it; a warning is an error."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed (pip install '.[docs]')")
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", place / "doctrees"]
    done = subprocess.run([*command, DOCS, place / "html"], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    return place / "html"


@contextmanager
def opened(browser, address, **options):
    """A page without a network, and what went wrong in it."""
    context = browser.new_context(offline=True, **options)
    window, wrong = context.new_page(), []
    window.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
    window.on("pageerror", lambda error: wrong.append(str(error)))
    window.on("requestfailed", lambda request: wrong.append(request.url))
    window.goto(address)
    yield window
    assert wrong == []
    context.close()


@pytest.mark.slow
def test_the_site_is_whole_and_loads_nothing_from_elsewhere(site):
    assert {f"{page}.html" for page in PAGES} <= {
        file.relative_to(site).as_posix() for file in site.rglob("*.html")
    }
    for file in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?:[^"]*)"', file.read_text())
        assert loaded == [], file.name
    for file in (site / "_static").rglob("*.css"):
        assert re.findall(r"url\(\s*['\"]?https?:", file.read_text()) == [], file.name
    assert "rekka.read_transitions" in (site / "reference.html").read_text()
    assert (site / "objects.inv").read_bytes().split(b"\n")[2] == f"# Version: {rekka.__version__}".encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "query", "page"),
    [
        ("search", "separation", "Choosing safely"),
        ("search", "hazard ratios", "Reading the report"),
        ("search-ja", "健全度", "点検データ"),
        ("search-ja", "補修", "報告書の読み方"),
        ("search-ja", "遷移確率行列", "報告書の読み方"),
    ],
)
def test_the_search_works_without_a_network(site, browser, search, query, page):
    with opened(browser, f"{(site / search).as_uri()}.html") as window:
        window.locator(".sidebar-search").fill(query)
        window.locator(".sidebar-search").press("Enter")
        found = window.locator("#search-results").get_by_role("link", name=page, exact=True).first
        found.wait_for()
        assert "Changelog" not in window.locator("#search-results").inner_text()
        assert window.url.split("?")[0].endswith(f"{search}.html")
        found.click()
        assert window.locator("h1").first.inner_text().startswith(page)


@pytest.mark.slow
def test_a_word_that_is_nowhere_is_not_found(site, browser):
    with opened(browser, f"{(site / 'search-ja').as_uri()}.html?q=飛行機械") as window:
        window.locator("#search-results .search-summary").filter(has_text="。").wait_for()
        assert window.locator("#search-results li").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", STARTS)
def test_start_pages_on_a_desk_and_a_phone_in_light_and_dark(site, browser, artifacts, page):
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    for width, scheme in ((1280, "light"), (390, "dark")):
        size = {"width": width, "height": 900}
        with opened(browser, f"{(site / page).as_uri()}.html", viewport=size, color_scheme=scheme) as window:
            assert window.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert window.evaluate("document.documentElement.lang") == ("ja" if page.startswith("ja/") else "en")
            window.screenshot(path=artifacts / f"site-{page.replace('/', '-')}-{scheme}.png")
            found = (
                axe.Axe()
                .run(window, options={"resultTypes": ["violations"], "preload": False})
                .response["violations"]
            )
            assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []


@pytest.mark.slow
def test_a_page_leads_to_the_same_page_in_the_other_language(site, browser):
    with opened(browser, f"{(site / 'data').as_uri()}.html") as window:
        window.locator(".other-language a").click()
        assert window.locator("h1").inner_text().startswith("点検データ")
        assert "English" not in window.locator(".sidebar-tree").inner_text()
        window.locator(".other-language a").click()
        assert window.locator("h1").inner_text().startswith("From inspection records")
