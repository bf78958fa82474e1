"""Texts that terminals, shells, parsers and pages obey, where they are not rendered."""

# A second line that says FORGED, or a file HIT, means that the target obeyed.
HOSTILE = {
    "line": "c\ntouch HIT #\nFORGED: all is well",
    "carriage return": "c\rFORGED: all is well\r\ntouch HIT",
    "separators": "c\u2028FORGED\u2029FORGED\x85FORGED\x0bFORGED\x0cFORGED\x1cFORGED",
    "clear": "\x1b[2J\x1b[1;1HFORGED",
    "title": "\x1b]0;FORGED\x07\x1b]8;;http://x\x1b\\x",
    "c1": "\x9b2J\x90x\x9c",
    "bidi": "a\u202eb\u202dc\u2066d\u2069",
    "invisible": "a\u200bb\ufeffc\u00add",
    "nul": "a\0b",
    "quotes": "'; touch HIT; \"; touch HIT; '",
    "backticks": "`touch HIT`",
    "substitution": "$(touch HIT) ${IFS} }; touch HIT; :",
    "pipe": "x | touch HIT & touch HIT > HIT",
    "comment": "# touch HIT",
    "percent": "%s%n%d {0} {x} {{y}} {% z %}",
    "backslash": "a\\nFORGED\\",
    "element": "</script></pre><script>HIT()</script><img src=x onerror=HIT()>",
    "html comment": "--><svg onload='HIT()'>",
    "attribute": '" onmouseover="HIT()" \'',
    "yaml": "!!python/object:x &a *a : - [x, {y: z}] # |",
    "option": "--delete",
    "link": "[here](http://x) ![x](http://y)",
    "formula": "$\\frac{$ a $b$",
    "long": "x" * 10_000,
}
