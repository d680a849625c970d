"""Story: a team brings job files written for Azure ML, and they run as they are. The files in jobs/ are in the manner of
Azure/azureml-examples; what is this site's own (names of computes, copies of data, what environments hold) stands in site.yml."""
import json
import shutil
import subprocess

import pytest

from conftest import ROOT, Service, make_wheel

@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A service with two nodes, a site.yml, copies of the data and an index with one package; .jobs is a copy of azure_jobs."""
    folder = tmp_path_factory.mktemp("azure")
    for name in ("wheels", "home", "copies/datasets", "copies/images", "copies/people"):
        (folder / name).mkdir(parents=True)
    make_wheel(folder / "wheels")
    rows = "".join(f"{i}.{i},{i / 2},{'rose' if i < 5 else 'iris'}\n" for i in range(10))
    (folder / "copies/datasets/flowers.csv").write_text("length,width,species\n" + rows)
    (folder / "copies/images/list.txt").write_text("cat.jpg\n")
    (folder / "copies/people/MLTable").write_text("paths: []\n")
    (folder / "home/site.yml").write_text(
        "computes: {cpu-cluster: local, gpu-cluster: local}\n"
        "environments:\n"
        "  sklearn-*: {packages: [scikit-learn]}\n"
        "  tensorflow-*: {packages: []}\n"
        "  acpt-pytorch-*: host\n"
        f"data: {{'azureml://datastores/workspaceblobstore/paths/tables': '{folder}/copies'}}\n")
    shutil.copytree(ROOT / "tests/azure/jobs", folder / "jobs")
    service = Service(folder / "home", environment={"PIP_FIND_LINKS": str(folder / "wheels")})
    service.start()
    service.jobs, service.copies = folder / "jobs", folder / "copies"
    for prefix, copy in (("https://examplestore.blob.core.windows.net/datasets", "datasets"),
                         ("azureml:image-example", "images")):
        result = service.cli("data", "map", prefix, folder / "copies" / copy)
        assert result.returncode == 0, result.stderr
    yield service
    service.stop()


def run(site, name, seconds=300):
    """Runs jobs/NAME/job.yml to its end, which is Completed; the job, and what `tutti run` said on standard error."""
    result = site.cli("run", site.jobs / name / "job.yml", "-o", "json", timeout=seconds)
    assert result.returncode == 0, (result.stdout, result.stderr)
    return json.loads(result.stdout), result.stderr


def file(site, job, path):
    with site.request(f"/v1/jobs/{job['id']}/files/{path}") as response:
        return response.read().decode()


def test_hello_world(site):
    job, remarks = run(site, "hello")
    assert site.log_text(job["id"], 0) == f"hello from {job['id']} in hello-trials\n"
    assert job["tags"] == {"hello": "world"} and "warning" not in remarks


def test_literal_inputs_and_variables(site):
    job, _ = run(site, "literals")
    assert site.log_text(job["id"], 0) == "two words 42 0.50 True\nhello two words\n"


def test_scikit_learn_on_a_blob_that_has_a_local_copy(site):
    job, remarks = run(site, "flowers_file")
    assert site.log_text(job["id"], 0).startswith("accuracy ")
    assert file(site, job, "outputs/accuracy.txt") and file(site, job, "logs/main.log") == "trained\n"
    assert "warning" not in remarks


def test_a_folder_of_blobs(site):
    job, _ = run(site, "flowers_folder")
    assert site.log_text(job["id"], 0) == "flowers.csv\nlength,width,species\n"


def test_data_by_name_and_by_datastore(site):
    (site.copies / "people").is_dir()
    job, _ = run(site, "data_asset")
    assert site.log_text(job["id"], 0) == "cat.jpg\npaths: []\n"


def test_outputs_of_every_type(site):
    job, remarks = run(site, "outputs")
    assert file(site, job, "outputs/folder_output/hello.txt") == "hello world\n"
    assert file(site, job, "outputs/file_output/result.txt") == "one file\n"
    assert "flavors" in file(site, job, "outputs/model_output/MLmodel")
    assert '"path" has no effect' in remarks


def test_a_conda_file_on_two_nodes(site):
    job, _ = run(site, "conda")
    assert [site.log_text(job["id"], rank) for rank in (0, 1)] == ["hello rank 0 of 2 nodes\n", "hello rank 1 of 2 nodes\n"]
    assert file(site, job, "outputs/output_folder/part-1.txt") == "['flowers.csv']\n"


def test_a_docker_context(site):
    job, _ = run(site, "docker_context")
    assert site.log_text(job["id"], 0) == "hello image\n"


def test_an_environment_in_a_file(site):
    job, _ = run(site, "environment_file")
    assert site.log_text(job["id"], 0) == "INFO 0/1 hello measure\n"


def test_pip_in_the_command_changes_only_this_jobs_environment(site):
    for _ in range(2):
        job, _ = run(site, "pip_in_command")
        assert site.log_text(job["id"], 0) == "hello pip\n"
    shared = list((site.home / "environments").glob("*/lib/python3*/site-packages"))
    plain = [path for path in shared if not (path / "sklearn").exists()]
    assert any(not (path / "tutti_greeter.py").exists() for path in plain)


def test_tensorflow_workers(site):
    job, _ = run(site, "tensorflow")
    assert [site.log_text(job["id"], rank) for rank in (0, 1)] == [
        f"worker {rank} of 2 ['--epochs', '1', '--model-dir', 'outputs/keras-model']\n" for rank in (0, 1)]
    assert file(site, job, "outputs/keras-model/saved") == ""


def test_what_has_no_effect_is_said_and_the_rest_runs(site):
    job, remarks = run(site, "per_process")
    assert sorted(site.log_text(job["id"], rank) for rank in range(4)) == ["0 0 0 4\n", "1 1 0 4\n", "2 0 1 4\n", "3 1 1 4\n"]
    for key in ("instance_type", "shm_size", "job_tier", "identity", "services"):
        assert f'"{key}" has no effect' in remarks
    assert job["priority"] == "high"


def test_optional_inputs(site):
    job, _ = run(site, "optional")
    assert site.log_text(job["id"], 0) == "train --depth 3 --kind plain\n"


def test_the_example(site):
    result = site.cli("run", ROOT / "examples/azure-ml/job.yml", "-o", "json", timeout=300)
    assert result.returncode == 0, (result.stdout, result.stderr)
    job = json.loads(result.stdout)
    counts = [json.loads(file(site, job, f"outputs/counts/rank-{rank}.json")) for rank in (0, 1)]
    assert abs(4 * sum(count["hits"] for count in counts) / 200000 - 3.1416) < 0.02
    assert site.log_text(job["id"], 1).startswith("rank of 200000 darts: pi is about 3.1")
    assert site.cli("run", ROOT / "examples/azure-ml/job.yml", "--set", "inputs.seed=2").returncode == 0


def test_a_job_takes_what_an_earlier_one_left(site, tmp_path):
    first, _ = run(site, "outputs")
    job = tmp_path / "job.yml"
    job.write_text("command: cat ${{inputs.a}}/hello.txt ${{inputs.b}} ${{inputs.c}}\nenvironment: host\ninputs:\n"
                   f"  a: {{path: 'azureml://jobs/{first['id']}/outputs/folder_output/paths/'}}\n"
                   f"  b: {{type: uri_file, path: 'runs:/{first['id']}/file_output/result.txt', mode: download}}\n"
                   f"  c: {{type: uri_file, path: 'azureml://jobs/{first['id']}/outputs/file_output'}}\n")
    result = site.cli("run", job, "-o", "json")
    assert result.returncode == 0, result.stderr
    assert site.log_text(json.loads(result.stdout)["id"], 0) == "hello world\none file\none file\n"
    job.write_text(job.read_text().replace(first["id"], "no-such-job"))
    assert "no-such-job" in site.cli("run", job).stderr


def test_code_from_git(site, tmp_path):
    repository = tmp_path / "project"
    (repository / "train").mkdir(parents=True)
    (repository / "train/main.py").write_text("print('from git')\n")
    for command in (["init", "-q", "-b", "main"], ["add", "."],
                    ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *command], cwd=repository, check=True)
    job = tmp_path / "job.yml"
    job.write_text(f"code: git+file://{repository}@main#subdirectory=train\ncommand: python3 main.py\nenvironment: host\n")
    result = site.cli("run", job)
    assert result.returncode == 0 and "[0] from git" in result.stdout, (result.stdout, result.stderr)
    job.write_text(job.read_text().replace("main.py", "gone.py"))
    assert 'job.yml:2: the command runs "gone.py"' in site.cli("run", job).stderr
    job.write_text(job.read_text().replace("@main", "@nowhere"))
    assert "job.yml:1: code: git cannot fetch nowhere of file://" in site.cli("run", job).stderr


def test_data_that_is_not_here_is_refused_with_the_command_that_mends_it(site, tmp_path):
    job = tmp_path / "job.yml"
    job.write_text("command: cat ${{inputs.x}}\ninputs:\n  x:\n    type: uri_file\n    path: https://elsewhere.example/sets/x.csv\n")
    result = site.cli("run", job)
    assert result.returncode == 2
    assert "job.yml:5" in result.stderr and "tutti data map https://elsewhere.example/sets FOLDER" in result.stderr
    (tmp_path / "x.csv").write_text("1\n")
    assert site.cli("data", "map", "https://elsewhere.example/sets", tmp_path).returncode == 0
    assert "https://elsewhere.example/sets" in site.cli("data", "list").stdout
    assert site.cli("run", job).returncode == 0
    assert site.cli("data", "unmap", "https://elsewhere.example/sets").returncode == 0
    assert site.cli("run", job).returncode == 2


def test_patterns_in_mapped_data_are_what_they_are_in_stores(site, tmp_path):
    for name in ("dogs/a.png", "dogs/b.txt", "dogs/deep/c.png", "cats/d.png"):
        (tmp_path / "sets" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sets" / name).write_text(name + "\n")
    assert site.cli("data", "map", "azureml://datastores/pictures/paths", tmp_path / "sets").returncode == 0
    job = tmp_path / "job.yml"

    def ran(path, mode):
        job.write_text("command: cd ${{inputs.x}} && find -L . -type f | sort | tee /dev/stderr | xargs cat\nenvironment: host\ninputs:\n  x:\n"
                       f"    type: uri_folder\n    path: azureml://datastores/pictures/paths/{path}\n    mode: {mode}\n")
        return site.cli("run", job)
    for mode in ("download", "ro_mount", "direct"):
        result = ran("dogs/**", mode)
        assert result.returncode == 0, (mode, result.stderr, result.stdout)
        assert all(line in result.stdout for line in ("./a.png", "./b.txt", "./deep/c.png", "dogs/deep/c.png")), result.stdout
        assert "cats" not in result.stdout
        result = ran("*/?.png", mode)
        assert result.returncode == 0 and "./cats/d.png" in result.stdout and "./dogs/a.png" in result.stdout
        assert "b.txt" not in result.stdout and "deep" not in result.stdout
    result = ran("dogs/*.jpg", "download")
    assert result.returncode == 2 and f'job.yml:6: input "x": no file of {tmp_path}/sets/dogs matches *.jpg' in result.stderr, result.stderr
    result = ran("birds/**", "download")
    assert result.returncode == 2 and f"{tmp_path}/sets/birds does not exist" in result.stderr, result.stderr
    assert site.cli("data", "unmap", "azureml://datastores/pictures/paths").returncode == 0


def test_a_package_that_cannot_be_had_is_named_with_its_line(site, tmp_path):
    (tmp_path / "conda.yaml").write_text("dependencies:\n  - pip:\n    - tutti_greeter==9.9\n")
    job = tmp_path / "job.yml"
    job.write_text("command: echo x\nenvironment:\n  image: python\n  conda_file: conda.yaml\n")
    result = site.cli("run", job)
    assert result.returncode == 1
    assert "conda.yaml:3: tutti_greeter==9.9 cannot be had" in result.stdout, result.stdout
    (tmp_path / "conda.yaml").write_text("dependencies:\n  - r-essentials\n")
    result = site.cli("run", job)
    assert result.returncode == 2 and 'conda.yaml:2: "r-essentials" cannot be had' in result.stderr


def test_data_that_a_file_names_are_found_by_name_and_version(site, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "one/words.txt").write_text("first\n")
    (tmp_path / "two.txt").write_text("second\n")
    data = tmp_path / "data.yml"
    for text in ("name: words-example\ntype: uri_folder\npath: one\n",
                 "name: words-example\nversion: 7\ntype: uri_file\npath: two.txt\n"):
        data.write_text(f"$schema: https://azuremlschemas.azureedge.net/latest/data.schema.json\n{text}")
        assert site.cli("data", "create", "--file", data).returncode == 0
    assert "azureml:words-example:1" in site.cli("data", "list").stdout
    job = tmp_path / "job.yml"
    job.write_text("command: cat ${{inputs.a}}/words.txt ${{inputs.b}}\nenvironment: host\ninputs:\n"
                   "  a: {type: uri_folder, path: 'azureml:words-example:1'}\n"
                   "  b: {type: uri_file, path: 'azureml:words-example@latest'}\n")
    result = site.cli("run", job)
    assert result.returncode == 0, result.stderr
    assert [line for line in result.stdout.splitlines() if line.startswith("[0]")] == ["[0] first", "[0] second"], result.stdout
    data.write_text("name: words-example\nversion: 7\ntype: uri_file\npath: gone.txt\n")
    assert "gone.txt does not exist" in site.cli("data", "create", "--file", data).stderr
    data.write_text("name: signed\ntype: uri_file\npath: https://acme.blob.core.windows.net/c/x.csv?sv=1&sig=hush\n")
    refused = site.cli("data", "create", "--file", data)
    assert refused.returncode == 2 and "sas_token" in refused.stderr and "hush" not in refused.stderr, refused
    assert site.cli("data", "delete", "--name", "words-example", "--version", "7").returncode == 0
    job.write_text(job.read_text().replace("@latest", ":7"))
    assert "job.yml:5: input \"b\": data words-example has no version 7, but 1" in site.cli("run", job).stderr


def test_components_that_a_file_names_are_found_as_they_were_made(site, tmp_path):
    parts = tmp_path / "repository/parts"
    parts.mkdir(parents=True)
    (tmp_path / "repository/src").mkdir()
    (tmp_path / "repository/src/count.py").write_text("import sys\nprint('counted', *sys.argv[1:])\n")
    (parts / "conda.yml").write_text("dependencies:\n  - pip:\n    - tutti_greeter\n")
    component = parts / "count.yml"
    component.write_text("$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json\n"
                         "name: count_words\nversion: 3\ntype: command\ndescription: counts\ncode: ../src\n"
                         "command: python3 count.py ${{inputs.word}} ${{inputs.times}}\n"
                         "environment: {image: python, conda_file: conda.yml}\n"
                         "inputs:\n  word: {type: string}\n  times: {type: integer, default: 2}\n")
    made = site.cli("component", "create", "--file", component)
    assert made.returncode == 0 and "azureml:count_words:3 is " in made.stdout, made.stderr
    assert site.cli("component", "create", "-f", component).returncode == 0  # nothing has changed
    (tmp_path / "repository/src/count.py").write_text("print('another program')\n")
    again = site.cli("component", "create", "-f", component)
    assert again.returncode == 7 and "component count_words:3 is there with other files" in again.stderr, again.stderr
    assert site.cli("component", "create", "-f", component, "--version", "4").returncode == 0
    shutil.rmtree(tmp_path / "repository")

    job = tmp_path / "job.yml"
    job.write_text("type: pipeline\njobs:\n  a:\n    component: azureml:count_words:3\n    inputs: {word: one}\n"
                   "  b:\n    component: azureml:count_words@latest\n    inputs: {word: two}\n")
    result = site.cli("run", job, "-o", "json", timeout=300)
    assert result.returncode == 0, (result.stdout, result.stderr)
    name = json.loads(result.stdout)["id"]
    assert site.log_text(f"{name}.a", 0) == "counted one 2\n" and site.log_text(f"{name}.b", 0) == "another program\n"

    listed = json.loads(site.cli("component", "list", "-o", "json").stdout)["assets"]
    assert [(one["name"], one["version"], one["type"]) for one in listed if one["from"] == "created"] == [
        ("count_words", "3", "command"), ("count_words", "4", "command")]
    assert "counts" in site.cli("component", "show", "count_words", "-v", "3").stdout
    assert site.cli("component", "delete", "-n", "count_words", "-v", "4").returncode == 0
    assert json.loads(site.cli("component", "show", "count_words", "-o", "json").stdout)["version"] == "3"
    assert not (site.home / "assets/component/count_words/4").exists()
    job.write_text(job.read_text().replace("@latest", ":4"))
    gone = site.cli("job", "validate", "-f", job)
    assert gone.returncode == 2 and "job.yml:7: component: component count_words has no version 4, but 3" in gone.stderr, gone.stderr
    assert site.cli("component", "delete", "count_words").returncode == 0


def test_environments_that_a_file_names_are_found_beside_the_curated_ones(site, tmp_path):
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / "conda.yml").write_text("dependencies:\n  - pip:\n    - tutti_greeter\n")
    environment = folder / "environment.yml"
    environment.write_text("$schema: https://azuremlschemas.azureedge.net/latest/environment.schema.json\n"
                           "name: greeter\nversion: 1\nimage: python\nconda_file: conda.yml\n")
    made = site.cli("environment", "create", "--file", environment)
    assert made.returncode == 0 and "azureml:greeter:1 is " in made.stdout, made.stderr
    (folder / "conda.yml").write_text("dependencies: [numpy]\n")
    other = site.cli("environment", "create", "--file", environment)
    assert other.returncode == 7 and "environment greeter:1 is there with other files" in other.stderr, other.stderr
    job = tmp_path / "job.yml"
    for reference in ("azureml:greeter:1", "azureml:greeter@latest"):
        job.write_text(f"command: python -c \"import tutti_greeter; print('greeted')\"\nenvironment: {reference}\n")
        result = site.cli("run", job, timeout=300)
        assert result.returncode == 0 and "[0] greeted" in result.stdout, (result.stdout, result.stderr)
    job.write_text("command: 'true'\nenvironment: azureml:greeter:9\n")
    wrong = site.cli("run", job)
    assert wrong.returncode == 2 and "job.yml:2: environment: environment greeter has no version 9, but 1" in wrong.stderr, wrong.stderr
    listed = {line.split()[0]: line for line in site.cli("environment", "list").stdout.splitlines() if line}
    assert "conda_file" in listed["greeter"] and "created" in listed["greeter"], listed
    assert "site.yml:3" in listed["sklearn-*"] and "built-in table" in listed["lightgbm-*"], listed
    assert "scikit-learn" in site.cli("environment", "show", "sklearn-1.5").stdout
    assert site.cli("environment", "delete", "greeter", "--version", "").returncode == 2
    assert site.cli("environment", "delete", "greeter").returncode == 0
    assert site.cli("environment", "delete", "greeter").returncode == 4
    assert site.cli("environment", "show", "greeter").returncode == 4
    job.write_text("command: 'true'\nenvironment: azureml:greeter:1\n")
    assert "tutti environment create --file FILE" in site.cli("run", job).stderr


def test_an_environment_by_name_has_all_that_its_build_copies(site, tmp_path):
    context = tmp_path / "environments/context"
    context.mkdir(parents=True)
    for name, text in {"Dockerfile": "FROM python\nADD ./topo.xml /opt/\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n",
                       "requirements.txt": "tutti_greeter\n", "topo.xml": "<system/>\n", "raw.bin": "x\n", ".dockerignore": "*.bin\n"}.items():
        (context / name).write_text(text)
    (tmp_path / "environments/environment.yml").write_text("name: topology\nversion: 1\nbuild: {path: context}\n")
    made = site.cli("environment", "create", "--file", tmp_path / "environments/environment.yml")
    assert made.returncode == 0, made.stderr
    kept = {path.name for path in (site.home / "assets/environment/topology/1").rglob("*") if path.is_file()}
    assert kept == {"environment.yml", "Dockerfile", "requirements.txt", "topo.xml", ".dockerignore"}
    shutil.rmtree(tmp_path / "environments")
    job = tmp_path / "job.yml"
    job.write_text("command: python -c \"import tutti_greeter; print('greeted')\"\nenvironment: azureml:topology:1\n")
    result = site.cli("run", job, timeout=300)
    assert result.returncode == 0 and "[0] greeted" in result.stdout, (result.stdout, result.stderr)
    assert site.cli("environment", "delete", "topology").returncode == 0


def test_data_that_a_kept_pipeline_component_names_stay_where_they_are(site, tmp_path):
    parts = tmp_path / "parts"
    (parts / "words").mkdir(parents=True)
    (parts / "words/list.txt").write_text("one two\n")
    (parts / "all.yml").write_text("name: count_all\nversion: 1\ntype: pipeline\njobs:\n  a:\n    command: cat ${{inputs.words}}/list.txt\n"
                                   "    environment: host\n    inputs: {words: {type: uri_folder, path: ./words}}\n")
    made = site.cli("component", "create", "-f", parts / "all.yml")
    assert made.returncode == 0, made.stderr
    job = tmp_path / "job.yml"
    job.write_text("type: pipeline\njobs:\n  all: {component: azureml:count_all:1}\n")
    result = site.cli("run", job, "-o", "json", timeout=300)
    assert result.returncode == 0, (result.stdout, result.stderr)
    assert site.log_text(f"{json.loads(result.stdout)['id']}.all.a", 0) == "one two\n"
    assert site.cli("component", "delete", "count_all").returncode == 0


def test_what_is_wrong_with_a_file_that_gives_a_name_is_said_and_nothing_is_kept(site, tmp_path):
    environment = tmp_path / "environment.yml"
    environment.write_text("conda_file: {dependencies: [numpy]}\n")
    for arguments, words in ((["-f", environment], 'the key "name" is missing: write it, or give --name NAME'),
                             (["-f", environment, "--name", "a/b"], "--name must be of letters"),
                             (["-f", environment, "--name", "..", "--version", "1"], "--name must be of letters"),
                             (["-f", environment, "--name", "a", "--version", "1/2"], "--version must be of letters"),
                             (["-f", tmp_path / "gone.yml"], "gone.yml")):
        result = site.cli("environment", "create", *arguments)
        assert result.returncode == 2 and words in result.stderr, (arguments, result.stderr)
    component = tmp_path / "component.yml"
    component.write_text("name: broken\ncommand: python3 main.py ${{inputs.x}}\ncode: gone\nenvironment: host\n")
    result = site.cli("component", "create", "-f", component)
    assert result.returncode == 2 and "component.yml:2: " in result.stderr, result.stderr
    component.write_text("name: broken\ncommand: python3 main.py\ncode: gone\nenvironment: host\n")
    result = site.cli("component", "create", "-f", component)
    assert result.returncode == 2 and "component.yml:3: code: " in result.stderr and "does not exist" in result.stderr, result.stderr
    assert json.loads(site.cli("component", "list", "-o", "json").stdout)["assets"] == []


@pytest.mark.parametrize("command", ["data", "environment", "component", "compute", "job"])
def test_a_file_given_to_the_wrong_command_is_told_the_right_one(site, tmp_path, command):
    files = {"data": "name: d\ntype: uri_file\npath: x\n", "environment": "name: e\nimage: python\n",
             "component": "name: c\nversion: 1\ncommand: x\n", "compute": "name: k\ntype: amlcompute\n",
             "job": "experiment_name: j\ncommand: x\ncompute: local\n"}
    for kind, text in files.items():
        if kind == command:
            continue
        (tmp_path / f"{kind}.yml").write_text(text)
        result = site.cli(command, "create", "-f", tmp_path / f"{kind}.yml")
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result.stderr
        assert f"this is a file of kind {kind}, where one of kind {command} is expected" in result.stderr, result.stderr
        assert f"`tutti {kind} create --file {tmp_path / kind}.yml`" in result.stderr, result.stderr


def test_computes_come_from_their_files(site, tmp_path):
    (tmp_path / "compute.yml").write_text(
        "$schema: https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json\nname: small-cluster\ntype: amlcompute\n"
        "size: STANDARD_DS3_v2\nmin_instances: 0\nmax_instances: 1\ntier: low_priority\n")
    made = site.cli("compute", "create", "-f", tmp_path / "compute.yml")
    assert made.returncode == 0 and "azureml:small-cluster is this machine's nodes" in made.stdout, made.stderr
    assert "compute.yml:4" in made.stderr and "the nodes are those that the name stands for" in made.stderr
    shown = json.loads(site.cli("compute", "show", "Small-Cluster", "-o", "json").stdout)
    assert shown["max_instances"] == 1 and shown["stands_for"] == "local"
    names = [compute["name"] for compute in json.loads(site.cli("compute", "list", "-o", "json").stdout)["computes"]]
    assert {"local", "cpu-cluster", "small-cluster"} <= set(names)
    (tmp_path / "job.yml").write_text("command: 'true'\ncompute: azureml:small-cluster\nenvironment: host\n")
    assert site.cli("run", tmp_path / "job.yml").returncode == 0
    two = site.cli("job", "validate", "-f", tmp_path / "job.yml", "--set", "resources.instance_count=2")
    assert two.returncode == 2 and 'compute "small-cluster" lets a job take 1 node' in two.stderr, two.stderr
    assert site.cli("compute", "create", "-f", tmp_path / "compute.yml", "--as", "no-such-cluster").returncode == 2
    assert site.cli("compute", "delete", "-n", "small-cluster").returncode == 0
    assert site.cli("compute", "delete", "-n", "small-cluster").returncode == 4
    gone = site.cli("job", "validate", "-f", tmp_path / "job.yml")
    assert gone.returncode == 2 and "tutti compute create --file" in gone.stderr


REFUSED = {  # a file of azure_refused/: the line that is blamed, and what is said
    "automl": (2, "jobs of type automl are not run: a service of Azure ML"),
    "spark": (2, "jobs of type spark are not run: it needs a Spark cluster"),
    "parallel_step": (7, 'step "identify" is of type parallel, which is not run: a driver of Azure ML deals out its mini-batches'),
    "automl_step": (5, 'step "classify" is of type automl, which is not run'),
    "finetuning": (1, "jobs of type finetuning are not run"),
    "schedule": (1, "a file of kind schedule, where one of kind job is expected: have cron submit the job"),
    "data_import": (1, "a file of kind data import, where one of kind job is expected: bring the data here"),
    "online_deployment": (1, "a file of kind deployment, where one of kind job is expected: it serves a model, which jobs do not"),
    "batch_deployment": (1, "a file of kind deployment"),
    "endpoint": (1, "a file of kind endpoint"),
    "model": (1, "a file of kind model, where one of kind job is expected: make it known by `tutti model create"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_run_is_refused_with_the_reason_alone(site, name):
    line, words = REFUSED[name]
    result = site.cli("job", "validate", "--offline", "-f", ROOT / "tests/azure/refused" / f"{name}.yml", "-o", "json")
    assert result.returncode == 2, result.stdout
    errors = json.loads(result.stdout)["errors"]
    assert errors[0]["location"].endswith(f"{name}.yml:{line}") and words in errors[0]["message"], errors
    assert len(errors) == 1 or name == "automl_step", errors


def test_a_spark_pool_is_no_compute_here(site):
    result = site.cli("compute", "create", "-f", ROOT / "tests/azure/refused/synapse.yml")
    assert result.returncode == 2 and "synapse.yml:2: type synapsespark is a Spark cluster" in result.stderr
