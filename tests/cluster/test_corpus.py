"""The corpus of public outputs: each is read as stated or refused, and no mutation is misread."""

import re

import pytest

from advisor.cluster import load_cluster
from advisor.errors import AdvisorError
from corpus import (
    FOLDER,
    Entry,
    brokers_in_short,
    entries,
    refusal,
    topics_in_short,
    try_mutations,
)

ENTRIES = entries()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_a_public_output_is_read_as_stated_or_refused(entry: Entry) -> None:
    """Brokers, topics, partitions, min ISR and version are the stated ones; a refusal says why."""
    if entry.refused:
        with pytest.raises(AdvisorError, match=re.escape(entry.refused)):
            load_cluster(entry.path)
        return
    cluster = load_cluster(entry.path)
    assert cluster.taken_for.startswith(f"Taken for {entry.taken_for} ")
    assert brokers_in_short(cluster) == entry.brokers
    assert topics_in_short(cluster) == entry.topics
    assert cluster.kafka_version == entry.kafka_version
    said = " ".join((*cluster.remarks, *cluster.notes))
    assert [words for words in entry.says if words not in said] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_a_number_of_thousands_of_digits_is_refused_anywhere(entry: Entry) -> None:
    """Read or refused in one short sentence, whichever number of the output it stands for."""
    numbers = [*re.finditer(r"\d+", entry.text)]
    for number in numbers[:: max(1, len(numbers) // 30)]:
        for digits in ("9" * 5_000, "0" * 5_000):
            changed = f"{entry.text[: number.start()]}{digits}{entry.text[number.end() :]}"
            assert len(refusal(changed)) < 600


def test_every_file_of_the_corpus_has_its_source_and_every_entry_its_file() -> None:
    """The index and the folder name the same files, and no source is left out."""
    files = {path.name for path in FOLDER.iterdir()} - {"index.toml"}
    assert files == {entry.file for entry in ENTRIES}
    assert len(files) == len(ENTRIES)
    assert all(entry.source for entry in ENTRIES)


def test_no_mutation_is_misread() -> None:
    """Cut, wrapped, doubled, mixed, or with lines gone: the same reading, or it is said.

    `make fuzz` tries many more.
    """
    assert list(try_mutations("corpus", 1_500)) == []
