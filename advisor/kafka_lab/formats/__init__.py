"""Kafka's binary formats on disk: segment files and KRaft metadata records.

In: files of a broker. Out: decoded batches and records. `log_directory` reads and truncates logs,
`metadata_records` decodes those of the controller.
"""
