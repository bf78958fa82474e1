"""Reads what people have of a cluster: describe output, TOML, JSON, Strimzi YAML."""
