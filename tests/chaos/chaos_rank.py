"""A rank of a job under chaos: prints numbered lines, and keeps outside of tutti what it did: chaos_rank.py MARKS SECONDS LINES CODE

MARKS/JOB.RANK has a line for each thing that was done, after it was done: "ATTEMPT TIME begin PID NODE", "ATTEMPT TIME wrote I", "ATTEMPT
TIME end", and "ATTEMPT TIME twice" where another process is this rank at the same time. TIME is the steady clock's."""
import fcntl
import os
import sys
import time

marks, seconds, lines, code = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
job, attempt, node = (os.environ[name] for name in ("TUTTI_JOB_ID", "TUTTI_RESTART_COUNT", "TUTTI_NODE_NAME"))
rank = os.environ.get("RANK", "0")
file = os.open(f"{marks}/{job}.{rank}", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o666)


def mark(words):
    os.write(file, f"{attempt} {time.monotonic():.3f} {words}\n".encode())


try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    mark("twice")
mark(f"begin {os.getpid()} {node}")
for i in range(lines):
    for stream in (1, 2):
        os.write(stream, f"{attempt} line {i}.\n".encode())
    mark(f"wrote {i}")
    time.sleep(seconds / lines)
if code:
    sys.stderr.write(f"RuntimeError: as job {job} was to\n")
    sys.stderr.flush()
elif rank == "0":
    with open(os.environ["TUTTI_METRICS_FILE"], "a") as metrics:  # what a sweep looks for
        metrics.write('{"event": "metric", "name": "loss", "value": 0.5}\n')
mark("end")
sys.exit(code)
