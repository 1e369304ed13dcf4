"""A report taken apart: its text, its tags, and what it would load."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

VOID = {"meta", "br"}
EXTERNAL = ("http:", "https:", "src=", "@import", "url(", "<link", "<iframe", "<img", "<object", "javascript:", "//")


class Page(HTMLParser):
    """A page as a browser would see it, which refuses tags that aren't closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.raw, self.open, self.tags, self.links, self.ids = text, [], Counter(), [], []
        self.said, self.attributes = "", set()
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        self.words = re.sub(r"\s+", " ", self.said)

    def handle_starttag(self, tag, attrs):
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, attrs)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()
        self.said += " " if tag in ("td", "dd", "dt") else ""

    def handle_data(self, data):
        self.said += "" if {"style", "script", "svg"} & set(self.open) else data

    def note(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name in ("href", "xlink:href")]
        self.ids += [value for name, value in attrs if name == "id"]
