"""How a thing shows itself in a notebook and in a Python shell: as a few facts, never as all that it holds."""

from __future__ import annotations

from html import escape


class Card:
    """Whatever can say what it is in a few facts. A dataclass takes its `__repr__` from here by name."""

    def card(self) -> tuple[str, list[tuple[str, str]]]:
        """What it is, and its facts by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        title, facts = self.card()
        return f"<{title}: {'; '.join(f'{name} {said}' for name, said in facts)}>"

    def _repr_html_(self) -> str:
        title, facts = self.card()
        # Left-aligned by itself: notebooks push the cells of tables to the right.
        lines = "".join(
            f'<tr><th style="text-align: left">{escape(name)}</th><td style="text-align: left">{escape(said)}</td></tr>'
            for name, said in facts
        )
        return f'<table><caption style="text-align: left">{escape(title)}</caption>{lines}</table>'


def shortened(names: list[str] | tuple[str, ...], most: int = 12) -> str:
    """The first of them.

    >>> shortened(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    listed = ", ".join(names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed
