"""One HTML fragment that shows a list of steps one at a time, with plain JavaScript.

It works in JupyterLab, in nbconvert's HTML and in a report, without a kernel and without network.
Without JavaScript, and in print, all steps are listed one below the other. The controls are made by
the script, so that where JupyterLab strips scripts from a notebook not yet trusted none are dead.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.present.stories.picture import STYLE
from advisor.rendering import Html, html, html_joined, markup

_STYLE = """<style>
.advisor-drawing.advisor-story {
  border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem;
}
.advisor-drawing.advisor-story .title { margin: 0 0 .4rem; font-size: 1rem; font-weight: 700; }
.advisor-drawing.advisor-story .advisor-steps {
  display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .3rem 0;
}
.advisor-drawing.advisor-story .advisor-steps label {
  display: flex; flex: 1 1 12rem; flex-direction: row; align-items: center; gap: .5rem;
  min-width: 0;
}
.advisor-drawing.advisor-story input[type=range] { flex: 1 1 6rem; min-width: 0; height: 1.6rem; }
.advisor-drawing.advisor-story button {
  font: inherit; color: inherit; background: transparent; border: 1px solid var(--soft);
  border-radius: .3rem; padding: .25rem .7rem; min-height: 2rem; cursor: pointer;
}
.advisor-drawing.advisor-story button[aria-disabled=true] {
  color: var(--soft); border-style: dashed;
}
.advisor-drawing.advisor-story .advisor-said { font-variant-numeric: tabular-nums; }
.advisor-drawing.advisor-story.advisor-story ol { list-style: none; margin: 0; padding: 0; }
.advisor-drawing.advisor-story.advisor-story li {
  margin: .4rem 0 1.2rem; padding: 0; min-width: 0;
}
.advisor-drawing.advisor-live.advisor-live li { margin: .4rem 0; display: none; }
.advisor-drawing.advisor-live li.advisor-shown.advisor-shown { display: block; }
.advisor-drawing.advisor-story pre {
  margin: .2rem 0; padding: .3rem .5rem; white-space: pre-wrap; overflow-wrap: anywhere;
  word-break: normal;
  font-size: .85rem; line-height: 1.35; color: inherit; background: transparent;
  border-left: .2rem solid var(--line);
}
.advisor-drawing.advisor-story pre b { font-weight: 700; }
.advisor-drawing.advisor-story p { margin: .2rem 0; font-size: .95rem; }
.advisor-drawing.advisor-story .lost {
  border-left: .3rem solid #d62f2f; padding-left: .5rem; font-weight: 700;
}
.advisor-drawing.advisor-story .key { color: var(--soft); font-size: .85rem; }
@media print {
  .advisor-drawing.advisor-live .advisor-steps { display: none; }
  .advisor-drawing.advisor-live.advisor-live li {
    display: block; margin-bottom: 1rem; break-inside: avoid;
  }
}
</style>"""

# JupyterLab takes a key for a shortcut unless the focused element itself is marked: its rules match
# that element before they look at what it stands in.
_MARK = 'data-lm-suppress-shortcuts="true"'
_CONTROLS = (
    f'<div class="advisor-steps"><button type="button" {_MARK}>Back</button>'
    f'<label><span>Step</span><input type="range" min="0" value="0" step="1" {_MARK}></label>'
    f'<button type="button" {_MARK}>Next</button>'
    '<span class="advisor-said" aria-live="polite"></span></div>'
)
_SCRIPT = """<script>
(function () {
document.querySelectorAll(".advisor-story:not(.advisor-live)").forEach((story) => {
  const steps = story.querySelectorAll("li");
  if (steps.length < 2) { return; }
  story.querySelector(".title").insertAdjacentHTML("afterend", `CONTROLS`);
  const range = story.querySelector("input"), said = story.querySelector(".advisor-said");
  const [back, next] = story.querySelectorAll("button");
  range.max = steps.length - 1;
  const show = (number) => {
    range.value = number;
    steps.forEach((step, place) => step.classList.toggle("advisor-shown", place === number));
    said.textContent = "Step " + (number + 1) + " of " + steps.length;
    range.setAttribute("aria-valuetext", said.textContent + ": " + steps[number].dataset.title);
    back.setAttribute("aria-disabled", number === 0);
    next.setAttribute("aria-disabled", number === steps.length - 1);
  };
  range.addEventListener("input", () => show(Number(range.value)));
  back.addEventListener("click", () => show(Math.max(0, Number(range.value) - 1)));
  next.addEventListener("click", () => show(Math.min(steps.length - 1, Number(range.value) + 1)));
  story.classList.add("advisor-live");
  show(Number(story.dataset.first));
});
}());
</script>""".replace("CONTROLS", _CONTROLS)


def fragment(title: str, steps: Sequence[tuple[str, Html]], key: str = "", first: int = 0) -> Html:
    """Return the steps, each a short title and its HTML, with a heading and a key of the signs."""
    items = html_joined(
        markup('<li data-title="{}">{}</li>', html(short), step) for short, step in steps
    )
    signs = markup("<p class=key>{}</p>", html(key)) if key else markup("")
    return markup(
        '{}{}<section class="advisor-drawing advisor-story" data-first="{}" aria-label="{}">'
        '<p class="title">{}</p><ol>{}</ol>{}</section>{}',
        *(STYLE, markup(_STYLE), first),
        *(html(title), html(title), items, signs, markup(_SCRIPT)),
    )
