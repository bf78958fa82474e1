"""What other settings could save of a result's measures, and what no setting prevents."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from advisor.reliability import measure_table
from advisor.verdicts import verdict_of


class AboveFloor:
    """Mixin of a result: each measure in two parts, the floor and what is above it."""

    def by_settings(self, measure: str) -> float:
        """Return what another setting could save of a measure: the whole less `beyond_settings`.

        Of a sample it is below 0 where chance made it better than the floor, which is exact.
        Of ``mean_years_to_loss``, in whose place its inverse adds up: the mean years until the
        losses that another setting could save make one.

        Parameters
        ----------
        measure : str
            Name of a measure, such as "write_unavailability".

        Returns
        -------
        float
            In the measure's unit; 0 for the setting that is best in it.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.

        See Also
        --------
        beyond_settings : The rest, and what other settings are meant.

        Examples
        --------
        >>> import advisor
        >>> failures = {"per_year": 2.0, "minutes": 10.0}
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": failures}, "cluster": {"power": failures}}
        ... )
        >>> config = advisor.Config(replication_factor=3, min_insync_replicas=3)
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), config, card)
        >>> measure = "write_unavailability"
        >>> parts = result.by_settings(measure), result.beyond_settings(measure)
        >>> print(f"{parts[0]:.2g} + {parts[1]:.2g} = {result.write_unavailability:.2g}")
        0.00011 + 3.8e-05 = 0.00015
        """
        whole = measure_table.measure(measure).of(self)
        return float(self._floor.by_settings(measure, float(getattr(whole, "value", whole))))

    def beyond_settings(self, measure: str) -> float:
        """Return the part of a measure that no setting with as many replicas prevents: the floor.

        It is the least of the whole measure, or the longest time to a loss, over this setting and
        every min ISR with acks=all and clean elections, with at least three replicas where there
        are three brokers. The first call evaluates these settings.

        Parameters
        ----------
        measure : str
            Name of a measure, such as "write_unavailability".

        Returns
        -------
        float
            In the measure's unit.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.
        NotComputedError
            If the card has times that a Markov chain does not express.

        See Also
        --------
        by_settings : The other part.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), advisor.Config(), card)
        >>> 0.0 < result.beyond_settings("write_unavailability") <= result.write_unavailability
        True
        """
        measure_table.measure(measure)
        return float(self._floor.beyond_settings(measure))

    @cached_property
    def _floor(self) -> Any:
        """What no setting prevents; the room above this one evaluates the other settings."""
        return verdict_of("floor", self)
