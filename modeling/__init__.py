"""The files a Hub user runs: they need torch, transformers and numpy, and import only their siblings."""
