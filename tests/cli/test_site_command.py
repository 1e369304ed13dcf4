"""Sites as processes of their own, over sockets: releases, and every way in which one of them can end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import understudy as us
from helpers import federation as sites
from understudy.boundary.privacy.budget import Budget
from understudy.boundary.tables.sites import flower
from understudy.cli.site_command import run_site
from understudy.releases.synthetic_table import csv_bytes

SECONDS = 120
SYNTH = ("--epsilon", "1", "--seed", "3", "--rows", "200", "--quiet")


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """Three sites that run for all tests of this module; each test is another aggregator at the same address."""
    sites.skip_without_flower()
    folder, port = tmp_path_factory.mktemp("sites"), sites.free_port()
    state = folder / "state"
    before, os.environ["XDG_STATE_HOME"] = os.environ["XDG_STATE_HOME"], str(state)
    found = [sites.SiteProcess(p, port, n) for n, p in zip("abc", sites.files(folder), strict=True)]
    try:
        with sites.running(*found) as started:
            yield started
    finally:
        os.environ["XDG_STATE_HOME"] = before


@pytest.fixture
def begun(three):
    """The three sites, each running, with what they had been debited before the test."""
    for site in three:
        if site.process.poll() is not None:
            site.start()
    return three, [site.debits for site in three]


def address(found, trust="aggregator", honest=0, timeout=SECONDS):
    more = f"&honest={honest}" if honest else ""
    return f"flower://127.0.0.1:{found[0].port}?sites={len(found)}&trust={trust}{more}&timeout={timeout}"


def opened(found, **options):
    return us.open(address(found, **options), sites.adult_schema())


def spent(found, before):
    return [site.debits - debits for site, debits in zip(found, before, strict=True)]


def test_rake_over_three_sites_is_rake_over_the_pooled_table(begun, tmp_path):
    found, before = begun
    asked = {"epsilon": 1.0, "method": "rake", "seed": 3, "test_only_noise_seed": 5, "target": "income"}
    table = opened(found)
    try:
        release = us.synthesize(table, ledger=tmp_path / "whole.sqlite", **asked)
    finally:
        table.close()
    pooled = us.synthesize(us.open(sites.adult_rows(), sites.adult_schema()), **asked)
    assert csv_bytes(release.arrow, release.schema) == csv_bytes(pooled.arrow, pooled.schema)
    assert [a.to_dict() for a in release.record] == [a.to_dict() for a in pooled.record]
    assert spent(found, before) == [1, 1, 1]
    assert len(us.Ledger.open(tmp_path / "whole.sqlite").entries()) == 1
    assert release.certificate.federation.sites == 3 and not release.certificate.secure
    assert sum(site.answers for site in found) == 0


@pytest.mark.parametrize(("trust", "honest"), [("secure-sum", 2), ("nobody", 0)])
def test_a_release_of_noisy_sums_verifies_and_replays(begun, tmp_path, trust, honest):
    found, before = begun
    table = opened(found, trust=trust, honest=honest)
    try:
        release = us.synthesize(
            table, epsilon=1.0, method="marginals", marginals=[("age", "sex"), ("education", "income")], ledger=False
        )
    finally:
        table.close()
    release.save(tmp_path / "out")
    us.verify(tmp_path / "out")
    us.replay(tmp_path / "out")
    claim = release.certificate.guarantee
    assert release.certificate.secure and trust == release.certificate.to_dict()["sites"]["trust"]
    assert claim is not None and release.certificate.federation.told in claim["assumes"]
    assert spent(found, before) == [1, 1, 1] and sum(site.answers for site in found) == 0


def test_a_site_that_is_killed_in_mid_round_is_waited_for_and_nothing_is_spent_twice(begun, tmp_path, monkeypatch):
    found, before = begun
    sent, send = [], flower.FlowerLink.send

    def killing(link, request):
        sent.append(link.name)
        if link.name == "b" and sent.count("b") == 4:
            found[1].kill()
        return send(link, request)

    monkeypatch.setattr(flower.FlowerLink, "send", killing)
    ledger, journal = tmp_path / "whole.sqlite", tmp_path / "journal"
    asked = {"epsilon": 1.0, "method": "independent", "ledger": ledger, "journal": journal}
    table = opened(found, trust="nobody")
    gathering = table.links[0].gathering
    gathering._address = replace(gathering._address, timeout=3.0)
    try:
        with pytest.raises(us.SiteError, match="site 'b' dropped out"):
            us.synthesize(table, **asked)
    finally:
        table.close()
    assert spent(found, before) == [1, 1, 1] and len(us.Ledger.open(ledger).entries()) == 1
    kept = {p.name: p.read_bytes() for p in Path(f"{found[0].data}.sessions").glob("*/*.answer")}
    found[1].start()
    table = opened(found, trust="nobody")
    try:
        release = us.synthesize(table, **asked, resume=True)
    finally:
        table.close()
    assert kept and release.certificate.secure
    assert spent(found, before) == [1, 1, 1] and len(us.Ledger.open(ledger).entries()) == 1
    assert sum(site.answers for site in found) == 0


def test_a_site_with_another_schema_is_refused_before_anything_is_spent(tmp_path):
    sites.skip_without_flower()
    path = tmp_path / "rows.csv"
    pa.csv.write_csv(sites.adult_rows(), path)
    us.Schema(tuple(c for c in sites.adult_schema() if c.name != "age")).save(path.with_suffix(".toml"))
    schema = path.with_suffix(".toml").read_text()
    path.with_suffix(".toml").write_text(schema + '\n[columns.age]\ntype = "integer"\nmin = 0\nmax = 120\n')
    site = sites.SiteProcess(path, sites.free_port(), "d")
    with sites.running(site), pytest.raises(us.SiteError, match="site 'd' has another schema than the aggregator"):
        opened([site])
    assert site.debits == 0


@pytest.mark.parametrize("config", [{}, {flower.REQUEST: 7}, {flower.REQUEST: "text"}])
def test_a_message_of_flowers_that_is_no_request_is_answered_as_one_that_is_empty(config):
    sites.skip_without_flower()
    loaded = flower._flower()
    client = loaded.answering(lambda request: b"got " + request)
    assert client.get_properties(loaded.common.GetPropertiesIns(config)).properties == {flower.REPLY: b"got "}


@pytest.mark.parametrize("trust", ["nobody", "secure-sum"])
def test_a_site_without_a_limit_answers_no_aggregator_that_is_not_trusted(tmp_path, trust):
    path = sites.files(tmp_path)[0]
    with pytest.raises(us.InputError, match="has no limit"):
        run_site(
            str(path), "127.0.0.1:9", schema=None, name=None, trusts=(trust,), honest=1, ledger=None, certificate=None,
            quiet=True,
        )  # fmt: skip
    assert not Path(f"{path}.ledger.sqlite").exists()


def test_a_site_out_of_budget_stops_the_release_before_anything_is_spent(begun, tmp_path):
    found, before = begun
    limited = us.Ledger.open(found[2].ledger)
    standing = limited.standing()
    limited.set_limit(Budget(standing.epsilon + 0.01, 1e-6), "add-remove")
    out = tmp_path / "out"
    try:
        run = synth(found, tmp_path, out, "--method", "independent")
        said = run.communicate(timeout=SECONDS)[1].decode()
        assert run.returncode == 3 and "site 'c' refuses" in said and not out.exists()
        assert spent(found, before) == [0, 0, 0] and not (tmp_path / "whole.sqlite").exists()
    finally:
        limited.set_limit(Budget(1000.0, 1e-6), "add-remove")


def test_an_aggregator_that_is_killed_goes_on_where_it_was(begun, tmp_path):
    found, before = begun
    out, journal = tmp_path / "out", tmp_path / "out.journal"
    run = synth(found, tmp_path, out, "--method", "rake")
    end = time.monotonic() + SECONDS
    while not (journal.exists() and journal.stat().st_size > 4000):
        assert run.poll() is None and time.monotonic() < end, run.communicate()[1]
        time.sleep(0.01)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    assert not out.exists() and spent(found, before) == [1, 1, 1]
    again = synth(found, tmp_path, out, "--method", "rake", "--resume")
    said = again.communicate(timeout=SECONDS)[1].decode()
    assert again.returncode == 0, said
    us.verify(out)
    us.replay(out)
    assert spent(found, before) == [1, 1, 1] and len(us.Ledger.open(tmp_path / "whole.sqlite").entries()) == 1


def synth(found, folder, out, *more):
    schema = folder / "adult.toml"
    sites.adult_schema().save(schema)
    arguments = [address(found), "--schema", str(schema), "--ledger", str(folder / "whole.sqlite"), "--out", str(out)]
    command = [sys.executable, "-m", "understudy", "synth", *arguments, *SYNTH, *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
