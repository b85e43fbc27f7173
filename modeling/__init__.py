"""The files a Hub user runs: they need what transformers needs, and import only their siblings."""
