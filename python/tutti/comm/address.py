"""Addresses of this node and of rank 0's, as numbers."""
import fcntl
import os
import re
import socket
import struct

_SIOCGIFADDR = 0x8915
_NOWHERE = ("192.0.2.1", 9)  # TEST-NET-1 of RFC 5737; a connected UDP socket sends nothing


def numeric(host):
    """The IPv4 address of a name if it has one, else its IPv6 one. ValueError if it is not known
    here."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(f'"{host}" is no host that is known here: {error}') from error
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    return found[0][4][0]


def is_loopback(number):
    return number.startswith("127.") or number == "::1"


def of_interface(environment=os.environ):
    """This node's address on the first interface that is there of TUTTI_NETWORK_INTERFACES, or of
    HOROVOD_GLOO_IFACE; None if neither is set. ValueError if none of them is there."""
    names = environment.get("TUTTI_NETWORK_INTERFACES") or environment.get("HOROVOD_GLOO_IFACE")
    if not names:
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in names.split(","):
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR,
                                     struct.pack("256s",
                                                 name.strip().encode()[:15]))
            except OSError:
                continue
            return socket.inet_ntoa(answer[20:24])
    there = ", ".join(name for _, name in socket.if_nameindex())
    raise ValueError(f"this node has no network interface {names.replace(',', ' or ')} with an "
                     f"IPv4 address (it has {there})")


def of_this_node():
    """The address by which other nodes reach this one, as far as one can tell without asking
    them."""
    try:
        named = numeric(socket.gethostname())
        if not is_loopback(named):
            return named
    except ValueError:
        pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_NOWHERE)
            return probe.getsockname()[0]
        except OSError:
            return "127.0.0.1"


def of_rank_zero(host, rank, one_node):
    """`host` as the rank sees it: rank 0 often knows its own name as a loopback address, which
    nobody else reaches."""
    if one_node:
        return "127.0.0.1"
    found = numeric(host)
    return of_this_node() if rank == 0 and is_loopback(found) else found


def is_local(host):
    """Whether `host` is this machine: its address can be listened on."""
    if host in ("localhost", socket.gethostname()):
        return True
    try:
        number = numeric(host)
        with socket.socket(socket.AF_INET6 if ":" in number else socket.AF_INET) as probe:
            probe.bind((number, 0))
        return True
    except (OSError, ValueError):
        return False


def first_host(nodes):
    """The first of a list in Slurm's notation: "gpu[03-05,9],login" is gpu03. ValueError if it
    names none."""
    head = re.match(r"(?:[^,\[]|\[[^\]]*\])+", nodes)
    if not head:
        raise ValueError(f'"{nodes}" is no list of nodes: is SLURM_STEP_NODELIST set?')
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", head.group(0))
