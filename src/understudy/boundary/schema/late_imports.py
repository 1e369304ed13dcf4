"""Libraries that take long to import. They are loaded when something of them is first used, so that
`import understudy` and commands that open no table don't wait for them.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from sqlglot import expressions as exp
else:

    class _Late(ModuleType):
        # Asked for every name at every use: nothing of the module is kept here.
        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self.__name__), name)

    duckdb, pa, exp = map(_Late, ("duckdb", "pyarrow", "sqlglot.expressions"))

__all__ = ("duckdb", "exp", "pa")
