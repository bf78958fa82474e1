"""A small server of metrics for tests: `query_range` over series that are made up.

Each series is a list of changes, so that fifteen months are little. A target is scraped at a moment
of its own in each step; while the server sleeps there are no scrapes, and the last one is repeated
for five minutes, as Prometheus does.
"""

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

LOOK_BACK_S = 300.0
MOST_POINTS = 11_000
_QUERY = re.compile(r"(?:(\w+)\()?\{(.*)\}(?:\[(\d+)([smh])\])?\)?")
_MATCHER = re.compile(r'(\w+)(=~|=)"((?:[^"\\]|\\.)*)"')
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass
class Metrics:
    """What a cluster reported.

    Attributes
    ----------
    begin, end : float
    step : float
    series : dict
        By name and target, times and values from then on; NaN where nothing is reported.
    asleep : list of (float, float)
        When nothing was scraped.
    """

    begin: float
    end: float
    step: float
    series: dict[tuple[str, str], list[tuple[float, float]]] = field(default_factory=dict)
    asleep: list[tuple[float, float]] = field(default_factory=list)

    def put(self, name: str, target: str, value: float) -> None:
        """A series that is constant."""
        self.series[name, target] = [(self.begin, value)]

    def change(self, name: str, target: str, time: float, value: float) -> None:
        """What a series says from some time on; in the order of time."""
        self.series[name, target].append((time, value))

    def silence(self, target: str, first: float, last: float, up: float = 0.0) -> None:
        """No answer of a target for a time; it says the same afterwards."""
        for (name, other), changes in self.series.items():
            if other == target:
                before = changes[-1][1]
                self.change(name, target, first, up if name == "up" else np.nan)
                self.change(name, target, last, before)

    def answer(self, query: str, times: np.ndarray) -> list[Any]:
        """The series of a query at some times."""
        parsed = _QUERY.fullmatch(query)
        assert parsed is not None, query
        function, inside, amount, unit = parsed.groups()
        window = float(amount) * _SECONDS[unit] if amount else 0.0
        rows = []
        for (name, target), changes in self.series.items():
            labels = {"__name__": name, "instance": target, "job": "kafka"}
            if not _matches(inside, labels):
                continue
            moved = np.array(changes)
            values = self._evaluated(function, moved, target, times, window)
            points = [
                [float(t), repr(float(v))] for t, v in zip(times, values, strict=True) if v == v
            ]
            if points:
                if function not in (None, "last_over_time"):
                    labels.pop("__name__")
                rows.append({"metric": labels, "values": points})
        return rows

    def _evaluated(
        self, function: str | None, changes: np.ndarray, target: str, times: Any, window: float
    ) -> np.ndarray:
        if function in (None, "timestamp"):
            scrapes = self._last_scrape(target, times)
            values = _at(changes, scrapes)
            return values if function is None else np.where(np.isnan(values), np.nan, scrapes)
        if function == "last_over_time":
            return _at(changes, self._last_scrape(target, times, window))
        if function == "count_over_time":
            count = self._scrapes_until(target, times) - self._scrapes_until(target, times - window)
            return np.where(count > 0, count, np.nan)
        places = [np.searchsorted(changes[:, 0], t, "right") for t in (times - window, times)]
        if function == "changes":
            moved: np.ndarray = (places[1] - np.maximum(places[0], 1)).astype(float)
            return moved
        assert function == "max_over_time", function
        return np.array(
            [
                np.nanmax(changes[max(a - 1, 0) : b, 1], initial=-1.0)
                for a, b in zip(*places, strict=True)
            ]
        )

    def _moment(self, target: str) -> float:
        return self.begin + 1.0 + 0.37 * (sum(map(ord, target)) % 7)

    def _last_scrape(
        self, target: str, times: np.ndarray, look_back_s: float = LOOK_BACK_S
    ) -> np.ndarray:
        moment = self._moment(target)
        last = np.minimum(times, self.end)
        scrapes = moment + np.floor((last - moment) / self.step) * self.step
        for first, until in self.asleep:
            is_in = (scrapes >= first) & (scrapes < until)
            before = moment + (np.ceil((first - moment) / self.step) - 1.0) * self.step
            scrapes = np.where(is_in, before, scrapes)
        is_there = (scrapes >= self.begin) & (times - scrapes <= look_back_s)
        return np.where(is_there, scrapes, np.nan)

    def _scrapes_until(self, target: str, times: np.ndarray) -> np.ndarray:
        def count(until: np.ndarray) -> np.ndarray:
            inside = np.clip(until, self.begin, self.end)
            scrapes: np.ndarray = np.floor((inside - self._moment(target)) / self.step) + 1.0
            return scrapes

        total = count(times)
        for first, until in self.asleep:
            total = total - (
                count(np.clip(times, first, until)) - count(np.full_like(times, first))
            )
        counted: np.ndarray = np.maximum(total, 0.0)
        return counted


def _at(changes: np.ndarray, times: np.ndarray) -> np.ndarray:
    places = np.searchsorted(changes[:, 0], times, "right") - 1
    return np.where(np.isnan(times) | (places < 0), np.nan, changes[np.maximum(places, 0), 1])


def _matches(matchers: str, labels: dict[str, str]) -> bool:
    for key, sign, quoted in _MATCHER.findall(matchers):
        value = re.sub(r"\\(.)", r"\1", quoted)
        own = labels.get(key, "")
        if not (own == value if sign == "=" else re.fullmatch(value, own)):
            return False
    return True


@dataclass
class Served:
    """A server that runs, and what it was asked."""

    address: str
    questions: list[dict[str, str]]
    headers: list[dict[str, str]]


Reply = Callable[[dict[str, str]], tuple[int, str, bytes]]


def replying(metrics: Metrics) -> Reply:
    """What Prometheus would reply."""

    def reply(asked: dict[str, str]) -> tuple[int, str, bytes]:
        start, end, step = (float(asked[key]) for key in ("start", "end", "step"))
        times = np.arange(start, end + 1e-6, step)
        if len(times) > MOST_POINTS:
            error = {
                "status": "error",
                "errorType": "bad_data",
                "error": "exceeded maximum resolution of 11,000 points per timeseries.",
            }
            return 400, "application/json", json.dumps(error).encode()
        data = {"resultType": "matrix", "result": metrics.answer(asked["query"], times)}
        body = json.dumps({"status": "success", "data": data}).encode()
        return 200, "application/json", body

    return reply


@contextmanager
def serving(reply: Reply, context: ssl.SSLContext | None = None) -> Iterator[Served]:
    """Run a server on this machine, with TLS if a context is given."""
    served = Served("", [], [])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
            served.questions.append({"path": parts.path, **asked})
            served.headers.append(dict(self.headers))
            status, kind, body = reply(asked)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if 300 <= status < 400:
                self.send_header("Location", body.decode())
            # Who asks may have left.
            with suppress(ConnectionError):
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    scheme = "http" if context is None else "https"
    served.address = f"{scheme}://127.0.0.1:{server.server_address[1]}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
