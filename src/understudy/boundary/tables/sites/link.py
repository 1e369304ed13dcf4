"""The one protocol between an aggregator and a site: a request as bytes, and its reply as bytes.

Flower carries them between machines (`tables.sites.flower`); a site in the same process is called directly.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from understudy import errors
from understudy.boundary.schema.schema import Schema
from understudy.boundary.tables.sites.messages import Message, packed
from understudy.errors import InternalError, SiteError, UnderstudyError, shown

PROTOCOL = 1
HELLO, PREPARE, BEGIN, MEET, COUNT, ANSWER, FINISH = "hello", "prepare", "begin", "meet", "count", "answer", "finish"
"""What a site may be asked: who it is; whether a release could begin; to debit and begin it; to take the others' keys;
for exact counts; for noisy ones; to close the release."""
MOST_WORDS = 2000
_LINE = re.compile(r" at line [0-9,]+")
T = TypeVar("T")


class SiteLink(Protocol):
    """A way to one site."""

    @property
    def name(self) -> str: ...

    def send(self, request: bytes) -> bytes:
        """The reply; a `SiteError` where none comes in time."""


class LocalLink:
    """A site in the same process; `answer` is its `handle`."""

    def __init__(self, name: str, answer: Callable[[bytes], bytes], lend: Callable[[Any], None] | None = None) -> None:
        self.name, self._answer = name, answer
        self.lend = lend
        """Gives the site a source of randomness, for tests and audits; a site elsewhere takes none."""

    def send(self, request: bytes) -> bytes:
        return self._answer(request)


def request(link: SiteLink, header: dict[str, Any], *content: Any) -> Message:
    """The site's reply to this very request; what it refuses is raised here, in its words and its name."""
    number = secrets.token_hex(8)
    sent = packed(header | {"protocol": PROTOCOL, "id": number}, *content)
    reply = Message.read(link.send(sent), f"site {link.name!r}")
    # A reply to an earlier request, or a second one to it, is no reply to this one.
    if reply.header.get("id") != number:
        raise SiteError(f"site {link.name!r} answered another request than it was asked", link.name)
    if "refused" in reply.header:
        raise _refusal(link.name, reply.header["refused"])
    return reply


def refused(number: Any, error: UnderstudyError) -> bytes:
    """The reply of a site that refuses, by the kind of its error and by its sentence."""
    # The place of a damaged line tells how many rows are before it.
    return packed({"id": number, "refused": [type(error).__name__, _LINE.sub("", str(error))]})


def _refusal(name: str, said: Any) -> UnderstudyError:
    """As the site said it, so that what is exhausted there ends as what is exhausted here."""
    kind, words = "", "it gave no reason"
    if isinstance(said, list) and len(said) == 2:
        kind, words = str(said[0]), shown(str(said[1]))[:MOST_WORDS]
    known = getattr(errors, kind, SiteError)
    if not (isinstance(known, type) and issubclass(known, UnderstudyError)) or known is InternalError:
        known = SiteError
    return known(f"site {name!r} refuses: {words}", name)


def of_all(links: Sequence[SiteLink], ask: Callable[[SiteLink], T]) -> list[T]:
    """One answer of each site, in their order; sites elsewhere are asked at the same time."""
    if all(isinstance(link, LocalLink) for link in links):
        return [ask(link) for link in links]
    with ThreadPoolExecutor(len(links)) as pool:
        asked = [pool.submit(ask, link) for link in links]
        # All are waited for, so that no answer of this round can be taken for one of the next.
        failed = [error for future in asked if (error := future.exception()) is not None]
        if failed:
            raise failed[0]
        return [future.result() for future in asked]


def greeted(link: SiteLink, schema: Schema) -> Message:
    """Who the site is; refused where it has other public facts, since its codes would mean something else."""
    hello = request(link, {"op": HELLO})
    if hello.header.get("schema") != schema.digest:
        raise SiteError(
            f"site {link.name!r} has another schema than the aggregator; give both the same file", link.name
        )
    return hello
