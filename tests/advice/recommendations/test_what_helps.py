"""What reduces the losses and the time without writes that a setting leaves, by cause."""

import pytest

import advisor
from advisor.advice.recommendations.remedies import Help, ways, what_helps
from advisor.catalog import model_names
from advisor.reliability.failures.card import HOSTINGS
from advisor.reliability.failures.mechanisms import table

CONFIG = advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all")
LOAD = advisor.Workload(partitions=12)
RACKS = {"two_az": 2, "single_rack": 1}
LOSSES, WRITES = "loss_probability_per_year", "write_unavailability"
# What belongs to whom owns the room.
POWER = ("UPS", "power feed", "generator")


def helps(card: str | advisor.FailureModel, racks: int) -> dict[str, Help]:
    """What helps six brokers in so many racks, by measure."""
    result = advisor.evaluate(advisor.Cluster.uniform(6, racks=racks), CONFIG, card, LOAD)
    return {entry.measure: entry for entry in what_helps(result)}


@pytest.mark.parametrize("name", model_names())
def test_every_shipped_card_is_told_what_helps(name: str) -> None:
    """The named causes make their share of the measure, and it is the largest that any way has."""
    racks = RACKS.get(name, 3)
    result = advisor.evaluate(advisor.Cluster.uniform(6, racks=racks), CONFIG, name, LOAD)
    told = {entry.measure: entry for entry in what_helps(result)}
    assert LOSSES in told
    for measure, entry in told.items():
        parts = result.causes[measure]
        part = sum(parts[cause] for cause in entry.causes)
        assert entry.share == pytest.approx(part / sum(parts.values()))
        assert entry.share >= 0.1
        for cause, known in ways()[measure].items():
            if any(way.fits(result.model.hosting, racks) for way in known):
                assert parts.get(cause, 0.0) <= part, cause


@pytest.mark.parametrize("name", model_names())
@pytest.mark.parametrize("racks", [1, 2, 3])
def test_only_who_owns_the_room_hears_of_power(name: str, racks: int) -> None:
    """Nothing about feeds, batteries and generators for cards of clouds and managed services."""
    told = " ".join(entry.what for entry in helps(name, racks).values())
    rented = advisor.load_model(name).hosting in ("cloud", "managed")
    assert not (rented and any(word in told for word in POWER))


def test_a_single_rack_is_told_of_power_and_of_another_place() -> None:
    """Nearly all of its losses are power cuts that strike every broker."""
    told = helps("single_rack", 1)[LOSSES]
    assert told.causes[0] == "cluster.power"
    assert told.share > 0.9
    for word in ("UPS", "second site", "copy elsewhere"):
        assert word in told.what


def test_three_zones_are_told_of_deletion_and_of_load() -> None:
    """What is left there are people and common causes."""
    told = helps("three_az_cloud", 3)
    assert told[LOSSES].causes == ("cluster.wiped",)
    assert "people who run this cluster cannot delete" in told[LOSSES].what
    assert told[WRITES].causes == ("cluster.crash",)


def test_fewer_than_three_zones_are_told_of_the_third() -> None:
    """Before anything else, where racks lose power."""
    assert "three zones" in helps("three_az_cloud", 1)[LOSSES].what
    assert "three racks" in helps("two_az", 2)[WRITES].what


def test_what_settings_reduce_has_no_other_help() -> None:
    """Crashes and power cuts of single brokers are what replicas are for."""
    card = advisor.FailureModel.from_dict(
        {
            "broker": {
                "crash": {"per_year": 5, "minutes": 9},
                "destroyed": {"per_year": 1, "hours": 9},
            }
        }
    )
    assert helps(card, 3) == {}


def test_small_parts_are_not_worth_a_sentence() -> None:
    """A site that is destroyed in one of twenty losses is not named."""
    card = {"destroyed": {"per_year": 1e-4}, "wiped": {"per_year": 2e-3, "brokers": 1, "hours": 1}}
    broker = {"destroyed": {"per_year": 1e-9, "hours": 1}}
    model = advisor.FailureModel.from_dict({"cluster": card, "broker": broker})
    assert helps(model, 3)[LOSSES].causes == ("cluster.wiped",)
    assert helps(model.with_values({"cluster.wiped.per_year": 1e-5}), 3)[LOSSES].causes == (
        "cluster.destroyed",
    )


def test_the_table_names_mechanisms_and_kinds_of_cards() -> None:
    """A misspelt one would never be found."""
    for causes in ways().values():
        assert set(causes) <= {entry.name for entry in table().entries}
        for way in (way for row in causes.values() for way in row):
            assert set(way.hostings) <= {"unknown", *HOSTINGS}
            assert way.fewest_racks <= way.most_racks
