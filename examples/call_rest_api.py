"""Tag articles over the REST interface of `kenmesh serve`, with nothing but Python's own library.

Usage: python call_rest_api.py [http://127.0.0.1:8000]
"""

import json
import sys
import urllib.error
import urllib.request

ARTICLES = [
    {"pmid": "1", "title": "Heparin after hip surgery", "abstract": "Thrombosis was rare in older patients."},
    {
        "pmid": "2",
        "title": "Blood pressure in mice without a kidney gene",
        "journal": "Journal of hypertension",
    },
]


def post(url: str, body: dict) -> dict:
    """Send JSON, get JSON; a refusal ends the program with the server's sentence."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        sys.exit(json.load(error)["detail"])


def main(server: str = "http://127.0.0.1:8000") -> None:
    """Print the five best tags of each article and the words they rest on."""
    answer = post(f"{server.rstrip('/')}/api/tag-many", {"articles": ARTICLES, "top_k": 5, "evidence": True})
    for article, result in zip(ARTICLES, answer["results"], strict=True):
        print(article["title"])
        for tag in result["tags"]:
            words = ", ".join(word["word"] for word in tag["evidence"]["words"][:3])
            print(f"  {tag['score']:.2f}  {tag['ui']}  {tag['name']}  ({words})")


if __name__ == "__main__":
    main(*sys.argv[1:])
