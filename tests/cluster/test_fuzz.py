import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.catalog import data_dir
from advisor.cluster import Cluster, format_describe, load_cluster
from advisor.errors import AdvisorError

SAMPLES = data_dir() / "clusters"
STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: brokers}
spec: {replicas: 3, roles: [broker]}
status: {nodeIds: [3, 4, 5]}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata:
  name: orders
spec:
  partitions: 6
  replicas: 2
  config: {min.insync.replicas: 1}
"""


def read_or_refuse(source):
    """Return the cluster or the error, which must be one sentence."""
    try:
        result = load_cluster(source)
    except AdvisorError as error:
        result = error
    assert isinstance(result, Cluster) or (str(result).strip() and "\n" not in str(result))
    return result


SMALL = format_describe(
    load_cluster("brokers=3\n[[topic]]\nname='t'\npartitions=3\nreplication_factor=2\n"), "4.1"
)
VALID = [
    SMALL,
    (SAMPLES / "testp3-2-broker-2-killed.txt").read_text(encoding="utf-8"),
    (SAMPLES / "example.toml").read_text(encoding="utf-8"),
    json.dumps(load_cluster(SMALL).to_dict()),
    STRIMZI,
]
SUFFIXES = [".txt", ".toml", ".json", ".yaml"]


@settings(
    max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_bytes_ever_end_in_a_traceback(data, tmp_path: Path):
    """Spliced and corrupted files give a Cluster or an AdvisorError."""
    content = data.draw(st.sampled_from(VALID)).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 40)))
        piece = data.draw(
            st.binary(max_size=8)
            | st.sampled_from(
                [b"", b"-1", b"9", b"99999999999999999999", b"[[", b"{", b"\t", b"\n"]
            )
            | st.sampled_from(VALID).flatmap(
                lambda text: st.integers(0, len(text)).map(lambda at: text[at : at + 60].encode())
            )
        )
        content = content[:start] + piece + content[end:]
    path = tmp_path / ("fuzz" + data.draw(st.sampled_from(SUFFIXES)))
    path.write_bytes(content)
    result = read_or_refuse(path)
    if isinstance(result, Cluster):
        again = load_cluster(json.dumps(result.to_dict()) + "\n")
        assert (again.brokers, again.topics) == (result.brokers, result.topics)
        assert again.controllers == result.controllers


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
def test_no_text_ever_ends_in_a_traceback(text):
    """Any text gives a Cluster or an AdvisorError."""
    read_or_refuse(text)
    read_or_refuse(text + "\n")
