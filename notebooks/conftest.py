"""How long a notebook's test waits: its answers depend on the code, not on a busy machine."""

import pytest

_SECONDS = 600


def pytest_configure(config: pytest.Config) -> None:
    """Let a kernel take its time to start."""
    if hasattr(config.option, "nbval_kernel_startup_timeout"):
        config.option.nbval_kernel_startup_timeout = _SECONDS


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a cell's outputs follow late; nbval gives them five seconds and has no option for it."""
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = _SECONDS
