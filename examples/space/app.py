"""The page of `kenmesh serve` as a Hugging Face Space."""

import os

from kenmesh_hf.serving import Limits, serve

# A Space has two cores and many visitors: shorter requests, so that the queue moves on.
LIMITS = Limits(articles=32, queue=256, client_queue=64)

if __name__ == "__main__":
    # Visitors come through the Space's proxy, which alone knows their addresses.
    serve(
        os.environ.get("KENMESH_MODEL"),
        host="0.0.0.0",
        port=int(os.environ.get("PORT", "7860")),
        limits=LIMITS,
        trusted_proxies="*",
    )
