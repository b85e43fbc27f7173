"""Tags the example abstracts of the package, offline, and says why: `python demo.py [model]`."""

import json
import sys
from pathlib import Path

import kenmesh_hf
from kenmesh_hf.reading import Article
from kenmesh_hf.tagging import tag_lines

EXAMPLES = Path(kenmesh_hf.__file__).parent / "serving" / "page" / "examples.json"

tagger = kenmesh_hf.load(*sys.argv[1:2])
for example in json.loads(EXAMPLES.read_text(encoding="utf-8")):
    article = {field: example.get(field, "") for field in ("title", "abstract", "journal")}
    tags = tagger(article, evidence=True)
    print("\n".join(tag_lines(Article(**article), tags)), end="\n\n")
print("Scores are probabilities; ↳ says why. More: kenmesh tag --help, kenmesh serve.")
