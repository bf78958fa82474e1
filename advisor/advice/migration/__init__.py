"""The migration: shell commands and files that apply a recommended setting, and their rollback.

In: a described cluster, a `Config`, a load. Out: a `MigrationPlan` of shell lines for the Kafka
version, with reassignment JSON, properties and Strimzi resources. Open `plan.py` first.
"""
