"""Sphinx extension of the documentation site: navigation, search in two languages, Japanese pages, examples.

The pages stay plain Markdown that reads well outside the site. What only the site needs is added here: tables of
contents, and the texts of the theme in Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import sphinx
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

JAPANESE = "ja/"
JAPANESE_SEARCH = "search-ja"  # beside the other one: its results are links from the first folder

# --- navigation

CHANGELOG = "changelog"


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the tables of contents to the first page, and make links that leave docs/ readable in the site."""
    if docname == app.config.root_doc:
        for caption, pages in app.config.navigation.items():
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
    above = "../" * (docname.count("/") + 1)
    source[0] = source[0].replace(f"]({above}CHANGELOG.md", f"]({above[3:]}{CHANGELOG}.md")
    source[0] = source[0].replace(f"]({above}README.md", f"]({above[3:]}{app.config.root_doc}.md")
    # a picture that leads to itself need not be a link
    source[0] = re.sub(r"\[(!\[[^\]]*\]\(([^)]+)\))\]\(\2\)", r"\1", source[0])
    # other files are in the source tree and not in the site: their names stay, without a link
    source[0] = re.sub(
        rf"\[([^\]]*)\]\({re.escape(above)}((?:benchmarks/|tests/|src/|CONTRIBUTING\.md)[^)]*)\)",
        r"\1 (`\2`)",
        source[0],
    )


# --- search

# Runs of Japanese letters have no blanks between words. Both the index and what is typed are cut into pairs of
# letters, so that every word of two letters or more is found, without a dictionary.
_LETTERS = r"\u3005-\u3007\u3041-\u3096\u30a1-\u30fa\u30fc\u2160-\u217f\u3400-\u9fff"


class SearchBoth(SearchEnglish):
    """Words in English, stemmed, and pairs of letters in Japanese."""

    lang = "en-ja"
    language_name = "English"
    js_splitter_code = r"""
function splitQuery(query) {
  return query
    .split(/([LETTERS]+)|[^\p{Letter}\p{Number}_]+/u)
    .filter((word) => word)
    .flatMap((word) =>
      /^[LETTERS]{2,}$/.test(word) ? [...word].slice(1).map((_, i) => word.slice(i, i + 2)) : [word],
    );
}
"""

    def split(self, input: str) -> list[str]:  # noqa: A002 (the name is Sphinx's)
        """Cut a text as the script above cuts what is typed."""
        return list(split_words(input))


def split_words(text: str) -> Iterator[str]:
    """English words as they are; of Japanese, every pair of neighbouring letters."""
    for word in re.findall(rf"[{_LETTERS}]+|(?:(?![{_LETTERS}])\w)+", text):
        if len(word) > 1 and re.match(f"[{_LETTERS}]", word):
            yield from (word[i : i + 2] for i in range(len(word) - 1))
        else:
            yield word


def leave_out_of_search(app: Sphinx, doctree: nodes.document) -> None:
    """Leave the changelog out of the search: it has every word, and came before the page that explains one."""
    if app.env.docname == CHANGELOG:
        app.env.metadata[CHANGELOG]["no-search"] = ""


# --- Japanese pages

_THEME = {
    "On this page": "このページの内容",
    "Next": "次へ",
    "Previous": "前へ",
    "Home": "ホーム",
    "Search": "検索",
    "Back to top": "ページの先頭へ",
    "Skip to content": "本文へ",
    "Error": "エラー",
    "Made with ": "テーマ: ",
    "Please activate JavaScript to enable the search functionality.": "検索にはJavaScriptを有効にしてください。",
}
_LABELS = {  # of buttons; the theme has them in English only
    'aria-label="Toggle site navigation sidebar"': 'aria-label="目次を開閉"',
    'aria-label="Toggle table of contents sidebar"': 'aria-label="このページの目次を開閉"',
    'aria-label="Toggle Light / Dark / Auto color theme"': 'aria-label="配色を切り替え（明・暗・自動）"',
    'aria-label="All pages"': 'aria-label="全ページ"',
    'aria-label="This page"': 'aria-label="このページ"',
    "<h1>Search</h1>": "<h1>検索</h1>",
}
_ACCESSIBLE = {  # what the theme leaves to be desired for screen readers and the keyboard
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer"': '<aside class="sidebar-drawer" aria-label="All pages"',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results">': '<h1>Search</h1><div id="search-results">',
}


def _translate(message: str) -> str:
    return _THEME.get(message.strip(), _THEME.get(message, message))


def show_in_its_language(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Link a page with its other language; give Japanese pages their theme, navigation and search in Japanese."""
    pathto: Callable[..., str] = context["pathto"]
    japanese = pagename.startswith(JAPANESE) or pagename == JAPANESE_SEARCH
    others = {"search": JAPANESE_SEARCH, JAPANESE_SEARCH: "search"}
    other = others.get(pagename) or (pagename.removeprefix(JAPANESE) if japanese else JAPANESE + pagename)
    if pagename in others or other in app.env.found_docs:
        words = '<a lang="en" href="{}">English</a>' if japanese else '<a lang="ja" href="{}">日本語</a>'
        context["body"] = f'<p class="other-language">{words.format(pathto(other))}</p>' + context.get("body", "")
    captions = re.split(r'(?=<p class="caption")', context.get("furo_navigation_tree", ""))
    if not japanese:
        return
    context["furo_navigation_tree"] = captions[0] + "".join(one for one in captions if "日本語" in one)
    context["language"] = "ja"
    context["_"] = context["gettext"] = _translate

    def to_japanese(target: str, *given: Any, **options: Any) -> str:
        return pathto({"search": JAPANESE_SEARCH, "index": "ja/index"}.get(target, target), *given, **options)

    context["pathto"] = to_japanese
    app.add_js_file("translations-ja.js")


def add_search_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Search page in Japanese; it searches the whole site, and Japanese words are on Japanese pages."""
    yield JAPANESE_SEARCH, {"title": "検索", "body": ""}, "search.html"


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write what surrounds the pages: results of the search in Japanese, labels for screen readers."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    catalogue = Path(sphinx.__file__).parent / "locale" / "ja" / "LC_MESSAGES" / "sphinx.js"
    (out / "_static" / "translations-ja.js").write_text(catalogue.read_text("utf-8"), "utf-8")
    for page in out.rglob("*.html"):
        text = page.read_text("utf-8")
        changes = _ACCESSIBLE | (_LABELS if page.parent.name == "ja" or page.stem == JAPANESE_SEARCH else {})
        for old, new in changes.items():
            text = text.replace(old, new)
        page.write_text(text, "utf-8")


# --- docstrings

_BEFORE: dict[str, list[str]] = {}


def prepare_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Make a list of lines that begin with a ``name`` and two blanks, as our docstrings have them."""
    _BEFORE[name] = list(lines)
    inside = False
    for number, line in enumerate(lines):
        if found := re.match(r"((?:``[^`]+``(?:, | and )?)+)  +(\S.*)", line):
            first = not inside
            lines[number] = ("\n" if first else "") + f"- {found[1]}: {found[2]}"
            inside = True
        elif inside and re.match(r"\s+\S", line):
            lines[number] = "  " + line.strip()
        else:
            inside = False
    lines[:] = "\n".join(lines).split("\n")


def restore_property(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Undo what napoleon makes of a property: it takes the words before a colon for a type."""
    if what == "property":
        lines[:] = _BEFORE[name]


def skip_inherited(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to an estimator."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


# --- examples


def show_script(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put a script in percent format into its page: its Markdown as text, its code as code."""

    def fill(found: re.Match[str]) -> str:
        path = (Path(app.srcdir) / f"{docname}.md").parent / found[1]
        app.env.note_dependency(path)
        return "\n\n".join(
            f"```python\n{text}\n```" if kind == "code" else text
            for kind, text in split_cells(path.read_text("utf-8"))
        )

    source[0] = re.sub(r"<!-- script (\S+) -->", fill, source[0])


def split_cells(script: str) -> Iterator[tuple[str, str]]:
    """Cells of a script in percent format: kind, "markdown" or "code", and text."""
    for cell in re.split(r"^# %%", script, flags=re.MULTILINE)[1:]:
        head, _, body = cell.partition("\n")
        kind = "markdown" if "[markdown]" in head else "code"
        if kind == "markdown":
            body = re.sub(r"^# ?", "", body, flags=re.MULTILINE)
            body = re.sub(r"\A# .*\n", "", body.lstrip())  # the page has a title
        if body.strip():
            yield kind, body.strip()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    SearchBoth.js_splitter_code = SearchBoth.js_splitter_code.replace("LETTERS", _LETTERS)
    app.add_config_value("navigation", {}, "env", [dict])
    app.add_search_language(SearchBoth)
    app.connect("source-read", add_navigation)
    app.connect("source-read", show_script)
    app.connect("doctree-read", leave_out_of_search, priority=900)  # after the metadata of the page are read
    app.connect("autodoc-process-docstring", prepare_docstring, priority=100)
    app.connect("autodoc-process-docstring", restore_property, priority=900)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("html-page-context", show_in_its_language, priority=900)
    app.connect("html-collect-pages", add_search_page)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
