"""The unit of privacy: whom one claim protects, a row or a person."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from understudy.boundary.schema.schema import Schema

ROW_KIND, PERSON_KIND = "row", "person"


@dataclass(frozen=True)
class PrivacyUnit:
    """A row where `column` is None, else a person: all rows with one value in `column`, of whom `max_rows` count.

    >>> print(PrivacyUnit(), "/", PrivacyUnit("patient", 3))
    a row / a person by column 'patient' with at most 3 rows
    """

    column: str | None = None
    max_rows: int = 1

    @classmethod
    def of(cls, schema: Schema) -> PrivacyUnit:
        """What a release under this schema protects."""
        return cls() if schema.unit is None else cls(schema.unit.column, schema.unit.max_rows)

    @property
    def identity(self) -> str | None:
        """What two claims must share to add up: the column alone, whatever the caps.

        Neighbours of a person's claim differ in *all* rows of that person, however many there are. A release that
        counts k of them first bounds what the person moves in that release by its own k, and its price covers that.
        So releases with the caps k₁ and k₂ are claims about the very same neighbours, and compose by adding up. Rows of
        another column's people, or single rows, are other neighbours: a person of n rows is n steps away by rows, and
        where no cap holds n is unbounded, so that no number of the one says anything about the other.
        """
        return self.column

    @property
    def who(self) -> str:
        """The unit without its cap, which one release may choose otherwise than the next."""
        return "a row" if self.column is None else f"a person by column {self.column!r}"

    def __str__(self) -> str:
        if self.column is None:
            return self.who
        return f"{self.who} with at most {self.max_rows} row{'' if self.max_rows == 1 else 's'}"

    def to_dict(self) -> dict[str, Any]:
        """For certificates and exports."""
        if self.column is None:
            return {"what": ROW_KIND}
        return {"what": PERSON_KIND, "column": self.column, "max_rows": self.max_rows}

    def to_text(self) -> str:
        """As a ledger stores it."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> PrivacyUnit:
        """The inverse of `to_text`."""
        stored = json.loads(text)
        return cls() if stored["what"] == ROW_KIND else cls(stored["column"], stored["max_rows"])
