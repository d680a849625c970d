"""Story: a script is a job: it runs on several nodes without a job file, and the file that it stands for can be had."""
import os
import pathlib
import pty
import re
import subprocess

import pytest
import yaml

RANKS = "import os, sys\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'], sys.argv[1:], flush=True)\n"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def last_job(service):
    return service.job(service.get("/v1/jobs")["jobs"][0]["id"])


def test_a_python_script_runs_on_two_nodes_with_its_arguments(service, folder):
    (folder / "train.py").write_text("import helper\n" + RANKS)
    (folder / "helper.py").write_text("")
    result = service.cli("run", folder / "train.py", "--nodes", 2, "--processes-per-node", 2, "--", "--name", "a b", "$HOME")
    assert result.returncode == 0, result.stderr + result.stdout
    for rank in range(4):
        assert service.log_text(last_job(service)["id"], rank) == f"rank {rank} of 4 ['--name', 'a b', '$HOME']\n"
    assert "distribution: pytorch" in result.stderr and "--distribution" in result.stderr
    assert "environment: host" in result.stderr and "--environment" in result.stderr


@pytest.mark.parametrize("name, text, mode", [("run.sh", "echo rank $RANK of $WORLD_SIZE $1\n", 0o644),
                                              ("run", "#!/bin/sh\necho rank $RANK of $WORLD_SIZE $1\n", 0o755), ("binary", None, 0o755)])
def test_shell_scripts_and_binaries_run_as_well(service, folder, name, text, mode):
    file = folder / name
    file.write_bytes(pathlib.Path("/bin/echo").read_bytes() if text is None else text.encode())
    file.chmod(mode)
    result = service.cli("run", file, "--nodes", 2, "--", "word")
    assert result.returncode == 0, result.stderr + result.stdout
    expected = "word\n" if text is None else "rank 1 of 2 word\n"
    assert service.log_text(last_job(service)["id"], 1) == expected


def test_the_saved_job_file_is_the_same_job(service, folder, tmp_path):
    (folder / "train.py").write_text("import torch.nn\n")
    (folder / "requirements.txt").write_text("")
    (folder / "data").mkdir()
    words = ["--nodes", 2, "--processes-per-node", 3, "--input", f"data={folder}/data", "--compute", "local", "--set", "limits.timeout=60"]
    files = [folder / "job.yml", tmp_path / "elsewhere.yml"]
    for file in files:
        result = service.cli("job", "create", folder / "train.py", *words, "--save", file, "--", "--data", "${{inputs.data}}")
        assert result.returncode == 0, result.stderr
        saved = last_job(service)
        written = yaml.safe_load(file.read_text())
        assert written["distribution"] == {"type": "pytorch", "process_count_per_instance": 3}
        assert written["resources"]["instance_count"] == 2 and written["limits"]["timeout"] == 60
        assert written["environment"]["conda_file"].endswith("requirements.txt")
        assert service.cli("job", "create", file).returncode == 0
        again = last_job(service)
        assert again["id"] != saved["id"]
        own = {"id", "sequence", "created", "started", "ended", "events", "state", "reason", "expected_start", "expected_start_is", "queue", "nodes", "failures",
               "warnings", "origin"}
        if file.parent == folder:
            own.add("snapshot")  # the file is now in the code
        assert {k: v for k, v in again.items() if k not in own} == {k: v for k, v in saved.items() if k not in own}
        for job in (saved, again):
            service.cli("job", "cancel", job["id"])
    assert yaml.safe_load(files[0].read_text())["code"] == "."


def test_what_was_downloaded_beside_a_script_is_not_sent_with_it(service, folder):
    (folder / "train.py").write_text("import os\nprint(sorted(os.listdir('.')))\nopen('outputs/model', 'w').write('x' * 5000)\n")
    assert service.cli("run", folder / "train.py").returncode == 0
    first = last_job(service)["id"]
    assert service.cli("job", "download", first, cwd=folder).returncode == 0
    assert (folder / first / "outputs/model").exists()
    result = service.cli("run", folder / "train.py")
    assert service.log_text(last_job(service)["id"], 0) == "['logs', 'outputs', 'train.py']\n"
    assert f"left out by {first}/.tutti-download: {first}/ (" in result.stderr, result.stderr


def git(folder, *words):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", "-C", folder, *words], check=True, capture_output=True)


def test_a_job_is_run_again_as_it_was_or_with_changes(service, folder):
    script = folder / "train.py"
    script.write_text("import os, sys\nprint('first', sys.argv[1:], os.environ.get('SEED'), flush=True)\n")
    git(folder, "init", "-q", "-b", "trunk")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    script.write_text(script.read_text() + "# changed\n")
    assert service.cli("run", script, "--set", "experiment_name=sweeps", "--", "--lr", "0.01").returncode == 0
    first = last_job(service)
    shown = service.cli("job", "show", "last").stdout
    assert "train.py --lr 0.01" in shown and f"{first['origin']['git_commit'][:12]} (trunk), changed since" in shown, shown
    script.write_text("raise SystemExit('another')\n")
    for words, said in (([], "first ['--lr', '0.01'] None"), (["--set", "environment_variables.SEED=7"], "first ['--lr', '0.01'] 7"),
                        (["--", "--lr", "0.5 $x"], "first ['--lr', '0.5 $x'] None")):
        result = service.cli("job", "rerun", first["id"], *words)
        assert result.returncode == 0 and said in result.stdout, (result.stdout, result.stderr)
        assert last_job(service)["origin"]["rerun_of"] == first["id"]
    listed = service.cli("job", "list", "--experiment", "sweeps").stdout
    assert listed.count("train.py --lr 0.01") == 3 and listed.count("--lr '0.5 $x'") == 1, listed
    assert "no jobs like that" in service.cli("job", "list", "--experiment", "others").stderr
    assert service.cli("job", "list", "--name", first["id"]).stdout.count("train.py") == 1
    assert "train.py" not in service.cli("job", "list", "--age", "0s").stdout


def test_what_differs_from_the_scripts_last_job_is_shown(service, folder, tmp_path):
    script = folder / "train.py"
    script.write_text("print('one')\n")
    (folder / "weights").write_bytes(bytes(30))
    toys = tmp_path / "toys"
    (toys / "toy-1.0.dist-info").mkdir(parents=True)
    words = ["run", script, "--env", f"PYTHONPATH={toys}"]
    assert service.cli(*words, "--", "--lr", "0.1").returncode == 0
    first = last_job(service)["id"]
    assert "Differs from" not in service.cli("job", "show", first).stdout
    result = service.cli("job", "diff", first)
    assert result.returncode == 4 and f"tutti job diff {first} OTHER" in result.stderr, result.stderr

    script.write_text("print('two')\n")
    (folder / "weights").write_bytes(bytes(50))
    (toys / "toy-1.0.dist-info").rename(toys / "toy-2.0.dist-info")
    (folder / "other.py").write_text("pass\n")
    assert service.cli("run", folder / "other.py").returncode == 0  # of another script
    (folder / "other.py").unlink()
    assert service.cli(*words, "--env", "SEED=7", "--", "--lr", "0.01").returncode == 0
    second = last_job(service)["id"]
    shown = service.cli("job", "show", second).stdout
    line = next(line for line in shown.splitlines() if line.startswith("Differs from"))
    assert line.startswith(f"Differs from {first}: --lr 0.1 -> 0.01; "), shown
    for said in ("environment_variables.SEED none -> 7", "train.py +1 -1", "weights (binary)", "toy 1.0 -> 2.0"):
        assert said in line, (said, line)
    kept = service.request(f"/v1/jobs/{second}/files/logs/environment.txt").read().decode()
    assert kept.startswith("# Python 3.") and "\ntoy==2.0\n" in kept, kept
    assert re.search(r", Python 3[.\d]+ \(/\S*/python3\S*, first in the job's PATH\), .*\(logs/environment.txt\)", shown), shown

    whole = service.cli("job", "diff", second).stdout
    for said in (f"From {first} to {second}\n", "--lr 0.1 -> 0.01", "toy 1.0 -> 2.0", "-print('one')\n+print('two')\n", "Bin 30 -> 50 bytes"):
        assert said in whole, (said, whole)
    assert "+print('one')" in service.cli("job", "diff", first, second).stdout
    assert service.cli("job", "diff", second, second).stdout.endswith("nothing differs\n")


def test_options_stand_for_the_keys_that_change_most(service, folder, write_job):
    assert subprocess.run([service.program, "secret", "set", "my-hub"], input="sesame-1234", text=True, env=service.environment,
                          timeout=60).returncode == 0
    (folder / "show.sh").write_text('echo "$A, $B, ${#MY_HUB}, ${#KEY}"\n')
    words = ["--experiment", "trials", "--env", "A=b c", "--env", "B=", "--secret", "my-hub", "--secret", "my-hub=KEY", "--compute", "local",
             "--cpus", 1, "--memory", "100MB"]
    for name, file in (("of-a-script", folder / "show.sh"), ("of-a-file", write_job('echo "$A, $B, ${#MY_HUB}, ${#KEY}"'))):
        result = service.cli("run", file, "--name", name, *words)
        assert result.returncode == 0, result.stderr + result.stdout
        job = service.job(name)
        assert service.log_text(name, 0) == "b c, , 11, 11\n"
        assert (job["experiment_name"], job["part"]["cpus"], job["part"]["memory_bytes"]) == ("trials", 1, 100_000_000)
    for words, said in ((["--memory", "lots"], '--memory: "lots" is no size'), (["--env", "=x"], '"=x" is not NAME=VALUE'),
                        (["--name", "of-a-file"], "of-a-file")):
        result = service.cli("run", folder / "show.sh", *words)
        assert result.returncode in (2, 7) and said in result.stderr and "resources.properties" not in result.stderr, (words, result.stderr)


def test_a_job_file_with_a_name_is_run_again_under_another(service, write_job):
    first = service.submit(write_job("cat given", files={"given": "of the first\n"}, name="named"))
    assert first == "named" and service.wait(first)["state"] == "Completed"
    result = service.cli("job", "rerun", "named", "--detach")
    again = result.stdout.strip()
    assert again != "named" and service.wait(again)["state"] == "Completed", result.stderr
    assert service.log_text(again, 0) == "of the first\n"
    result = service.cli("job", "rerun", "named", "--", "--lr", "1")
    assert result.returncode == 2 and "--set command=" in result.stderr


def test_what_lies_beside_the_script_is_its_environment(service, folder):
    (folder / "train.py").write_text("print('hi')\n")
    (folder / "pyproject.toml").write_text("[tool.black]\nline-length = 100\n")
    file = folder.parent / "a.yml"

    def environment(*words):
        file.unlink(missing_ok=True)
        result = service.cli("job", "validate", "--offline", folder / "train.py", "--save", file, *words)
        assert result.returncode == 0, result.stderr
        return yaml.safe_load(file.read_text())["environment"], result.stderr

    assert environment()[0] == "host"  # the file is of a tool alone
    (folder / "conda.yaml").write_text("dependencies: [python=3.11]\n")
    assert environment()[0] == {"conda_file": "./project/conda.yaml"}
    (folder / "requirements.txt").write_text("")
    chosen, said = environment()
    assert chosen == {"conda_file": "./project/requirements.txt"} and "requirements.txt beside it, and not conda.yaml" in said
    assert environment("--environment", "host")[0] == "host"
    assert environment("--environment", folder / "conda.yaml")[0] == {"conda_file": "./project/conda.yaml"}


def test_a_script_of_a_project_runs_in_its_root_wherever_it_is_started_from(service, folder):
    for name, text in {"src/train.py": "import helper; print(open('configs/a.txt').read(), __file__)\n", "src/helper.py": "", "configs/a.txt": "of the root",
                       "pyproject.toml": "[tool.black]\n"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for cwd, words in [(folder, ["src/train.py"]), (folder / "src", ["train.py"]), (folder.parent, ["project/src/train.py", "--code", "project/"])]:
        result = service.cli("run", *words, cwd=cwd)
        assert result.returncode == 0 and service.log_text(last_job(service)["id"], 0).startswith("of the root "), result.stderr
        said = f"code: {folder}, since pyproject.toml is there; src/train.py runs in that folder (--code says otherwise)\n"
        assert (said in result.stderr) == ("--code" not in words), result.stderr
    alone = service.cli("run", "src/train.py", "--code", "src", cwd=folder)
    assert alone.returncode == 1 and "No such file or directory: 'configs/a.txt'" in alone.stdout, alone.stdout + alone.stderr
    (folder / "requirements.txt").write_text("hydra-core\n")
    result = service.cli("job", "validate", "--offline", folder / "src/train.py", "--save", folder.parent / "a.yml")
    assert result.returncode == 0 and f"environment: requirements.txt in {folder}" in result.stderr, result.stderr
    assert yaml.safe_load((folder.parent / "a.yml").read_text())["environment"] == {"conda_file": "./project/requirements.txt"}


def test_one_process_is_none_of_several_unless_that_is_said(service, folder):
    """As `python3 train.py` is at home: many scripts call init_process_group where one of these is set."""
    (folder / "train.py").write_text("import os\ntry:\n    import torch\nexcept ImportError:\n    pass\n"
                                     "print({name: os.environ.get(name) for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'OMPI_COMM_WORLD_RANK')})\n"
                                     "os.environ['TUTTI_JOB_ID']\n")
    (folder / "job.yml").write_text("command: python3 train.py\ncode: .\nenvironment: host\n")
    for words in ([folder / "train.py"], [folder / "job.yml"]):
        result = service.cli("run", *words)
        assert result.returncode == 0 and "distribution" not in result.stderr, result.stderr
        assert set(eval(service.log_text(last_job(service)["id"], 0)).values()) == {None}
    assert service.cli("run", folder / "train.py", "--distribution", "pytorch").returncode == 0
    seen = eval(service.log_text(last_job(service)["id"], 0))
    assert seen.pop("MASTER_ADDR") and list(seen.values()) == ["0", "0", "1", "0"]
    (folder / "train.py").write_text("import os; os.environ['RANK']\n")
    result = service.cli("run", folder / "train.py")
    assert result.returncode == 1 and "--distribution pytorch" in result.stdout + result.stderr, result.stdout + result.stderr


def test_options_that_make_no_sense_are_refused_with_the_remedy(service, folder, write_job):
    script = folder / "train.py"
    script.write_text("")
    for words, said in [(["--distribution", "torch"], "none of mpi, pytorch"), (["--input", "data=/no/such"], "/no/such"),
                        (["--environment", "missing.txt"], "missing.txt"),
                        (["--distribution", "none", "--processes-per-node", "2"], "--processes-per-node 2")]:
        result = service.cli("run", script, *words)
        assert result.returncode == 2 and said in result.stderr, result.stderr
    for words in (["--nodes", "2"], ["--", "x"], ["--save", "y.yml"]):
        result = service.cli("run", write_job("true"), *words)
        assert result.returncode == 2 and "job file" in result.stderr, result.stderr
    result = service.cli("run", folder / "missing.py", "--nodes", "2")
    assert result.returncode == 2 and "missing.py: No such file" in result.stderr, result.stderr
    assert service.get("/v1/jobs")["jobs"] == []


def test_a_script_in_a_home_folder_is_refused_and_can_be_sent_alone(service, folder):
    (folder / "train.py").write_text("import os; print(sorted(os.listdir('.')))\n")
    (folder / "secret").write_text("")
    service.environment["HOME"] = str(folder)
    result = service.cli("run", folder / "train.py")
    assert result.returncode == 2 and ".amlignore" in result.stderr and "--set code=train.py" in result.stderr, result.stderr
    result = service.cli("run", folder / "train.py", "--set", "code=train.py")
    assert result.returncode == 0 and "secret" not in service.log_text(last_job(service)["id"], 0), result.stderr


def test_a_job_file_that_sends_a_home_folder_or_all_of_the_machine_is_told(service, folder):
    (folder / "job.yml").write_text("command: ls -A\ncode: .\nenvironment: host\n")
    (folder / ".ssh").mkdir()
    (folder / ".ssh/id_rsa").write_text("key")
    service.environment["HOME"] = str(folder)
    for words in (("job", "create"), ("job", "validate", "--file"), ("job", "validate", "--offline", "--file")):
        sent = service.cli(*words, folder / "job.yml")
        assert sent.returncode == 0 and "a home folder, is sent with the job" in sent.stderr and ".ssh/id_rsa is sent" in sent.stderr, sent.stderr
    (folder / "job.yml").write_text("command: ls\ncode: /\nenvironment: host\n")
    refused = service.cli("job", "create", folder / "job.yml")
    assert refused.returncode == 2 and "job.yml:2: code: / is all of this machine" in refused.stderr, refused.stderr


def test_a_folder_with_very_many_files_is_refused(service, folder):
    (folder / "train.py").write_text("")
    (folder / "data").mkdir()
    for number in range(20000):
        (folder / "data" / str(number)).touch()
    result = service.cli("run", folder / "train.py")
    assert result.returncode == 2 and "20,000 files or more" in result.stderr, result.stderr
    (folder / ".gitignore").write_text("data/\n")
    assert service.cli("run", folder / "train.py").returncode == 0


def test_init_makes_a_job_file_by_flags_and_overwrites_nothing(service, folder):
    (folder / "train.py").write_text(RANKS)
    result = service.cli("init", "--script", "train.py", "--nodes", 2, cwd=folder)
    assert result.returncode == 0 and "tutti run job.yml" in result.stdout, result.stderr
    assert service.cli("run", "job.yml", cwd=folder).returncode == 0
    assert service.log_text(last_job(service)["id"], 1) == "rank 1 of 2 []\n"
    before = (folder / "job.yml").read_text()
    result = service.cli("init", "--command", "echo other", cwd=folder)
    assert result.returncode == 7 and "not overwritten" in result.stderr
    assert (folder / "job.yml").read_text() == before
    assert service.cli("init", "echo.yml", "--command", "echo $RANK; true", cwd=folder).returncode == 0
    assert yaml.safe_load((folder / "echo.yml").read_text())["command"] == "echo $RANK; true"
    result = service.cli("init", "x.yml", cwd=folder)
    assert result.returncode == 2 and "--script" in result.stderr and "--command" in result.stderr


def answer(service, folder, answers, *words):
    mine, theirs = pty.openpty()
    process = subprocess.Popen([service.program, "init", *words], env=service.environment, cwd=folder, stdin=theirs, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    os.close(theirs)
    os.write(mine, answers)
    out, _ = process.communicate(timeout=30)
    os.close(mine)
    return process.returncode, out


def test_init_says_before_it_asks_what_cannot_be_made(service, folder):
    (folder / "job.yml").write_text("mine\n")
    code, out = answer(service, folder, b"")
    assert code == 7 and "not overwritten" in out and "1/3" not in out, out
    code, out = answer(service, folder, b"", "nodir/job.yml")
    assert code == 2 and "there is no folder" in out and "1/3" not in out, out
    code, out = answer(service, folder, b"nosuch.py\necho fine\n1\n1\nhost\n", "other.yml")
    assert code == 0 and "there is no script nosuch.py here" in out, out
    assert yaml.safe_load((folder / "other.yml").read_text())["command"] == "echo fine"


def test_init_takes_a_file_that_is_no_script_of_its_own_as_a_command(service, folder):
    (folder / "batch.sh").write_text("#!/bin/sh\n#SBATCH --nodes=2\necho batch\n")
    (folder / "tool").write_text("echo tool\n")
    (folder / "tool").chmod(0o755)
    for given, command in (("batch.sh", "bash batch.sh"), ("./tool", "./tool")):
        code, out = answer(service, folder, f"{given}\n1\n1\nhost\n".encode(), f"{given[-4:]}.yml")
        assert code == 0 and "there is no script" not in out, out
        assert yaml.safe_load((folder / f"{given[-4:]}.yml").read_text())["command"] == command
        assert service.cli("run", folder / f"{given[-4:]}.yml").returncode == 0
        refused = service.cli("init", "new.yml", "--script", given, cwd=folder)
        assert refused.returncode == 2 and "--command" in refused.stderr and "no such script" not in refused.stderr, refused.stderr


def test_a_job_file_is_saved_once_the_job_is_taken(service, folder):
    (folder / "train.py").write_text("print('hi')\n")
    refused = service.cli("job", "create", folder / "train.py", "--save", folder / "x.yml", "--set", "priority=high")
    assert refused.returncode == 2 and not (folder / "x.yml").exists() and "is not written" in refused.stderr, refused.stderr
    taken = service.cli("job", "create", folder / "train.py", "--save", folder / "x.yml")
    assert taken.returncode == 0 and (folder / "x.yml").exists() and "saved: " in taken.stderr, taken.stderr
    nowhere = service.cli("job", "create", folder / "train.py", "--save", folder / "nodir/x.yml")
    assert nowhere.returncode == 2 and "there is no folder" in nowhere.stderr, nowhere.stderr
    assert len(service.get("/v1/jobs")["jobs"]) == 1


def test_init_asks_three_questions_on_a_terminal(service, folder):
    (folder / "train.py").write_text("import torch\n")
    code, out = answer(service, folder, b"train.py\nmany\n3\n2\n\n")
    assert code == 0, out
    assert all(f"{number}/3" in out for number in (1, 2, 3))
    written = yaml.safe_load((folder / "job.yml").read_text())
    assert written["resources"]["instance_count"] == 3 and written["distribution"] == {"type": "pytorch", "process_count_per_instance": 2}
    assert written["command"] == "python3 train.py" and written["environment"] == "host"


def test_what_is_of_this_machine_alone_is_not_sent(service, folder):
    (folder / "train.py").write_text("import os\nprint('.env' in os.listdir(), '.venv' in os.listdir())\n")
    subprocess.run(["python3", "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    (folder / ".env").write_text("KEY=secret\n")
    result = service.cli("run", folder / "train.py")
    assert result.returncode == 0, result.stderr
    assert "warning: .env is sent with the code" in result.stderr and ".amlignore" in result.stderr
    assert service.log_text(last_job(service)["id"], 0) == "True False\n"


def test_a_program_of_the_machine_takes_no_others_along(service):
    result = service.cli("run", "/usr/bin/env")
    assert result.returncode == 2, result.stdout
    assert "all of /usr/bin would be sent with it (programs of this machine, " in result.stderr and "--set code=env" in result.stderr


@pytest.mark.skipif(pathlib.Path("/dev/nvidiactl").exists(), reason="this machine has GPUs")
def test_gpus_that_are_not_there_are_refused(service, folder):
    (folder / "train.py").write_text("")
    result = service.cli("run", "--gpus", 2, folder / "train.py")
    assert result.returncode == 2 and "asks for GPUs, of which this machine has none" in result.stderr, result.stderr
    assert "has no effect" not in result.stderr and "docker_args" not in result.stderr and "--gpus 2 asks" in result.stderr
