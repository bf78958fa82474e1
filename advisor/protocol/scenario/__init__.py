"""Scenario files: cluster commands, one a line, with their expected output.

In: the text of a scenario, or the path of its file. Out: a `Play`, with the transcript and the
lines whose output differs from what the scenario expects. ``language`` parses the text,
``options`` validates values and names, ``commands`` applies each command to a simulated cluster,
and ``rendering`` formats the output. Open ``player`` first.
"""
