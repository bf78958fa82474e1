"""The docstrings of the most used public objects follow numpydoc."""

import pytest
from numpydoc.validate import validate

RELIABILITY = "advisor.reliability.results.reliability.Reliability"
RECOMMENDATION = "advisor.advice.recommendations.recommendation.Recommendation"
LEARNED = "advisor.learning.learned.Learned"
PUBLIC = [
    "advisor.AdvisorError",
    "advisor.Cluster",
    "advisor.Cluster.uniform",
    "advisor.Config",
    "advisor.Config.changed",
    "advisor.FailureModel",
    "advisor.FailureModel.from_dict",
    "advisor.Goals",
    "advisor.Workload",
    "advisor.assign",
    "advisor.audit",
    "advisor.evaluate",
    "advisor.learn",
    "advisor.load_cluster",
    "advisor.load_model",
    "advisor.patching",
    "advisor.play",
    "advisor.recommend",
    "advisor.simulate",
    "advisor.simulate_grid",
    "advisor.write_samples",
    "advisor.pipeline.sampled_grid.SampledGrid",
    "advisor.pipeline.sampled_grid.SampledGrid.to_frame",
    "advisor.Cluster.to_frame",
    "advisor.FailureModel.to_frame",
    "advisor.explorer",
    LEARNED,
    f"{LEARNED}.explain",
    f"{LEARNED}.timeline",
    f"{LEARNED}.to_dict",
    f"{LEARNED}.to_frame",
    f"{LEARNED}.to_toml",
    "advisor.advice.audits.audit.Audit",
    "advisor.advice.audits.audit.Audit.explain",
    "advisor.advice.audits.audit.Audit.plot",
    "advisor.advice.audits.audit.Audit.to_dict",
    "advisor.advice.audits.audit.Audit.to_sarif",
    "advisor.kafka_lab.engines.Play",
    "advisor.reliability.results.sampled.Estimate",
    "advisor.reliability.results.sampled.Sampled",
    RELIABILITY,
    f"{RELIABILITY}.interval",
    f"{RELIABILITY}.explain",
    f"{RELIABILITY}.to_frame",
    f"{RELIABILITY}.to_dict",
    f"{RELIABILITY}.plot",
    f"{RELIABILITY}.tornado",
    RECOMMENDATION,
    f"{RECOMMENDATION}.commands",
    f"{RECOMMENDATION}.files",
    f"{RECOMMENDATION}.report",
]
EXCLUDED = {
    "ES01": "a summary and complete sections often say all there is to say",
}
# Made by the functions that return them, never by users: their attributes are documented instead.
RESULTS = {
    "advisor.Cluster.to_frame",
    "advisor.FailureModel.to_frame",
    "advisor.explorer",
    "advisor.advice.audits.audit.Audit",
    "advisor.advice.audits.audit.Audit.explain",
    "advisor.advice.audits.audit.Audit.plot",
    "advisor.advice.audits.audit.Audit.to_dict",
    "advisor.advice.audits.audit.Audit.to_sarif",
    "advisor.kafka_lab.engines.Play",
    "advisor.reliability.results.sampled.Estimate",
    "advisor.pipeline.sampled_grid.SampledGrid",
    "advisor.reliability.results.sampled.Sampled",
    LEARNED,
    f"{LEARNED}.explain",
    f"{LEARNED}.timeline",
    f"{LEARNED}.to_dict",
    f"{LEARNED}.to_frame",
    RELIABILITY,
    RECOMMENDATION,
}


def complaints(name: str) -> list[str]:
    """List what numpydoc has against the docstring of an object, exclusions left out."""
    excluded = set(EXCLUDED) | ({"PR01"} if name in RESULTS else set())
    return [f"{code}: {text}" for code, text in validate(name)["errors"] if code not in excluded]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_docstrings_are_complete(name: str) -> None:
    """Parameters, types, returns, see also and examples are there, in numpydoc's form."""
    assert complaints(name) == []


def undocumented(number: int) -> int:
    """Return the number.

    Parameters
    ----------
    number
    """
    return number


def test_a_gap_is_found() -> None:
    """A missing type, description, Returns, See Also and Examples are each reported."""
    codes = {text.split(":")[0] for text in complaints(f"{__name__}.undocumented")}
    assert codes == {"PR04", "PR07", "RT01", "SA01", "EX01"}
