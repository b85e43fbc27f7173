"""A test double of the Hugging Face Hub: the few requests that push and pull make, answered from memory.

It knows repositories of models and datasets, branches, commits, large files, private repositories and tokens,
and it can misbehave on request. It is no Hub: whatever the tests do not need is missing.
"""

import base64
import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

TOKEN = "hf_writer"
LARGE_SUFFIXES = (".safetensors", ".faiss", ".gz", ".npy", ".npz", ".parquet")
LICENSES = ("apache-2.0", "mit", "other")

REPOSITORY = r"(?P<name>[^/]+/[^/]+)"
API = rf"/api/(?P<kind>model|dataset)s/{REPOSITORY}"
FILES = rf"/(?P<prefix>datasets/)?{REPOSITORY}"
ROUTES = {
    "POST /api/repos/create": "create_repository",
    "POST /api/validate-yaml": "validate_card",
    f"POST {API}/branch/(?P<revision>[^/]+)": "create_branch",
    f"POST {API}/preupload/(?P<revision>[^/]+)": "choose_upload_modes",
    f"POST {API}/commit/(?P<revision>[^/]+)": "commit",
    f"POST {API}/paths-info/(?P<revision>[^/]+)": "describe_paths",
    f"POST {FILES}\\.git/info/lfs/objects/batch": "start_large_uploads",
    "PUT /large/(?P<oid>[0-9a-f]{64})": "receive_large_file",
    "POST /large/(?P<oid>[0-9a-f]{64})/verify": "verify_large_file",
    f"GET {API}": "describe_repository",
    f"GET {API}/revision/(?P<revision>[^/]+)": "describe_repository",
    f"GET {API}/tree/(?P<revision>[^/]+)(?:/(?P<path>.*))?": "list_tree",
    f"(?:GET|HEAD) {FILES}/resolve/(?P<revision>[^/]+)/(?P<path>.+)": "send_file",
}


@dataclass
class StoredFile:
    """Bytes of a file as one commit holds it."""

    content: bytes
    large: bool = False

    @property
    def oid(self) -> str:
        """Git's own name of the content."""
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def describe(self, path: str) -> dict:
        described = {"type": "file", "path": path, "oid": self.oid, "size": len(self.content)}
        if self.large:
            described["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": 134}
        return described


@dataclass
class Repository:
    """Commits by their SHA, and branches that point to them."""

    private: bool = False
    commits: dict[str, dict[str, StoredFile]] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    branches: dict[str, str] = field(default_factory=dict)

    def add(self, branch: str, files: dict[str, StoredFile], message: str) -> str:
        sha = hashlib.sha1(f"{len(self.commits)} {message}".encode()).hexdigest()
        self.commits[sha] = files
        self.messages.append(message)
        self.branches[branch] = sha
        return sha

    def find(self, revision: str) -> str | None:
        return self.branches.get(revision, revision if revision in self.commits else None)


class HubError(Exception):
    """An answer other than success."""

    def __init__(self, status: int, code: str | None = None, message: str = ""):
        self.status, self.code, self.message = status, code, message


class HubServer(ThreadingHTTPServer):
    """Serves until the `with` block ends.

    Attributes:
        requests: Every request so far, as `"METHOD /path"`.
        drop_puts: How many uploads of large files to cut in the middle, from now on.
        hold_after: Number of uploads to let through; the next ones stop in the middle, with `holding` set and
            the connection open.
        hidden: Files that are listed but answer 404.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), HubHandler)
        self.repositories: dict[tuple[str, str], Repository] = {}
        self.large_files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.lock = threading.Lock()
        self.drop_puts = 0
        self.hold_after: int | None = None
        self.let_through = 0
        self.holding = threading.Event()
        self.hidden: set[str] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *error):
        self.stop()

    def stop(self):
        self.shutdown()
        self.server_close()

    def files(self, name: str, revision: str = "main", kind: str = "model") -> dict[str, bytes]:
        """What a repository holds at a revision."""
        repository = self.repositories[kind, name]
        return {path: file.content for path, file in repository.commits[repository.find(revision)].items()}

    def handle_error(self, request, client_address):
        """A client that went away is what some tests are about."""


class HubHandler(BaseHTTPRequestHandler):
    """Finds the answer to a request in `ROUTES`."""

    protocol_version = "HTTP/1.1"
    server: HubServer

    def log_message(self, *args):
        """Tests read `HubServer.requests`."""

    def answer(self):
        parts = urlsplit(self.path)
        self.query = parse_qs(parts.query)
        request = f"{self.command} {parts.path}"
        self.server.requests.append(request)
        self.body = b"" if self.command == "PUT" else self.read_body()
        try:
            for pattern, method in ROUTES.items():
                if found := re.fullmatch(pattern, request):
                    groups = {name: unquote(text) for name, text in found.groupdict().items() if text}
                    return getattr(self, method)(**groups)
            raise HubError(404, message=f"no such route: {request}")
        except HubError as error:
            headers = {"X-Error-Code": error.code} if error.code else {}
            self.send(json.dumps({"error": error.message}).encode(), error.status, headers)

    do_GET = do_HEAD = do_POST = do_PUT = answer

    # Reading and writing HTTP

    def read_chunks(self):
        length = self.headers.get("Content-Length")
        if length is not None:
            left = int(length)
            while left and (piece := self.rfile.read(min(left, 1 << 16))):
                left -= len(piece)
                yield piece
        elif self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline() or b"0", 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()

    def read_body(self) -> bytes:
        return b"".join(self.read_chunks())

    def send(self, content: bytes, status: int = 200, headers: dict[str, str] | None = None):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def send_json(self, value, status: int = 200):
        self.send(json.dumps(value).encode(), status, {"Content-Type": "application/json"})

    # Finding things

    @property
    def has_token(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def need_token(self):
        if not self.has_token:
            raise HubError(401, message="Invalid username or password.")

    def repository(self, kind: str, name: str) -> Repository:
        repository = self.server.repositories.get((kind, name))
        if repository is None or (repository.private and not self.has_token):
            raise HubError(404 if self.has_token else 401, "RepoNotFound", "Repository not found")
        return repository

    def commit_of(self, kind: str, name: str, revision: str) -> tuple[str, dict[str, StoredFile]]:
        repository = self.repository(kind, name)
        sha = repository.find(revision)
        if sha is None:
            raise HubError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return sha, repository.commits[sha]

    # Push

    def create_repository(self):
        self.need_token()
        asked = json.loads(self.body)
        kind, name = asked.get("type", "model"), f"{asked['organization']}/{asked['name']}"
        if (kind, name) in self.server.repositories:
            return self.send_json({"error": "exists", "url": f"{self.server.url}/{name}"}, 409)
        private = asked.get("private", False) or asked.get("visibility") == "private"
        repository = self.server.repositories[kind, name] = Repository(private)
        repository.add("main", {".gitattributes": StoredFile(b"")}, "initial commit")
        prefix = "datasets/" if kind == "dataset" else ""
        self.send_json({"url": f"{self.server.url}/{prefix}{name}", "name": name})

    def validate_card(self):
        content = json.loads(self.body)["content"]
        block = re.match(r"---\n(.*?)\n---\n", content, re.DOTALL)
        metadata = yaml.safe_load(block[1]) if block else {}
        errors = []
        if metadata.get("license", "other") not in LICENSES:
            errors.append({"message": f'"license" must be one of {LICENSES}'})
        for entry in metadata.get("model-index", []):
            for result in entry["results"]:
                if not (result["task"]["type"] and result["dataset"]["type"] and result["metrics"]):
                    errors.append({"message": '"model-index" is incomplete'})
        self.send_json({"errors": errors, "warnings": []}, 400 if errors else 200)

    def create_branch(self, kind: str, name: str, revision: str):
        self.need_token()
        repository = self.repository(kind, name)
        if revision in repository.branches:
            raise HubError(409, message="Reference already exists")
        repository.branches[revision] = repository.branches["main"]
        self.send_json({})

    def choose_upload_modes(self, kind: str, name: str, revision: str):
        self.need_token()
        _, stored = self.commit_of(kind, name, revision)
        files = []
        for asked in json.loads(self.body)["files"]:
            path = asked["path"]
            mode = "lfs" if path.endswith(LARGE_SUFFIXES) else "regular"
            known = stored.get(path)
            oid = None if known is None else known.sha256 if known.large else known.oid
            files.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        self.send_json({"files": files})

    def start_large_uploads(self, name: str, prefix: str = ""):
        self.need_token()
        objects = []
        for asked in json.loads(self.body)["objects"]:
            href = f"{self.server.url}/large/{asked['oid']}"
            if asked["oid"] not in self.server.large_files:
                asked["actions"] = {"upload": {"href": href}, "verify": {"href": f"{href}/verify"}}
            objects.append(asked)
        self.send_json({"transfer": "basic", "objects": objects})

    def receive_large_file(self, oid: str):
        chunks = self.read_chunks()
        first = next(chunks, b"")
        if self.is_cut():
            self.close_connection = True
            return
        content = first + b"".join(chunks)
        if hashlib.sha256(content).hexdigest() != oid:
            raise HubError(400, message="content does not match its SHA-256")
        self.server.large_files[oid] = content
        self.send(b"")

    def is_cut(self) -> bool:
        with self.server.lock:
            drop = self.server.drop_puts > 0
            self.server.drop_puts -= drop
            hold = self.server.hold_after == 0
            if self.server.hold_after:
                self.server.hold_after -= 1
                self.server.let_through += 1
        if hold:
            # Uploads run side by side: those that were let through arrive first.
            while len(self.server.large_files) < self.server.let_through:
                time.sleep(0.01)
            self.server.holding.set()
            self.rfile.read()  # returns when the client is gone
        return drop or hold

    def verify_large_file(self, oid: str):
        known = len(self.server.large_files.get(oid, b"")) == json.loads(self.body)["size"]
        self.send_json({}, 200 if known else 404)

    def commit(self, kind: str, name: str, revision: str):
        self.need_token()
        repository = self.repository(kind, name)
        if revision not in repository.branches:
            raise HubError(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        files = dict(repository.commits[repository.branches[revision]])
        message = ""
        for line in self.body.splitlines():
            operation = json.loads(line)
            value = operation["value"]
            match operation["key"]:
                case "header":
                    message = value["summary"]
                case "file":
                    files[value["path"]] = StoredFile(base64.b64decode(value["content"]))
                case "lfsFile":
                    files[value["path"]] = StoredFile(self.server.large_files[value["oid"]], large=True)
                case "deletedFile":
                    del files[value["path"]]
        sha = repository.add(revision, files, message)
        self.send_json(
            {"success": True, "commitOid": sha, "commitUrl": f"{self.server.url}/{name}/commit/{sha}"}
        )

    # Pull

    def describe_repository(self, kind: str, name: str, revision: str = "main"):
        sha, files = self.commit_of(kind, name, revision)
        card = files.get("README.md", StoredFile(b"")).content.decode()
        block = re.match(r"---\n(.*?)\n---\n", card, re.DOTALL)
        metadata = yaml.safe_load(block[1]) if block else {}
        described = {"id": name, "sha": sha, "private": self.repository(kind, name).private, "tags": []}
        described["siblings"] = [{"rfilename": path} for path in files]
        described |= {key: metadata[key] for key in ("pipeline_tag", "library_name") if key in metadata}
        self.send_json(described)

    def list_tree(self, kind: str, name: str, revision: str, path: str = ""):
        _, files = self.commit_of(kind, name, revision)
        inside = {name: file for name, file in files.items() if not path or name.startswith(f"{path}/")}
        if path and not inside:
            raise HubError(404, "EntryNotFound", f"{path} does not exist")
        entries = [file.describe(name) for name, file in sorted(inside.items())]
        folders = {str(parent) for name in inside for parent in PurePosixPath(name).parents} - {"."}
        entries += [{"type": "directory", "path": name, "oid": "0" * 40} for name in sorted(folders)]
        if self.query.get("recursive", ["false"])[0].lower() != "true":
            entries = [
                entry for entry in entries if PurePosixPath(entry["path"]).parent == PurePosixPath(path)
            ]
        self.send_json(entries)

    def describe_paths(self, kind: str, name: str, revision: str):
        _, files = self.commit_of(kind, name, revision)
        body = self.body.decode()
        asked = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        entries = []
        for path in asked:
            if path in files:
                entries.append(files[path].describe(path))
            elif any(name.startswith(f"{path}/") for name in files):
                entries.append({"type": "directory", "path": path, "oid": "0" * 40})
        self.send_json(entries)

    def send_file(self, name: str, revision: str, path: str, prefix: str = ""):
        sha, files = self.commit_of("dataset" if prefix else "model", name, revision)
        if path not in files or path in self.server.hidden:
            headers = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": sha}
            return self.send(b"", 404, headers)
        file = files[path]
        headers = {"X-Repo-Commit": sha, "ETag": f'"{file.sha256 if file.large else file.oid}"'}
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(file.content) - 1}/{len(file.content)}"
        self.send(file.content[start:], 206 if start else 200, headers)
