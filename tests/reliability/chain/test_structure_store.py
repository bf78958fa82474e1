"""Chains on disk: the same chain is read again, and only what is whole and the user's own."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import advisor
from advisor.reliability.case import Case
from advisor.reliability.chain import ctmc, structure_store
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.statespace.flush_window import AbsorptionTable, FlushWindowLosses

CARD = advisor.load_model("three_az_cloud")
CASE = Case.read(
    advisor.Cluster.uniform(3, racks=3),
    advisor.Config(replication_factor=2, min_insync_replicas=1),
    CARD,
)
PATTERN = next(iter(CASE.patterns))
GUIDE = NominalRates(CASE.chain.nominal_rates_per_hour, CASE.chain.nominal_failover_hours)
QUESTION = CASE.chain.constants, CASE.chain.environment(PATTERN), (GUIDE,)


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(structure_store.FOLDER_VARIABLE, str(tmp_path))
    return tmp_path / "chains"


def asked() -> ctmc.Structure:
    """Ask as a new process would, which remembers nothing."""
    constants, environment, guides = QUESTION
    return ctmc.structure.__wrapped__(constants, environment, *guides)


def the_only_file(folder: Path) -> Path:
    """Return the file of the chain that was kept."""
    (path,) = folder.iterdir()
    return path


def assert_equal(one: Any, other: Any) -> None:
    """Compare chains, or parts of them, field by field, with the kinds of their arrays."""
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_equal(one[name], other[name])
    elif isinstance(one, FlushWindowLosses | AbsorptionTable):
        for mine, its in zip(one, other, strict=True):
            assert_equal(mine, its)
    else:
        assert one == other


def test_a_chain_is_explored_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read later equals it in every field; nothing is explored then."""
    explored = asked()
    assert the_only_file(folder).stat().st_size < 50_000
    monkeypatch.setattr(ctmc, "_explored", None)
    again = asked()
    assert again is not explored
    for entry in fields(explored):
        assert_equal(getattr(explored, entry.name), getattr(again, entry.name))


def test_every_question_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other settings, racks, mechanisms, rates, mechanisms' meaning, or other sources."""
    constants, environment, guides = QUESTION
    rates = ((GUIDE.rates[0][0], 2.0 * GUIDE.rates[0][1]), *GUIDE.rates[1:])
    less = environment.mechanisms - {"broker.crash"}
    keys = {
        structure_store.key_of(*question)
        for question in (
            QUESTION,
            (replace(constants, acks=1), environment, guides),
            (constants, replace(environment, racks=(0, 0)), guides),
            (constants, replace(environment, mechanisms=less), guides),
            (constants, environment, (GUIDE._replace(rates=rates),)),
            (constants, environment, (GUIDE, GUIDE)),
        )
    }
    table = replace(environment.table, entries=environment.table.entries[:-1])
    keys.add(structure_store.key_of(constants, replace(environment, table=table), guides))
    monkeypatch.setattr(structure_store, "_sources", lambda: "changed")
    keys.add(structure_store.key_of(*QUESTION))
    assert len(keys) == 8
    monkeypatch.setattr(structure_store, "_sources", lambda: "")
    assert structure_store.key_of(*QUESTION) == ""


def test_the_key_does_not_depend_on_the_order_of_a_set() -> None:
    """Strings hash differently in every process, and sets come in another order."""
    constants, environment, guides = QUESTION
    turned = replace(environment, mechanisms=frozenset(sorted(environment.mechanisms)[::-1]))
    assert structure_store.key_of(constants, turned, guides) == structure_store.key_of(*QUESTION)


@pytest.mark.parametrize("harm", ["torn", "open to others"])
def test_a_file_that_is_not_whole_or_not_ones_own_is_not_read(folder: Path, harm: str) -> None:
    """The chain is explored again, and the file replaced."""
    states = asked().states
    path = the_only_file(folder)
    whole = path.read_bytes()
    if harm == "torn":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.chmod(0o666)
    assert structure_store.load(path.stem) is None
    assert asked().states == states
    assert structure_store.load(path.stem) is not None


def test_nothing_is_kept_if_it_is_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is read."""
    asked()
    key = the_only_file(folder).stem
    monkeypatch.setenv(structure_store.FOLDER_VARIABLE, structure_store.OFF)
    assert structure_store.load(key) is None


def test_the_oldest_chains_go_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all together take more than is allowed."""
    asked()
    kept = the_only_file(folder)
    monkeypatch.setattr(structure_store, "_MOST_BYTES", 2.5 * kept.stat().st_size)
    content = structure_store.load(kept.stem)
    assert content is not None
    for number, key in enumerate(("a", "b"), 1):
        structure_store.save(key, 100, lambda: content)
        for path in folder.iterdir():
            os.utime(path, (0, number if path.stem == key else 0))
    assert {path.stem for path in folder.iterdir()} == {"a", "b"}


def test_chains_in_memory_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were asked for longest ago go first; the last one stays, however large it is."""
    asked: list[int] = []

    def chain_of(size: int) -> Any:
        asked.append(size)
        return SimpleNamespace(bytes=size)

    monkeypatch.setattr(ctmc, "_MOST_BYTES", 100)
    kept = ctmc._WithinBytes(chain_of)
    assert kept(40) is kept(40)
    kept(50)
    kept(40)
    assert kept.cache_info() == (2, 90)
    kept(30)
    assert kept.cache_info() == (2, 70)
    kept(40)
    assert asked == [40, 50, 30]
    kept(500)
    assert kept.cache_info() == (1, 500)
    kept.cache_clear()
    assert kept.cache_info() == (0, 0)
