"""A server of metrics is asked for what changed; what it answers wrong is said in one sentence."""

import base64
import ssl
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import advisor
from advisor.__main__ import main
from advisor.errors import InputError
from advisor.formatting import HOURS_PER_YEAR
from advisor.learning.counts import Window, read_histories
from advisor.learning.evidence import ClusterHistory
from advisor.learning.metric_names import Metric
from advisor.learning.prometheus_api import AnsweredServer, server_at
from advisor.learning.stages import DAY_MS, rows_of_runs
from advisor.learning.transitions import Runs
from advisor.learning.typed_events import moment
from certificates import authority
from command_line import one_sentence
from metrics_server import MOST_POINTS, Metrics, Reply, replying, serving
from patience import PATIENCE_MS

BEGIN, STEP, DAY = 1_735_689_600.0, 30.0, 86_400.0
BROKERS, CONTROLLERS = ("b1:9404", "b2:9404", "b3:9404"), ("c1:9404", "c2:9404", "c3:9404")
REPLICA_MANAGER, CONTROLLER = "kafka_server_replicamanager", "kafka_controller_kafkacontroller"
UNDER_MIN_ISR = f"{REPLICA_MANAGER}_underminisrpartitioncount"
PRIOR = "three_az_cloud"


@pytest.fixture(autouse=True)
def _answers_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the server of a test as long as it takes on a busy machine."""
    monkeypatch.setattr("advisor.learning.prometheus_api.TIMEOUT_MS", PATIENCE_MS)


def healthy(days: float, step_s: float = STEP) -> Metrics:
    """A cluster in which nothing happens; its begin and end are no full hours."""
    metrics = Metrics(BEGIN + 610.0, BEGIN + 610.0 + days * DAY, step_s)
    for target in (*BROKERS, *CONTROLLERS):
        metrics.put("up", target, 1.0)
        metrics.put("process_start_time_seconds", target, BEGIN - 1e6)
    for broker in BROKERS:
        for name, value in (
            ("underreplicatedpartitions", 0.0),
            ("underminisrpartitioncount", 0.0),
            ("leadercount", 40.0),
        ):
            metrics.put(f"{REPLICA_MANAGER}_{name}", broker, value)
    for controller in CONTROLLERS:
        for name, value in (
            ("offlinepartitionscount", 0.0),
            ("globalpartitioncount", 120.0),
            ("lastappliedrecordlagms", 100.0),
            ("activecontrollercount", float(controller == CONTROLLERS[0])),
        ):
            metrics.put(f"{CONTROLLER}_{name}", controller, value)
    return metrics


def restarted(metrics: Metrics, broker: str, first: float, last: float) -> None:
    metrics.silence(broker, first, last)
    metrics.series["process_start_time_seconds", broker][-1] = (last, last - 10.0)


def asked(metrics: Metrics, reply: Reply | None = None) -> tuple[ClusterHistory, int]:
    """What is read of a server, and how many questions that took."""
    window = Window(until=moment(np.datetime_as_string(_date(metrics.end), unit="s"), ""))
    with serving(reply or replying(metrics)) as served:
        (history,) = read_histories([served.address], window)
        return history, len(served.questions)


def _date(seconds: float) -> np.datetime64:
    return np.datetime64(round(seconds), "s")


def test_three_days_say_what_happened() -> None:
    """An outage, a silent target, refused writes and a gap of the server, each with its times."""
    metrics = healthy(3.0)
    noon = BEGIN + DAY / 2.0
    restarted(metrics, BROKERS[1], noon + 100.0, noon + 340.0)
    metrics.change(UNDER_MIN_ISR, BROKERS[2], noon + DAY, 3.0)
    metrics.change(UNDER_MIN_ISR, BROKERS[2], noon + DAY + 600.0, 0.0)
    metrics.silence(BROKERS[0], noon + DAY + 5000.0, noon + DAY + 8600.0)
    # Shorter than five minutes, and without the times of scrapes it looks as if all stood still.
    metrics.asleep.append((noon + 2 * DAY, noon + 2 * DAY + 240.0))
    history, _ = asked(metrics)
    (outage,) = history.outages
    assert outage.brokers == (BROKERS[1],)
    assert abs(outage.start.timestamp() - noon - 100.0) <= STEP
    assert outage.end is not None
    assert abs(outage.end.timestamp() - noon - 340.0) <= STEP
    assert history.refused is not None
    assert history.refused.partition_minutes == pytest.approx(30.0, abs=3 * STEP / 60.0)
    lengths = {gap.broker: (gap.end - gap.start).total_seconds() for gap in history.gaps}
    assert lengths.keys() >= set(BROKERS)
    long = [g for g in history.gaps if (g.end - g.start).total_seconds() > 1000.0]
    assert [gap.broker for gap in long] == [BROKERS[0]]
    assert (long[0].end - long[0].start).total_seconds() == pytest.approx(3600.0, abs=2 * STEP)
    asleep = 3 * 240.0 + 3600.0
    exposure = 365.0 * DAY * history.exposures["cluster.controller"]
    assert exposure == pytest.approx(3 * DAY - 240.0, abs=3 * STEP)
    seen = sum((g.end - g.start).total_seconds() for g in history.gaps)
    assert seen == pytest.approx(asleep, abs=10 * STEP)


@pytest.mark.parametrize("hours_later", [0.0, 0.5, 30.0, 2000.0])
@pytest.mark.parametrize("hours", [0.4, 1.7])
def test_short_metrics_are_found_whenever_they_ended(hours: float, hours_later: float) -> None:
    """Also between two looks, and at the interval at which they were scraped, not the usual one."""
    metrics = healthy(hours / 24.0, 5.0)
    restarted(metrics, BROKERS[1], metrics.begin + 900.0, metrics.begin + 922.0)
    until = _date(metrics.end + 3600.0 * hours_later)
    window = Window(until=moment(np.datetime_as_string(until, unit="s"), ""))
    with serving(replying(metrics)) as served:
        (history,) = read_histories([served.address], window)
    (outage,) = history.outages
    assert outage.brokers == (BROKERS[1],)
    assert outage.start.timestamp() == pytest.approx(metrics.begin + 900.0, abs=6.0)
    assert outage.end is not None
    assert outage.end.timestamp() == pytest.approx(metrics.begin + 922.0, abs=6.0)
    assert history.years * HOURS_PER_YEAR == pytest.approx(hours, abs=0.05)


def test_months_are_few_questions() -> None:
    """What is quiet is asked by the hour; an answer never has more points than a server gives."""
    metrics = healthy(100.0)
    for week in range(13):
        start = BEGIN + DAY + week * 7 * DAY
        restarted(metrics, BROKERS[week % 3], start, start + 240.0)
    most = 0
    reply = replying(metrics)

    def counting(question: dict[str, str]) -> tuple[int, str, bytes]:
        nonlocal most
        points = (float(question["end"]) - float(question["start"])) / float(question["step"]) + 1
        most = max(most, int(points))
        return reply(question)

    history, questions = asked(metrics, counting)
    assert len(history.outages) == 13
    assert history.years == pytest.approx(100.0 / 365.0, rel=1e-3)
    assert most < MOST_POINTS
    assert questions < 300


def test_a_server_that_gives_less_is_asked_in_smaller_pieces() -> None:
    """A limit of its own, as with many series, is no end."""
    metrics = healthy(2.0)
    restarted(metrics, BROKERS[1], BEGIN + DAY, BEGIN + DAY + 300.0)
    reply = replying(metrics)

    def limited(question: dict[str, str]) -> tuple[int, str, bytes]:
        points = (float(question["end"]) - float(question["start"])) / float(question["step"]) + 1
        if points > 40:
            error = '{"status":"error","error":"query processing would load too many samples"}'
            return 422, "application/json", error.encode()
        return reply(question)

    history, _ = asked(metrics, limited)
    assert len(history.outages) == 1


def fixed(status: int, body: str, kind: str = "application/json") -> Reply:
    return lambda _: (status, kind, body.encode())


ERROR = '{"status": "error", "errorType": "execution", "error": "query timed out"}'
EMPTY = '{"status": "success", "data": {"resultType": "matrix", "result": []}}'
VECTOR = '{"status":"success","data":{"resultType":"vector","result":[{"value":[0,"1"]}]}}'


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (fixed(422, ERROR), "HTTP 422: 'query timed out'"),
        (fixed(503, "upstream down", "text/plain"), "asked three times.*HTTP 503"),
        (fixed(302, "http://elsewhere/"), "redirect.*not followed"),
        (fixed(200, "<html>Sign in</html>", "text/html"), r"not Prometheus' JSON \(text/html\)"),
        (fixed(200, "{"), "not Prometheus' JSON"),
        (fixed(200, "[]"), "not Prometheus' JSON"),
        (fixed(401, "no"), "refuses the login"),
        (fixed(404, "404 page not found", "text/plain"), "no API of Prometheus"),
        (fixed(418, ""), "HTTP 418"),
        (fixed(200, ERROR), "query timed out"),
        (fixed(200, EMPTY), "no series of a Kafka broker"),
        (fixed(200, VECTOR), "no range of times"),
        (fixed(200, '{"status": "success"}'), "no list of series"),
        (fixed(200, '{"status":"success","data":{"result":[{"metric":3}]}}'), "no range of times"),
    ],
)
def test_a_wrong_answer_is_one_sentence(
    reply: Reply, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the address, and what to do."""
    monkeypatch.setattr("advisor.learning.prometheus_api._WAITS_S", (0.0, 0.0))
    with serving(reply) as served, pytest.raises(InputError, match=said) as refused:
        read_histories([served.address], Window())
    assert str(refused.value).startswith(served.address)
    assert "\n" not in str(refused.value)


def test_a_server_that_does_not_answer_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    """After the time limit: it would never answer."""
    left = threading.Event()

    def silent(_: dict[str, str]) -> tuple[int, str, bytes]:
        left.wait(PATIENCE_MS / 1000.0)
        return 200, "application/json", EMPTY.encode()

    with serving(silent) as served:
        line = ["learn", served.address, "--prior", PRIOR, "--timeout", "0.2"]
        assert main(line) != 0
        left.set()
    assert "no answer within 0.2 seconds" in one_sentence(capsys)


def properties(folder: Path, text: str) -> Path:
    path = folder / "client.properties"
    path.write_text(text)
    return path


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
BASIC = f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={PLAIN} required username="alice" password="hush-hush";
"""


def test_a_login_is_sent_and_not_shown(tmp_path: Path) -> None:
    """Basic by SASL PLAIN, bearer by OAUTHBEARER; a refusal does not have them."""
    token = tmp_path / "token"
    token.write_text("secret-token\n")
    bearer = f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.jaas.config=LoginModule required;
sasl.oauthbearer.token.endpoint.url={token.as_uri()}
"""
    basic = base64.b64encode(b"alice:hush-hush").decode()
    for text, header in ((BASIC, f"Basic {basic}"), (bearer, "Bearer secret-token")):
        path = properties(tmp_path, text)
        with serving(fixed(403, "no")) as served, pytest.raises(InputError) as refused:
            advisor.learn(served.address, prior=PRIOR, client_properties=path)
        assert served.headers[0]["Authorization"] == header
        assert "hush" not in str(refused.value)
        assert "secret" not in str(refused.value)
        assert "hush" not in repr(server_at(served.address, path))


@pytest.mark.parametrize(
    ("address", "text", "said"),
    [
        ("http://alice:hush@127.0.0.1:1", "", "does not belong into an address"),
        ("http://127.0.0.1:1", BASIC.replace("SASL_PLAINTEXT", "SASL_SSL"), "not sent in plain"),
        ("http://127.0.0.1:1", BASIC.replace("=PLAIN\n", "=SCRAM-SHA-256\n"), "PLAIN for HTTP"),
        ("http://", "", "write the address"),
        ("http://[::1", "", "no URL"),
        ("http://127.0.0.1:1", "", "nothing listens"),
        ("http://127.0.0.1:99999", "", "no URL"),
    ],
)
def test_an_address_or_login_that_cannot_be_used(
    tmp_path: Path, address: str, text: str, said: str
) -> None:
    """Is refused before anything is sent, without what is secret."""
    path = properties(tmp_path, text) if text else None
    with pytest.raises(InputError, match=said) as refused:
        advisor.learn(address, prior=PRIOR, client_properties=path)
    assert "hush" not in str(refused.value)


def test_a_certificate_is_checked(tmp_path: Path) -> None:
    """Of an authority of one's own it is trusted by the properties file only."""
    authority().write(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "node.pem")
    text = f"security.protocol=SSL\nssl.truststore.location={tmp_path / 'ca.pem'}\n"
    with serving(fixed(200, EMPTY), context) as served:
        with pytest.raises(InputError, match="certificate is not trusted"):
            advisor.learn(served.address, prior=PRIOR)
        with pytest.raises(InputError, match="no series of a Kafka broker"):
            advisor.learn(served.address, prior=PRIOR, client_properties=properties(tmp_path, text))


def test_labels_in_the_address_choose_a_cluster() -> None:
    """They are matchers of every question."""
    with serving(fixed(200, EMPTY)) as served, pytest.raises(InputError, match="no series"):
        advisor.learn(f"{served.address}/prometheus/?cluster=payments", prior=PRIOR)
    assert served.questions[0]["path"] == "/prometheus/api/v1/query_range"
    assert 'cluster="payments"' in served.questions[0]["query"]


def eventful(step_s: float = STEP) -> Metrics:
    """Three days with an outage over midnight, refused writes and a silent target."""
    metrics = healthy(3.0, step_s)
    midnight = BEGIN + 2.0 * DAY
    restarted(metrics, BROKERS[2], midnight - 200.0, midnight + 300.0)
    metrics.change(UNDER_MIN_ISR, BROKERS[1], midnight + 40_000.0, 3.0)
    metrics.change(UNDER_MIN_ISR, BROKERS[1], midnight + 40_600.0, 0.0)
    metrics.silence(BROKERS[0], BEGIN + DAY + 5_000.0, BEGIN + DAY + 8_600.0)
    return metrics


def window_of(metrics: Metrics, work: Path | None) -> Window:
    until = moment(np.datetime_as_string(_date(metrics.end), unit="s"), "")
    return Window(until=until, work=work)


def data_sets(folder: Path) -> dict[Path, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in paths}


@pytest.mark.parametrize("step_s", [5.0, 30.0, 60.0])
def test_what_goes_to_a_folder_says_the_same(step_s: float, tmp_path: Path) -> None:
    """To a millisecond; and a second time nothing is asked."""
    metrics = eventful(step_s)
    with serving(replying(metrics)) as served:
        (direct,) = read_histories([served.address], window_of(metrics, None))
        (staged,) = read_histories([served.address], window_of(metrics, tmp_path))
        count = len(served.questions)
        (again,) = read_histories([served.address], window_of(metrics, tmp_path))
        assert len(served.questions) == count
    assert again == staged
    assert len(direct.outages) == len(staged.outages) == 1
    for one, other in zip(direct.outages, staged.outages, strict=True):
        assert (one.mechanism, one.brokers) == (other.mechanism, other.brokers)
        assert abs((one.start - other.start).total_seconds()) < 0.002
    assert direct.refused == staged.refused
    assert direct.seen == staged.seen
    assert [gap.broker for gap in direct.gaps] == [gap.broker for gap in staged.gaps]
    assert direct.years == pytest.approx(staged.years, rel=1e-6)


def test_runs_of_a_server_end_at_midnight() -> None:
    """Each sample is in one row, on its day; a day of none has no row."""
    step, first = 30.0, BEGIN + DAY - 75.0
    lengths = np.array([1, 2, 2 * round(DAY / step) + 6, 3])
    firsts = np.array([first - 600.0, first - 60.0, first + 15.0, BEGIN + 5.0 * DAY - 30.0])
    lasts = firsts + step * (lengths - 1)
    values = np.arange(4.0)
    runs = Runs("", "b1", Metric.LEADERS, step, firsts, lasts, lengths, values)
    keys, rows = rows_of_runs([runs])
    assert [(key.target, key.metric) for key in keys] == [("b1", Metric.LEADERS.value)]
    samples = [
        round(1000.0 * (start + step * number))
        for start, length in zip(firsts, lengths, strict=True)
        for number in range(length)
    ]
    days, counts = np.unique(np.array(samples) // DAY_MS, return_counts=True)
    assert (rows.firsts // DAY_MS == rows.lasts // DAY_MS).all()
    for day, count in zip(days, counts, strict=True):
        assert rows.counts[rows.firsts // DAY_MS == day].sum() == count
    assert set(rows.firsts) | set(rows.lasts) <= set(samples)
    assert rows.counts.sum() == len(samples)


@pytest.mark.parametrize("after", [1, 7, 23, 40])
def test_a_call_that_broke_off_asks_for_the_rest(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was answered is kept, and the data sets are those of a call that did not break off."""
    monkeypatch.setattr("advisor.learning.prometheus_api._WAITS_S", ())
    metrics = eventful()
    answer = replying(metrics)
    left = [after]

    def failing(asked: dict[str, str]) -> tuple[int, str, bytes]:
        left[0] -= 1
        return answer(asked) if left[0] >= 0 else (503, "text/plain", b"")

    with serving(failing) as served:
        with pytest.raises(InputError, match="the same command goes on"):
            read_histories([served.address], window_of(metrics, tmp_path / "broken"))
        left[0] = 1_000
        read_histories([served.address], window_of(metrics, tmp_path / "broken"))
        rest = 1_000 - left[0]
        read_histories([served.address], window_of(metrics, tmp_path / "whole"))
    whole = 1_000 - left[0] - rest
    assert rest == whole - after
    assert data_sets(tmp_path / "broken") == data_sets(tmp_path / "whole")


def test_the_last_hour_is_asked_again(tmp_path: Path) -> None:
    """More of it may have come in, and what a file of answers lacks is asked, too."""
    metrics = healthy(0.5)
    window = window_of(metrics, tmp_path)
    with serving(replying(metrics)) as served:
        read_histories([served.address], window)
        first = len(served.questions)
        for path in (tmp_path / "answers").iterdir():
            path.write_bytes(path.read_bytes()[:-9])
        read_histories([served.address], window)
        assert len(served.questions) == 2 * first
        server = AnsweredServer(**vars(server_at(served.address)), folder=tmp_path / "answers")
        now = time.time()
        for _ in range(2):
            server.ask('{__name__="up"}', now - 600.0, now, 60.0)
        assert len(served.questions) == 2 * first + 2
