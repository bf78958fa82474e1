"""Kafka's binary formats: segment files, KRaft metadata records, requests.

In: files of a broker or a host and port. Out: decoded batches, records and responses.
`record_batches` reads segments; `log_directory` and `metadata_records` build on it; `requests`
sends one request over one connection.
"""
