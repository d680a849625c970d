"""What Horovod's scripts catch, by the names they catch it by."""


class HorovodInternalError(RuntimeError):
    """A collective failed: a rank is lost or has shut down, requests differ, or time ran out.

    The text names the ranks. `status` is a tutti_comm_status (14: a rank is lost, 3: the requests
    differ), `lost_rank` the rank because of which it failed, -1 if there is none. Elastic training
    restores its last commit and goes on.
    """

    def __init__(self, *args, status=None, lost_rank=-1):
        super().__init__(*args)
        self.status = status
        self.lost_rank = lost_rank


class HostsUpdatedInterrupt(RuntimeError):
    """Nodes have come or are about to leave: elastic training re-forms and loses no step.

    `skip_sync`: no newcomer needs the state, since nodes only left.
    """

    def __init__(self, skip_sync):
        super().__init__("the nodes of the job have changed")
        self.skip_sync = skip_sync


class HorovodVersionMismatchError(ImportError):
    """Never raised here (nothing is compiled against a framework); scripts import it."""

    def __init__(self, name, version, installed_version):
        super().__init__(f"{name} {version} is not the {installed_version} that this was built for")
        self.name = name
        self.version = version
        self.installed_version = installed_version
