"""A visitor of the console without a browser: keeps the cookie, says where its forms come from, reads pages."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx2

from privet.service.seeded_server import Served
from privet.service.tokens import ANALYST

PATIENCE = 60.0  # seconds that a page may take on a machine with much else to do


class Reader(HTMLParser):
    """The elements of a page, with their attributes; what would run or load from elsewhere is refused."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.elements.append((tag, values))
        assert tag not in ("iframe", "object", "embed", "base", "style"), tag
        for name, value in attrs:
            assert not name.startswith("on") and name != "style", (tag, name)
            if name in ("src", "href", "action", "formaction"):
                assert str(value).startswith(("/console/", "#", "?")), (tag, name, value)
        assert tag != "script" or set(values) == {"type", "src"}, values


class Visitor:
    """Somebody with a cookie."""

    def __init__(self, served: Served, name: str = "ada", role: str = ANALYST, **token: Any) -> None:
        self.url = served.url
        self.headers: dict[str, str] = {}
        if name:
            self.sign_in(served.token(name, role, **token))

    def sign_in(self, token: str) -> httpx2.Response:
        reply = self.post("/console/sign-in", token=token)
        if "set-cookie" in reply.headers:
            self.headers["Cookie"] = reply.headers["set-cookie"].split(";")[0]
        return reply

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return httpx2.get(self.url + path, headers={"Accept": "text/html", **self.headers, **headers}, timeout=PATIENCE)

    def post(self, path: str, **fields: Any) -> httpx2.Response:
        """Send a form as a browser does from a page of this server."""
        return self.send(path, fields, SAME_ORIGIN)

    def send(self, path: str, content: dict[str, Any] | bytes, headers: dict[str, str]) -> httpx2.Response:
        """Send a form with these headers, and no others that say where it comes from."""
        body: dict[str, Any] = {"content": content} if isinstance(content, bytes) else {"data": content}
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return httpx2.post(self.url + path, headers={**kind, **self.headers, **headers}, timeout=PATIENCE, **body)

    def words(self, path: str) -> str:
        """The words of a page."""
        return words(self.get(path))


SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}


def words(reply: httpx2.Response) -> str:
    """The words of a page, which is checked to be one that runs and loads nothing else than it should."""
    assert reply.headers["content-type"] == "text/html; charset=utf-8", reply.text[:200]
    Reader(reply.text)
    body = reply.text.partition("<body>")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())
