"""What a report may be made of: text and drawings, and nothing that runs or loads.

`replay` makes the report again and compares it whole. This looks at any page, also at one of another version: in those
of Understudy every text is escaped, so that each `<` begins a tag of the template.
"""

from __future__ import annotations

import re

from understudy.errors import CheckFailed

HEAD = re.compile(
    rb'\s*<!doctype html>\s*<html lang="[\w-]*">\s*<head>\s*'
    rb'(?:<meta (?:charset|name)="[\w-]+"(?: content="[^"<>]*")?>\s*)*'
    rb"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)
"""With the policy before anything else: a browser that obeys it loads nothing, whatever follows."""
STYLE = re.compile(rb"<style>([^<]*)</style>")
FETCHES = re.compile(rb"url\s*\(|@import|\\", re.IGNORECASE)
"""In a style sheet; a backslash may write either of them in another way."""
TAGS = (
    "a b body br caption circle code dd desc details div dl dt em figcaption figure footer g h1 h2 h3 h4 head header "
    "html li line main nav ol p path pre polygon polyline rect section small span strong sub summary sup svg table "
    "tbody td text tfoot th thead title tr tspan ul"
)
ATTRIBUTES = (
    r"class id role open lang tabindex colspan rowspan scope x y x1 x2 y1 y2 dx dy cx cy r rx ry width height viewBox "
    r"points preserveAspectRatio d fill fill-[a-z]+ stroke stroke-[a-z]+ font-[a-z]+ text-anchor dominant-baseline "
    r"opacity color transform data-[a-z]+ aria-[a-z]+"
)
TAG = re.compile(
    rf"""</?(?:{"|".join(TAGS.split())})(?:\s+(?:(?:{"|".join(ATTRIBUTES.split())})="[^"<>]*"|href="\#[^"<>]*"))*\s*/?>""".encode()
)


def check_page(content: bytes, what: str) -> None:
    """Refuses scripts, forms, frames, pictures, links that lead elsewhere, and whatever else is no part of a report."""
    head = HEAD.match(content)
    if head is None:
        raise CheckFailed(f"{what} is no report of Understudy: it does not begin with its policy", what)
    styles = STYLE.findall(content)
    if any(FETCHES.search(style) for style in styles):
        raise CheckFailed(f"{what} has a style sheet that loads something", what)
    if b"<" in TAG.sub(b"", STYLE.sub(b"", content[head.end() :])):
        raise CheckFailed(f"{what} holds something else than text and drawings, as no report does", what)
