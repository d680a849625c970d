"""Story: a cluster of bare machines keeps accounts in the site's MariaDB (SPEC E3)."""
import os
import shutil
import signal
import subprocess

import pytest

from cluster_lab import LAB, NOTHING, Machines, needs_machines, steps
from conftest import wait_until

MISSING = [program for program in ("slurmdbd", "mariadbd", "mariadb-install-db") if not shutil.which(program)]
pytestmark = [needs_machines, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")]
DATABASE = "mysql://slurm:{}@10.78.0.1:3306/slurm_acct"


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    machines = Machines(tmp_path_factory.mktemp("cluster"))
    try:
        machines.do("start", 2)
        yield machines
    finally:
        machines.do("stop")


@pytest.fixture(scope="module")
def database(machines, tmp_path_factory):
    """A MariaDB of the site, at the login place."""
    folder = tmp_path_factory.mktemp("database")
    data, pid = folder / "data", folder / "pid"
    subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
                    "--skip-test-db", "--user=root"], check=True, timeout=60, capture_output=True)
    (folder / "init.sql").write_text("CREATE USER 'slurm'@'%' IDENTIFIED BY 'right';\n"
                                     "GRANT ALL ON slurm_acct.* TO 'slurm'@'%';\n")
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen([LAB, "run", machines.lab, "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}",
                                   f"--socket={folder}/socket", f"--pid-file={pid}", "--bind-address=10.78.0.1",
                                   f"--init-file={folder}/init.sql"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(lambda: (folder / "socket").exists(), 30, f"MariaDB answers: {(folder / 'log').read_text()}")
        yield
    finally:
        if pid.exists():
            os.kill(int(pid.read_text()), signal.SIGTERM)
        server.wait(timeout=30)


def accounts(machines):
    """(name, state, exit code, comment) of each job in the database."""
    told = machines.on("h1", "cd /; sacct --allusers --allocations --noheader --parsable2 --format=JobName,State,ExitCode,Comment")
    return [tuple(line.split("|")) for line in told.splitlines()]


def test_accounts_are_kept_in_the_database_that_is_given(machines, database):
    refused = machines.create("h1,h2", "--accounting-db", DATABASE.format("wrong"), code=9)
    assert "h1: slurmdbd: " in refused and "Access denied for user 'slurm'" in refused, refused
    made = steps(machines.create("h1,h2", "--accounting-db", DATABASE.format("right")))
    assert made[0] == ("h1", "write slurmdbd.conf; start slurmdbd") and made[-1][1] == "srun hostname", made
    assert machines.create("h1,h2") == NOTHING.format("2 nodes are")
    machines.on("h1", "cd /; sbatch --job-name=fails --comment=tutti:a:b.1 --output=/dev/null --wrap 'exit 3'")
    wait_until(lambda: ("fails", "FAILED", "3:0", "tutti:a:b.1") in accounts(machines), 30, "it is in the accounts")


def test_a_deleted_cluster_leaves_no_database_daemon(machines, database):
    machines.tutti("delete", "--force")
    assert machines.on("h1", "cat /proc/[0-9]*/comm | grep -xE 'munged|slurm.*' || true") == ""
