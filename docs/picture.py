"""Draw the picture of the README, `docs/picture.svg`: `make picture`."""

from pathlib import Path

import advisor
from advisor.present.verdict_page import style
from advisor.present.verdict_pictures import WIDE, arrows

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "data" / "clusters" / "three-az-six-brokers"
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'


def picture() -> str:
    """Return the verdict on the sample cluster as SVG: an arrow for each topic."""
    cluster = advisor.load_cluster(f"{SAMPLE}.txt", racks=f"{SAMPLE}.racks.toml")
    drawn = arrows(advisor.audit(cluster, "three_az_cloud").quick_verdict, WIDE).text
    size = f'viewBox="0 0 {WIDE.width:g} {WIDE.height:g}"'
    # The style of a page names drawings inside an element of this class.
    return f'<svg {NAMESPACE} class="advisor-verdict" {size}>{style().text}{drawn}</svg>\n'


if __name__ == "__main__":
    (ROOT / "docs" / "picture.svg").write_text(picture(), encoding="utf-8")
