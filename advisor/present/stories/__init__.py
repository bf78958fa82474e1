"""Drawings of how replication works: logs, placements, bars, paths, and stories in steps.

In: the result of `advisor.play`, assignments, numbers. Out: SVG with its description in words, and
HTML fragments that work without a kernel and without network. Open `story.py` first.
"""
