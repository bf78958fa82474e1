"""The commands evaluate, simulate, recommend, audit, report, learn and cards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor import __version__
from advisor.cli import play, text
from advisor.cli.options import (
    CARD,
    CHECKPOINT,
    CLUSTER,
    CONFIG,
    COUNTS,
    EXPLAIN,
    GOALS,
    HOW_SURE,
    JSON,
    LOAD,
    LOWER,
    OF_TOPICS,
    PRODUCER,
    with_controller,
    with_options,
    with_settings_given,
)
from advisor.cli.terminal import emit, say
from advisor.cli.verdict_text import columns_of_terminal
from advisor.errors import InputError
from advisor.files import check_target, read_input, replace_file, write_new_files
from advisor.parsing import MOST_JSON_CHARACTERS
from advisor.rendering import json_file, terminal_lines, terminal_text

if TYPE_CHECKING:
    from advisor.advice import Audit, Goals
    from advisor.cluster import Cluster
    from advisor.protocol.rules.config import Config
    from advisor.reliability.failures.failure_model import FailureModel
    from advisor.reliability.workload import Workload


EXIT_GOALS_MISSED = 1
MAX_TIMEOUT_S = 86_400


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="advisor %(version)s")
def advisor() -> None:
    """Choose and defend Kafka replication settings.

    CLUSTER is a file with the output of kafka-topics.sh --describe, or TOML, JSON or Strimzi YAML;
    or - for standard input; or host:port of a running cluster, which is only read. Several files,
    or a folder, describe one cluster together: one has its partitions, others what kafka-configs,
    kafka-metadata-quorum, kafka-features, kafka-log-dirs and other tools say of it. A card of
    failures says what breaks and how often: see advisor cards.
    """


advisor.add_command(play.play)
advisor.add_command(play.explore)


@advisor.command()
@with_options(CLUSTER, CONFIG, PRODUCER, LOAD, JSON)
def evaluate(cluster: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Compute exactly what one configuration loses and refuses."""
    from advisor.reliability.evaluate import evaluate as run_evaluate

    described, model = _cluster_and_model(cluster, options)
    config = _config(described, options)
    _print_notes_of_live_cluster(described)
    load, notes = _load_and_notes(options, described)
    result = run_evaluate(described, config, model, load)
    if as_json:
        verdict = text.verdict_of(result).to_dict()
        dependents = result.dependents().to_dict()
        emit(text.json({"verdict": verdict, **result.to_dict(), "dependents": dependents}))
    else:
        emit(text.evaluation(result, notes, columns_of_terminal()))


@advisor.command()
@with_options(CLUSTER, CONFIG, PRODUCER, LOAD, JSON)
@click.option("--years", type=float, default=1e6, help="Years to sample; 1,000,000 unless given.")
@click.option(
    "--method",
    help="crude, importance or splitting; chosen by what a pilot expects if left out.",
)
@click.option("--relative-width", type=float, help="Stop once the loss interval is as narrow: 0.2.")
@click.option(
    "--seconds",
    type=float,
    help="Stop when so much time has passed; a pilot of ten seconds or more is finished first.",
)
@click.option("--seed", type=int, default=7, show_default=True, help="The same seed, the same run.")
@click.option(
    "--engine",
    default="spark",
    show_default=True,
    help="spark, local, or quickest: here if that is done before Spark has started.",
)
@with_options(CHECKPOINT)
def simulate(
    cluster: tuple[str, ...],
    as_json: bool,
    years: float,
    method: str | None,
    relative_width: float | None,
    seconds: float | None,
    seed: int,
    engine: str,
    checkpoint: str | None,
    **options: Any,
) -> None:
    """Sample failures and replay them through the same rules."""
    from advisor.pipeline.simulate import simulate as run_simulate

    described, model = _cluster_and_model(cluster, options)
    config = _config(described, options)
    _print_notes_of_live_cluster(described)
    load, notes = _load_and_notes(options, described)
    result = run_simulate(
        *(described, config, model, load, years, seed, engine),
        method=method,
        relative_width=relative_width,
        seconds=seconds,
        checkpoint=checkpoint,
        progress=say,
    )
    if as_json:
        emit(text.json(result.to_dict()))
    else:
        emit(text.sample(result, notes))


@advisor.command(short_help="Say what to set, and how to get there.")
@with_options(CLUSTER, CONFIG, PRODUCER, LOAD, GOALS, LOWER, JSON)
@click.option("--topic", "topics", multiple=True, help="Change only this topic; repeatable.")
@click.option("--files", "folder", help="Write the files to go with the commands there.")
@click.option(
    "--commands", "with_commands", is_flag=True, help="Also print the commands and the rollback."
)
@with_options(EXPLAIN, HOW_SURE)
def recommend(
    cluster: tuple[str, ...],
    as_json: bool,
    topics: tuple[str, ...],
    folder: str | None,
    with_commands: bool,
    explain: bool,
    how_sure: bool,
    **options: Any,
) -> None:
    """Say what every topic should be set to, and the commands that get there.

    What to compare with, unless the description says what runs today: --rf, --min-isr, --acks and
    the producer's options.
    """
    from advisor.advice import recommend as run_recommend
    from advisor.advice.recommendations.recommendation import rendered_files

    described, model = _cluster_and_model(cluster, options)
    described, options = _with_settings_given(described, options)
    recommendation = run_recommend(
        described,
        model,
        _workload(options, described),
        _goals(options),
        current=_config(described, options) if _settings(options) else None,
        kafka_version=options["kafka_version"],
        topics=topics or None,
        allow_lower_durability=options["allow_lower_durability"],
    )
    if folder is not None:
        write_new_files(Path(folder), rendered_files(recommendation))
    if as_json:
        emit(text.json(recommendation.to_dict()))
    else:
        columns = columns_of_terminal()
        verdict = _verdict(recommendation, how_sure, explain)
        emit(text.recommendation(recommendation, verdict, columns, explain, with_commands))


@advisor.command(short_help="Judge every topic as it is, worst first.")
@with_options(CLUSTER, OF_TOPICS, PRODUCER, LOAD, GOALS, JSON)
@click.option("--sarif", help="Write the findings as SARIF 2.1.0 to this file, for code scanning.")
@click.option("--baseline", help="Report only what changed since this SARIF file was accepted.")
@click.option(
    "--fail-on",
    default="critical",
    show_default=True,
    help="Exit with 1 for critical settings, or for warnings, too.",
)
@with_options(EXPLAIN, HOW_SURE)
def audit(
    cluster: tuple[str, ...],
    as_json: bool,
    sarif: str | None,
    baseline: str | None,
    fail_on: str,
    explain: bool,
    how_sure: bool,
    **options: Any,
) -> int:
    """Judge every topic as it is, worst first.

    The exit code is 1 if a topic is critical, does not work, or misses a goal that was given; with
    --baseline, if that is new.

    The load is that of each topic. Its number of partitions comes from the description.
    """
    from advisor.advice import audit as run_audit
    from advisor.cluster.completeness import DESCRIBE

    path = None if sarif is None else check_sarif_path(Path(sarif))
    accepted = "" if baseline is None else read_baseline(Path(baseline))
    described, model = _cluster_and_model(cluster, options)
    if not described.topics:
        raise InputError(
            f"{described.source}: there are no topics to audit. {described.taken_for} Give the "
            f"output of {DESCRIBE} beside it, or ask advisor recommend what to set."
        )
    described, options = _with_settings_given(described, options)
    audited = run_audit(
        described,
        model,
        _workload(options),
        _goals(options),
        kafka_version=options["kafka_version"],
        producer=_producer(options),
    )
    failed = audited.fails(fail_on)
    changes = None if baseline is None else audited.since(accepted, baseline)
    if path is not None:
        write_sarif(path, audited, described.source, accepted)
    if changes is not None:
        failed = changes.fails(fail_on)
        emit(text.json(changes.to_dict()) if as_json else text.changes(changes, str(baseline)))
    elif as_json:
        emit(text.json(audited.to_dict()))
    else:
        verdict = _verdict(audited, how_sure, explain)
        emit(text.audit(audited, verdict, columns_of_terminal(), explain))
    return EXIT_GOALS_MISSED if failed else 0


@advisor.command(short_help="Recommend and audit in one HTML file.")
@with_options(CLUSTER, CONFIG, PRODUCER, LOAD, GOALS, LOWER)
@click.option("--output", required=True, help="The HTML file to write.")
@click.option("--sampled-years", type=float, default=0.0, help="Also sample this many years.")
@click.option(
    "--engine", default="quickest", show_default=True, help="What samples: spark, local, quickest."
)
@with_options(CHECKPOINT, HOW_SURE)
def report(
    cluster: tuple[str, ...],
    output: str,
    sampled_years: float,
    engine: str,
    checkpoint: str | None,
    how_sure: bool,
    **options: Any,
) -> None:
    """Recommend and audit, and write both as one HTML file that needs nothing else.

    --rf, --min-isr, --acks and the producer's options say what to compare with; the topics of
    today are judged with these producers, too. The load is that of all topics together.
    """
    from advisor.advice import audit as run_audit
    from advisor.advice import recommend as run_recommend

    path = check_output_path(Path(output))
    if checkpoint is not None and not sampled_years:
        raise InputError("--checkpoint is for --sampled-years; give both, or neither.")
    described, model = _cluster_and_model(cluster, options)
    described, options = _with_settings_given(described, options)
    goals, load, version = _goals(options), _workload(options, described), options["kafka_version"]
    current = _config(described, options) if _settings(options) else None
    recommendation = run_recommend(
        *(described, model, load, goals, current, version),
        allow_lower_durability=options["allow_lower_durability"],
    )
    audited = None
    if described.topics:
        producer = _producer(options)
        once = recommendation.decision.evaluated
        audited = run_audit(described, model, load, goals, version, producer, once, shared=True)
    check = None
    if sampled_years:
        check = _sample_recommended(recommendation, sampled_years, engine, checkpoint)
    _write_report(recommendation, path, audited, check, how_sure)
    # The page has computed all of it.
    verdict = _verdict(recommendation, how_sure, True)
    emit(text.reported(recommendation, verdict, path, columns_of_terminal()))


@advisor.command(short_help="Narrow a card by what your cluster has seen.")
@click.argument("sources", nargs=-1)
@click.option(
    "--prior", type=CARD, required=True, help="Failure-model card to begin with: a name or a path."
)
@click.option("--output", help="Write the card to this TOML file, for --model of other commands.")
@with_options(COUNTS)
@click.option("--cluster", multiple=True, help="What to judge, as for audit; repeatable.")
@click.option("--racks", help='How many racks; or with --cluster which: "1=a,2=a,3=b".')
@click.option("--mode", help="kraft or zookeeper; kraft unless given.")
@click.option("--command-config", help="For an address: a properties file with the login.")
@click.option("--timeout", type=float, help="For an address: seconds a question; 30 unless given.")
@click.option("--work", help="A folder for data sets of samples; what is there is not read again.")
@click.option("--spark", is_flag=True, help="Read samples on Spark.")
@with_options(EXPLAIN, HOW_SURE, JSON)
def learn(
    sources: tuple[str, ...],
    prior: str,
    output: str | None,
    cluster: tuple[str, ...],
    explain: bool,
    how_sure: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Narrow a card by what your cluster has seen, and say what to set with it.

    SOURCE is a file of counts (TOML, JSON, CSV) or of incidents (CSV), several are several
    clusters; or what Prometheus answered or dumped, as files or a folder, or its address
    (https://prometheus:9090), which is only read. Or say the counts as options: --brokers 12
    --years 3 --count broker.power=4. What is not counted stays as the card has it. docs/learn.md
    says how to count.
    """
    from advisor.cli import learning
    from advisor.cluster import load_cluster
    from advisor.learning import learn as run_learn
    from advisor.learning.card_file import check_card_path

    path = None if output is None else check_card_path(output)
    racks = options["racks"]
    described = None
    if cluster:
        which = None if racks is None or racks.isdigit() else racks
        described = load_cluster(_one_or_all(cluster), racks=which)
    source = learning.counts_of(sources, options, with_cluster=bool(cluster))
    result = run_learn(
        source,
        prior=prior,
        cluster=described,
        since=options["since"],
        until=options["until"],
        client_properties=options["command_config"],
        timeout_ms=_milliseconds(options["timeout"]),
        work=options["work"],
        engine="spark" if options["spark"] else "local",
    )
    if path is not None:
        result.to_toml(path)
    if as_json:
        emit(text.json(result.to_dict()))
    else:
        verdict = result.verdict if how_sure else result.quick_verdict
        emit(learning.learned(result, verdict, path, columns_of_terminal(), explain))


@advisor.command()
@click.argument("name", required=False)
def cards(name: str | None) -> None:
    """List the failure-model cards that ship, or show one."""
    from advisor.catalog import model_names
    from advisor.reliability.failures.failure_model import load_model

    if name is not None:
        emit(terminal_text(repr(load_model(name))))
        return
    width = max(map(len, model_names()))
    rows = (f"{card:<{width}}  {load_model(card).title}" for card in model_names())
    emit(terminal_lines(rows))


@advisor.command()
@with_options(JSON)
def clients(as_json: bool) -> None:
    """List the producer defaults of each client library: acks, retries, idempotence."""
    from dataclasses import asdict

    from advisor.advice.migration.other_clients import client_defaults

    rows = client_defaults()
    emit(text.json([asdict(row) for row in rows]) if as_json else text.clients(rows))


def _sample_recommended(
    recommendation: Any, years: float, engine: str, checkpoint: str | None
) -> Any:
    """Sample the recommended setting; what is quick, by a function, while the page is made."""
    from advisor.pipeline.simulate import QUICKEST, is_quick_here
    from advisor.pipeline.simulate import simulate as run_simulate

    asked = (
        *(recommendation.cluster, recommendation.best.config),
        *(recommendation.model, recommendation.load),
    )
    if engine == QUICKEST and checkpoint is None and is_quick_here(*asked, years):
        return partial(run_simulate, *asked, years=years, engine=engine)
    return run_simulate(*asked, years=years, engine=engine, checkpoint=checkpoint, progress=say)


def _verdict(answer: Any, how_sure: bool, explain: bool) -> Any:
    """As much of an answer's verdict as is printed."""
    if not how_sure:
        return answer.quick_verdict
    return answer.verdict if explain else answer.sure_verdict


def _write_report(
    recommendation: Any, path: Path, audited: Any, check: Any, how_sure: bool
) -> None:
    from advisor.errors import MissingExtraError

    try:
        from advisor.present import write_report
    except ModuleNotFoundError as error:
        if str(error.name).startswith("advisor"):
            raise
        raise MissingExtraError("The HTML report", "report") from None
    write_report(recommendation, path, audit=audited, sampled=check, how_sure=how_sure)


def _cluster_and_model(
    sources: Sequence[str], options: dict[str, Any]
) -> tuple[Cluster, FailureModel]:
    from advisor.cluster import load_cluster
    from advisor.reliability.failures.failure_model import load_model

    described = load_cluster(
        _one_or_all(sources),
        racks=options["racks"],
        kafka_version=options["kafka_version"],
        client_properties=options["command_config"],
        timeout_ms=_milliseconds(options["timeout"]),
        controllers=options["controllers"],
    )
    return with_controller(described, options), load_model(options["model"])


def _milliseconds(timeout_s: float | None) -> int | None:
    if timeout_s is None:
        return None
    if not 0.001 <= timeout_s <= MAX_TIMEOUT_S:
        raise InputError(f"--timeout {timeout_s:g}: give seconds, at most {MAX_TIMEOUT_S}.")
    return round(timeout_s * 1000)


def _one_or_all(sources: Sequence[str]) -> str | Sequence[str]:
    """A single source as it is: it may be a folder or an address."""
    return sources[0] if len(sources) == 1 else sources


def _print_notes_of_live_cluster(described: Cluster) -> None:
    """Print on stderr what could not be read from a running cluster."""
    if described.observed is not None:
        for note in described.notes:
            say(note)


def _with_settings_given(
    described: Cluster, options: dict[str, Any]
) -> tuple[Cluster, dict[str, Any]]:
    """The cluster with what options say of its topics, and the options that are left.

    Which are not used is said on stderr.
    """
    described, unused = with_settings_given(described, options)
    for sentence in unused.values():
        say(sentence)
    return described, {name: None if name in unused else value for name, value in options.items()}


def _settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the Kafka settings given as options, by their names in `Config`."""
    names = {
        "rf": "replication_factor",
        "min_isr": "min_insync_replicas",
        "unclean": "unclean_leader_election_enable",
        "acks": "acks",
        "retries": "retries",
        "delivery_timeout_ms": "delivery_timeout_ms",
    }
    return {
        name: options[option] for option, name in names.items() if options.get(option) is not None
    }


def _producer(options: dict[str, Any]) -> dict[str, Any]:
    """Return the producer's settings given as options, by their names in `Config`."""
    names = ("acks", "retries", "delivery_timeout_ms")
    return {name: value for name, value in _settings(options).items() if name in names}


def _config(described: Cluster, options: dict[str, Any]) -> Config:
    """Return the configuration from the options, completed by the most common one described."""
    from advisor.advice.situation import controller_of, usual_config, version_of
    from advisor.protocol.rules.config import Config

    version, _ = version_of(described, options["kafka_version"])
    settings = {**controller_of(described, version), **_settings(options)}
    usual = usual_config(described.topics, version)
    if usual is not None:
        return usual.changed(**settings)
    if "replication_factor" not in settings:
        raise InputError("Say which settings to judge: --rf 3 --min-isr 2, for example.")
    return Config(kafka_version=version, **settings)


def _workload(options: dict[str, Any], described: Cluster | None = None) -> Workload | None:
    """Return the workload from the options and the described partitions; None without options."""
    from advisor.reliability.workload import Workload

    names = ("partitions", "records_per_second", "record_bytes", "retention_hours")
    stated = {name: options[name] for name in names if options[name] is not None}
    topics = [] if described is None else [t for t in described.topics if not t.internal]
    if stated and topics:
        stated.setdefault("partitions", sum(len(topic.partitions) for topic in topics))
    return Workload(**stated) if stated else None


def _load_and_notes(options: dict[str, Any], described: Cluster) -> tuple[Workload, list[str]]:
    """Return the workload, and notes on what was assumed: settings, Kafka version, workload."""
    from advisor.advice.situation import (
        assumed_load,
        controller_note,
        usual_setting_words,
        version_of,
    )

    version, note = version_of(described, options["kafka_version"])
    controller = controller_note(described, version)
    load, assumed = _workload(options, described), ""
    if load is None:
        load, assumed = assumed_load(described.topics)
    # Notes of a running cluster are already on stderr.
    cluster_notes = described.notes if described.observed is None else ()
    stated = _settings(options)
    all_stated = {"replication_factor", "min_insync_replicas"} <= stated.keys()
    whose = "" if all_stated else usual_setting_words(described.topics)
    if whose and stated:
        whose = whose.replace("The settings are", "Settings that no option gives are")
    notes = (*described.remarks, whose, note, controller, assumed, *cluster_notes)
    return load, [text for text in notes if text]


def _goals(options: dict[str, Any]) -> Goals:
    from advisor.advice import Goals
    from advisor.reliability import measure_table

    names = (*measure_table.goals(), "survive", "minutes_per_loss")
    stated = {name: options[name] for name in names if options[name] is not None}
    return Goals(**stated)


_HTML = (b"<!doctype html", b"<html")


def check_output_path(path: Path) -> Path:
    """Check that a report can be written to a path, and return the path."""
    if path.is_dir():
        raise InputError(f"{path} is a directory; --output names the HTML file to write.")
    target = check_target(path)
    if target.exists():
        with target.open("rb") as file:
            start = file.read(64).lstrip().lower()
        if start and not start.startswith(_HTML):
            raise InputError(f"{path} is not an HTML file and is not overwritten; name another.")
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise InputError(f"{target.parent} is not a writable directory; name another --output.")
    return path


def check_sarif_path(path: Path) -> Path:
    """Check that a SARIF file can be written to a path, and return the path."""
    from advisor.advice.audits.sarif import is_own_log

    target = check_target(path)
    if target.exists():
        try:
            text = read_input(target, MOST_JSON_CHARACTERS).decode(errors="replace")
        except OSError:
            text = "too large, or not readable"
        if text and not is_own_log(text):
            raise InputError(
                f"{path} is not a SARIF file of this advisor and is not overwritten; name another."
            )
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory; name another file for --sarif.")
    return path


def read_baseline(path: Path) -> str:
    """Read the SARIF file of an accepted audit."""
    try:
        return read_input(path, MOST_JSON_CHARACTERS).decode(errors="replace")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}. Write it with advisor audit --sarif, and "
            "accept what it says."
        ) from None


def write_sarif(path: Path, audit: Audit, source: str, accepted: str = "") -> None:
    """Write the findings of an audit as SARIF, with the lines of the file that was audited."""
    text = ""
    if os.path.isfile(source):
        text = Path(source).read_text(encoding="utf-8", errors="replace")
    replace_file(path, json_file(audit.to_sarif(text, accepted)))
