"""Files of rows: CSV whose values are odd, CSV that is broken, and spoiled bytes of Parquet and DuckDB files.

Values are private, so that no value may ever be a reason to refuse; a broken file may be refused, and then nothing was
debited and nothing was left behind.
"""

from __future__ import annotations

import gzip
import io
import shutil
from pathlib import Path
from random import Random

import understudy as us
from fuzz.case import Case, Target, failed, inside
from fuzz.material import LEDGER, SCHEMA, SCHEMA_FILE, TABLE, desk_in
from fuzz.mutation import ODD_NUMBERS, ODD_TEXTS, spoiled_bytes
from understudy.cli import run

QUESTIONS = (
    "SELECT count(*) FROM data",
    "SELECT job, count(*) FROM data WHERE age > 40 GROUP BY job",
    "SELECT avg(pay) FROM data WHERE hired > '2020-01-01' OR NOT smoker",
    "SELECT sum(pay), avg(age) FROM data",
    "SELECT median(age) FROM data WHERE job <> 'cook' OR job IS NULL",
)
HEADER = ("name", "job", "age", "pay", "hired", "smoker")
ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "utf-7", "cp037")
HEADERS = (
    "", ",", "name", "name,job,age,pay,hired", "name,job,age,pay,hired,smoker,more", "name,name,age,pay,hired,smoker",
    "name;job;age;pay;hired;smoker", "name\tjob\tage\tpay\thired\tsmoker", "NAME,JOB,AGE,PAY,HIRED,SMOKER",
    " name , job,age ,pay,hired,smoker", '"name","job","age","pay","hired","smoker"',
    '"na\nme",job,age,pay,hired,smoker', '"name,job,age,pay,hired,smoker', "name,job,age,pay,hired,smoker,",
    "name,job,,pay,hired,smoker",
    "smoker,hired,pay,age,job,name",
    "name,job,age,pay,hired,smoker\r", "\x00name,job,age,pay,hired,smoker", "x" * 140_000 + ",job,age,pay,hired,smoker",
    "name,job,age,pay,hired,smoker," + ",".join(f"c{i}" for i in range(3_000)), "\ufeffname,job,age,pay,hired,smoker",
)  # fmt: skip


def odd_values(case: Case) -> None:
    """A sound file with odd values in it: answered, whatever they are."""
    draw, path = case.draw, case.folder / TABLE
    path.write_text(_odd_csv(draw), encoding="utf-8", newline="")
    table = case.call("open", us.open, path, us.Schema.loads(SCHEMA))
    if draw.random() < 0.1:
        found = case.call("synth", us.synthesize, table, epsilon=1.0, method="independent", rows=20, ledger=False)
    else:
        found = case.call("query", us.query, table, draw.choice(QUESTIONS), epsilon=1.0, ledger=False)
    if failed(table) or failed(found):
        case.fail("a value was a reason to refuse", found)


def _odd_csv(draw: Random) -> str:
    odd, ending = (
        [*ODD_TEXTS, *map(str, ODD_NUMBERS), "cook", "40", "2020-01-31", "true", ""],
        draw.choice(["\n", "\r\n"]),
    )
    everywhere = draw.random() < 0.3
    rows = [[_cell(draw, odd) for _ in HEADER] for _ in range(draw.randint(2, 30))]
    return "".join(",".join(_written(cell, everywhere) for cell in row) + ending for row in [HEADER, *rows])


def _written(cell: str, quoted: bool) -> str:
    # Python's own writer leaves a lone carriage return without quotes, and then the line ends there.
    if quoted or any(c in cell for c in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _cell(draw: Random, odd: list[str]) -> str:
    if draw.random() < 0.8:
        return draw.choice(odd)
    return "".join(chr(draw.randrange(1, 0xD7FF)) for _ in range(draw.randint(0, 12)))


def broken_csv(case: Case) -> None:
    """Bytes, encodings, ragged rows, headers, gzip: by the command line one time in eight, else by the functions."""
    draw = case.draw
    desk = desk_in(case.folder, case.base)
    shutil.copy(case.base / "ledger.sqlite", desk / LEDGER)
    name = draw.choice([TABLE, TABLE, TABLE, "people.csv.gz", "people.tsv"])
    path = desk / name
    if name != TABLE:
        (desk / TABLE).unlink()
        (desk / LEDGER).rename(desk / f"{name}.ledger.sqlite")
    path.write_bytes(_broken(draw, case.base / TABLE, packed=name.endswith(".gz")))
    _asked(case, path, desk / f"{name}.ledger.sqlite", command=draw.random() < 0.125)


def _broken(draw: Random, path: Path, packed: bool) -> bytes:
    text = path.read_text()
    head, _, rows = text.partition("\n")
    match draw.randrange(6):
        case 0 | 1:
            content = spoiled_bytes(draw, text.encode())
        case 2:
            content = text.replace("cook", "köch").encode(draw.choice(ENCODINGS), errors="replace")
        case 3:
            content = f"{draw.choice(HEADERS)}\n{rows}".encode()
        case 4:
            content = "\n".join([head, *(_ragged(draw, line) for line in rows.splitlines()[:40])]).encode()
        case _:
            content = draw.choice(
                [b"", b"\n", b"\x00" * 100, head.encode(), b"PAR1", b"\x1f\x8b", b"SQLite format 3\x00"]
            )
    if not packed or draw.random() < 0.2:
        return content
    squeezed = gzip.compress(content)
    return squeezed if draw.random() < 0.5 else spoiled_bytes(draw, squeezed)


def _ragged(draw: Random, line: str) -> str:
    kind = draw.randrange(12)
    odd = (
        line + ",",
        line.rpartition(",")[0],
        line + '"',
        '"' + line,
        line.replace(",", '",'),
        "",
        line + "\r",
        line * 40,
    )
    return odd[kind] if kind < len(odd) else line


def parquet(case: Case) -> None:
    """Spoiled bytes of a Parquet file."""
    _spoiled_file(case, "people.parquet", "people.parquet")


def duckdb(case: Case) -> None:
    """Spoiled bytes of a DuckDB file, most of them in its head, where everything is found from."""
    _spoiled_file(case, "people.duckdb", "people.duckdb::people")


def _spoiled_file(case: Case, name: str, source: str) -> None:
    draw, desk = case.draw, desk_in(case.folder, case.base)
    content = (case.base / name).read_bytes()
    where = draw.choice([0, 0, len(content) // 2])
    part = content[where : where + 12_288 + draw.randrange(8_192)]
    spoiled = content[:where] + spoiled_bytes(draw, part) + content[where + len(part) :]
    (desk / name).write_bytes(spoiled)
    ledger = desk / "ledger"
    shutil.copy(case.base / "ledger.sqlite", ledger)
    _asked(case, source, ledger, command=False)


def _asked(case: Case, source: str | Path, ledger: Path, command: bool) -> None:
    """One question about a file; where it is refused, everything is as it was."""
    draw, before = case.draw, inside(case.folder)
    if command:
        code = run_quietly(
            case,
            [
                "query",
                str(source),
                draw.choice(QUESTIONS),
                "--epsilon",
                "0.5",
                "--schema",
                SCHEMA_FILE,
                "--analyst",
                "ada",
            ],
        )
        refused = code != 0
    else:
        answer = case.call("query", _query, source, ledger, draw.choice(QUESTIONS))
        refused = failed(answer)
    if refused and (changed := differing(before, inside(case.folder))):
        case.fail("a refusal changed or left files", changed)


def _query(source: str | Path, ledger: Path, asked: str) -> us.Answer:
    return us.query(us.open(source, us.Schema.loads(SCHEMA)), asked, epsilon=0.5, ledger=ledger, analyst="ada")


def run_quietly(case: Case, arguments: list[str], codes: tuple[int, ...] = (0, 1, 2, 3)) -> int:
    """A command in this process: how it ended, once what it printed was looked at."""
    import contextlib

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = case.call("command", run, arguments)
    said = err.getvalue()
    if failed(code):
        return 70
    case.outcomes.append(f"exit {code}")
    if code not in codes:
        case.fail(f"exit {code}: {_bug(said)}", f"{said} of {arguments}")
    # The parser's own complaints have three lines, with the usage first.
    if not said.startswith("Usage: "):
        case.check_printed("command", said)
    return code


def _bug(said: str) -> str:
    """What the sentence about a bug of ours says of its place."""
    return said.partition("a bug of ours (")[2].partition(")")[0] or said.strip()[:60]


def differing(before: dict[str, bytes | None], after: dict[str, bytes | None]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name, 0) != after.get(name, 0))


def check_material(base: Path) -> None:
    import pyarrow as pa

    frame = pa.table({"age": [31, 47]})
    us.query(
        us.open(frame, us.Schema.loads('[columns.age]\ntype = "integer"\nmin = 0\nmax = 99')), QUESTIONS[0], epsilon=1.0
    )


TARGETS = (
    Target("values", "CSV with odd values only, never refused", 2_500, odd_values, prepare=check_material),
    Target("csv", "CSV that is broken in structure", 2_800, broken_csv, prepare=check_material),
    Target("parquet", "bytes of Parquet files", 1_900, parquet, prepare=check_material),
    Target("duckdb", "bytes of DuckDB files", 610, duckdb, prepare=check_material),
)
