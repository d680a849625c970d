"""Story: a site's Prometheus watches the service, by the page, the configuration, the alerts and the dashboard that come with tutti."""
import json
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml

import needs
from conftest import PATIENCE, free_port, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONTRIB = ROOT / "contrib"
PAGE = ROOT / "docs/monitoring/prometheus.md"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
needs_prometheus = needs.needs(needs.not_installed("prometheus", "promtool", "curl"))
needs_promtool = needs.needs(needs.not_installed("promtool"))


def ask_service(service, path="/metrics", token=None, **headers):
    """The type and the text of its answer to who has the monitors' token."""
    trusted = ssl.create_default_context(cafile=service.home / "certificate.pem")
    token = token if token is not None else (service.home / "metrics_token").read_text().strip()
    asked = urllib.request.Request(f"{service.endpoint()['address']}{path}", headers={"Authorization": f"Bearer {token}", **headers})
    with urllib.request.urlopen(asked, context=trusted, timeout=30 * PATIENCE) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def metrics(service, path="/metrics"):
    kind, text = ask_service(service, path)
    assert kind.startswith("text/plain; version=0.0.4")
    return text


def follow_the_page(service, folder):
    """Does what docs/monitoring/prometheus.md shows, with this service's folder and address, another folder for /etc/prometheus and nothing to
    reload; returns what its last command, which looks at the metrics, printed."""
    address = service.endpoint()["address"]
    printed = ""
    for text in re.findall(r"^```sh not run: [^\n]*\n(.*?)^```", PAGE.read_text(), re.M | re.S):
        for there, here in [("-o prometheus ", ""), ("systemctl reload prometheus", "true"), ("/etc/prometheus", str(folder)),
                            ("~/.local/share/tutti", str(service.home)), ("https://127.0.0.1:6280", address)]:
            text = text.replace(there, here)
        done = subprocess.run(["bash", "-e", "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=60 * PATIENCE)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        printed = done.stdout
    return printed


@pytest.fixture
def prometheus(service, tmp_path):
    """As the page says, with this service's address and without waiting for 15 seconds; a function that answers queries."""
    folder = tmp_path / "prometheus"
    folder.mkdir()
    follow_the_page(service, folder)
    file = folder / "prometheus.yml"
    text = file.read_text()
    assert "127.0.0.1:6280" in text and "scrape_interval: 15s" in text
    file.write_text(text.replace("127.0.0.1:6280", service.endpoint()["address"].removeprefix("https://")).replace("15s", "200ms"))
    port = free_port()
    with (tmp_path / "prometheus.log").open("w") as log, subprocess.Popen(
            ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={tmp_path / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log, cwd=folder) as running:
        def ask(query):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query}), timeout=10 * PATIENCE) as answer:
                    return json.load(answer)["data"]["result"]
            except urllib.error.HTTPError as error:
                if error.code == 503:  # it begins
                    return []
                pytest.fail(f"{query}: {error.read().decode()}")
            except OSError:  # it begins
                return []
        yield ask
        running.terminate()


def numbers(prometheus):
    """A function that returns the first number that a query finds; None: it finds nothing, as for a moment after an answer that came too late."""
    return lambda query: float(found[0]["value"][1]) if (found := prometheus(query)) else None


def wait_for_number(value, query, holds=lambda number: True):
    """The first number that a query finds of which that holds."""
    found, = wait_until(lambda: [number for number in [value(query)] if number is not None and holds(number)], 60, lambda: f"{query} is {value(query)}")
    return found


@needs.needs(needs.not_installed("promtool", "curl"))
def test_the_page_shows_how_to_look(service, tmp_path):
    assert "\ntutti_build_info{version=" in follow_the_page(service, tmp_path)


@needs_promtool
def test_prometheus_finds_nothing_to_object_to(service):
    linted = subprocess.run(["promtool", "check", "metrics"], input=metrics(service), capture_output=True, text=True)
    assert (linted.returncode, linted.stdout + linted.stderr) == (0, "")


@needs.needs(needs.no_module("prometheus_client"))
def test_who_asks_for_open_metrics_gets_them(service):
    """As its strictest reader, Prometheus' own Python library, takes them."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    def families():
        kind, text = ask_service(service, Accept=OPEN_METRICS)
        assert kind == f"{OPEN_METRICS}; charset=utf-8"
        return {family.name: family for family in text_string_to_metric_families(text)}

    def has_the_same_series_in_both_formats():  # a service that has just begun may learn of more between the two
        samples = {sample.name for family in families().values() for sample in family.samples}
        return samples == set(re.findall(r"^(\w+)[{ ]", metrics(service), re.MULTILINE))
    assert families()["tutti_job_transitions"].type == "counter"
    assert families()["tutti_job_wait_seconds"].type == "histogram"
    wait_until(has_the_same_series_in_both_formats, 20, "the same series in both formats")


@needs_promtool
def test_the_alerts_warn_when_they_should():
    for what in (["check", "rules", CONTRIB / "prometheus/alerts.yml"], ["test", "rules", ROOT / "tests/interfaces/prometheus_alerts.yml"]):
        done = subprocess.run(["promtool", *what], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_shown_to_warn():
    alerts = yaml.safe_load((CONTRIB / "prometheus/alerts.yml").read_text())
    shown = yaml.safe_load((ROOT / "tests/interfaces/prometheus_alerts.yml").read_text())
    names = {rule["alert"] for group in alerts["groups"] for rule in group["rules"]}
    assert names == {case["alertname"] for test in shown["tests"] for case in test["alert_rule_test"] if case.get("exp_alerts")}


def test_a_stranger_is_told_nothing_and_a_monitor_nothing_else(service):
    for path, token in [("/metrics", ""), ("/metrics", "wrong"), ("/v1/jobs", None), ("/v1/problems", None)]:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            ask_service(service, path, token)
    assert (service.home / "metrics_token").stat().st_mode & 0o777 == 0o600
    ask_service(service, token=service.user_token())


def test_a_monitors_token_is_the_same_after_a_restart(service):
    before = (service.home / "metrics_token").read_text()
    service.kill(signal.SIGTERM)
    service.start()
    assert (service.home / "metrics_token").read_text() == before
    metrics(service)


@needs_prometheus
def test_it_is_seen_what_runs_waits_and_has_ended(service, prometheus, write_job, tmp_path):
    go, end, value = tmp_path / "go", tmp_path / "end", numbers(prometheus)
    first = service.submit(write_job(f"echo it begins; until [ -e {go} ]; do sleep 0.05; done", nodes=2, name="first"))
    service.submit(write_job(f"until [ -e {end} ]; do sleep 0.05; done; exit 3", nodes=2, name="second"))
    wait_until(lambda: value('tutti_jobs{compute="local",state="Running"}') == 1, 60, "that a job runs is seen")
    wait_until(lambda: value('tutti_jobs{compute="local",state="Queued"}') == 1, 60, "that one waits is seen")
    wait_for_number(value, "sum(tutti_node_jobs)", lambda jobs: jobs == 2)
    wait_until(lambda: (value("sum(tutti_compute_cores_used) == sum(tutti_node_cores_used)") or 0) > 0, 60, "the cores in use are seen")
    wait_for_number(value, 'tutti_nodes{compute="local",state="running"}', lambda nodes: nodes == 2)
    wait_until(lambda: (value(f'tutti_running_job_seconds{{job_id="{first}"}}') or 0) > 0, 60, "how long it has run is seen")
    wait_for_number(value, f'tutti_running_job_nodes{{job_id="{first}"}}', lambda nodes: nodes == 2)
    wait_for_number(value, f'tutti_placed_job_ranks{{job_id="{first}"}}', lambda ranks: ranks == 2)
    wait_until(lambda: value(f'tutti_placed_job_state{{job_id="{first}",state="Running"}}') == 1, 60, "its state is seen")
    wait_until(lambda: (value(f'tutti_placed_job_log_bytes{{job_id="{first}"}}') or 0) >= len("it begins\n") * 2, 60, "what it has printed is seen")
    wait_until(lambda: (value('tutti_queue_oldest_seconds{compute="local"}') or 0) > 0, 60, "how long one has waited is seen")
    go.touch()
    wait_until(lambda: value('tutti_job_transitions_total{state="Completed"}') == 1, 60, "that one has completed is seen")
    wait_until(lambda: value('tutti_job_transitions_total{state="Running"}') == 2, 60, "that the other runs is seen")
    end.touch()
    wait_until(lambda: value('tutti_job_failures_total{kind="exit_code"}') == 1, 60, "that one has failed is seen, and why")
    wait_until(lambda: value("sum(tutti_jobs)") == 0, 60, "that nothing is left is seen")
    wait_for_number(value, "tutti_job_wait_seconds_count", lambda jobs: jobs == 2)
    wait_for_number(value, 'tutti_job_submissions_total{type="command"}', lambda jobs: jobs == 2)
    cordoned = service.cli("node", "cordon", "n1", "--reason", "to be repaired")
    assert cordoned.returncode == 0, cordoned.stderr
    wait_until(lambda: value('tutti_node_cordoned{node="n1"}') == 1, 60, "the cordon is seen")
    wait_until(lambda: value('tutti_nodes{state="cordoned"}') == 1, 60, "it is counted")
    service.cli("node", "uncordon", "n1")
    wait_until(lambda: value('tutti_nodes{state="cordoned"}') == 0, 60, "that none is cordoned is a 0")


@needs_prometheus
def test_calls_are_seen_by_what_they_ask_and_how_they_are_answered(service, prometheus):
    value = numbers(prometheus)
    for path, code in (("/v1/jobs/none", 404), ("/nowhere/at/all", 404)):
        with pytest.raises(urllib.error.HTTPError, match=str(code)):
            service.get(path)
    calls = 'tutti_http_requests_total{method="GET",route="/v1/jobs/{job}",status="404"}'
    wait_until(lambda: value(calls) == 1, 60, "that a call found no job is seen")
    wait_until(lambda: value('tutti_http_requests_total{route="other",status="404"}') == 1, 60, "what is no call is counted as one")
    wait_until(lambda: (value('tutti_http_request_seconds_count{route="/metrics"}') or 0) > 1, 60, "Prometheus sees itself")
    wait_for_number(value, 'tutti_http_connections{party="monitor"}', lambda connections: connections >= 1)
    limits = [wait_for_number(value, f'tutti_http_connections_limit{{party="{party}"}}') for party in ("monitor", "user")]
    assert limits[0] < limits[1]
    assert wait_for_number(value, "tutti_disk_free_bytes") > wait_for_number(value, "tutti_disk_least_bytes") > 0


@needs_prometheus
def test_the_stores_writes_are_seen(service, prometheus, write_job):
    value = numbers(prometheus)
    writes, transactions = (wait_for_number(value, name) for name in ("tutti_store_write_seconds_count", "tutti_store_transactions_total"))
    service.wait(service.submit(write_job("true")))
    wait_for_number(value, "tutti_store_write_seconds_count", lambda now: now > writes)  # that the store has written is seen
    wait_for_number(value, "tutti_store_transactions_total", lambda now: now > transactions)  # and in how many transactions


@needs_prometheus
def test_what_the_dashboard_and_the_alerts_ask_is_there(service, prometheus):
    """Each name is that of a metric, each label one that it has, and Prometheus can read each query."""
    told = set(re.findall(r"^# TYPE (\w+) ", metrics(service), re.MULTILINE))
    told |= {f"{name}_{part}" for name in told for part in ("bucket", "sum", "count")} | {"up"}
    board = json.loads((CONTRIB / "grafana" / "tutti.json").read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += re.findall(r"^ +expr: (.*)$", (CONTRIB / "prometheus" / "alerts.yml").read_text(), re.MULTILINE)
    assert len(queries) > 40
    for query in queries:
        names = re.findall(r"\b(?:tutti|process)_\w+|\bup\b", query)
        assert names and set(names) <= told, (query, set(names) - told)
    wait_until(lambda: prometheus("tutti_build_info"), 60, "the service is watched")
    for query in queries:
        prometheus(query.replace("$instance", ".*"))
    documented = PAGE.read_text()
    for name in told:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        assert base.startswith("process_") or base == "up" or f"`{base}`" in documented, f"{base} is not on the page"
    for name in re.findall(r"`(tutti_\w+)`", documented):
        assert name in told, f"{name} is on the page, and nobody tells it"


@needs_prometheus
def test_a_site_bounds_how_many_series_there_are(service, prometheus):
    assert 'node="n2"' in metrics(service)
    few = metrics(service, "/metrics?jobs=0&nodes=1")
    assert 'node="n1"' in few and 'node="n2"' not in few
    assert 'tutti_metrics_left_out{of="nodes"} 1\n' in few
    found = wait_until(lambda: prometheus("tutti_metrics_left_out"), 60, "the service is watched")
    assert {series["value"][1] for series in found} == {"0"}
