"""Draw the picture of the README, `docs/picture.svg`: `make picture`."""

import io
import re
from pathlib import Path

import matplotlib as mpl

import advisor
from advisor.present.figures import style

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "data" / "clusters" / "three-az-six-brokers"


def picture() -> str:
    """Return the audit of the sample cluster as SVG: every topic against the goals."""
    cluster = advisor.load_cluster(f"{SAMPLE}.txt", racks=f"{SAMPLE}.racks.toml")
    axes = advisor.audit(cluster, "three_az_cloud").plot()
    buffer = io.StringIO()
    with style.look(), mpl.rc_context({"svg.hashsalt": "readme"}):
        axes.figure.savefig(
            buffer, format="svg", facecolor="white", metadata={"Date": None, "Creator": None}
        )
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", buffer.getvalue(), flags=re.DOTALL)
    text = re.sub(r"<\?xml.*?<svg", "<svg", text, flags=re.DOTALL)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "picture.svg").write_text(picture(), encoding="utf-8")
