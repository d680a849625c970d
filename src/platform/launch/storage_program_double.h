// Stands in for tutti-storage in tests of launchers.
#pragma once

namespace tutti::launch {

// Puts files as tutti-storage does, into `store` beside it, and fetches them from there. That has
// `refuse` while it takes and gives nothing, with the error's kind, `refuse-file` while it does not
// take the file of that name, and `hold` while a put has sent its first file and goes no further.
inline constexpr char kStorageProgramDouble[] = R"(#!/usr/bin/python3
import hashlib, json, os, pathlib, shutil, sys, time
request = json.load(sys.stdin)
store = pathlib.Path(__file__).parent / "store"
def say(line):
    print(json.dumps(line), flush=True)
with open(store / "calls", "a") as calls:
    calls.write(request["credentials"].get("secret_access_key", "-") + "\n")
try:
    kind = (store / "refuse").read_text()  # a test may remove it at any time
except FileNotFoundError:
    kind = ""
if kind:
    say({"error": {"kind": kind, "message": "the store takes nothing"}})
    sys.exit(1)
place = store / "objects" / request["place"]["path"].lstrip("/")
if request["operation"] in ("browse", "digest", "fetch"):
    there = sorted(path for path in place.rglob("*") if path.is_file())
    if not there:
        say({"error": {"kind": "not_found", "message": "nothing is at this path", "source": "store"}})
        sys.exit(1)
    names = [str(path.relative_to(place)) for path in there]
    digest = hashlib.sha256(json.dumps([[name, path.read_text()] for name, path in zip(names, there)]).encode()).hexdigest()
    for name, path in zip(names, there):
        if request["operation"] == "browse":
            say({"object": {"path": name, "bytes": path.stat().st_size, "modified": 1700000000.0}})
        if request["operation"] == "fetch":
            to = pathlib.Path(request["folder"]) / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
            with open(pathlib.Path(request["folder"]) / ".tutti-objects", "a") as objects:
                objects.write(json.dumps({"path": name, "bytes": path.stat().st_size, "etag": "e",
                                          "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}) + "\n")
    say({"done": {"objects": len(there), "bytes": sum(path.stat().st_size for path in there),
                  **({} if request["operation"] == "browse" else {"digest": digest})}})
    sys.exit(0)
sent, refused = [], None
for name in request.get("files", []):
    if (store / "refuse-file").exists() and name == (store / "refuse-file").read_text():
        refused = {"error": {"kind": "credentials", "message": "it may not write this", "path": name}}
        continue
    to = store / "objects" / request["place"]["path"].lstrip("/") / name
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pathlib.Path(request["folder"]) / name, to)
    with open(store / "sent", "a") as log:
        log.write(name + "\n")
    sent.append({"object": {"path": name, "bytes": to.stat().st_size, "etag": "e"}})
    while (store / "hold").exists():
        time.sleep(0.01)
for line in sent:
    say(line)
if refused:
    say(refused)
    sys.exit(1)
say({"done": {"objects": len(sent), "bytes": 1}})
)";

}  // namespace tutti::launch
