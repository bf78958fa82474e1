"""The commands of the command line; what they print is in `advisor.cli.text`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from advisor import __version__
from advisor.cli import files, play, text
from advisor.errors import InputError

if TYPE_CHECKING:
    from advisor.advice import Goals
    from advisor.cluster import Cluster
    from advisor.protocol.rules.config import Config
    from advisor.reliability.failures.failure_model import FailureModel
    from advisor.reliability.workload import Workload

F = TypeVar("F", bound=Callable[..., Any])
SHORT_OF_GOALS = 1
LONGEST_TIMEOUT_S = 86_400
_STDIN = "/dev/stdin"

_CLUSTER = (
    click.argument("cluster"),
    click.option("--racks", help='Racks: a TOML file with [racks], or "1=a,2=a,3=b".'),
    click.option("--model", required=True, help="Failure-model card: a name or a path."),
    click.option("--kafka-version", help='Such as "4.1"; goes before what the cluster says.'),
    click.option("--command-config", help="For host:port: a Java client's properties file."),
    click.option("--timeout", type=float, help="For host:port: seconds in all; 30 unless given."),
)
_CONFIG = (
    click.option("--rf", type=int, help="replication.factor."),
    click.option("--min-isr", type=int, help="min.insync.replicas."),
    click.option("--unclean/--clean", default=None, help="unclean.leader.election.enable."),
)
_PRODUCER = (
    click.option("--acks", help="all, 1 or 0."),
    click.option("--retries", type=int, help="The producer's retries."),
    click.option("--delivery-timeout-ms", type=int, help="The producer's delivery.timeout.ms."),
)
_LOAD = (
    click.option("--partitions", type=int, help="Partitions written to."),
    click.option("--records-per-second", type=float, help="Over all partitions."),
    click.option("--record-bytes", type=int, help="Mean size of a record."),
    click.option("--retention-hours", type=float, help="How long records are kept."),
)
_GOALS = (
    click.option("--loss-probability-per-year", type=float, help="Goal; 1e-6 unless given."),
    click.option("--write-unavailability", type=float, help="Goal, a fraction; 1e-4 unless given."),
    click.option("--read-unavailability", type=float, help="Goal, a fraction; none unless given."),
    click.option("--records-refused-per-year", type=float, help="Goal; none unless given."),
    click.option("--survive", help="Goal: rack or broker."),
)
_JSON = (click.option("--json", "as_json", is_flag=True, help="Print JSON."),)


def _options(*groups: tuple[Callable[[Any], Any], ...]) -> Callable[[F], F]:
    def decorated(function: F) -> F:
        for option in reversed([option for group in groups for option in group]):
            function = option(function)
        return function

    return decorated


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="advisor %(version)s")
def advisor() -> None:
    """Choose and defend Kafka replication settings.

    CLUSTER is what you have at hand: the output of kafka-topics.sh --describe in a file, or TOML,
    JSON or Strimzi YAML; or - for standard input; or host:port of a running cluster, which is
    read and not changed. A failure-model card says what breaks and how often: see advisor cards.
    """


advisor.add_command(play.play)
advisor.add_command(play.explore)


@advisor.command()
@_options(_CLUSTER, _CONFIG, _PRODUCER, _LOAD, _JSON)
def evaluate(cluster: str, as_json: bool, **given: Any) -> None:
    """Say exactly what one configuration loses and refuses."""
    from advisor.reliability.evaluate import evaluate as compute

    described, model = _cluster_and_model(cluster, given)
    config = _config(described, given)
    _say_what_is_missing(described)
    load, notes = _load_and_notes(given, described)
    result = compute(described, config, model, load)
    if as_json:
        _print_json({**result.to_dict(), "dependents": result.dependents().to_dict()})
    else:
        click.echo(text.evaluation(result, notes))


@advisor.command()
@_options(_CLUSTER, _CONFIG, _PRODUCER, _LOAD, _JSON)
@click.option("--years", type=float, default=1e6, help="Years to sample; 1,000,000 unless given.")
@click.option("--seed", type=int, default=7, show_default=True, help="The same seed, the same run.")
@click.option("--engine", default="spark", show_default=True, help="spark or local.")
def simulate(
    cluster: str, as_json: bool, years: float, seed: int, engine: str, **given: Any
) -> None:
    """Sample failures and replay them through the same rules."""
    from advisor.pipeline.simulate import simulate as sample

    described, model = _cluster_and_model(cluster, given)
    config = _config(described, given)
    _say_what_is_missing(described)
    load, notes = _load_and_notes(given, described)
    result = sample(described, config, model, load, years, seed, engine, progress=_tell)
    if as_json:
        _print_json(result.to_dict())
    else:
        told = [*(f"{text}." for text in result.assumptions), *notes]
        click.echo("\n".join([repr(result), *(f"Assumed: {note}" for note in told)]))


@advisor.command(short_help="Find the cheapest settings that meet the goals.")
@_options(_CLUSTER, _CONFIG, _PRODUCER, _LOAD, _GOALS, _JSON)
@click.option("--topic", "topics", multiple=True, help="Change only this topic; repeatable.")
@click.option("--files", "folder", help="Write the files to go with the commands there.")
def recommend(
    cluster: str, as_json: bool, topics: tuple[str, ...], folder: str | None, **given: Any
) -> None:
    """Find the cheapest settings that meet the goals, and the commands that get there.

    What to compare with, unless the description says what runs today: --rf, --min-isr, --acks and
    the producer's options.
    """
    from advisor.advice import recommend as find

    described, model = _cluster_and_model(cluster, given)
    answer = find(
        described,
        model,
        _workload(given, described),
        _goals(given),
        current=_config(described, given) if _settings(given) else None,
        kafka_version=given["kafka_version"],
        topics=topics or None,
    )
    if folder is not None:
        files.write_new(Path(folder), answer.files())
    _print_json(answer.to_dict()) if as_json else click.echo(text.recommendation(answer))


@advisor.command(short_help="Judge every topic as it is, worst first.")
@_options(_CLUSTER, _PRODUCER, _LOAD, _GOALS, _JSON)
def audit(cluster: str, as_json: bool, **given: Any) -> int:
    """Judge every topic as it is, worst first; exit code 1 when one falls short.

    The load is that of each topic; how many partitions it has, its description says.
    """
    from advisor.advice import audit as judge

    described, model = _cluster_and_model(cluster, given)
    if not described.topics:
        raise InputError(f"{cluster}: there are no topics to audit; add some, or ask recommend.")
    found = judge(
        described,
        model,
        _workload(given),
        _goals(given),
        kafka_version=given["kafka_version"],
        producer=_settings(given),
    )
    _print_json(found.to_dict()) if as_json else click.echo(text.audit(found))
    return 0 if found.ok else SHORT_OF_GOALS


@advisor.command(short_help="Recommend and audit in one HTML file.")
@_options(_CLUSTER, _CONFIG, _PRODUCER, _LOAD, _GOALS)
@click.option("--output", required=True, help="The HTML file to write.")
@click.option("--sampled-years", type=float, default=0.0, help="Sample so many years beside it.")
@click.option("--engine", default="spark", show_default=True, help="What samples: spark or local.")
def report(cluster: str, output: str, sampled_years: float, engine: str, **given: Any) -> None:
    """Recommend and audit, and write both as one HTML file that needs nothing else.

    --rf, --min-isr, --acks and the producer's options say what to compare with.
    """
    from advisor.advice import audit as judge
    from advisor.advice import recommend as find

    path = files.checked_output(Path(output))
    described, model = _cluster_and_model(cluster, given)
    goals, load, version = _goals(given), _workload(given, described), given["kafka_version"]
    current = _config(described, given) if _settings(given) else None
    answer = find(described, model, load, goals, current, version)
    found = judge(described, model, load, goals, version) if described.topics else None
    check = _sampled(answer, sampled_years, engine) if sampled_years else None
    _write_report(answer, path, found, check)
    click.echo(f"{answer.verdict}\n{answer.tolerances}")
    if found is not None:
        click.echo(found.verdict)
    click.echo(f"Report: {path}")


@advisor.command()
@click.argument("name", required=False)
def cards(name: str | None) -> None:
    """List the failure-model cards that ship, or show one."""
    from advisor.catalog import model_names
    from advisor.reliability.failures.failure_model import load_model

    if name is not None:
        click.echo(repr(load_model(name)))
        return
    width = max(map(len, model_names()))
    for known in model_names():
        click.echo(f"{known:<{width}}  {load_model(known).title}")


def _sampled(answer: Any, years: float, engine: str) -> Any:
    """Sample the recommended setting, to stand beside what was computed."""
    from advisor.pipeline.simulate import simulate as sample

    return sample(
        *(answer.cluster, answer.best.config, answer.model, answer.load),
        years=years,
        engine=engine,
        progress=_tell,
    )


def _tell(sentence: str) -> None:
    """Say on stderr what is going on."""
    click.echo(sentence, err=True)


def _write_report(answer: Any, path: Path, found: Any, check: Any) -> None:
    from advisor.errors import MissingExtraError

    try:
        from advisor.present import write_report
    except ModuleNotFoundError as error:
        if str(error.name).startswith("advisor"):
            raise
        raise MissingExtraError("The HTML report", "notebook") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(answer, path, audit=found, sampled=check)


def _cluster_and_model(cluster: str, given: dict[str, Any]) -> tuple[Cluster, FailureModel]:
    from advisor.cluster import load_cluster
    from advisor.reliability.failures.failure_model import load_model

    timeout = given["timeout"]
    if timeout is not None and not 0.001 <= timeout <= LONGEST_TIMEOUT_S:
        raise InputError(f"--timeout {timeout:g}: give seconds, at most {LONGEST_TIMEOUT_S}.")
    described = load_cluster(
        _STDIN if cluster == "-" else cluster,
        racks=given["racks"],
        kafka_version=given["kafka_version"],
        client_properties=given["command_config"],
        timeout_ms=None if timeout is None else round(timeout * 1000),
    )
    return described, load_model(given["model"])


def _say_what_is_missing(described: Cluster) -> None:
    """Say what a running cluster did not tell, where the answer has no place for it."""
    if described.observed is not None:
        for note in described.notes:
            click.echo(note, err=True)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of Kafka that were given, by their names in `Config`."""
    names = {
        "rf": "replication_factor",
        "min_isr": "min_insync_replicas",
        "unclean": "unclean_leader_election_enable",
        "acks": "acks",
        "retries": "retries",
        "delivery_timeout_ms": "delivery_timeout_ms",
    }
    return {name: given[option] for option, name in names.items() if given.get(option) is not None}


def _config(described: Cluster, given: dict[str, Any]) -> Config:
    """Return what was asked for; what was not, as most described partitions have it."""
    from advisor.advice.kafka_version import controller_of, version_of
    from advisor.advice.recommendations.search import usual_config
    from advisor.protocol.rules.config import Config

    version, _ = version_of(described, given["kafka_version"])
    settings = {**controller_of(described, version), **_settings(given)}
    usual = usual_config(described.topics, version)
    if usual is not None:
        return usual.changed(**settings)
    if "replication_factor" not in settings:
        raise InputError("Say which settings to judge: --rf 3 --min-isr 2, for example.")
    return Config(kafka_version=version, **settings)


def _workload(given: dict[str, Any], described: Cluster | None = None) -> Workload | None:
    """Return the load that was given, over the described partitions; None if nothing was."""
    from advisor.reliability.workload import Workload

    names = ("partitions", "records_per_second", "record_bytes", "retention_hours")
    stated = {name: given[name] for name in names if given[name] is not None}
    ours = [] if described is None else [t for t in described.topics if not t.internal]
    if stated and ours:
        stated.setdefault("partitions", sum(len(topic.partitions) for topic in ours))
    return Workload(**stated) if stated else None


def _load_and_notes(given: dict[str, Any], described: Cluster) -> tuple[Workload, list[str]]:
    """Return the load over the described partitions, and what was assumed of it and of Kafka."""
    from advisor.advice.kafka_version import version_of
    from advisor.advice.recommendations.search import assumed_load

    _, note = version_of(described, given["kafka_version"])
    load, assumed = _workload(given, described), ""
    if load is None:
        load, assumed = assumed_load(described.topics)
    # What a running cluster did not tell has been said on stderr already.
    seen = described.notes if described.observed is None else ()
    return load, [text for text in (note, assumed, *seen) if text]


def _goals(given: dict[str, Any]) -> Goals:
    from advisor.advice import Goals
    from advisor.advice.goals import MEASURES

    stated = {name: given[name] for name in (*MEASURES, "survive") if given[name] is not None}
    return Goals(**stated)


def _print_json(data: object) -> None:
    click.echo(json.dumps(_finite(data), indent=2, allow_nan=False, ensure_ascii=False))


def _finite(data: Any) -> Any:
    """Return the data with null for what JSON has no number for: an infinite time is none."""
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
