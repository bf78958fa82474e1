"""Choose and defend Kafka replication settings: durability and availability, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from advisor import arguments, engines, plotting, verdicts

if TYPE_CHECKING:
    from advisor.advice import Goals, audit, recommend
    from advisor.cluster import Cluster, load_cluster
    from advisor.errors import AdvisorError
    from advisor.kafka_lab.engines import play
    from advisor.learning import learn
    from advisor.pipeline.grid import simulate_grid
    from advisor.pipeline.sample_tables import write_samples
    from advisor.pipeline.simulate import simulate
    from advisor.present.interactive.explorer import explorer
    from advisor.protocol.rules.assignment import assign
    from advisor.protocol.rules.config import Config
    from advisor.reliability.evaluate import evaluate
    from advisor.reliability.failures.failure_model import FailureModel, load_model
    from advisor.reliability.patching import patching
    from advisor.reliability.workload import Workload

__version__ = "0.1.0"

# Imported on first use, so that `import advisor` stays fast.
_HOMES = {
    "AdvisorError": "advisor.errors",
    "Cluster": "advisor.cluster",
    "Config": "advisor.protocol.rules.config",
    "FailureModel": "advisor.reliability.failures.failure_model",
    "Goals": "advisor.advice",
    "Workload": "advisor.reliability.workload",
    "assign": "advisor.protocol.rules.assignment",
    "audit": "advisor.advice",
    "evaluate": "advisor.reliability.evaluate",
    "explorer": "advisor.present.interactive.explorer",
    "learn": "advisor.learning",
    "load_cluster": "advisor.cluster",
    "load_model": "advisor.reliability.failures.failure_model",
    "patching": "advisor.reliability.patching",
    "play": "advisor.kafka_lab.engines",
    "recommend": "advisor.advice",
    "simulate": "advisor.pipeline.simulate",
    "simulate_grid": "advisor.pipeline.grid",
    "write_samples": "advisor.pipeline.sample_tables",
}

__all__ = [
    "AdvisorError",
    "Cluster",
    "Config",
    "FailureModel",
    "Goals",
    "Workload",
    "assign",
    "audit",
    "evaluate",
    "explorer",
    "learn",
    "load_cluster",
    "load_model",
    "patching",
    "play",
    "recommend",
    "simulate",
    "simulate_grid",
    "write_samples",
]


def _imported_when_called(name: str, room: str = "advisor.present") -> Callable[..., Any]:
    def function(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(room), name)(*arguments, **options)

    return function


plotting.plot_functions.update(
    reliability=_imported_when_called("plot_reliability"),
    sampled=_imported_when_called("plot_sampled"),
    patching=_imported_when_called("plot_patching"),
    recommendation=_imported_when_called("plot_recommendation"),
    audit=_imported_when_called("plot_audit"),
    learned=_imported_when_called("plot_learned"),
    report=_imported_when_called("write_report"),
    story=_imported_when_called("story"),
    timeline=_imported_when_called("plot_timeline"),
    tornado=_imported_when_called("plot_tornado"),
    verdict=_imported_when_called("verdict_html"),
)
verdicts.verdict_functions.update(
    reliability=_imported_when_called("verdict_of_reliability", "advisor.decision"),
    floor=_imported_when_called("floor_of_reliability", "advisor.decision"),
)
engines.engines["spark"] = _imported_when_called("run_on_spark", "advisor.pipeline.tasks")


def _reader(name: str) -> Callable[[Any], Any]:
    return lambda source: __getattr__(name)(source)


arguments.readers.update(cluster=_reader("load_cluster"), model=_reader("load_model"))


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        meant = arguments.suggestion(name, __all__)
        hint = f". Did you mean {meant}?" if meant else ""
        # Without this object Python's traceback would say once more what may be meant.
        message = f"module 'advisor' has no attribute {name!r}{hint}"
        raise AttributeError(message, name=name, obj=object())
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
