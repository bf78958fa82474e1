"""Drawings of how replication works: logs, placements, bars, paths, and stories in steps.

In: the result of `advisor.play`, assignments, numbers. Out: SVG with its description in words, and
HTML fragments that work without a kernel and without network. Open `story.py` first.
"""

from advisor.present.stories.drawings import draw_bars, draw_paths, draw_rows
from advisor.present.stories.placement_drawing import draw_assignment
from advisor.present.stories.story import story

__all__ = ["draw_assignment", "draw_bars", "draw_paths", "draw_rows", "story"]
