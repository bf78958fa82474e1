"""Settings, fixtures and the list of slow files for all tests."""

import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

# Chains of other tests, whose rules may be changed, are not kept for other processes.
os.environ["ADVISOR_CHAINS"] = "off"

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What `make check` leaves out, below tests/: more than a few seconds of processor time each, or
# other processes. Rooms, files, and single tests of files whose others are fast.
SLOW = (
    "advice/audits/test_audit.py::test_draws_are_taken_only_when_asked",
    "advice/audits/test_baseline.py::test_the_hook_of_the_page_works",
    "advice/audits/test_current_state.py::test_audit_recommend_and_report_begin_with_it",
    "advice/findings/test_checks.py::test_finding_and_file_agree_on_the_delivery_timeout",
    "advice/recommendations/test_loss_story.py",
    "advice/recommendations/test_twelve_clusters.py",
    "cli/test_bad_input.py",
    "cli/test_commands.py",
    "cluster/formats/test_sources.py::test_an_entry_is_seen_at_every_door",
    "kafka/",
    "learning/test_coverage.py",
    "learning/test_learned.py::test_observed_minutes_are_compared_with_both_cards",
    "learning/test_metrics.py::test_a_card_is_learned_from_metrics",
    "learning/test_metrics_against_truth.py::test_hundreds_of_outages_are_read_rightly",
    "learning/test_metrics_against_truth.py::test_no_restart_is_called_a_crash_on_a_grid",
    "learning/test_metrics_against_truth.py::test_what_is_read_really_happened",
    "learning/test_posterior.py::test_intervals_cover_the_truth",
    "learning/test_prometheus_live.py::test_months_are_few_questions",
    "pipeline/",
    "present/figures/test_cost.py::test_no_name_stands_on_the_dashed_line",
    "present/figures/test_curves.py",
    "present/interactive/",
    "present/report/test_many_topics.py::test_a_large_page_is_small",
    "present/report/test_page",
    "present/test_labels.py::test_swings_are_said_in_time_and_chances",
    "present/test_unacknowledged.py",
    "protocol/exploration/test_shortest_loss.py",
    "protocol/simulation/test_invariants.py",
    "lessons/specification/test_model_checker.py",
    "lessons/zookeeper/test_locks.py",
    "reliability/chain/test_ctmc.py::test_merging_moves_no_more_than_it_says_where_brokers_lag",
    "reliability/chain/test_drift_bound.py",
    "reliability/common_cause/test_coincidence.py::test_many_sets_lose_as_often_as_sampled",
    "reliability/measures/test_records_lost.py",
    "reliability/measures/test_refused_in_stalls.py",
    "reliability/measures/test_rough_precision.py",
    "reliability/sampler/",
    "lessons/scheme_reliability/",
    "reliability/statespace/test_flush_window_returns.py::test_sampled_years_lose_as_often",
    "reliability/statespace/test_lumping.py",
    "reliability/statespace/test_state_graph.py",
    "reliability/measures/test_draws.py::test_a_draw_is_what_its_card_gives",
    "reliability/measures/test_draws.py::test_draws_solved_together_are_those_solved_one_by_one",
    "reliability/test_patching.py",
    "system/test_drawn_shipped_cards.py",
    "system/test_agreement.py",
    "system/test_browser.py",
    "system/test_docs.py",
    "system/test_drawn_common_causes.py",
    "system/test_exact_against_sampled.py",
    "system/test_explorer_walks.py",
    "system/test_fuzz.py",
    "system/test_hostile_text.py",
    "system/test_independent_oracle.py",
    "system/test_interrupt.py",
    "system/test_mechanisms.py",
    "system/test_notebooks.py",
    "system/test_pages_in_browser.py",
    "system/test_published.py",
    "system/test_readme.py::test_the_first_answer_is_the_one_shown",
    "system/test_report_in_browser.py",
    "system/test_same_answer.py::test_the_explorer",
    "system/test_same_answer.py::test_the_report",
    "system/test_story_in_browser.py",
    "system/test_verdict_in_browser.py",
    "system/test_wheel.py",
    "system/test_widget_questions.py",
)

# The longest files, with which `make test` begins: short ones then fill what is left at the end.
# Each process gets one of the first: two of real brokers, which mostly wait, the kernels, and what
# needs none of them. Files that sample come when the kernels are compiled.
LONGEST = (
    "tests/kafka/test_scenarios_on_kafka.py",
    "tests/kafka/test_emitted_plans.py",
    "tests/reliability/sampler/test_compilation.py",
    "tests/system/test_types.py",
    "tests/kafka/test_live.py",
    "tests/kafka/test_emitted_old_tools.py",
    "tests/kafka/test_emitted_midway.py",
    "tests/kafka/test_live_secured.py",
    "tests/kafka/test_emitted_producers.py",
    "tests/system/test_agreement.py",
    "tests/system/test_independent_oracle.py",
    "tests/reliability/chain/test_drift_bound.py",
    "notebooks/03_outages_and_patching.ipynb",
    "tests/system/test_exact_against_sampled.py",
    "notebooks/01_will_i_lose_data.ipynb",
    "notebooks/05_my_cluster.ipynb",
    "tests/system/test_interrupt.py",
    "notebooks/04_what_nines_cost.ipynb",
    "tests/present/report/test_page.py",
    "tests/reliability/sampler/cycles/test_cycles.py",
    "tests/pipeline/test_standalone.py",
    "tests/reliability/common_cause/test_coincidence.py",
    "tests/lessons/scheme_reliability/test_simulated_schemes.py",
    "tests/system/test_fuzz.py",
    "tests/system/test_browser.py",
)
# Files that start brokers wait most of the time: one process takes all but the longest in turn.
WAITING, LONGEST_WAIT = "tests/kafka/", "tests/kafka/test_scenarios_on_kafka.py"
# The processes that get these: brokers expire sessions of seconds, so computation gives way.
PUNCTUAL = ("gw0", "gw1")

os.environ.setdefault("MPLBACKEND", "Agg")

# A shell's background job ignores interrupts, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example's time depends on the load of the machine, not on the code's correctness.
settings.register_profile(
    "advisor", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("advisor")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests; the longest files come first, then the others with slow tests."""
    here = Path(__file__).resolve().parent
    listed = tuple(f"{here.as_posix()}/{path}" for path in SLOW)
    slow = [item for item in items if f"{item.path.as_posix()}::{item.name}".startswith(listed)]
    for item in slow:
        item.add_marker(pytest.mark.slow)
    slow_files = {item.path for item in slow}
    places = {here.parent / path: place for place, path in enumerate(LONGEST)}
    others = len(places)
    items.sort(key=lambda item: places.get(item.path, others + (item.path not in slow_files)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return two processes more than there are cores where two wait for real brokers."""
    return (os.cpu_count() or 1) + 2 * _waits(config)


def _waits(config: pytest.Config) -> bool:
    """Whether files of real brokers are tested too: not by `make check`."""
    return not config.option.markexpr


def pytest_configure(config: pytest.Config) -> None:
    """Let the processes that compute give way to those that wait for real brokers."""
    worker = getattr(config, "workerinput", {}).get("workerid", PUNCTUAL[0])
    if _waits(config) and worker not in PUNCTUAL:
        os.nice(10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out files one by one, those that mostly wait together."""
    from xdist.scheduler import LoadFileScheduling

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = super()._split_scope(nodeid)
            return WAITING if path.startswith(WAITING) and path != LONGEST_WAIT else path

    return ByFile(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect no examples below tests/, where docstrings have none."""
    collectors = yield
    return [files for files in collectors if not isinstance(files, DoctestModule)]


# Chains that the package keeps for the next question; a process of all tests asks thousands.
MOST_KIB = 3_000_000


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory() -> Iterator[None]:
    """Forget chains after a file's tests once the process has been large."""
    yield
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MOST_KIB:
        for name, module in list(sys.modules.items()):
            if name.startswith("advisor.reliability"):
                for value in list(vars(module).values()):
                    # A class of caches has the method, too, and no cache of its own.
                    if hasattr(value, "cache_clear") and not isinstance(value, type):
                        value.cache_clear()


@pytest.fixture(autouse=True, scope="module")
def _explorers_end() -> Iterator[None]:
    """End what explorers compute ahead after a file's tests: it would go on to the very end."""
    yield
    for process in multiprocessing.active_children():
        process.terminate()


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """Return the Spark session of the test process, started for the first test that uses it."""
    from advisor.pipeline.session import spark_session

    return spark_session("local[2,4]")
