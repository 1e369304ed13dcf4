"""Whoever opens a table of a server reads with their own rights, and so does every function that a view calls.

Here the views are hostile: they try to write, to leave settings behind, and to put their own functions and operators in
the way. The reader may write to `loot` by its rights; a table that was opened must not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

import understudy as us
from helpers.postgres_cluster import cluster, skip_without_server
from understudy.errors import TableError

SCHEMA = us.Schema.loads("""
[columns.age]
type = "integer"
min = 0
max = 9
[columns.town]
type = "categorical"
values = ["Bonn", "Ulm"]
missing = true
[columns.pay]
type = "number"
min = 0
max = 2
bins = 4
[columns.seen]
type = "datetime"
min = 2020-01-01
max = 2020-01-04
""")
DOMAIN = us.Domain.of(SCHEMA)
SETS = [(), ("age",), ("town", "age"), ("pay",), ("seen",)]
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    """A server with the roles `reader`, who opens tables, and `mallory`, who makes views."""
    with cluster(skip_without_server()) as url:
        run(
            url,
            "CREATE ROLE reader LOGIN; CREATE ROLE mallory LOGIN",
            "CREATE SCHEMA data; GRANT ALL ON SCHEMA data, public TO mallory; GRANT USAGE ON SCHEMA data TO reader",
            "CREATE TABLE data.people (age text, town text, pay float8, seen timestamptz)",
            "INSERT INTO data.people SELECT mod(i, 9) + 1, ' Bonn ', 0.1 * i, '2020-01-02 23:30+00' "
            "FROM generate_series(1, 20) AS i",
            "CREATE TABLE data.armed AS SELECT 1",
            "CREATE TABLE data.loot (who text DEFAULT current_user)",
            "GRANT ALL ON ALL TABLES IN SCHEMA data TO reader, mallory",
        )
        yield url


def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def as_role(url: str, role: str) -> str:
    return url.replace("//tester@", f"//{role}@")


def view(admin: str, body: str) -> str:
    """A view of mallory's that runs the body for every row, and hides its failures. Its address for the reader."""
    name = f"trap{next(NUMBERS)}"
    run(
        as_role(admin, "mallory"),
        f"CREATE FUNCTION data.{name}() RETURNS int VOLATILE LANGUAGE plpgsql AS $body$ BEGIN "
        f"BEGIN IF EXISTS (SELECT FROM data.armed) THEN {body}; END IF; EXCEPTION WHEN OTHERS THEN NULL; END; "
        "BEGIN INSERT INTO data.loot DEFAULT VALUES; EXCEPTION WHEN OTHERS THEN NULL; END; "
        "RETURN 0; END $body$",
        f"CREATE VIEW data.{name} AS SELECT CAST(CAST(age AS int) + data.{name}() AS text) AS age, town, pay, seen "
        "FROM data.people",
        f"GRANT SELECT ON data.{name} TO reader",
    )
    return f"{as_role(admin, 'reader')}::data.{name}"


def answers(table: us.Table) -> list[object]:
    counts = [c.tolist() for c in table.count_by(DOMAIN, SETS)]
    return [counts, table.count_rows(), table.has_rows(20), table.count_values("town")[0]]


def expected(admin: str) -> list[object]:
    return answers(us.open(f"{admin}::data.people", SCHEMA))


SWITCHES = {
    "nothing": "NULL",
    "session default": "PERFORM set_config('default_transaction_read_only', 'off', false)",
    "transaction": "PERFORM set_config('transaction_read_only', 'off', true)",
    "transaction, for good": "PERFORM set_config('transaction_read_only', 'off', false)",
    "statement": "EXECUTE 'SET TRANSACTION READ WRITE'",
    "characteristics": "EXECUTE 'SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE'",
    "all settings": "EXECUTE 'RESET ALL'",
    "new transaction": "EXECUTE 'COMMIT'; EXECUTE 'BEGIN READ WRITE'",
    "rolled back": "EXECUTE 'ROLLBACK'",
    "large object": "PERFORM lo_creat(-1)",
    "prepared": "EXECUTE 'PREPARE _pg3_0 AS INSERT INTO data.loot DEFAULT VALUES'",
}


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_view_cannot_write(admin: str, switch: str):
    run(admin, "TRUNCATE data.loot")
    table = us.open(view(admin, SWITCHES[switch]), SCHEMA)
    for _ in range(2):
        assert answers(table) == expected(admin)
    us.synthesize(table, epsilon=1.0, method="independent", seed=1, ledger=False)
    us.query(table, f"SELECT count(*) FROM {table.name}", epsilon=1.0, ledger=False)
    assert run(admin, "SELECT count(*) FROM data.loot") == [(0,)]
    assert run(admin, "SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]


def test_the_trap_works_where_only_the_default_of_the_session_is_set(admin: str):
    """The mutant: what these tables did once."""
    import psycopg

    run(admin, "TRUNCATE data.loot")
    url, _, name = view(admin, SWITCHES["session default"]).partition("::")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET default_transaction_read_only = on")
        for _ in range(2):
            connection.execute(f"SELECT count(age) FROM {name}")
    assert run(admin, "SELECT count(*) FROM data.loot") == [(20,)]


def test_a_view_that_must_write_is_refused(admin: str):
    run(admin, "TRUNCATE data.loot")
    run(
        as_role(admin, "mallory"),
        "CREATE FUNCTION data.greedy() RETURNS text LANGUAGE sql AS "
        "'INSERT INTO data.loot DEFAULT VALUES RETURNING who'",
        "CREATE VIEW data.greed AS SELECT age || data.greedy() AS age, town, pay, seen FROM data.people",
        "GRANT SELECT ON data.greed TO reader",
    )
    table = us.open(f"{as_role(admin, 'reader')}::data.greed", SCHEMA)
    with pytest.raises(TableError, match="greed can't be read: it calls something that writes"):
        table.count_by(DOMAIN, [("age",)])
    assert run(admin, "SELECT count(*) FROM data.loot") == [(0,)]


LEFT_BEHIND = {
    "search path": "PERFORM set_config('search_path', 'evil, pg_catalog', false)",
    "time zone": "PERFORM set_config('timezone', 'Asia/Tokyo', false)",
    "dates": "PERFORM set_config('datestyle', 'SQL, DMY', false)",
    "digits": "PERFORM set_config('extra_float_digits', '-10', false)",
    "strings": "PERFORM set_config('standard_conforming_strings', 'off', false)",
    "encoding": "PERFORM set_config('client_encoding', 'LATIN1', false)",
}


@pytest.mark.parametrize("setting", LEFT_BEHIND)
def test_settings_that_a_view_leaves_behind_change_nothing(admin: str, evil: str, setting: str):
    table = us.open(view(admin, LEFT_BEHIND[setting]), SCHEMA)
    answers(table)
    run(admin, "DELETE FROM data.armed")
    try:
        assert answers(table) == expected(admin)
    finally:
        run(admin, "INSERT INTO data.armed VALUES (1)")


@pytest.fixture(scope="module")
def evil(admin: str) -> str:
    """A search path that begins with a schema of the server's own names, each of which gives something else."""
    lies = {
        "btrim(text, text) RETURNS text": "'Ulm'::pg_catalog.text",
        "floor(float8) RETURNS float8": "0::pg_catalog.float8",
        "length(text) RETURNS int": "0",
        "set_config(text, text, boolean) RETURNS text": "'nothing'::pg_catalog.text",
        "never(text, text) RETURNS boolean": "false",
        "never(oid, oid) RETURNS boolean": "false",
        "never(text, text[]) RETURNS boolean": "false",
    }
    run(
        admin,
        "CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO reader",
        *(f"CREATE FUNCTION evil.{f} LANGUAGE sql IMMUTABLE AS $$ SELECT {body} $$" for f, body in lies.items()),
        "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never)",
        "CREATE OPERATOR evil.= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = evil.never)",
        "CREATE OPERATOR evil.~ (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never)",
        "CREATE DOMAIN evil.float8 AS text; CREATE DOMAIN evil.int4 AS text; CREATE DOMAIN evil.oid AS text",
        "CREATE TABLE evil.pg_class AS SELECT 'nothing' AS relname",
    )
    return "evil, pg_catalog, public"


def test_functions_operators_and_types_of_others_are_not_found(admin: str, evil: str):
    reader = as_role(admin, "reader")
    run(admin, f"ALTER ROLE reader SET search_path = {evil}")
    try:
        assert run(reader, "SELECT btrim('x', ' '), 'a'::text = 'a'::text, floor(2.5::pg_catalog.float8)") == [
            ("Ulm", False, 0.0)
        ], "the schema is not in the way, so this test shows nothing"
        assert answers(us.open(f"{reader}::data.people", SCHEMA)) == expected(admin)
    finally:
        run(admin, "ALTER ROLE reader RESET search_path")


def test_a_name_is_looked_up_once_by_the_path_of_the_role(admin: str):
    reader = as_role(admin, "reader")
    same = "(LIKE data.people)"
    run(admin, f"CREATE TABLE public.town {same}; GRANT SELECT ON public.town TO reader")
    table = us.open(f"{reader}::town", SCHEMA)
    run(admin, "CREATE SCHEMA reader AUTHORIZATION reader; CREATE TABLE reader.town AS SELECT * FROM data.people")
    run(admin, "GRANT SELECT ON reader.town TO reader")
    assert table.count_rows() == 0  # still public.town
    # "$user" comes first in the role's path, so that its table would hide the one that everybody else means.
    with pytest.raises(TableError, match="the name 'town' is that of 2 tables, in the schemas 'public', 'reader'"):
        us.open(f"{reader}::town", SCHEMA)
    assert us.open(f"{reader}::reader.town", SCHEMA).count_rows() == 20
    assert us.open(f"{reader}::public.town", SCHEMA).count_rows() == 0


@pytest.mark.slow
def test_the_limits_of_the_role_are_kept(admin: str):
    run(as_role(admin, "mallory"), "CREATE VIEW data.slow AS SELECT p.* FROM data.people p, pg_sleep(60)")
    run(admin, "GRANT SELECT ON data.slow TO reader; ALTER ROLE reader SET statement_timeout = '2s'")
    try:
        table = us.open(f"{as_role(admin, 'reader')}::data.slow", SCHEMA)
        with pytest.raises(TableError, match="slow can't be read: the server stopped the query"):
            table.count_rows()
        with pytest.raises(TableError, match="slow can't be read: the server stopped the query"):
            table.count_by(DOMAIN, [("age",)])
    finally:
        run(admin, "ALTER ROLE reader RESET statement_timeout")


def test_no_transaction_is_open_between_two_questions(admin: str):
    table = us.open(f"{as_role(admin, 'reader')}::data.people", SCHEMA)
    own = f"usename = 'reader' AND pid = {table._connection.info.backend_pid}"  # others may still be closing
    states = f"SELECT state FROM pg_stat_activity WHERE {own}"
    assert run(admin, states) == [("idle",)]
    for ask in (lambda: table.count_by(DOMAIN, SETS), table.count_rows, lambda: table.count_values("town")):
        ask()
        assert run(admin, states) == [("idle",)]


def test_a_failed_connection_says_which_part_failed(admin: str):
    told = {
        as_role(admin, "nobody"): "the server refused the user or the password",
        admin.replace("/postgres?", "/nowhere?"): "there is no database of that name",
        "postgresql://reader:s3cret@127.0.0.1:1/postgres": "no server answers at that address",
    }
    for url, reason in told.items():
        with pytest.raises(TableError, match=f"the PostgreSQL server can't be read: {reason}") as refused:
            us.open(f"{url}::data.people", SCHEMA)
        assert "s3cret" not in repr(refused.value)
