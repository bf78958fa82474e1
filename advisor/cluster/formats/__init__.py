"""File formats that describe a cluster: each `parse_*` turns text into topics or a `Cluster`.

`describe` and `describe_format` read and write `kafka-topics.sh --describe`, `json_format` reads
`Cluster.to_dict` and reassignment plans, `strimzi` Kubernetes resources, `toml_format` this
project's own TOML. Errors name file and line.
"""
