"""One rank of ranks.Ranks: rank.py MODULE, then a JSON line [function, arguments] a call."""
import faulthandler
import importlib
import json
import os
import pathlib
import sys
import traceback

PATIENCE = float(os.environ.get("TUTTI_TEST_PATIENCE", 3))
DEADLINE = 70 * PATIENCE  # seconds for one call: then the stacks of all threads are shown, and it ends

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what a test prints is no answer
module = importlib.import_module(sys.argv[1])
for line in sys.stdin:
    function, arguments = json.loads(line)
    faulthandler.dump_traceback_later(DEADLINE, exit=True)
    try:
        answer = {"result": getattr(module, function)(*arguments)}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    faulthandler.cancel_dump_traceback_later()
    print(json.dumps(answer), file=answers, flush=True)
