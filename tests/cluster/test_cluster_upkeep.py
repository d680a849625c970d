"""Story: a cluster of bare machines keeps accounts in the site's MariaDB, and gets newer packages under a job that runs."""
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import needs
from cluster_lab import LAB, NOTHING, Machines, needs_machines, steps
from conftest import wait_until

pytestmark = [needs_machines, needs.needs(needs.not_installed("slurmdbd", "mariadbd", "mariadb-install-db", "dpkg-deb"))]
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
    (folder / "init.sql").write_text("CREATE USER 'slurm'@'%' IDENTIFIED BY 'right one';\n"
                                     "GRANT ALL ON slurm_acct.* TO 'slurm'@'%';\n")
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen([LAB, "run", machines.lab, "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}",
                                   f"--socket={folder}/socket", f"--pid-file={pid}", "--bind-address=10.78.0.1",
                                   f"--init-file={folder}/init.sql"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(lambda: (folder / "socket").exists(), 30, lambda: f"MariaDB answers: {(folder / 'log').read_text()}")
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
    made = steps(machines.create("h1,h2", "--accounting-db", DATABASE.format("right one")))
    assert made[0] == ("h1", "write slurmdbd.conf; start slurmdbd") and made[-1][1] == "srun hostname", made
    assert machines.create("h1,h2") == NOTHING.format("2 nodes are")
    machines.on("h1", "cd /; sbatch --job-name=fails --comment=tutti:a:b.1 --output=/dev/null --wrap 'exit 3'")
    wait_until(lambda: ("fails", "FAILED", "3:0", "tutti:a:b.1") in accounts(machines), 30, "it is in the accounts")


class Archive:
    """A Debian archive with what is installed here of Slurm under a version that is newer."""

    def __init__(self, folder):
        self.folder = folder
        wanted = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${Package} ${Version}\n"], check=True,
                                capture_output=True, text=True).stdout.splitlines()
        self.packages = [line.split()[1:] for line in wanted if line.startswith("slurm-wlm ") and len(line.split()) == 3]

    def build(self):
        for name, version in self.packages:
            tree, info = self.folder / name, pathlib.Path("/var/lib/dpkg/info")
            (tree / "DEBIAN").mkdir(parents=True)
            listed = subprocess.run(["dpkg-query", "-L", name], check=True, capture_output=True, text=True).stdout.splitlines()
            files = "\n".join(path for path in listed if not path.startswith(("/usr/share/man", "/usr/share/doc"))
                              and not (os.path.islink(path) and os.path.isdir(path)))  # /lib is /usr/lib
            packed = subprocess.run(["tar", "--no-recursion", "-cf-", "-C/", "-T-"], input=files.encode(), check=True,
                                    capture_output=True)
            subprocess.run(["tar", "-xf-", "-C", tree], input=packed.stdout, check=True)
            for part in ("preinst", "postinst", "prerm", "postrm", "conffiles"):
                if (info / f"{name}.{part}").exists():
                    shutil.copy2(info / f"{name}.{part}", tree / "DEBIAN" / part)
            (tree / "DEBIAN/control").write_text(self.control(name, version, version + "+newer"))
            subprocess.run(["dpkg-deb", "--root-owner-group", "-Znone", "-b", tree, self.folder / f"{name}.deb"], check=True,
                           capture_output=True)
            shutil.rmtree(tree)

    def control(self, name, version, newer):
        stanza = subprocess.run(["dpkg-query", "-s", name], check=True, capture_output=True, text=True).stdout
        stanza, _, rest = stanza.partition("Conffiles:\n")
        rest = rest.splitlines(keepends=True)
        while rest and rest[0].startswith(" "):
            rest.pop(0)
        stanza = "".join(line for line in (stanza + "".join(rest)).splitlines(keepends=True) if not line.startswith("Status:"))
        return stanza.replace(version, newer)

    def index(self, newer=lambda version: version + "+newer"):
        stanzas = []
        for name, version in self.packages:
            content = (self.folder / f"{name}.deb").read_bytes()
            stanzas.append(self.control(name, version, newer(version)) + f"Filename: ./{name}.deb\nSize: {len(content)}\n"
                           f"SHA256: {hashlib.sha256(content).hexdigest()}\n")
        (self.folder / "Packages").write_text("\n".join(stanzas))


@pytest.fixture(scope="module")
def archive():
    with tempfile.TemporaryDirectory(prefix="tutti-archive-") as folder:  # apt's own user does not get through pytest's
        os.chmod(folder, 0o755)
        archive = Archive(pathlib.Path(folder))
        archive.build()
        yield archive


def test_newer_packages_come_in_slurms_order_under_a_job_that_runs_on(machines, database, archive):
    go, output = archive.folder / "go", archive.folder / "output"
    archive.index()
    for host in ("h1", "h2"):
        machines.on(host, f"rm -rf /etc/apt/sources.list.d /var/lib/man-db/auto-update; echo 'deb [trusted=yes] file:{archive.folder} ./' >/etc/apt/sources.list")
    machines.on("h1", f"""cd /; sbatch -N2 --mem=64 --job-name=survives -o {output} --wrap \
        'srun --ntasks-per-node=1 sh -c "echo begun; until [ -e {go} ]; do sleep 0.1; done; hostname"'""")
    wait_until(lambda: output.exists() and output.read_text().count("begun") == 2, 30, "it runs on both")
    archive.index(lambda version: "99.01.0-1")
    assert "to 99.01, which does not read what one so old keeps" in machines.tutti("upgrade", "--force", code=7)
    archive.index(lambda version: re.sub(r"^\d+", lambda year: str(int(year[0]) + 1), version))
    assert "1 jobs are in its queue and may not outlive the change of Slurm from " in machines.tutti("upgrade", code=7)
    archive.index()
    planned = steps(machines.tutti("upgrade", "--dry-run"))
    newer = dict(archive.packages)["slurmd"] + "+newer"
    daemons = [("h1", "slurmdbd"), ("h1", "slurmctld"), ("h1", "slurmd"), ("h2", "slurmd")]
    expected = [(host, f"upgrade {daemon} to {newer}") for host, daemon in daemons]
    assert [step for step in planned if "upgrade" in step[1]] == expected, planned
    done = steps(machines.tutti("upgrade"))
    assert done[2:4] == expected[:2] and sorted(done[4:6]) == expected[2:] and done[6:] == [("h1", "srun hostname")], done
    for host in ("h1", "h2"):
        assert machines.on(host, "dpkg-query -W -f '${Version}' slurmd") == newer
    assert machines.tutti("upgrade") == NOTHING.format("2 nodes are")
    # slurmctld sends what slurmdbd missed some seconds after it has found it again
    wait_until(lambda: ("survives", "RUNNING", "0:0", "") in accounts(machines), 60, "the accounts know that it runs on")
    go.touch()
    wait_until(lambda: ("survives", "COMPLETED", "0:0", "") in accounts(machines), 30, "it has ended well")
    assert sorted(output.read_text().split()) == ["begun", "begun", "h1", "h2"]


def test_a_deleted_cluster_leaves_no_database_daemon(machines, database):
    machines.do("halt", "h2")
    assert "--force leaves a machine that is gone" in machines.tutti("delete", code=3)
    machines.tutti("delete", "--force")
    assert machines.on("h1", "cat /proc/[0-9]*/comm | grep -xE 'munged|slurm.*' || true") == ""
