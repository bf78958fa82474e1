"""What tests of the command line share."""

from pathlib import Path

import pytest

from command_line import CARD


@pytest.fixture
def card(tmp_path: Path) -> str:
    """Write a small card, for small chains."""
    path = tmp_path / "card.toml"
    path.write_text(CARD)
    return str(path)
