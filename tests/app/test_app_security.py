"""Attacks on the page: other hosts, other sites, no token, paths, uploads, names, links."""

import asyncio
import errno
import os
import re
from urllib.parse import unquote

import pytest

pytest.importorskip("starlette", reason="the extra app is not installed: pip install 'rekka[app]'")

from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from rekka.app.pages import local_path
from rekka.app.security import HEADERS, MOST_FORM
from rekka.app.server import create_app
from rekka.app.uploads import _Form
from rekka.app.workspace import Ask, Draft, Job, Workspace
from rekka.core.errors import BadOption

OURS = "http://127.0.0.1:8765"
HOSTILE = "<script>alert(1)</script>\"'&{{ 7*7 }}\u202egpj.csv"


def ask_directly(application, access, method, path, parts=None, **headers):
    """Answers to a request whose path no client has tidied, and whose body comes in parts."""
    answers = []
    body = iter(parts or [{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        return next(body)

    async def send(message):
        answers.append(message)

    given = {"host": "127.0.0.1:8765", "origin": OURS, "cookie": f"{access.cookie}={access.session}"}
    given |= {"x-form-token": access.form} | headers
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
        "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("127.0.0.1", 8765), "client": None,
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }  # fmt: skip
    asyncio.run(application(scope, receive, send))
    return answers


# Who may ask


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:8765", "127.0.0.1:8765.evil", ""]
)
def test_another_host_is_refused(browser, host):
    assert browser.get("/", headers={"Host": host}).status_code == 403
    assert browser.get("/assets/app/app.css", headers={"Host": host}).status_code == 403


def test_both_names_of_this_machine_are_taken(browser):
    assert browser.get("/").status_code == 200
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
    assert browser.get("/", headers={"Host": "localhost:8765"} | cookie).status_code == 200


@pytest.mark.parametrize("path", ["/", "/runs", "/tables/0123456789abcdef", "/nowhere", "/comparison"])
def test_without_the_cookie_nothing_is_shown(stranger, path):
    found = stranger.get(path)
    assert found.status_code == 403
    assert "address that rekka app printed" in found.text
    assert stranger.post(path, headers={"Origin": OURS}).status_code == 403


def test_a_wrong_token_gives_no_cookie(stranger):
    found = stranger.get("/?token=guess")
    assert found.status_code == 403
    assert "set-cookie" not in found.headers


def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(stranger, access):
    found = stranger.get("/", params={"token": access.token})
    assert (found.status_code, found.headers["location"]) == (303, "/")
    cookie = found.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert access.token.lower() not in cookie
    assert stranger.get("/").status_code == 200


def test_a_cookie_of_an_earlier_start_is_refused(stranger, access):
    stranger.cookies.set(access.cookie, "of another start")
    assert stranger.get("/").status_code == 403


# What changes something


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1:8765.x"]
)
def test_a_post_of_another_site_is_refused(browser, access, origin):
    found = browser.post("/language", data={"form_token": access.form, "lang": "ja"}, headers={"Origin": origin})
    assert found.status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Referer": "https://evil.example/"}, 403),
        ({"Referer": "http://127.0.0.1:8765/runs"}, 303),
    ],
)
def test_without_an_origin_the_other_headers_count(browser, access, headers, status):
    del browser.headers["Origin"]
    found = browser.post("/language", data={"form_token": access.form, "lang": "ja"}, headers=headers)
    assert found.status_code == status


@pytest.mark.parametrize("fields", [{}, {"form_token": "guess"}, {"form_token": ["guess", "guess"]}])
@pytest.mark.parametrize("path", ["/language", "/demo", "/open", "/runs/0123456789abcdef/delete"])
def test_a_form_without_its_token_is_refused(browser, workspace, path, fields):
    assert browser.post(path, data=fields or {"x": "y"}).status_code == 403
    assert workspace.runs() == []


def test_the_token_of_a_form_may_be_a_header(browser, access):
    found = browser.post("/language", data={"lang": "ja"}, headers={"X-Form-Token": access.form})
    assert found.status_code == 303


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data; boundary=x"])
def test_other_kinds_of_forms_are_refused(browser, access, kind):
    text = f"form_token={access.form}"
    assert browser.post("/language", content=text, headers={"Content-Type": kind}).status_code == 403


def test_a_form_that_is_too_large_is_refused(browser, access):
    found = browser.post("/language", data={"form_token": access.form, "lang": "x" * MOST_FORM})
    assert found.status_code == 413


def test_a_get_changes_nothing(browser):
    for path in ("/demo", "/open", "/language", "/runs/0123456789abcdef/delete"):
        assert browser.get(path).status_code in (404, 405)


def test_a_websocket_is_closed(browser):
    with pytest.raises(WebSocketDisconnect) as caught, browser.websocket_connect("/"):
        pass
    assert caught.value.code == 1008


# Headers


@pytest.mark.parametrize("path", ["/", "/runs", "/nowhere", "/assets/app/app.css", "/assets/report/rekka.css"])
def test_every_answer_has_the_headers(browser, path):
    found = browser.get(path)
    assert {name: found.headers[name] for name in HEADERS if name != "Cache-Control"} == {
        name: value for name, value in HEADERS.items() if name != "Cache-Control"
    }
    assert "unsafe" not in found.headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/", "/runs", "/nowhere"])
def test_pages_have_no_script_or_style_of_their_own(browser, path):
    text = browser.get(path).text
    assert re.findall(r"<script(?![^>]*\bsrc=)", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", text) == []
    assert re.findall(r'(?:src|href|action)="(?!/(?!/)|data:,|#)[^"]*"', text) == []


# Paths


BAD_IDS = ["..", "%2e%2e", "..%2f..", "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "0123456789ABCDEF", "a" * 16 + "%00",
           "0123456789abcdef", "table.json", "%5c..%5c", "x" * 5000]  # fmt: skip


@pytest.mark.parametrize("bad", BAD_IDS)
@pytest.mark.parametrize("path", ["/tables/{}/plan", "/runs/{}", "/assets/app/{}", "/assets/report/{}"])
def test_an_id_is_never_a_path(application, access, path, bad):
    answers = ask_directly(application, access, "GET", unquote(path.format(bad)))
    assert answers[0]["status"] in (404, 405)
    assert b"root:" not in b"".join(one["body"] for one in answers[1:])


@pytest.mark.parametrize("bad", BAD_IDS)
@pytest.mark.parametrize(
    "path", ["/tables/{}/plan", "/tables/{}/delete", "/runs/{}/cancel", "/runs/{}/resume", "/runs/{}/delete"]
)
def test_nothing_outside_is_changed(application, access, workspace, path, bad):
    before = sorted(workspace.folder.parent.rglob("*"))
    answers = ask_directly(application, access, "POST", unquote(path.format(bad)))
    assert answers[0]["status"] in (404, 405)
    assert sorted(workspace.folder.parent.rglob("*")) == before


@pytest.mark.parametrize("place", ["/etc/passwd", "../secret.csv", "..", ".", "", "tables", "a\x00b", "no.csv"])
@pytest.mark.parametrize("kind", ["table", "run", "nonsense"])
def test_only_what_is_listed_is_opened(send, workspace, place, kind):
    (workspace.folder.parent / "secret.csv").write_text("a,b\n1,2\n")
    assert send("/open", place=place, kind=kind).status_code == 404
    assert workspace.tables() == []


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/%5cevil.example",
        "/\n/x",
        "",
    ],
)
def test_the_way_back_stays_here(send, back):
    assert local_path(back) == "/"
    assert send("/language", lang="ja", back=back).headers["location"] == "/"


# Uploads


def test_a_length_that_is_too_large_is_refused_before_anything_is_read(application, access, workspace):
    def never():
        raise AssertionError("the body was read")
        yield

    headers = {"content-length": str(5 * 10**9), "content-type": "multipart/form-data; boundary=x"}
    answers = ask_directly(application, access, "POST", "/tables", never(), **headers)
    assert answers[0]["status"] == 413
    assert b"The file is too large for this page" in answers[1]["body"]
    assert list((workspace.folder / "tables").iterdir()) == []


def test_an_upload_without_a_length_is_refused_as_soon_as_it_is_too_large(application, access, workspace):
    sent = []
    head = (
        f'--x\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n{access.form}\r\n'
        '--x\r\nContent-Disposition: form-data; name="table"; filename="a.csv"\r\n\r\n'
    ).encode()

    def parts():
        yield {"type": "http.request", "body": head, "more_body": True}
        for _ in range(1000):
            sent.append(1)
            yield {"type": "http.request", "body": b"1,2\n" * 2500, "more_body": True}

    kind = {"content-type": "multipart/form-data; boundary=x", "x-form-token": ""}
    answers = ask_directly(application, access, "POST", "/tables", parts(), **kind)
    assert answers[0]["status"] == 413
    assert len(sent) < 15
    assert list((workspace.folder / "tables").iterdir()) == []


def test_an_upload_whose_token_comes_too_late_is_refused(browser, access, workspace):
    body = (
        b'--x\r\nContent-Disposition: form-data; name="table"; filename="a.csv"\r\n\r\n1,2\r\n'
        b'--x\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n'
        + access.form.encode()
        + b"\r\n--x--\r\n"
    )
    found = browser.post("/tables", content=body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert found.status_code == 403
    assert list((workspace.folder / "tables").iterdir()) == []


def test_a_full_disk_is_a_message_and_leaves_nothing(upload, workspace, monkeypatch):
    take = _Form.part_data

    def fail(form, *data):
        if form._file is not None:
            raise OSError(errno.ENOSPC, "No space left on device")
        take(form, *data)

    monkeypatch.setattr(_Form, "part_data", fail)
    found = upload("a.csv", b"1,2\n")
    assert found.status_code == 400
    assert "No space left" in found.text
    assert list((workspace.folder / "tables").iterdir()) == []


@pytest.mark.parametrize("body", [b"", b"--x", b"nonsense", b"--x\r\nno: header\r\n\r\n", b"\x00" * 100])
def test_a_broken_upload_is_refused(browser, access, workspace, body):
    headers = {"Content-Type": "multipart/form-data; boundary=x", "X-Form-Token": access.form}
    assert browser.post("/tables", content=body, headers=headers).status_code in (303, 400)
    assert workspace.tables() == []


@pytest.mark.parametrize(
    "name",
    [
        "../../evil.csv",
        "/etc/cron.d/evil.csv",
        "..\\..\\evil.csv",
        "C:\\evil.csv",
        ".csv",
        "a\x00b.csv",
        "con.csv",
        HOSTILE,
    ],
)
def test_the_name_of_an_upload_is_never_a_path(upload, workspace, name):
    before = set(workspace.folder.parent.rglob("*"))
    found = upload(name, b"a,b\n1,2\n")
    made = {path for path in workspace.folder.parent.rglob("*") if path.is_file()} - before
    if found.status_code == 303:
        [table] = workspace.tables()
        assert table.file == workspace.folder / "tables" / table.id / "table.csv"
        assert {path.parent for path in made} == {table.folder}
        assert "/" not in table.draft.name
    else:
        assert made == set()


@pytest.mark.parametrize("name", ["evil.py", "evil", "evil.html", "table.csv.exe", "study.toml"])
def test_only_tables_are_taken(upload, workspace, name):
    assert upload(name, b"x").status_code == 400
    assert list((workspace.folder / "tables").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions of a folder are those of POSIX")
def test_what_is_uploaded_is_its_owners_alone(upload, workspace):
    upload("a.csv", b"a\n1\n")
    for folder in (workspace.folder / "tables", workspace.folder / "runs", workspace.tables()[0].folder):
        assert folder.stat().st_mode & 0o077 == 0


# Names


def test_hostile_names_are_text_on_every_page(upload, workspace, browser):
    upload(HOSTILE, b"bridge_id,case\n1,2\n")
    (workspace.folder / "<img src=x onerror=alert(1)>.csv").write_text("a,b\n1,2\n")
    table = workspace.tables()[0]
    table.save(table.draft.model_copy(update={"name": HOSTILE}))
    pages = ["/", "/runs", f"/tables/{table.id}/plan"]
    for state in ("waiting", "working", "failed", "cancelled", "done"):
        job = Job(name=HOSTILE, ask=Ask(table=HOSTILE, threshold=HOSTILE), state=state,
                  message={"say": "app.job.crashed", "code": 1, "log": HOSTILE})  # fmt: skip
        pages.append(f"/runs/{workspace.new_run(job).id}")
    for page in pages:
        text = browser.get(page).text
        assert "<script>alert" not in text, page
        assert "<img src=x" not in text, page
        assert "\u202e" not in text, page


def test_a_hostile_message_is_text(upload, browser):
    found = upload(f"{HOSTILE}.exe", b"x")
    assert found.status_code == 400
    assert "<script>alert" not in found.text
    assert "&lt;script&gt;alert" in found.text


# Links


@pytest.fixture
def outside(workspace):
    """A folder outside of the workspace with a secret."""
    folder = workspace.folder.parent / "outside"
    folder.mkdir()
    (folder / "secret.csv").write_text("secret,secret\n1,2\n")
    return folder


def link(place, target):
    try:
        place.symlink_to(target)
    except OSError as error:
        pytest.skip(f"this machine makes no links: {error}")


def test_links_are_not_listed(workspace, outside):
    link(workspace.folder / "a.csv", outside / "secret.csv")
    link(workspace.folder / "folder", outside)
    assert workspace.found() == []


def test_a_table_behind_a_link_is_not_there(browser, upload, workspace, outside):
    upload("a.csv", b"a\n1\n")
    table = workspace.tables()[0]
    table.file.unlink()
    link(table.file, outside / "secret.csv")
    assert browser.get(f"/tables/{table.id}/plan").status_code == 404
    assert workspace.tables() == []


def test_a_draft_does_not_lead_out(browser, upload, workspace, outside):
    upload("a.csv", b"a\n1\n")
    table = workspace.tables()[0]
    for place in ("../outside/secret.csv", str(outside / "secret.csv")):
        table.save(Draft(name="x", suffix=".csv", place=place))
        assert browser.get(f"/tables/{table.id}/plan").status_code == 404


def test_a_folder_of_tables_with_a_link_that_leads_out_is_not_there(browser, send, workspace, outside):
    folder = workspace.folder / "mine"
    folder.mkdir()
    (folder / "inspections.csv").write_text("bridge_id,state\n1,2\n")
    assert [one.kind for one in workspace.found()] == ["folder", "table"]
    address = send("/open", place="mine", kind="folder").headers["location"]
    assert browser.get(f"{address}/plan").status_code == 400  # it cannot be read, but it is there
    link(folder / "inventory.csv", outside / "secret.csv")
    assert browser.get(f"{address}/plan").status_code == 404
    assert workspace.tables() == []


def test_a_joined_table_does_not_lead_out(browser, upload, workspace, outside):
    upload("a.csv", b"a\n1\n")
    table = workspace.tables()[0]
    for file in ("../../../outside/secret.csv", str(outside / "secret.csv")):
        table.save(table.draft.model_copy(update={"mapping": {"join": [{"file": file}]}}))
        found = browser.get(f"/tables/{table.id}/plan")
        assert (found.status_code, "secret,secret" in found.text) == (400, False)


def test_a_run_whose_study_is_a_link_is_not_there(browser, workspace, outside):
    run = workspace.new_run(Job(name="x", state="done"))
    link(run.study, outside)
    assert browser.get(f"/runs/{run.id}").status_code == 404


def test_a_workspace_whose_lock_is_a_link_is_refused(workspace, outside):
    link(workspace.folder / ".lock", outside / "secret.csv")
    with pytest.raises(BadOption, match="is a link"):
        Workspace(workspace.folder)


def test_a_job_does_not_lead_out(browser, workspace, outside):
    run = workspace.new_run(Job(name="x", place="../outside", state="done"))
    assert browser.get(f"/runs/{run.id}").status_code == 404
    assert workspace.runs() == []


def test_an_id_that_is_a_link_is_not_there(browser, workspace, outside):
    (outside / "job.json").write_text(Job(name="x").model_dump_json())
    link(workspace.folder / "runs" / "0123456789abcdef", outside)
    assert browser.get("/runs/0123456789abcdef").status_code == 404
    assert workspace.runs() == []


def test_a_run_folder_with_a_link_that_leads_out_is_not_opened(send, workspace, outside):
    folder = workspace.folder / "run"
    folder.mkdir()
    (folder / "study.toml").write_text("")
    link(folder / "report.html", outside / "secret.csv")
    assert send("/open", place="run", kind="run").status_code == 404
    assert workspace.runs() == []


def test_a_workspace_whose_folders_lead_out_is_refused(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace").mkdir()
    link(tmp_path / "workspace" / "tables", tmp_path / "outside")
    with pytest.raises(BadOption, match="leads out"):
        Workspace(tmp_path / "workspace")


# Faults


def test_a_fault_of_ours_shows_no_traceback(workspace, access, monkeypatch):
    def fail(_):
        raise RuntimeError("secret of the inside")

    monkeypatch.setattr("rekka.app.workspace.Workspace.runs", fail)
    client = TestClient(create_app(workspace, access), base_url=OURS, raise_server_exceptions=False)
    client.cookies.set(access.cookie, access.session)
    found = client.get("/runs")
    assert found.status_code == 500
    assert "secret" not in found.text
    assert "Something went wrong" in found.text
    assert found.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
