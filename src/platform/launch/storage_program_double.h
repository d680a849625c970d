// Stands in for tutti-storage in tests of launchers.
#pragma once

namespace tutti::launch {

// Puts files as tutti-storage does, into `store` beside it. That has `refuse` while it takes
// nothing, with the error's kind, `refuse-file` while it does not take the file of that name, and
// `hold` while a put has sent its first file and goes no further.
inline constexpr char kStorageProgramDouble[] = R"(#!/usr/bin/python3
import json, os, pathlib, shutil, sys, time
request = json.load(sys.stdin)
store = pathlib.Path(__file__).parent / "store"
def say(line):
    print(json.dumps(line), flush=True)
with open(store / "calls", "a") as calls:
    calls.write(request["credentials"].get("secret_access_key", "-") + "\n")
if (store / "refuse").exists():
    say({"error": {"kind": (store / "refuse").read_text(), "message": "the store takes nothing"}})
    sys.exit(1)
sent, refused = [], None
for name in request["files"]:
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
