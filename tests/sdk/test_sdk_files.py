"""Job files that load_job has read and written again get the verdict and the values that the command line gets of the file itself."""
import copy
import json
import re

import pytest
import yaml

from conftest import ROOT
from sdk_clients import client, client_of, warn_anew, write  # noqa: F401
from tutti.ml import _yaml, load_component, load_job
from tutti.ml.exceptions import ValidationException

FOLDERS = ("tests/azure/jobs", "tests/azure/flows", "tests/azure/refused", "examples")


def job_files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.yml")):
            document = yaml.safe_load(path.read_text())
            is_job = isinstance(document, dict) and {"command", "jobs", "trial", "type"} & set(document)
            if is_job and not re.search("omponent|nvironment.schema", str(document.get("$schema", ""))):
                yield path


def messages(lines):
    """Without their places, which are of the file that was written."""
    return {re.sub(r"^(?:\S+:\d+: )+| \(at: .*\)$", "", line)[:100] for line in lines}


def test_a_file_that_is_read_and_written_again_is_judged_alike(service, client):
    count = 0
    for path in job_files():
        document = json.loads(service.cli("job", "validate", "-f", path, "-o", "json").stdout)
        of_file = [error["message"] if isinstance(error, dict) else error for error in document["errors"]]
        try:
            of_object = client.jobs.validate(load_job(path)).errors
        except ValidationException as error:  # a file that it names cannot be read
            of_object = str(error).splitlines()
        # A check by the SDK asks no store for code.
        assert {line for line in messages(of_file) if not line.startswith("code: there is no datastore")} == messages(of_object), path
        count += 1
    assert count > 40


def test_all_that_is_wrong_is_told_at_once(client, tmp_path):
    write(tmp_path, {"job.yml": "command: ${{inputs.x}}\ncode: ./nowhere\nenvironment: host\ncompute: nobodys\n"})
    errors = client.jobs.validate(load_job(tmp_path / "job.yml")).errors
    assert len(errors) == 3 and all(any(word in line for line in errors) for word in ('no input "x"', "nowhere does not exist", '"nobodys" does not exist'))


VALUES = ["010", "12:30:00", "yes", "1.10", "007", "1_000", "0x1F", "0o17", "1e-5", "1E5", "+1", "-0", ".5", "1.", ".inf", "=", "on", "True", "FALSE", "true",
          "2020-01-01", "1:30", "~", "null", "", "7", "-3", "0.5", "text", "a b", '"yes"', "'010'", '"1e5"', "'true'", '"~"', '"null"', '""', '"0x1F"', "'inf'",
          '"two\\nlines"', "!!int 010", "!other yes", "99999999999999999999999"]


def test_values_and_names_stay_as_they_are_written(service, client, tmp_path):
    names = ["NO", "ON", "yes", "_1"]
    variables = "".join(f"  V{at}: {value}\n" for at, value in enumerate(VALUES)) + "".join(f"  {name}: {name}\n" for name in names)
    inputs = "".join(f"  i{at}: {value}\n" for at, value in enumerate(VALUES) if value not in ("~", "null", "", '""', '"two\\nlines"'))
    shown = " ".join(f"${{{{inputs.{line.split(':')[0].strip()}}}}}" for line in inputs.splitlines())
    text = (f"command: env | grep -E '^(V[0-9]+|{'|'.join(names)})=' | sort; printf '<%s>' {shown}\nenvironment: host\ncompute: local\n"
            f"environment_variables:\n{variables}inputs:\n{inputs}tags: {{NO: 010, 1.10: yes}}\n")
    write(tmp_path, {"job.yml": text})
    of_file = service.submit(tmp_path / "job.yml")
    jobs = [load_job(tmp_path / "job.yml"), copy.deepcopy(load_job(tmp_path / "job.yml"))]
    (tmp_path / "again.yml").write_text(str(load_job(tmp_path / "job.yml")))
    jobs.append(load_job(tmp_path / "again.yml"))
    of_objects = [client.jobs.create_or_update(job).name for job in jobs]
    for name in [of_file, *of_objects]:
        assert service.wait(name)["state"] == "Completed"
    printed = service.log_text(of_file, 0)
    assert all(line in printed.splitlines() for line in ("V0=010", "V1=12:30:00", "V2=yes", "V3=1.10", "V4=007", "NO=NO", "ON=ON", "V22=", "V31=010"))
    for name in of_objects:
        assert service.log_text(name, 0) == printed
        assert service.job(name)["tags"] == service.job(of_file)["tags"] == {"NO": "010", "1.10": "yes"}


def test_values_of_a_file_are_numbers_for_python():
    document = _yaml.load("a: 010\nb: 1.10\nc: 'x'\nd: True\ne: false\nf: yes\ng: 3\n", "job.yml")
    assert (document["a"], document["b"], document["d"], document["e"], document["f"]) == (10, 1.1, True, False, "yes")
    assert type(document["g"]) is int and type(document["e"]) is bool and type(document["c"]) is str
    assert f"{document['a']} {document['b']} {document['d']}" == "010 1.10 True"


def test_a_component_says_false_in_any_case(tmp_path):
    write(tmp_path, {"c.yml": "command: echo\nenvironment: host\nis_deterministic: False\n"})
    assert "is_deterministic: False" in str(load_component(tmp_path / "c.yml"))


@pytest.mark.parametrize("text, message", [
    ("command: a\nenvironment: host\ncommand: b\n", 'job.yml:3: key "command" is there already, in line 1'),
    ("tags:\n  a: 1\n  'a': 2\n", 'job.yml:3: key "a" is there already, in line 2'),
    ("tags: {1: a}\njobs:\n  1: {}\n  1: {}\n", 'job.yml:4: key "1" is there already, in line 3'),
    ("tags: &a [*a]\n", "job.yml:1: an alias stands inside of its own anchor"),
    ("~: 1\n", "job.yml:1: a key must be text"), ("? [a]\n: 1\n", "job.yml:1: a key must be text"),
    ("<<: 3\n", "job.yml:1: << must name a mapping")])
def test_what_the_service_cannot_read_is_said_with_its_line(text, message, tmp_path):
    write(tmp_path, {"job.yml": text})
    with pytest.raises(ValidationException, match=re.escape(message)):
        load_job(tmp_path / "job.yml")


def test_a_mapping_that_is_merged_gives_what_is_not_there():
    document = _yaml.load("a: &a {x: 1, y: 010}\nb: {y: 3}\nc: {<<: *a, y: 2}\nd: {<<: [*a, {x: 5, z: 6}]}\n", "job.yml")
    assert document["c"] == {"x": 1, "y": 2} and document["d"] == {"x": 1, "y": 10, "z": 6}
