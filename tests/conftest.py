"""Settings, fixtures and the list of slow files for all tests."""

import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What `make check` leaves out, below tests/: more than a few seconds of processor time each, or
# other processes. Cases of a file that is not listed may bear `@pytest.mark.slow` themselves.
SLOW = (
    "advice/recommendations/test_loss_story.py",
    "cli/test_bad_input.py",
    "cli/test_commands.py",
    "kafka/",
    "pipeline/",
    "present/figures/test_curves.py",
    "present/interactive/",
    "present/report/test_page",
    "protocol/exploration/test_shortest_loss.py",
    "protocol/simulation/test_invariants.py",
    "protocol/specification/test_model_checker.py",
    "protocol/zookeeper/test_locks.py",
    "reliability/chain/test_drift_bound.py",
    "reliability/measures/test_records_lost.py",
    "reliability/measures/test_refused_in_stalls.py",
    "reliability/measures/test_rough_precision.py",
    "reliability/sampler/",
    "reliability/test_patching.py",
    "reliability/schemes/",
    "reliability/statespace/test_lumping.py",
    "reliability/statespace/test_state_graph.py",
    "system/test_interrupt.py",
    "system/test_agreement.py",
    "system/test_browser.py",
    "system/test_pages_in_browser.py",
    "system/test_story_in_browser.py",
    "system/test_docs.py",
    "system/test_drawn_common_causes.py",
    "system/test_exact_against_sampled.py",
    "system/test_fuzz.py",
    "system/test_independent_oracle.py",
    "system/test_mechanisms.py",
    "system/test_notebooks.py",
    "system/test_published.py",
    "system/test_wheel.py",
    "system/test_widget_questions.py",
)

# The longest files, with which `make test` begins: short ones then fill what is left at the end.
# Those of real brokers alternate with those that compute, since they mostly wait.
LONGEST = (
    "tests/kafka/test_scenarios_on_kafka.py",
    "tests/reliability/common_cause/test_coincidence.py",
    "tests/system/test_exact_against_sampled.py",
    "tests/kafka/test_emitted_plans.py",
    "tests/system/test_agreement.py",
    "notebooks/03_outages_and_patching.ipynb",
    "tests/kafka/test_conformance.py",
    "tests/reliability/schemes/test_simulated_schemes.py",
    "notebooks/01_will_i_lose_data.ipynb",
    "tests/kafka/test_emitted_old_tools.py",
    "tests/system/test_interrupt.py",
    "notebooks/05_my_cluster.ipynb",
    "tests/kafka/test_live.py",
    "notebooks/04_what_nines_cost.ipynb",
    "tests/system/test_fuzz.py",
    "tests/kafka/test_live_secured.py",
    "tests/system/test_browser.py",
    "tests/kafka/test_emitted_midway.py",
    "tests/kafka/test_emitted_producers.py",
)

os.environ.setdefault("MPLBACKEND", "Agg")

# A shell's background job ignores interrupts, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# An example's time depends on the load of the machine, not on the code's correctness.
settings.register_profile("advisor", settings(), deadline=None)
settings.load_profile("advisor")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the slow files; the longest files come first, then the other slow ones."""
    here = Path(__file__).resolve().parent
    slow = tuple(f"{here.as_posix()}/{path}" for path in SLOW)
    for item in items:
        if item.path.as_posix().startswith(slow):
            item.add_marker(pytest.mark.slow)
    places = {here.parent / path: place for place, path in enumerate(LONGEST)}
    others = len(places)
    items.sort(
        key=lambda item: places.get(item.path, others + (not item.path.as_posix().startswith(slow)))
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than there are cores, for the tests that wait for real brokers."""
    return (os.cpu_count() or 1) + 1


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
                    if hasattr(value, "cache_clear"):
                        value.cache_clear()


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the top of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def spark() -> "SparkSession":
    """Return the Spark session of the test process, started for the first test that uses it."""
    from advisor.pipeline.session import spark_session

    return spark_session("local[2,4]")
