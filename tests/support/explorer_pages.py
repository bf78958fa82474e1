"""What the data of an explorer's page say."""

from collections.abc import Mapping, Sequence
from typing import Any


def words_at(page: Mapping[str, Any], place: int | Sequence[int]) -> str:
    """Return a text of a page by its place, or by the places of its clauses."""
    if isinstance(place, int):
        return str(page["texts"][place])
    return " ".join(str(page["texts"][clause]) for clause in place)
