"""Who publishes a release, and under which title: the publisher's own words, at the head of its report."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from understudy.errors import InputError

LONGEST = 200


@dataclass(frozen=True)
class Imprint:
    """Title and publisher as the certificate and the report give them; empty where nobody said.

    Nothing can check them, and nothing hides them: they are public, whatever the rows are.

    >>> Imprint("Stays in hospital 2023", "Office of statistics").stated
    {'title': 'Stays in hospital 2023', 'publisher': 'Office of statistics'}
    >>> Imprint("  ")
    Imprint(title='', publisher='')
    """

    title: str = ""
    publisher: str = ""

    def __post_init__(self) -> None:
        for name in ("title", "publisher"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise InputError(f"{name} ({text!r}) must be a text", text)
            text = text.strip()
            # On the page it is one line of a heading, and in a terminal nothing that the terminal obeys.
            if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in text):
                raise InputError(f"{name} must be one line of text, without control characters", text)
            if len(text) > LONGEST:
                raise InputError(f"{name} has {len(text)} characters, and may have {LONGEST}; shorten it", text)
            object.__setattr__(self, name, text)

    @property
    def stated(self) -> dict[str, str]:
        """What was said, by name."""
        return {name: text for name, text in (("title", self.title), ("publisher", self.publisher)) if text}
