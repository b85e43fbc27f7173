"""Where tests find the project's own files."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
EXAMPLES = ROOT / "examples"
