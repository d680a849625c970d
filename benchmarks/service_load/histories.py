#!/usr/bin/env python3
"""What a service takes that has 1,000, 10,000, 100,000 ended jobs behind it, and SQLite alone on the same file.

One job runs through a real service; its rows and its folder are copied until there are as many. Then, by size:

start         from the start of the program to its first answer: after an orderly end, and after SIGKILL, which has the store checked
list          GET /v1/job-summaries?state=Completed&limit=100
show          GET of the newest job
tick          the service's processor while one job runs, a second
beside it     the same three questions by SQLite alone, on the same file

Then, by TRIALS, a sweep of such jobs that have reported REPORTS times and whose progress was told twice for each:

first show    GET of it after the start of a service
show          GET of it from then on; and pages of 100: the best, and those in the middle
delete        DELETE of it with the calls of others beside it: a list, two who submit at full speed, and cancels of what they have submitted, while one job runs
beside it     what a show reads, and the delete of the rows in one commit, by SQLite alone; the folders are removed by the service only
upgrade       until what all trials have reported was read, once, where no service has noted it

    benchmarks/service_load/histories.py [1000 10000 100000] [--trials 100 1000 10000] [--reports 1000] [--build build] [--json FILE]
"""
import argparse
import json
import pathlib
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
sys.path.insert(0, str(ROOT / "benchmarks" / "service_load"))

from clients import quantiles  # noqa: E402
from running_service import Client, RunningService, kept_results, submission  # noqa: E402

TICK_SECONDS = 10
SWEEP = """type: sweep
compute: local
trial:
  command: "echo '{\\"loss\\": ${{search_space.x}}}' >> $TUTTI_METRICS_FILE"
  environment: host
sampling_algorithm: grid
search_space: {x: {type: choice, values: [1]}}
objective: {goal: minimize, primary_metric: loss}
"""
COPIES = """
    CREATE TEMP TABLE copies AS WITH RECURSIVE c (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM c WHERE n < :count) SELECT n FROM c;
    INSERT INTO jobs (id, created_us, spec, file_text, snapshot, job_token, warnings, parent, step, step_key)
        SELECT :prefix || n, created_us, spec, file_text, snapshot, job_token, warnings, parent, iif(step = '', '', 'trial-' || n), step_key
        FROM copies, jobs WHERE id = :one;
    INSERT INTO events (job_id, time_us, state, reason, detail)
        SELECT :prefix || n, time_us, state, reason, detail FROM copies, events WHERE job_id = :one ORDER BY n, sequence;
    INSERT INTO launcher_events (allocation, node, sequence, job_id, line)
        SELECT :prefix || n || '.' || n, node, sequence, :prefix || n, line FROM copies, launcher_events WHERE job_id = :one;
    INSERT INTO job_states
        SELECT j.sequence, s.parent, s.state, (SELECT max(sequence) FROM events WHERE job_id = j.id), s.started_us
        FROM copies, jobs j, job_states s WHERE j.id = :prefix || n AND s.job = (SELECT sequence FROM jobs WHERE id = :one);
    INSERT INTO trials
        SELECT j.sequence, t.sweep, t.given, t.cost + 1e-6 * n, t.known, t.ranked
        FROM copies, jobs j, trials t WHERE j.id = :prefix || n AND t.job = (SELECT sequence FROM jobs WHERE id = :one);
    DROP TABLE copies;
"""
# What a sweep tells while its trials run, before its last event.
PROGRESS = """
    INSERT INTO events (job_id, time_us, state, reason, detail)
        WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < :count)
        SELECT job_id, time_us, 'Running', n || ' of :count trials completed, 1 under way; best trial-1 with loss 1', detail
        FROM c, events WHERE sequence = (SELECT last_event FROM job_states WHERE job = (SELECT sequence FROM jobs WHERE id = :sweep));
    UPDATE events SET sequence = (SELECT max(sequence) + 1 FROM events)
        WHERE sequence = (SELECT last_event FROM job_states WHERE job = (SELECT sequence FROM jobs WHERE id = :sweep));
    UPDATE job_states SET last_event = (SELECT max(sequence) FROM events) WHERE job = (SELECT sequence FROM jobs WHERE id = :sweep);
"""
LIST = """SELECT * FROM job_states s JOIN jobs j ON j.sequence = s.job JOIN events e ON e.sequence = s.last_event WHERE s.job IN
    (SELECT job FROM job_states WHERE parent = '' AND state = 'Completed' ORDER BY job DESC LIMIT 100) ORDER BY s.job DESC"""
SHOW = """SELECT * FROM jobs j JOIN job_states s ON s.job = j.sequence JOIN events e ON e.sequence = s.last_event WHERE j.id = ?"""
OF_TRIALS = """SELECT * FROM job_states s JOIN jobs j ON j.sequence = s.job JOIN events e ON e.sequence = s.last_event JOIN trials t ON t.job = s.job
    WHERE s.job IN (SELECT job FROM job_states WHERE parent = :sweep {} ORDER BY job LIMIT 100) ORDER BY s.job"""
# What a show of a sweep reads: its events, its counts, its first, its best and its failed trials.
SHOW_SWEEP = [
    "SELECT * FROM events WHERE job_id = :sweep ORDER BY sequence DESC LIMIT 200",
    "SELECT state, count(*) FROM job_states INDEXED BY jobs_of_state WHERE parent = :sweep GROUP BY state",
    OF_TRIALS.format(""), OF_TRIALS.format("AND state = 'Failed'"),
    """SELECT * FROM trials t CROSS JOIN job_states s ON s.job = t.job CROSS JOIN jobs j ON j.sequence = t.job
       CROSS JOIN events e ON e.sequence = s.last_event
       WHERE t.sweep = (SELECT sequence FROM jobs WHERE id = :sweep) AND t.ranked ORDER BY t.cost, t.job LIMIT 10"""]
UNDER_WAY = "SELECT * FROM job_states WHERE state NOT IN ('Completed', 'Failed', 'Canceled')"


def copy_job(home, one, prefix, count, first=2):
    """`one` becomes `count` jobs, the others named `prefix` and a number from `first` on, each with a folder like its own."""
    with sqlite3.connect(home / "tutti.db") as store:
        store.execute("PRAGMA synchronous = OFF")
        for statement in COPIES.split(";")[:-1]:
            named = {"one": one, "prefix": prefix, "count": count, "first": first}
            store.execute(statement, {name: value for name, value in named.items() if f":{name}" in statement})
    store.close()
    for number in range(first, count + 1):
        (home / "jobs" / f"{prefix}{number}" / "logs").mkdir(parents=True)


def wait_for_end(service, job):
    """The job as it ended."""
    deadline = time.monotonic() + 60
    while not (shown := json.loads(service.request("GET", f"/v1/jobs/{job}")))["ended"]:
        if time.monotonic() > deadline:
            raise SystemExit(f"job {job} does not end")
        time.sleep(0.05)
    return shown


def ended(service, job):
    shown = wait_for_end(service, job)
    if shown["state"] != "Completed":
        raise SystemExit(f"job {job}: {shown['reason']}")
    return job


def submitted(service, text):
    body = json.dumps({"file": "job.yml", "text": text, "base_directory": "/", "snapshot": None})
    return json.loads(service.request("POST", "/v1/jobs", body))["id"]


def timed(call, count):
    took = []
    for _ in range(count):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return quantiles(took)


def started(program, home, nodes=1):
    """A service, and the milliseconds from its program's start to its first answer."""
    (home / "service.json").unlink(missing_ok=True)
    began = time.monotonic()
    service = RunningService(program, home, nodes)
    service.request("GET", "/v1/job-summaries?limit=1")
    return service, round(1000 * (time.monotonic() - began), 1)


def end(service, how):
    service.process.send_signal(how)
    service.process.wait(timeout=60)


def starts(program, home, how, count=5):
    """The milliseconds of starts after an end by that signal, sorted; the service of the last one still runs."""
    took = []
    service, _ = started(program, home)
    for _ in range(count):
        end(service, how)
        service, milliseconds = started(program, home)
        took.append(milliseconds)
    return service, sorted(took)


def processor_ns(process):
    """Returns the processor time of all threads that it has and has had, by the clock that clock_getcpuclockid
    names."""
    return time.clock_gettime_ns((~process.pid << 3) | 2)


def tick(service):
    """Milliseconds of processor a second while a job runs and nobody asks."""
    job = service.submit("sleep 3600")
    while json.loads(service.request("GET", f"/v1/jobs/{job}"))["state"] != "Running":
        time.sleep(0.05)
    before = processor_ns(service.process)
    time.sleep(TICK_SECONDS)
    used = processor_ns(service.process) - before
    service.request("POST", f"/v1/jobs/{job}/cancel")
    return round(used / 1e6 / TICK_SECONDS, 2)


def alone(home, newest):
    """SQLite, by its own connection, with the same questions."""
    began = time.perf_counter()
    store = sqlite3.connect(f"file:{home / 'tutti.db'}?mode=ro", uri=True)
    store.execute(UNDER_WAY).fetchall()
    opened = round(1000 * (time.perf_counter() - began), 2)
    return {"open, and what has not ended, ms": opened, "list, ms": timed(lambda: store.execute(LIST).fetchall(), 50),
            "show, ms": timed(lambda: store.execute(SHOW, (newest,)).fetchall(), 50)}


def history(program, home, count):
    service, _ = started(program, home)
    one = ended(service, service.submit("echo hi"))
    end(service, signal.SIGTERM)
    copy_job(home, one, "copy-", count)
    newest = f"copy-{count}"
    service, after_order = starts(program, home, signal.SIGTERM)
    result = {"MB": round((home / "tutti.db").stat().st_size / 1e6), "start after an orderly end, ms": after_order}
    result["list, ms"] = timed(lambda: service.request("GET", "/v1/job-summaries?state=Completed&limit=100"), 50)
    result["show, ms"] = timed(lambda: service.request("GET", f"/v1/jobs/{newest}"), 50)
    result["SQLite alone"] = alone(home, newest)
    result["tick, ms of processor a second"] = tick(service)
    end(service, signal.SIGTERM)
    service, after_kill = starts(program, home, signal.SIGKILL)
    result["start after SIGKILL, ms"] = after_kill
    end(service, signal.SIGTERM)
    return result


def delete_beside_calls(service, job):
    """How long DELETE takes, and the calls of other users meanwhile, while a job runs and two of them submit at full speed and cancel."""
    running = service.submit("sleep 3600")
    stop, took = threading.Event(), {"list": [], "submit": [], "cancel": []}

    def timed_call(client, name, *request):
        began = time.perf_counter()
        answer = client.request(*request)
        took[name].append(time.perf_counter() - began)
        return answer

    def look(client):
        while not stop.is_set():
            timed_call(client, "list", "GET", "/v1/job-summaries?limit=1")
            time.sleep(0.002)

    def submit(client):
        while not stop.is_set():
            waiting = json.loads(timed_call(client, "submit", "POST", "/v1/jobs", submission("true")))["id"]
            timed_call(client, "cancel", "POST", f"/v1/jobs/{waiting}/cancel")

    users = [threading.Thread(target=call, args=(Client(service),)) for call in (look, submit, submit)]
    for user in users:
        user.start()
    began = time.monotonic()
    service.request("DELETE", f"/v1/jobs/{job}")
    deleted = time.monotonic() - began
    stop.set()
    for user in users:
        user.join()
    service.request("POST", f"/v1/jobs/{running}/cancel")
    wait_for_end(service, running)
    return {"delete, ms": round(1000 * deleted)} | {f"{name} beside it, ms": quantiles(calls) for name, calls in took.items()}


def copy_trials(home, sweep, count, reports, first=2):
    """Trials FIRST to COUNT of a sweep, which ended as its first did and reported so often."""
    copy_job(home, f"{sweep}.trial-1", f"{sweep}.trial-", count, first=first)
    lines = "".join(f'{{"event": "metric", "name": "loss", "value": {1 + 1 / (n + 1):.6f}}}\n' for n in range(reports))
    for number in range(first, count + 1):
        (home / "jobs" / f"{sweep}.trial-{number}" / "logs" / "rank-0.metrics").write_text(lines)


def tell_progress(home, sweep, count):
    with sqlite3.connect(home / "tutti.db") as store:
        for statement in PROGRESS.split(";\n")[:-1]:
            store.execute(statement.replace(":count", str(count)), {"sweep": sweep})
    store.close()


def read_alone(home, sweep):
    """What a show reads, by SQLite's own connection."""
    store = sqlite3.connect(f"file:{home / 'tutti.db'}?mode=ro", uri=True)
    took = timed(lambda: [store.execute(query, {"sweep": sweep}).fetchall() for query in SHOW_SWEEP], 50)
    store.close()
    return took


def delete_alone(home, sweep):
    """The rows of a sweep go, in one commit on the disk, from a copy of the store of a service that has ended; milliseconds."""
    copy = home / "copy.db"
    shutil.copyfile(home / "tutti.db", copy)
    store = sqlite3.connect(copy)
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        store.execute(f"PRAGMA {setting}").fetchall()
    began = time.monotonic()
    with store:
        store.execute("DELETE FROM jobs WHERE sequence IN (SELECT job FROM job_states WHERE parent = ?) OR id = ?", (sweep, sweep))
    took = round(1000 * (time.monotonic() - began))
    store.close()
    copy.unlink()
    return took


def read_once(program, home):
    """Seconds from the start of a service that finds trials of which none was noted until all are."""
    with sqlite3.connect(home / "tutti.db") as store:
        store.execute("UPDATE trials SET known = 0, ranked = 0, cost = NULL")
    store.close()
    service, _ = started(program, home)
    began = time.monotonic()
    store = sqlite3.connect(f"file:{home / 'tutti.db'}?mode=ro", uri=True)
    while store.execute("SELECT count(*) FROM trials WHERE NOT known").fetchone()[0]:
        if time.monotonic() > began + 600:
            raise SystemExit("what trials have reported is not read")
        time.sleep(0.05)
    store.close()
    took = round(time.monotonic() - began, 1)
    end(service, signal.SIGTERM)
    return took


def sweep(program, home, trials, reports):
    service, _ = started(program, home)
    parent = ended(service, submitted(service, SWEEP))
    end(service, signal.SIGTERM)
    copy_trials(home, parent, trials, reports)
    tell_progress(home, parent, 2 * trials)
    result = {"trials": trials, "reports of each": reports, "delete alone, ms": delete_alone(home, parent)}
    service, _ = started(program, home)
    began = time.monotonic()
    shown = json.loads(service.request("GET", f"/v1/jobs/{parent}"))
    result["first show, ms"] = round(1000 * (time.monotonic() - began), 1)
    if shown["trials"]["count"] != trials or shown["trials"]["best"][0]["step"] != "trial-1":
        raise SystemExit(f"the sweep is not shown as it is: {shown['trials']['count']} trials")
    result["show, ms"] = timed(lambda: service.request("GET", f"/v1/jobs/{parent}"), 100)
    result["show, bytes"] = len(service.request("GET", f"/v1/jobs/{parent}"))
    result["read alone, ms"] = read_alone(home, parent)
    result["a page of the best, ms"] = timed(lambda: service.request("GET", f"/v1/jobs/{parent}/trials?order=best"), 100)
    middle = next_page(service, parent, trials // 2)
    result["a page in the middle, ms"] = timed(lambda: service.request("GET", f"/v1/jobs/{parent}/trials?after={middle}"), 100)
    end(service, signal.SIGTERM)
    result["upgrade, s"] = read_once(program, home)
    service, _ = started(program, home)
    result.update(delete_beside_calls(service, parent))
    end(service, signal.SIGTERM)
    return result


def next_page(service, parent, count):
    """The cursor behind the first `count` trials."""
    cursor = ""
    while count > 0:
        page = json.loads(service.request("GET", f"/v1/jobs/{parent}/trials?limit={min(count, 1000)}&after={cursor}"))
        cursor, count = page["next"], count - len(page["trials"])
    return cursor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 10000, 100000])
    parser.add_argument("--trials", nargs="*", type=int, default=[100, 1000, 10000])
    parser.add_argument("--reports", type=int, default=1000)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    program = options.build / "bin/tutti"
    with kept_results(options.json) as results:
        runs = {f"{size} ended jobs": (lambda home, size=size: history(program, home, size)) for size in options.sizes}
        runs |= {f"a sweep of {trials}": (lambda home, trials=trials: sweep(program, home, trials, options.reports)) for trials in options.trials}
        for name, run in runs.items():
            home = pathlib.Path(tempfile.mkdtemp(prefix="tutti-histories."))
            try:
                results[name] = run(home)
            finally:
                shutil.rmtree(home, ignore_errors=True)
            print(name, json.dumps(results[name], indent=1), flush=True)


if __name__ == "__main__":
    main()
