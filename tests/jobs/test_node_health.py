"""Story: a node that is ill gets no jobs, says why, and gets them again once it is well; jobs go elsewhere."""
import json
import re
import subprocess

from conftest import wait_until
from needs import needs_small_disk


def row(service, name):
    return next(node for node in service.get("/v1/nodes")["nodes"] if node["name"] == name)


def test_a_node_whose_disk_is_gone_gets_no_jobs_until_it_is_back(start_service, write_job):
    service = start_service(nodes=2)
    assert service.cli("node", "check").returncode == 0
    folder = service.home / "nodes" / "n1"
    wait_until((folder / ".ahead/lock").exists, 30, "the launcher that waits there makes no more folders")
    away = folder.with_name("away")
    folder.rename(away)
    checked = service.cli("node", "check", "n1")
    assert checked.returncode == 1, checked
    line = next(line for line in checked.stdout.splitlines() if " disk " in line)
    assert "ill" in line and "No such file or directory" in line, checked.stdout
    assert row(service, "n1")["state"] == "cordoned" and row(service, "n1")["cordoned_by"] == "check"
    assert "cordoned" in next(line for line in service.cli("node", "list").stdout.splitlines() if line.startswith("n1 "))
    assert service.wait(service.submit(write_job("echo elsewhere")))["nodes"] == ["n2"]
    doctor = json.loads(service.cli("doctor", "-o", "json").stdout)
    assert "node n1 is ill and gets no jobs: disk: " in json.dumps(doctor), doctor
    away.rename(folder)
    wait_until(lambda: row(service, "n1")["cordoned_by"] is None, 60, "it is looked at again and found well")
    assert service.wait(service.submit(write_job("echo here")))["nodes"] == ["n1"]


def test_the_sites_own_program_has_a_word_and_a_user_the_last_one(start_service, write_job, tmp_path):
    home, fault = tmp_path / "home", tmp_path / "fault"
    home.mkdir()
    program = tmp_path / "check-node"
    program.write_text(f"#!/bin/sh\n[ ! -e {fault} ] || {{ cat {fault}; exit 1; }}\n")
    program.chmod(0o755)
    (home / "site.yml").write_text(f"health_check: {program}\n")
    service = start_service(nodes=1, home=home)
    assert service.cli("node", "check", "n1").returncode == 0
    fault.write_text("fan 3 stands\nsee the manual\n")
    wait_until(lambda: service.cli("node", "check", "n1").returncode == 1, 20, "what is found is a second old at most")
    assert row(service, "n1")["reason"] == "program: fan 3 stands"
    waits = service.submit(write_job("echo done"))
    wait_until(lambda: "1 of 1 is cordoned" in service.job(waits)["reason"], 20, "it says what it waits for")
    service.kill()
    service.start()
    assert row(service, "n1")["cordoned_by"] == "check"
    assert service.cli("node", "check", "n1").returncode == 1
    assert service.cli("node", "uncordon", "n1").stdout == "n1 takes jobs again\n"
    assert service.wait(waits)["state"] == "Completed"
    assert service.cli("node", "check", "n1").returncode == 1  # it is still said, but accepted
    assert row(service, "n1")["cordoned_by"] is None


def test_a_rank_that_fails_on_a_node_that_is_then_found_ill_is_begun_again(start_service, write_job, tmp_path):
    home, fault = tmp_path / "home", tmp_path / "fault"
    home.mkdir()
    program = tmp_path / "check-node"
    program.write_text(f"#!/bin/sh\n[ ! -e {fault} ] || {{ cat {fault}; exit 1; }}\n")
    program.chmod(0o755)
    (home / "site.yml").write_text(f"health_check: {program}\n")
    service = start_service(nodes=1, home=home)
    job = service.submit(write_job(f"[ $TUTTI_RESTART_COUNT = 0 ] || exec echo again; echo 'GPU 1 is gone' >{fault}; exit 3"))  # at once, which costs no retry
    wait_until(lambda: any("; node n1 is ill: program: GPU 1 is gone; it is begun again, attempt 2 of 2" in event["reason"]
                           for event in service.job(job)["events"]), 60, lambda: service.job(job))
    assert row(service, "n1")["cordoned_by"] == "check", "before another job could begin there"
    fault.unlink()
    ended = service.wait(job)
    assert ended["state"] == "Completed" and service.log_text(job, 0).endswith("again\n"), ended
    # Last, since after a failure that was not the node's, and a look that took long, no other follows for a while.
    own = service.wait(service.submit(write_job("exit 3", retry_settings={"max_retries": 1})))
    assert own["state"] == "Failed" and "ill" not in own["reason"], own["reason"]


@needs_small_disk
def test_a_job_that_a_nodes_full_disk_kept_from_preparing_goes_to_another_node(start_service, write_job, tmp_path):
    service = start_service(nodes=2)
    service.kill()
    disk = service.home / "nodes" / "n1"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], check=True)
    try:
        service.start()
        data = tmp_path / "data"
        data.mkdir()
        (data / "large").write_bytes(b"x" * (12 << 20))
        job = service.wait(service.submit(write_job(
            "ls -l ${{inputs.data}}", inputs={"data": {"type": "uri_folder", "path": str(data), "mode": "download"}},
            retry_settings={"max_retries": 1})))
        assert job["state"] == "Completed" and job["nodes"] == ["n2"], job
        # EIO is what some sandboxes say of a tmpfs that is full.
        words = re.compile(r"node n1: .*(No space left on device|Input/output error); it is begun again, attempt 2 of 2")
        assert any(words.search(event["reason"]) for event in job["events"]), json.dumps(job["events"], indent=1)
        wait_until(lambda: row(service, "n1")["state"] == "idle", 20, "what it left is removed")
        assert row(service, "n1")["cordoned_by"] is None  # one job is one witness, and the disk is well without it
    finally:
        service.stop()
        subprocess.run(["umount", "-l", disk], check=True)
