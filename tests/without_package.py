"""A program that tags with the code of a saved model, for a process where kenmesh_hf must not be found."""

CODE = """
import json, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "kenmesh_hf":
            raise ModuleNotFoundError(f"No module named {name!r}")

sys.meta_path.insert(0, NotInstalled())
try:
    import kenmesh_hf
except ModuleNotFoundError:
    pass
else:
    raise AssertionError("the package is there")

import torch
from transformers import AutoModel, AutoProcessor, AutoTokenizer, pipeline
folder, rows = sys.argv[1], json.loads(sys.argv[2])
tagger = pipeline("mesh-indexing", model=folder, trust_remote_code=True)
model = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
processor = AutoProcessor.from_pretrained(folder, trust_remote_code=True)
fields = {name: [row[name] for row in rows] for name in ("title", "abstract", "journal")}
with torch.no_grad():
    logits = model(**processor(**fields)).logits
modules = [type(part).__module__ for part in (tagger, tagger.processor, model, processor)]
words = AutoTokenizer.from_pretrained(folder, trust_remote_code=True).tokenize(rows[0]["title"])
print(json.dumps([tagger(rows, top_k=6, evidence=True), logits.tolist(), modules, words]))
"""
