"""The examples that talk to the web server or are one: run as their readers would run them."""

import os
import re
import runpy
import subprocess
import sys
import threading

import pytest
import uvicorn
import yaml
from patience import wait_until
from places import EXAMPLES
from web_double import TaggerDouble

from kenmesh_hf import serving


@pytest.fixture
def address():
    server = uvicorn.Server(uvicorn.Config(serving.create_app(TaggerDouble()), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), "the server")
    assert server.started
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def call_rest_api(*arguments):
    command = [sys.executable, str(EXAMPLES / "call_rest_api.py"), *arguments]
    # A proxy of the machine must not come between the example and the server beside it.
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NO_PROXY": "127.0.0.1"})


def test_rest_example_prints_tags(address):
    done = call_rest_api(address)
    assert done.returncode == 0, done.stderr
    assert re.search(
        r"Heparin after hip surgery\n  0\.84  D013927  Thrombosis  \(Thrombosis\)\n", done.stdout
    )
    assert re.search(r"\n  0\.76  D051379  Mice  \(mice\)\n", done.stdout)


def test_the_space_serves_the_model_it_is_told_to(monkeypatch):
    calls = []
    monkeypatch.setattr(serving, "serve", lambda *arguments, **options: calls.append((arguments, options)))
    monkeypatch.setenv("KENMESH_MODEL", "somebody/kenmesh")
    runpy.run_path(str(EXAMPLES / "space" / "app.py"), run_name="__main__")
    [(arguments, options)] = calls
    assert arguments == ("somebody/kenmesh",) and options["host"] == "0.0.0.0"
    header = yaml.safe_load((EXAMPLES / "space" / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert header["sdk"] == "docker" and header["app_port"] == options["port"]
    assert len(header["short_description"]) <= 60
