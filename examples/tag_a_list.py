"""Tags a list of articles: `python tag_a_list.py [model]`."""

import sys

import kenmesh_hf

ARTICLES = [
    "Zinc supplements shortened acute diarrhoea in children under five years in rural Bangladesh.",
    {"title": "Amlodipine in the evening", "abstract": "Blood pressure fell.", "journal": "Hypertension"},
]
tagger = kenmesh_hf.load(*sys.argv[1:2])
for number, tags in enumerate(tagger(ARTICLES, top_k=5), start=1):
    print(number, "; ".join(f"{tag['name']} {tag['score']:.2f}" for tag in tags))
