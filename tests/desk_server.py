"""A desk with a quick stand-in for the model, in a process of its own: python desk_server.py DESK PORT."""

import sys

import uvicorn
from web_double import TaggerDouble

from kenmesh_hf.serving import DeskSettings, create_app

if __name__ == "__main__":
    _, path, port = sys.argv
    app = create_app(TaggerDouble(), desk=DeskSettings(path, "double"))
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
