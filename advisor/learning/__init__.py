"""What a cluster has seen: counts in, a card of its own and its verdict out.

In: counts that a person types, or incidents; and a card as what was believed before. Out: a
`Learned`, whose card any other question takes. Open `learned.py`, what users get; then `counts.py`,
what is read, `evidence.py`, which count belongs to which number of a card, and `posterior.py`, the
arithmetic.
"""

from advisor.learning.learned import Learned, learn

__all__ = ["Learned", "learn"]
