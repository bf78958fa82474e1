"""Words and numbers that no user should see on a screen."""

import re

# Whole words and phrases that nobody runs a cluster with, whatever their case.
BANNED = [
    "alike",
    "all is well",
    "asked for",
    "at hand",
    "befalls?",
    "befell",
    "brinks?",
    "bugs?, which no card knows",
    "come first",
    "drawing lots",
    "falls? short",
    "for ever",
    "for want of",
    "get lost",
    "getting there",
    "given up",
    "gives? up",
    "goes before",
    "hang together",
    "happenings?",
    "hardly ever",
    "held against",
    "in silence",
    "laggards?",
    "likeliest",
    "lives? through",
    "losing power",
    "meetings?",
    "mended",
    "mends?",
    "more seldom",
    "mostly from",
    "no one",
    "nobody",
    "nowhere",
    "of it from",
    "perils?",
    "seldom",
    "somebody",
    "spells?",
    "stands? and falls?",
    "suffer(s|ed|ing)?",
    "tells? apart",
    "the way back",
    "those who",
    "told apart",
    "well again",
    "whoever",
    "whomever",
    "worked out",
]
PATTERN = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)

# Once in more years than anyone could observe. Goals are the user's own numbers.
UNBELIEVABLE = re.compile(
    r"[\d.]+ (million|billion|trillion) years"
    r"|once in (?:[\d,.]+ to )?(\d{2,},\d{3}|[3-9],\d{3}) years"
)


def wrong_words(text: str) -> list[str]:
    """List the banned words and unbelievable numbers of a text, with what surrounds them."""
    flat = " ".join(text.split())
    found = [*PATTERN.finditer(flat), *UNBELIEVABLE.finditer(flat)]
    return [flat[max(match.start() - 40, 0) : match.end() + 30] for match in found]
