"""Sites in this process: what they answer under each trust model, what they refuse, and what they never do twice."""

from __future__ import annotations

import json
import os
import struct
import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from helpers import federation as sites
from helpers.randomness import BestRandomness, SilentRandomness
from understudy.boundary.privacy.asks import Marginals, Select, Tally, Total
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.privacy.curator import Curator
from understudy.boundary.privacy.mechanisms.score import Candidate
from understudy.boundary.privacy.sites.site import Site, SiteSettings
from understudy.boundary.schema.domain import Coding, Domain
from understudy.boundary.schema.federation import TRUSTS, Bill, Federation
from understudy.boundary.schema.grouped_sums import GroupedSums, PersonCount, ValueSum
from understudy.boundary.schema.partition import Grid
from understudy.boundary.tables.sites.federated import FederatedTable
from understudy.boundary.tables.sites.link import LocalLink, request
from understudy.boundary.tables.sites.messages import Message, packed
from understudy.errors import InternalError

SCHEMA = sites.adult_schema()
DOMAIN = Domain.of(SCHEMA)
SETS = [("age",), ("sex", "income"), ("education",)]
SESSION = "0123456789abcdef" * 2
HONEST = {"secure-sum": 2}


def federation(trust, sites=3):
    return Federation(trust, sites, honest=HONEST.get(trust, 0))


def bill(trust, epsilon=1.0):
    return Bill(federation(trust), SCHEMA.digest, epsilon, 1e-6, "gdp", purpose="a test")


@pytest.fixture
def files(tmp_path):
    return sites.files(tmp_path)


def standing(files, trusts=TRUSTS):
    """A site for each file, with its ledger beside it."""
    return [
        sites.site_of(
            path, SCHEMA, name, trusts=trusts, ledger=path.with_suffix(".ledger"), records=path.parent / "sessions"
        )
        for name, path in zip("abc", files, strict=True)
    ]


def debits(files):
    ledgers = [path.with_suffix(".ledger") for path in files]
    return [len(us.Ledger.open(path, create=False).entries()) if path.exists() else 0 for path in ledgers]


def asked(trust, randomness=None, epsilon=1.0, **options):
    parts = [us.open(part, SCHEMA) for part in sites.uneven(sites.adult_rows())]
    table = us.federate(parts, trust=trust, honest=HONEST.get(trust, 0), **options)
    return Curator.on(table, Budget(epsilon, 1e-6), randomness=randomness)


@pytest.mark.parametrize("trust", TRUSTS)
def test_without_noise_sites_count_what_the_pooled_table_counts(trust):
    sites.skip_without_masks()
    curator = asked(trust, SilentRandomness())
    ask = Marginals(DOMAIN, SETS, curator.remaining())
    pooled = Curator.on(us.open(sites.adult_rows(), SCHEMA), Budget(1.0, 1e-6), randomness=SilentRandomness())
    found, wanted = curator.ask(ask), pooled.ask(Marginals(DOMAIN, SETS, pooled.remaining()))
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours.counts == theirs.counts).all() and ours.counts.sum() == sites.ROWS
    noises = {"aggregator": 1.0, "secure-sum": 1.5, "nobody": 3.0}[trust]
    assert all(m.noises == noises for m in found)
    assert found[0].variance == pytest.approx(noises * (found[0].scale ** 2 + 1 / 12))


@pytest.mark.parametrize("trust", TRUSTS)
def test_each_ledger_is_debited_once_and_before_anything_is_counted(files, trust, monkeypatch):
    sites.skip_without_masks()
    counted, handle = [], Site._reply

    def watching(site, message):
        if message.header["op"] in ("count", "answer"):
            counted.append(debits(files))
        return handle(site, message)

    monkeypatch.setattr(Site, "_reply", watching)
    table = sites.local(standing(files), SCHEMA, federation(trust))
    release = us.synthesize(table, epsilon=1.0, method="independent", ledger=False)
    assert counted and all(found == [1, 1, 1] for found in counted)
    spent = us.Ledger.open(files[0].with_suffix(".ledger")).spent()
    assert release.certificate.composed[0] <= 1.0 and spent.gdp > 0
    assert (spent.direct > 0) == (trust == "secure-sum") and not list(files[0].parent.glob("sessions/*"))


@pytest.mark.parametrize("trust", ["secure-sum", "nobody"])
def test_the_same_question_has_one_noise_across_restarts(files, trust):
    """Asked again, by another aggregator and of a site that was started again, and nothing is debited twice."""
    sites.skip_without_masks()
    ask = Marginals(DOMAIN, SETS, asked(trust).remaining())
    shapes, answers = [DOMAIN.shape(s) for s in SETS], []
    for _ in range(2):
        view = sites.local(standing(files), SCHEMA, federation(trust)).release()
        view.prepare(bill(trust), SESSION)
        view.begin(bill(trust), SESSION)
        answers += [view.answers(ask, 1, shapes), view.answers(ask, 1, shapes)]
    for again in answers[1:]:
        for ours, theirs in zip(answers[0], again, strict=True):
            assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))
    assert debits(files) == [1, 1, 1]
    other = Marginals(DOMAIN, [("sex",)], asked(trust).remaining())
    with pytest.raises(us.SiteError, match="was another one before"):
        view.answers(other, 1, [DOMAIN.shape(("sex",))])
    with pytest.raises(us.BudgetExhausted, match="at most"):
        view.answers(other, 2, [DOMAIN.shape(("sex",))])
    view.finish()
    with pytest.raises(us.SiteError, match="not begun here, or is finished"):
        view.answers(ask, 1, shapes)
    with pytest.raises(us.SiteError, match="finished, or its record is gone"):
        view.begin(bill(trust), SESSION)
    assert debits(files) == [1, 1, 1]


def test_what_the_aggregator_sees_of_one_site_is_masked(files):
    sites.skip_without_masks()
    view = sites.local(standing(files), SCHEMA, federation("secure-sum")).release()
    view.begin(bill("secure-sum"), SESSION)
    ask = Marginals(DOMAIN, [("age",)], asked("secure-sum").remaining())
    for (seen,) in view.answers(ask, 1, [DOMAIN.shape(("age",))]):
        assert np.median(seen.astype(float)) > 2.0**60  # no count, and no count with noise, is as large


def test_a_site_refuses_what_it_was_not_started_for(files):
    site = standing(files, trusts=("nobody",))[0]
    link = site.link()
    with pytest.raises(us.SiteError, match="start it with --trust aggregator"):
        request(link, {"op": "prepare", "bill": bill("aggregator").to_dict(), "session": ""})
    with pytest.raises(us.SiteError, match="start it with --trust aggregator"):
        request(link, {"op": "begin", "bill": bill("aggregator").to_dict(), "session": SESSION})
    other = replace(bill("nobody"), schema="sha256:0")
    with pytest.raises(us.SiteError, match="another schema"):
        request(link, {"op": "begin", "bill": other.to_dict(), "session": SESSION})
    with pytest.raises(us.SiteError, match="not begun here"):
        request(link, {"op": "count", "session": SESSION, "question": "count_rows"})
    request(link, {"op": "begin", "bill": bill("nobody").to_dict(), "session": SESSION})
    with pytest.raises(us.SiteError, match="exact counts leave a site only"):
        request(link, {"op": "count", "session": SESSION, "question": "count_rows"})
    with pytest.raises(us.SiteError, match="begun with another bill"):
        request(link, {"op": "begin", "bill": bill("nobody", epsilon=0.5).to_dict(), "session": SESSION})
    assert debits(files) == [1, 0, 0]


def asking(site, ask, place=1):
    """The header of the reply to a question of a session without trust."""
    header = {"id": 1, "protocol": 1, "session": SESSION}
    site.handle(packed(header | {"op": "begin", "bill": bill("nobody").to_dict()}))
    return Message.read(site.handle(packed(header | {"op": "answer", "place": place}, ask)), "a site").header


def test_a_question_in_codes_that_some_value_has_not_is_refused_whatever_the_rows_are(files):
    """Without a code for one value, a row with it was an error of the count, and so was seen unpaid."""
    schema = us.Schema.loads('[columns.smoker]\ntype = "boolean"')
    domain = Domain(schema, (Coding(schema["smoker"], labels=(False,)),))
    ask = Marginals(domain, [("smoker",)], Budget(1.0, 1e-6).capacity.part(0.01))
    header = {"id": 1, "protocol": 1, "session": SESSION}
    said = []
    for rows in ([False] * 9, [False] * 9 + [True]):
        site = sites.site_of(pa.table({"smoker": rows}), schema)
        paid = replace(bill("nobody"), schema=schema.digest)
        site.handle(packed(header | {"op": "begin", "bill": paid.to_dict()}))
        said.append(Message.read(site.handle(packed(header | {"op": "answer", "place": 1}, ask)), "a site").header)
    assert said[0] == said[1] and "other codes than its schema" in said[0]["refused"][1]


def test_an_answer_whose_record_is_lost_is_not_drawn_a_second_time(files):
    path, ask = files[2], Marginals(DOMAIN, [("sex",)], asked("nobody").remaining().part(0.1))
    sessions = path.parent / "sessions"

    def started():
        return sites.site_of(path, SCHEMA, ledger=path.with_suffix(".ledger"), records=sessions)

    assert "refused" not in asking(started(), ask)
    for kept in sessions.glob("*/*.answer"):
        kept.unlink()
    site = started()
    for _ in range(3):  # the first refusal must not be the only one
        assert "no longer in the site's record" in asking(site, ask)["refused"][1]
    assert debits(files)[2] == 1


def test_a_site_that_is_started_again_for_less_goes_on_with_no_session_of_before(files):
    path, ask = files[0], Marginals(DOMAIN, [("sex",)], asked("nobody").remaining().part(0.1))
    options = {"ledger": path.with_suffix(".ledger"), "records": path.parent / "sessions"}
    header = {"id": 1, "protocol": 1, "session": SESSION, "op": "answer", "place": 1}
    assert "refused" not in asking(sites.site_of(path, SCHEMA, trusts=("nobody",), **options), ask)
    again = sites.site_of(path, SCHEMA, trusts=("aggregator",), **options)
    reply = Message.read(again.handle(packed(header, ask)), "a site")
    assert "agreed to trust aggregator" in reply.header["refused"][1]


def test_a_site_relies_on_no_more_sites_than_it_was_started_for():
    """Each adds that part of the noise: of a thousand sites that are not there, a site would add next to nothing."""
    table = us.open(sites.adult_rows(), SCHEMA)
    site = Site(table, SiteSettings("a", ("secure-sum",), honest=2))
    begun = {"op": "prepare", "session": ""}
    request(site.link(), begun | {"bill": bill("secure-sum").to_dict()})
    many = replace(bill("secure-sum"), federation=Federation("secure-sum", 1000, honest=1000))
    with pytest.raises(us.SiteError, match="counts on the noise of 2 sites, and not of 1000"):
        request(site.link(), begun | {"bill": many.to_dict()})


def test_a_refusal_does_not_tell_how_many_rows_stand_before_a_damaged_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("smoker\n" + "true\n" * 40 + "true,false\n")
    schema = us.Schema.loads('[columns.smoker]\ntype = "boolean"')
    paid = replace(bill("nobody"), schema=schema.digest)
    with pytest.raises(us.TableError, match="another number of fields") as refused:
        request(sites.site_of(path, schema).link(), {"op": "prepare", "session": "", "bill": paid.to_dict()})
    assert not any(character.isdigit() for character in str(refused.value))


def test_values_that_are_not_private_in_the_schema_leave_no_site():
    schema = us.Schema.loads(
        '[columns.name]\ntype = "identifier"\n[columns.town]\ntype = "categorical"\nvalues = "private"'
    )
    rows = pa.table({"name": ["Ann", "Bob"], "town": ["Ulm", "Ulm"]})
    link = sites.site_of(rows, schema).link()
    paid = replace(bill("aggregator"), schema=schema.digest)
    request(link, {"op": "begin", "bill": paid.to_dict(), "session": SESSION})
    found = request(link, {"op": "count", "session": SESSION, "question": "count_values"}, "town")
    assert found.content(schema)[0] == ["Ulm"]
    with pytest.raises(us.SiteError, match="only where its schema calls them private"):
        request(link, {"op": "count", "session": SESSION, "question": "count_values"}, "name")


@pytest.mark.parametrize(
    "odd",
    [
        Grid(("sex",), ((0.0, 0.5),)),
        Grid(("sex",), ((0, 1), 7)),
        GroupedSums(("sex",), None, (Grid(("sex",), ((0, 1),)),)),
        ValueSum("age", 0.0, 1.0, 0.0, 9),
    ],
)
def test_an_object_whose_fields_have_other_types_than_declared_is_none(odd):
    with pytest.raises(us.SiteError, match="an object that can't be"):
        Message.read(packed({}, odd), "a site").content(SCHEMA)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_none_end_no_site(files, number):
    text = json.dumps({"id": number, "protocol": 1, "op": "hello", "objects": [], "content": []}).encode()
    sent = zlib.compress(struct.pack("<I", len(text)) + text + struct.pack("<I", 2) + b"[]")
    assert "refused" in Message.read(standing(files)[0].handle(sent), "a site").header


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"op": "hello", "protocol": 99},
        {"op": "drop"},
        {"op": "begin", "session": "../../etc"},
        {"op": "begin", "session": SESSION},
        {"op": "begin", "session": SESSION, "bill": {"epsilon": 1}},
        {"op": "answer", "session": SESSION, "place": "1"},
        {"op": "count", "session": 7, "question": "count_rows"},
    ],
)
def test_no_request_ends_a_site_or_costs_anything(files, header):
    site = standing(files)[0]
    reply = Message.read(site.handle(packed({"id": 1, "protocol": 1} | header)), "a site")
    assert reply.header["refused"][0] == "SiteError"
    assert "refused" in Message.read(site.handle(b"no message at all"), "a site").header
    assert debits(files) == [0, 0, 0]


def test_a_file_that_changed_since_the_release_began_is_refused(files):
    table = sites.local(standing(files), SCHEMA, federation("aggregator"))
    view = table.release()
    view.begin(bill("aggregator"), SESSION)
    assert view.count_rows() == sites.ROWS
    os.utime(files[1], ns=(1, 1))
    with pytest.raises(us.TableError, match="site 'b' refuses: its file changed since the release began"):
        view.count_rows()


def test_a_ledger_without_room_stops_all_before_anything_is_spent(files):
    us.Ledger.open(files[1].with_suffix(".ledger")).set_limit(Budget(0.5, 1e-6), "add-remove")
    table = sites.local(standing(files), SCHEMA, federation("nobody"))
    with pytest.raises(us.BudgetExhausted, match="site 'b' refuses"):
        us.synthesize(table, epsilon=1.0, method="independent", ledger=files[0].parent / "whole.sqlite")
    assert debits(files) == [0, 0, 0] and not (files[0].parent / "whole.sqlite").exists()


def test_what_is_no_noisy_sum_is_refused_before_anything_is_spent(files):
    table = sites.local(standing(files), SCHEMA, federation("nobody"))
    with pytest.raises(us.MethodError, match=r"method rake asks for more than noisy sums.*independent or marginals"):
        us.synthesize(table, epsilon=1.0, method="rake", ledger=False)
    with pytest.raises(us.MethodError, match="can't be made of noisy sums"):
        us.query(table, "SELECT median(age) FROM data", epsilon=1.0, ledger=False)
    with pytest.raises(us.MethodError, match="repeatable for tests"):
        linked = FederatedTable([LocalLink(s.name, s.handle) for s in standing(files)], SCHEMA, federation("nobody"))
        linked.links[0].lend = None
        us.synthesize(linked, epsilon=1.0, method="independent", ledger=False, test_only_noise_seed=1)
    curator = Curator.on(table, Budget(1.0, 1e-6))
    with pytest.raises(us.MethodError, match="ask for counts and sums alone"):
        curator.ask(
            Select(DOMAIN, [Candidate(("age", "sex"), np.zeros((DOMAIN.cells(("age", "sex")),)))], curator.remaining())
        )
    assert debits(files) == [0, 0, 0]


def test_a_query_has_the_reach_of_all_noises_that_are_in_it():
    parts = [us.open(part, SCHEMA) for part in sites.uneven(sites.adult_rows())]
    reaches = {}
    for trust in ("aggregator", "nobody"):
        answer = us.query(us.federate(parts, trust=trust), "SELECT count(*) FROM data", epsilon=1.0, ledger=False)
        reaches[trust] = answer.figure.high - answer.figure.low
    assert reaches["nobody"] / reaches["aggregator"] == pytest.approx(3**0.5, rel=0.15)


# --- people at several sites


PEOPLE = us.Schema.loads(
    '[unit]\ncolumn = "id"\nmax_rows = 2\n[columns.id]\ntype = "identifier"\n'
    '[columns.age]\ntype = "integer"\nmin = 0\nmax = 9\n'
)
HERE = pa.table({"id": ["ann", "ann", "ann", "bob"], "age": [1, 1, 1, 2]})
THERE = pa.table({"id": ["ann", "ann", "ann", "eve"], "age": [1, 1, 1, 3]})


def people(places, *parts):
    table = us.federate([us.open(part, PEOPLE) for part in parts], places=places)
    return Curator.on(table, Budget(1.0, 1e-6), randomness=BestRandomness())


def test_a_person_is_capped_at_each_site_and_priced_over_all_places():
    one, two = people(1, HERE, THERE), people(2, HERE, THERE)
    assert (one.facts.rows, two.facts.rows) == (2, 4)
    domain = Domain.of(PEOPLE)
    (with_ann,) = two.ask(Marginals(domain, [("age",)], two.remaining()))
    without = people(2, HERE.slice(3, 1).take([0, 0]), THERE.slice(3, 1).take([0, 0]))
    (left,) = without.ask(Marginals(domain, [("age",)], without.remaining()))
    assert with_ann.counts[1] - left.counts[1] == 4 and two.spends[0].sensitivity == 4.0
    assert two.facts.whole == one.facts.whole
    with pytest.raises(us.MethodError, match="persons who may be at several sites"):
        without.ask(Tally(domain, GroupedSums((), None, (PersonCount(),)), without.facts.counting.capacity))


def test_places_need_a_unit_and_numbers_must_be_possible():
    parts = [us.open(sites.adult_rows(), SCHEMA)] * 2
    for wrong, said in (
        ({"places": 2}, "places"),
        ({"trust": "secure-sum"}, "honest"),
        ({"trust": "secure-sum", "honest": 3}, "honest"),
        ({"trust": "aggregator", "honest": 1}, "honest"),
        ({"trust": "friends"}, "trust"),
        ({"ledgers": [None]}, "ledgers"),
    ):
        with pytest.raises(us.InputError, match=said):
            us.federate(parts, **wrong)
    with pytest.raises(us.SiteError, match="another schema"):
        us.federate([parts[0], us.open(HERE, PEOPLE)])


# --- sites that lie


def lying(change):
    """A federated table whose second site changes its replies on the way."""
    honest = [sites.site_of(part, SCHEMA, n) for n, part in zip("abc", sites.uneven(sites.adult_rows()), strict=True)]
    links = [site.link() for site in honest]
    truth = honest[1].handle

    def changed(sent):
        asked, reply = Message.read(sent, "x"), truth(sent)
        return change(Message.read(reply, "x"), reply) if asked.header["op"] == "count" else reply

    links[1] = LocalLink("b", changed)
    table = FederatedTable(links, SCHEMA, federation("aggregator"))
    view = table.release()
    view.begin(bill("aggregator"), SESSION)
    return view


def again(message, *arrays):
    return packed({"id": message.header["id"]}, *arrays)


LIES = {
    "negative": lambda m, reply: again(m, np.array([-1, 401])),
    "more than there is": lambda m, reply: again(m, np.array([1 << 60, 0])),
    "another shape": lambda m, reply: again(m, np.array([1, 2, 3])),
    "fractions": lambda m, reply: reply_with_fractions(m),
    "texts": lambda m, reply: again(m, "1", "2"),
    "two answers": lambda m, reply: again(m, np.array([1, 2]), np.array([1, 2])),
    "another question's": lambda m, reply: packed({"id": "0"}, np.array([1, 2])),
    "noise on the line": lambda m, reply: reply[:-3],
    "nothing": lambda m, reply: b"",
}


def reply_with_fractions(message):
    """As a message of ours would hold them, if it could."""
    true = packed({"id": message.header["id"]}, np.zeros(2, dtype=np.uint64))
    import zlib

    return zlib.compress(zlib.decompress(true).replace(b'"u8"', b'"f8"'))


@pytest.mark.parametrize("lie", LIES)
def test_a_site_that_lies_is_named_and_nothing_is_answered(lie):
    view = lying(LIES[lie])
    with pytest.raises(us.SiteError, match="site 'b'"):
        view.count_by(DOMAIN, [("sex",)])


def test_two_sites_of_one_name_are_refused():
    site = sites.site_of(sites.adult_rows(), SCHEMA, "a")
    with pytest.raises(us.SiteError, match="two sites have the name 'a'"):
        sites.local([site, site], SCHEMA, Federation("aggregator", 2))


def test_a_federated_table_is_asked_through_a_release_alone():
    table = us.federate([us.open(sites.adult_rows(), SCHEMA)])
    for question in (table.count_rows, table.check_readable, lambda: table.has_rows(1)):
        with pytest.raises(InternalError, match="through a release"):
            question()
    total = Curator.on(table, Budget(1.0, 0.0), randomness=SilentRandomness())
    assert total.ask(Total(total.remaining())).counts[0] == sites.ROWS
