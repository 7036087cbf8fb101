"""Configuration of the documentation site: `make docs` builds it into build/site."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_site"))

project = "rekka"
author = "the rekka developers"
project_copyright = ""
html_show_copyright = False
release = re.search(r'^version = "(.+)"', (HERE.parent / "pyproject.toml").read_text(), flags=re.MULTILINE)[1]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "rekka_site"]
exclude_patterns = ["_site"]
root_doc = "index"
language = "en"
navigation = {  # pages as people come
    "Start": ["start-engineer", "start-statistician", "start-researcher"],
    "Guides": [
        "quickstart",
        "data",
        "how-to-choose",
        "choosing-safely",
        "choosing-models",
        "histories",
        "forecasting",
        "report",
        "app",
        "cluster",
        "windows",
    ],
    "Examples": ["example-ontario", "example-paper", "example-family"],
    "Reference": ["reference", "cli", "checks", "study", "policy", "changelog"],
    "Background": [
        "model",
        "errata",
        "reproduction",
        "families",
        "intervals",
        "repairs",
        "performance",
        "reliability",
        "verify",
    ],
    "Limits": ["limits"],
    "日本語": ["ja/index", "ja/data", "ja/report", "ja/app"],
}
html_search_language = "en-ja"
html_show_search_summary = False  # a page that is opened as a file may not read another one
myst_heading_anchors = 4  # the anchors that GitHub makes, so that a link holds here and there
suppress_warnings = ["myst.header"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings name types; signatures stay short enough to read
add_module_names = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
nitpicky = True
smartquotes = False  # an option --folder keeps its two signs

html_theme = "furo"
html_title = f"rekka {release}"
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_domain_indices = False
html_use_index = False
highlight_language = "text"  # commands and output; Python is named
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
