"""A broker may delete a replica, or a segment of it, while the replica is read."""

from pathlib import Path

import pytest

from advisor.kafka_lab import real_simulation
from advisor.kafka_lab.real_simulation import _log_on_disk
from advisor.protocol.log.replica_log import Log


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_deleted_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """A replica that is gone has no log; one that lost a segment is read again."""
    folder, left = tmp_path / "t-0", Log()
    folder.mkdir()
    reads = list[Path]()

    def reading(asked: Path) -> Log:
        reads.append(asked)
        if len(reads) == 1:
            if whole:
                asked.rename(tmp_path / "t-0.deleted")
            raise FileNotFoundError(asked / "00000000000000000000.log")
        return left

    monkeypatch.setattr(real_simulation, "read_replica_log", reading)
    found = _log_on_disk(folder)
    assert (found, len(reads)) == ((None, 1) if whole else (left, 2))


def test_a_broker_without_the_replica_has_no_log(tmp_path: Path) -> None:
    assert _log_on_disk(tmp_path / "t-0") is None
