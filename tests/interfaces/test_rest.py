"""Story: a program talks to the service; what it gets is what the OpenAPI document says."""
import json
import re
import urllib.error

import jsonschema
import pytest

from conftest import TERMINAL, wait_until


@pytest.fixture
def document(service):
    return service.get("/openapi.json")


def resolver_schema(document, schema):
    """`schema` with the document's components beside it, so that '#/components/…' references resolve."""
    return {**schema, "components": document["components"]}


def check(document, path, method, status, body):
    operation = document["paths"][path][method]
    response = operation["responses"].get(str(status)) or operation["responses"]["default"]
    while "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    schema = response["content"]["application/json"]["schema"]
    jsonschema.Draft202012Validator(resolver_schema(document, schema)).validate(body)


def test_the_document_is_openapi_3_and_its_references_resolve(document):
    assert document["openapi"].startswith("3.")
    for reference in re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document)):
        target = document
        for part in reference.split("/"):
            target = target[part]
        assert target


def test_responses_follow_the_document(service, document, write_job):
    name = service.submit(write_job("echo hi; mkdir -p outputs; touch outputs/x", nodes=2, distribution="mpi"))
    service.wait(name)
    check(document, "/v1/health", "get", 200, service.get("/v1/health"))
    check(document, "/v1/nodes", "get", 200, service.get("/v1/nodes"))
    check(document, "/v1/file-servers", "get", 200, service.get("/v1/file-servers"))
    check(document, "/v1/problems", "get", 200, service.get("/v1/problems"))
    check(document, "/v1/jobs", "get", 200, service.get("/v1/jobs"))
    job_path = next(p for p in document["paths"] if re.fullmatch(r"/v1/jobs/\{\w+\}", p))
    check(document, job_path, "get", 200, service.get(f"/v1/jobs/{name}"))
    check(document, job_path + "/files", "get", 200, service.get(f"/v1/jobs/{name}/files"))
    assert {"outputs/x", "logs/rank-0.stdout"} <= {f["path"] for f in service.get(f"/v1/jobs/{name}/files")["files"]}


def expect_error(service, document, path, template, method, status, body=None, token=None):
    with pytest.raises(urllib.error.HTTPError) as error:
        service.request(path, method.upper(), body, token)
    assert error.value.code == status
    check(document, template, method, status, json.load(error.value))


def test_errors_follow_the_document(service, document):
    job_path = next(p for p in document["paths"] if re.fullmatch(r"/v1/jobs/\{\w+\}", p))
    expect_error(service, document, "/v1/jobs/none", job_path, "get", 404)
    expect_error(service, document, "/v1/jobs", "/v1/jobs", "post", 400, b"{not json")
    expect_error(service, document, "/v1/jobs", "/v1/jobs", "post", 400, b'{"file": "j.yml", "text": "comand: x", "base_directory": "/"}')
    expect_error(service, document, "/v1/jobs", "/v1/jobs", "get", 401, token="wrong")


def test_the_token_file_is_private(service):
    assert (service.home / "service.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", ["../service.json", "logs/../../../service.json", "%2e%2e/%2e%2e/service.json", "/etc/passwd"])
def test_files_outside_of_the_job_are_not_served(service, write_job, path):
    name = service.submit(write_job("true"))
    service.wait(name)
    with pytest.raises(urllib.error.HTTPError) as error:
        service.request(f"/v1/jobs/{name}/files/{path}")
    assert error.value.code in (400, 404)


def test_jobs_are_listed_newest_first_in_pages(service, write_job):
    names = [service.submit(write_job("true")) for _ in range(5)]
    for name in names:
        assert service.wait(name)["state"] in TERMINAL
    first = service.get("/v1/jobs?limit=2")["jobs"]
    assert [job["id"] for job in first] == names[:2:-1]
    rest = service.get(f"/v1/jobs?limit=9&before={first[-1]['sequence']}")["jobs"]
    assert [job["id"] for job in rest] == names[2::-1]


def test_jobs_in_short_are_those_that_run_and_those_that_have_ended(service, write_job):
    ended = service.submit(write_job("true"))
    assert service.wait(ended)["state"] in TERMINAL
    waiting = [service.submit(write_job("sleep 600", nodes=2)) for _ in range(3)]
    service.wait_for_state(waiting[0], "Running")
    wait_until(lambda: service.job(waiting[2])["reason"].startswith("waits for 2 nodes"), 20, lambda: f"it says what it waits for: {service.job(waiting[2])}")
    whole = {job["id"]: job for job in service.get("/v1/jobs")["jobs"]}
    short = service.get("/v1/job-summaries?limit=10")["jobs"]
    assert [job["id"] for job in short] == waiting[::-1] + [ended]
    for job in short:
        for key in ("sequence", "state", "created", "started", "ended", "node_count", "priority", "experiment_name"):
            assert job[key] == whole[job["id"]][key], key
    assert short[0]["reason"].startswith("waits for 2 nodes")
    queued = service.get("/v1/job-summaries?state=Queued&limit=1")["jobs"]
    assert [job["id"] for job in queued] == [waiting[2]]
