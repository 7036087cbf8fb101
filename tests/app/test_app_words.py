"""The page's words: every key that templates and modules ask for is there; language, notices, formats."""

import ast
import re
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

import rekka.app
from rekka.app.pages import environment, show_name, show_size
from rekka.core.language import LANGUAGES, load_words
from rekka.report.colours import write_style

APP = Path(rekka.app.__file__).parent
KEY = re.compile(r"app\.[\w.]+")


def list_keys():
    """Keys in templates and modules; of one that is put together, what it begins with."""
    for file in sorted((APP / "templates").glob("*.html")):
        for key in re.findall(r"""words\(\s*["'](app\.[\w.]*)""", file.read_text("utf-8")):
            yield file.name, key
    for file in sorted(APP.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and KEY.fullmatch(node.value):
                if Path(node.value).suffix in (".css", ".js"):
                    continue
                yield file.name, node.value


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_key_that_is_asked_for_has_words(lang):
    texts = load_words(lang).texts
    found = sorted(list_keys())
    assert len(found) > 50
    missing = {
        (file, key)
        for file, key in found
        if key not in texts
        and f"{key}.other" not in texts
        and not any(one.startswith(key) for one in texts if key.endswith("."))
    }
    assert missing == set()


def test_every_text_of_the_frame_is_asked_for():
    """Texts of app.toml that nobody asks for are left over."""
    asked = {key for _, key in list_keys()}
    begun = tuple(key for key in asked if key.endswith("."))
    made = (
        "app.stage.",
        "app.step.",
        "app.state.",
        "app.steps.",
        "app.error.",
        "app.plan.",
        "app.runs.",
        "app.found.",
    )
    import tomllib

    from rekka.core.language import FOLDER, flatten

    own = dict(flatten(tomllib.loads((FOLDER / "en" / "app.toml").read_text("utf-8"))))
    left = {key for key in own if key.removesuffix(".one").removesuffix(".other") not in asked}
    assert {key for key in left if not key.startswith((*begun, *made))} == set()


@pytest.mark.parametrize(
    ("accepted", "lang"),
    [("ja", "ja"), ("ja-JP,en;q=0.8", "ja"), ("en-US,ja;q=0.9", "en"), ("fr,ja;q=0.5,en;q=0.9", "en"), ("fr", "en"),
     ("", "en"), ("ja;q=x", "ja"), (";;;,,,q=", "en")],
)  # fmt: skip
def test_the_language_is_the_browsers_until_one_is_chosen(browser, send, accepted, lang):
    assert f'<html lang="{lang}">' in browser.get("/", headers={"Accept-Language": accepted}).text
    other = "en" if lang == "ja" else "ja"
    assert send("/language", lang=other, back="/runs").headers["location"] == "/runs"
    assert f'<html lang="{other}">' in browser.get("/", headers={"Accept-Language": accepted}).text
    send("/language", lang="xx", back="/")
    assert f'<html lang="{other}">' in browser.get("/").text


def test_a_notice_is_shown_once_and_only_if_it_is_ours(browser, upload, send, workspace):
    upload("a<b>.csv", b"a\n1\n")
    send(f"/tables/{workspace.tables()[0].id}/delete")
    assert "a&lt;b&gt;.csv was deleted" in browser.get("/").text
    assert "was deleted" not in browser.get("/").text
    browser.cookies.set("rekka-notice", "WyJub3RlIiwgeyJzYXkiOiAieCJ9XQ==.forged")
    assert browser.get("/").status_code == 200


def test_several_tables_at_once_are_listed(browser, access, workspace):
    files = [("table", ("a.csv", b"a\n1\n")), ("table", ("b.csv", b"a\n1\n"))]
    found = browser.post("/tables", data={"form_token": access.form}, files=files)
    assert found.headers["location"] == "/"
    assert "2 tables were added" in browser.get("/").text
    assert {one.draft.name for one in workspace.tables()} == {"a.csv", "b.csv"}


def test_a_form_without_a_file_is_a_message(browser, access, workspace):
    browser.post("/tables", data={"form_token": access.form}, files={"table": ("", b"")})
    assert "No file was chosen" in browser.get("/").text
    assert workspace.tables() == []


def test_an_error_for_htmx_takes_the_place_of_notices(browser):
    found = browser.get("/runs/0123456789abcdef", headers={"HX-Request": "true"})
    assert (found.status_code, found.headers["HX-Retarget"]) == (404, "#notices")
    assert "<html" not in found.text


def test_sizes_and_names():
    assert [show_size(n) for n in (0, 999, 1000, 34567, 5e6, 1.5e9)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "35 kB",
        "5.0 MB",
        "1.5 GB",
    ]
    assert show_name("<\x1b\u202e>") == "<bdi>&lt;\\x1b\\u202e&gt;</bdi>"


def test_templates_escape_by_themselves():
    assert environment().autoescape is True
    assert not any("|safe" in text or "| safe" in text for text in (f.read_text() for f in APP.rglob("*.html")))


SHARED = {"fold", "good", "lead", "lister", "matrices", "number", "quiet", "remedy", "scroll", "stop", "table"}
SHARED |= {"banner", "top", "warning"}


def test_the_report_styles_no_class_of_the_page_by_chance():
    """Pages have both styles: a rule of the report, such as one that hides what waits, must not reach the page."""
    own, report = (
        set(re.findall(r"\.([a-z][\w-]*)", re.sub(r"/\*.*?\*/|\{[^{}]*\}", "", text, flags=re.DOTALL)))
        for text in ((APP / "static" / "app.css").read_text("utf-8"), write_style())
    )
    assert own & report == SHARED


def test_htmx_is_unchanged_and_has_its_licence():
    import hashlib

    text = (APP / "static" / "htmx.js").read_bytes()
    assert hashlib.sha256(text).hexdigest() == HTMX
    assert "Zero-Clause BSD" in (APP / "static" / "htmx.LICENSE.txt").read_text()


HTMX = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"  # htmx.org 2.0.11, dist/htmx.min.js
