"""Public names: examples, suggestions for unknown names, names in place of values, views."""

import copy
import doctest
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import advisor
from advisor.advice.audits.audit import Audit
from advisor.advice.findings.catalogue import Finding
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.errors import AdvisorError
from advisor.learning import Learned
from advisor.pipeline.sampled_grid import SampledGrid
from advisor.present.verdict_page import style
from advisor.protocol.scenario.player import Play
from advisor.reliability.patching_choices import Patching
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.sensitivity import Tornado

RESULTS = (
    *(Audit, Estimate, Learned, Patching, Play, Recommendation, Reliability),
    *(Sampled, SampledGrid, Tornado),
)
PUBLIC = [*(getattr(advisor, name) for name in advisor.__all__), *RESULTS]
CARD = "three_az_cloud"
DESCRIBED = "Topic: t Partition: 0 Leader: 1 Replicas: 1,2 Isr: 1,2\n"


def documented(public: list[Any]) -> Iterator[tuple[str, object]]:
    """Yield every public function, class and public method, by name."""
    for each in public:
        yield each.__qualname__, each
        if inspect.isclass(each):
            for name, member in inspect.getmembers_static(each):
                function = getattr(member, "__func__", member)
                inside = getattr(function, "__module__", "") or ""
                public_method = inspect.isfunction(function) and not name.startswith("_")
                if public_method and inside.startswith("advisor"):
                    yield f"{each.__qualname__}.{name}", function


def without_example(public: list[Any]) -> list[str]:
    """List the names without an example under the heading that numpydoc gives it."""
    parser = doctest.DocTestParser()
    texts = {name: inspect.getdoc(named) or "" for name, named in documented(public)}
    return [
        name
        for name, text in texts.items()
        if "\nExamples\n--------\n" not in text or not parser.get_examples(text)
    ]


def test_every_public_name_has_an_example() -> None:
    """Functions, classes and methods that users call show how in a doctest."""
    assert len(list(documented(PUBLIC))) > 60
    assert without_example(PUBLIC) == []


def test_a_missing_example_is_found() -> None:
    """A class without an example is reported, and so are its methods."""
    assert without_example([Finding]) == ["Finding", "Finding.to_dict"]


def test_only_public_names_are_listed() -> None:
    """Tab completion offers the public names and nothing else."""
    assert dir(advisor) == sorted(advisor.__all__)


@pytest.mark.parametrize(
    ("call", "given", "meant"),
    [
        (advisor.Config, "min_isr", "min_insync_replicas"),
        (advisor.Config, "min.insync.replicas", "min_insync_replicas"),
        (advisor.Config, "rf", "replication_factor"),
        (advisor.Config, "replication", "replication_factor"),
        (advisor.Config, "replication_facter", "replication_factor"),
        (advisor.Config, "version", "kafka_version"),
        (advisor.Config().changed, "elr", "eligible_leader_replicas"),
        (advisor.Workload, "throughput", "records_per_second"),
        (advisor.Workload, "partition", "partitions"),
        (advisor.Goals, "loss", "loss_probability_per_year"),
        (advisor.Goals, "availability", "write_unavailability"),
        (advisor.Cluster, "broker", "brokers"),
        (advisor.Cluster.uniform, "zones", "racks"),
        (advisor.FailureModel.from_dict, "table", "tables"),
        (advisor.load_model, "path", "name_or_path"),
        (advisor.load_cluster, "rack", "racks"),
        (advisor.evaluate, "card", "model"),
        (advisor.simulate, "year", "years"),
        (advisor.patching, "hour", "hours"),
        (advisor.simulate_grid, "cluster", "clusters"),
        (advisor.write_samples, "results", "result"),
        (advisor.learn, "card", "prior"),
        (advisor.recommend, "workload", "load"),
        (advisor.audit, "goal", "goals"),
        (advisor.explorer, "settings", "config"),
        (advisor.play, "file", "source"),
        (advisor.assign, "rf", "replication_factor"),
    ],
)
def test_an_unknown_argument_has_a_suggestion(call: Any, given: str, meant: str) -> None:
    """Words that operators use, and typos, are answered with the argument's name."""
    with pytest.raises(AdvisorError, match=rf"'{given}'\. Did you mean {meant}\?") as caught:
        call(**{given: 3})
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("value", "given", "meant"),
    [
        (advisor.Config(), "min_isr", "min_insync_replicas"),
        (advisor.Workload(), "rate", "records_per_second"),
        (advisor.Goals(), "unavailability", "write_unavailability"),
        (advisor.Cluster.uniform(), "zones", "racks"),
    ],
)
def test_an_unknown_attribute_has_a_suggestion(value: Any, given: str, meant: str) -> None:
    """The same for attributes; `hasattr`, copies and pickles work as ever."""
    with pytest.raises(AttributeError, match=f"Did you mean {meant}"):
        getattr(value, given)
    assert not hasattr(value, given)
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value


def test_an_unknown_name_without_a_near_one_lists_all() -> None:
    """Where nothing is near, the message lists what there is."""
    with pytest.raises(TypeError, match=r"no argument 'xyzzy'; there are .*record_bytes"):
        advisor.Workload(xyzzy=1)
    with pytest.raises(AttributeError, match=r"Did you mean evaluate\?"):
        _ = advisor.evalute


def test_names_and_texts_stand_for_values(tmp_path: Path) -> None:
    """A card's name or path and a description's path or text are read where they are expected."""
    described = tmp_path / "describe.txt"
    described.write_text(DESCRIBED)
    cluster, model = advisor.load_cluster(DESCRIBED), advisor.load_model(CARD)
    config = advisor.Config(replication_factor=1)
    whole = advisor.evaluate(cluster, config, model)
    for named in (DESCRIBED, described, str(described)):
        result = advisor.evaluate(named, config, CARD)
        assert result.loss_probability_per_year == whole.loss_probability_per_year
        audited = advisor.audit(advisor.load_cluster(named), model)
        assert advisor.audit(named, CARD).quick_verdict == audited.quick_verdict
    card = tmp_path / "mine.toml"
    card.write_text((Path(__file__).parents[2] / "models" / f"{CARD}.toml").read_text())
    assert advisor.evaluate(cluster, config, card).model.name == "mine"
    advice = advisor.recommend(described, CARD)
    assert (advice.model.name, advice.cluster.source) == (CARD, str(described))
    sampled = advisor.simulate(described, config, CARD, years=10, engine="local")
    assert sampled.model.name == CARD


def test_a_wrong_name_says_what_there_is() -> None:
    """A card or file that does not exist is named, with what to do."""
    config = advisor.Config()
    with pytest.raises(AdvisorError, match=r"Did you mean three_az_cloud\?"):
        advisor.evaluate(advisor.Cluster.uniform(), config, "three_az_clod")
    with pytest.raises(AdvisorError, match=r"no-such-file\.txt: there is no such file"):
        advisor.audit("no-such-file.txt", CARD)


def views() -> dict[str, Callable[[], Any]]:
    """Return one value of each public class with a notebook view, by name."""
    config = advisor.Config(replication_factor=1)
    return {
        "Config": lambda: config,
        "Workload": advisor.Workload,
        "Goals": advisor.Goals,
        "Cluster": lambda: advisor.load_cluster(DESCRIBED),
        "FailureModel": lambda: advisor.load_model(CARD),
        "Reliability": lambda: advisor.evaluate(DESCRIBED, config, CARD),
        "Sampled": lambda: advisor.simulate(DESCRIBED, config, CARD, years=10, engine="local"),
        "SampledGrid": lambda: advisor.simulate_grid(
            DESCRIBED, [config, config.changed(replication_factor=3)], CARD, years=5, engine="local"
        ),
        "Audit": lambda: advisor.audit(DESCRIBED, CARD),
        "Learned": lambda: advisor.learn(
            {"brokers": 3, "years": 1, "events": {"broker.power": 1}}, prior=CARD
        ),
        "Recommendation": lambda: advisor.recommend(DESCRIBED, CARD),
        "Patching": lambda: advisor.patching(DESCRIBED, config, CARD, restarts=64),
        "Tornado": lambda: advisor.evaluate(DESCRIBED, config, CARD).tornado(),
    }


@pytest.mark.parametrize("name", views())
def test_views_are_accessible(name: str) -> None:
    """Every notebook view is a table with a caption and headings, and no element sets a colour.

    The first screen of a verdict has a style of its own, whose contrast a browser test checks.
    """
    page = views()[name]()._repr_html_().replace(style().text, "")
    assert page.count("<table") == page.count("<caption>") >= 1
    assert "<th scope='col'" in page
    assert "<th scope='row'" in page
    assert "color" not in page
    assert "<th>" not in page


@pytest.mark.parametrize(
    "wrong", ["advisor.evalute", "advisor.Audit", "advisor.Config().min_insync_replica"]
)
def test_a_traceback_suggests_a_name_once(wrong: str) -> None:
    """Python's traceback has a suggestion of its own where an error names its object."""
    program = [sys.executable, "-c", f"import advisor; {wrong}"]
    told = subprocess.run(program, capture_output=True, text=True, check=False).stderr
    assert told.splitlines()[-1].count("Did you mean") == 1
