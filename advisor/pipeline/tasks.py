"""Independent tasks of any kind on Spark: a function and its arguments go out, results come back.

A task reads and writes files of its own: all workers have to see the same folders.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_SCHEMA = "number long, result binary"


def run_on_spark(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    """Run a function on each of its arguments, a Spark task each; results in their order."""
    from advisor.pipeline.fleet import cancelled_if_interrupted, freeze_imports, in_one_sentence
    from advisor.pipeline.session import spark_session

    if not tasks:
        return []
    session = spark_session()
    context = session.sparkContext
    shared = context.broadcast([pickle.dumps((function, task)) for task in tasks])

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow

        for batch in batches:
            for number in batch.column(0).to_pylist():
                call, argument = pickle.loads(shared.value[number])
                result = pickle.dumps(call(argument))
                yield arrow.RecordBatch.from_pylist([{"number": number, "result": result}])
        freeze_imports()

    frame = session.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, _SCHEMA)
    with in_one_sentence(session, None), cancelled_if_interrupted(context):
        rows = {row.number: bytes(row.result) for row in frame.collect()}
        shared.destroy()
    return [pickle.loads(rows[number]) for number in range(len(tasks))]
