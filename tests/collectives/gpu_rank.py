"""One rank of the stories in test_gpu.py: gpu_rank.py LIBRARY STORY RANK SIZE PORT. Needs PyTorch that sees a GPU.

All ranks use GPU 0; where the story has several, the environment gives each a NCCL_HOSTID of its own, since NCCL
refuses two ranks on one GPU of one host. Prints "done" or what the test looks for.
"""
import ctypes
import os
import signal
import statistics
import sys
import time
from ctypes import CDLL, CFUNCTYPE, Structure, byref, c_char_p, c_double, c_int32, c_size_t, c_uint64, c_void_p

import torch


class GroupOptions(Structure):
    _fields_ = [("struct_size", c_size_t), ("rank", c_int32), ("size", c_int32), ("node", c_int32), ("master_port", c_int32),
                ("master_address", c_char_p), ("address", c_char_p), ("token", c_char_p), ("connect_timeout", c_double),
                ("peer_timeout", c_double), ("transport", c_int32), ("tcp_streams", c_int32), ("encrypt", c_int32),
                ("deterministic", c_int32), ("check_calls", c_int32), ("elastic", c_int32), ("group_file", c_char_p),
                ("members", c_char_p)]


QUERY = CFUNCTYPE(c_int32, c_void_p)
TYPES = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3, torch.int64: 4, torch.int32: 5,
         torch.int8: 7, torch.uint8: 8, torch.bool: 9}
INT16 = 6
PATIENCE = float(os.environ.get("TUTTI_TEST_PATIENCE", 3))  # tools/test-patience
SUM, MEAN, MIN, MAX, PRODUCT, ADASUM = range(6)
OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, UNIMPLEMENTED, UNAVAILABLE = 0, 3, 4, 12, 14

library = CDLL(sys.argv[1])
library.tutti_comm_last_error.restype = c_char_p
P, L, I, D, G = c_void_p, c_size_t, c_int32, c_double, c_uint64
for name, kinds in {"all_reduce": (G, P, P, L, I, I, P, D), "reduce_scatter": (G, P, P, L, I, I, P, D),
                    "broadcast": (G, P, L, I, P, D), "all_gather": (G, P, L, P, P, D), "send": (G, P, L, I, P, D),
                    "receive": (G, P, L, I, P, D), "await": (G, QUERY, P, D)}.items():
    getattr(library, f"tutti_comm_device_{name}").argtypes = kinds
library.tutti_comm_barrier.argtypes = (G, D)
story, rank, size, port = sys.argv[2], *map(int, sys.argv[3:6])


def error():
    return library.tutti_comm_last_error().decode()


def check(status):
    assert status == OK, error()


def join():
    options, group = GroupOptions(), c_uint64()
    library.tutti_comm_group_options_init.argtypes, library.tutti_comm_group_options_init.restype = (P, L), None
    library.tutti_comm_group_options_init(ctypes.addressof(options), ctypes.sizeof(options))
    options.rank, options.size, options.master_port = rank, size, port
    check(library.tutti_comm_group_join(byref(options), byref(group)))
    return group


def stream():
    return torch.cuda.current_stream().cuda_stream


def wait(group, timeout=60.0):
    """Until what was put on the current stream is done, watched over by the group; the status."""
    event = torch.cuda.Event()
    event.record()
    query = QUERY(lambda _context: int(event.query()))
    return getattr(library, "tutti_comm_device_await")(group, query, None, timeout)


def all_reduce(group, values, op=SUM, output=None, timeout=60.0):
    output = values if output is None else output
    return library.tutti_comm_device_all_reduce(group, values.data_ptr(), output.data_ptr(), values.numel(),
                                                TYPES[values.dtype], op, stream(), timeout)


def leave(group):
    check(library.tutti_comm_barrier(group, 60.0))
    check(library.tutti_comm_group_leave(group))


def of_rank(r, dtype, count):
    """What rank r brings: small numbers, exact in every type."""
    values = (torch.arange(count, device="cuda") * (r + 2) + r) % 3 + (0 if dtype == torch.bool else 1)
    return (values > 1) if dtype == torch.bool else values.to(dtype)


def expected(op, dtype, count):
    everyone = torch.stack([of_rank(r, dtype, count).to(torch.float64) for r in range(size)])
    if dtype == torch.bool:
        return (everyone.amax(0) if op in (SUM, MAX) else everyone.amin(0)) > 0
    if op == MEAN:
        mean = everyone.sum(0) / size
        return (mean if dtype.is_floating_point else mean.trunc()).to(dtype)
    reduced = {SUM: everyone.sum(0), MIN: everyone.amin(0), MAX: everyone.amax(0), PRODUCT: everyone.prod(0)}
    return reduced[op].to(dtype)


def every_type_and_operation(group):
    for dtype in TYPES:
        for op in (SUM, MEAN, MIN, MAX, PRODUCT):
            for count in (1, 7, 100_003):
                mine, output = of_rank(rank, dtype, count), torch.zeros(count, dtype=dtype, device="cuda")
                status = all_reduce(group, mine, op, output)
                if dtype == torch.bool and op == MEAN:
                    assert status == INVALID_ARGUMENT, status
                    continue
                check(status)
                check(wait(group))
                assert torch.equal(output, expected(op, dtype, count)), (dtype, op, count)
                assert torch.equal(mine, of_rank(rank, dtype, count)), "the input has changed"
    shorts = torch.ones(3, dtype=torch.int16, device="cuda")
    assert library.tutti_comm_device_all_reduce(group, shorts.data_ptr(), shorts.data_ptr(), 3, INT16, SUM, stream(),
                                                9.0) == UNIMPLEMENTED
    floats = torch.ones(3, device="cuda")
    assert all_reduce(group, floats, ADASUM) == UNIMPLEMENTED


def every_movement(group):
    count = 5000
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        parts = torch.cat([of_rank(rank, dtype, count) + r for r in range(size)])
        mine = torch.zeros(count, dtype=dtype, device="cuda")
        check(library.tutti_comm_device_reduce_scatter(group, parts.data_ptr(), mine.data_ptr(), count, TYPES[dtype], SUM,
                                                       stream(), 60.0))
        check(wait(group))
        assert torch.equal(mine, expected(SUM, dtype, count) + size * rank)
    row = of_rank(rank, torch.float32, count)
    rows = torch.zeros(size * count, device="cuda")
    check(library.tutti_comm_device_all_gather(group, row.data_ptr(), row.nbytes, rows.data_ptr(), stream(), 60.0))
    check(wait(group))
    assert torch.equal(rows, torch.cat([of_rank(r, torch.float32, count) for r in range(size)]))
    for root in range(size):
        row = of_rank(rank, torch.float32, count)
        check(library.tutti_comm_device_broadcast(group, row.data_ptr(), row.nbytes, root, stream(), 60.0))
        check(wait(group))
        assert torch.equal(row, of_rank(root, torch.float32, count))
    if size > 1 and rank < 2:
        row = of_rank(rank, torch.float32, count)
        move = library.tutti_comm_device_send if rank == 0 else library.tutti_comm_device_receive
        check(move(group, row.data_ptr(), row.nbytes, 1 - rank, stream(), 60.0))
        check(wait(group))
        assert torch.equal(row, of_rank(0, torch.float32, count))


def collectives():
    group = join()
    every_type_and_operation(group)
    every_movement(group)
    side = torch.cuda.Stream()
    values = torch.full((1 << 20,), float(rank + 1), device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # nothing is on the default stream
        for _ in range(10):
            check(all_reduce(group, values, MEAN))
        check(wait(group))
    assert values.eq((size + 1) / 2).all()
    leave(group)
    print("done")


def refused():
    """Two ranks on one GPU of one host: said plainly, on both."""
    group = join()
    values = torch.ones(4, device="cuda")
    status = all_reduce(group, values)
    print(status, error())


def deadline():
    """Rank 1 stays away from an all-reduce: rank 0's ends at its deadline, and NCCL's part of the group with it."""
    group = join()
    values = torch.ones(1 << 20, device="cuda")
    check(all_reduce(group, values))
    check(wait(group))
    check(library.tutti_comm_barrier(group, 60.0))
    if rank == 0:
        began = time.monotonic()
        status = all_reduce(group, values, timeout=1.0) or wait(group, 1.0)
        assert status == DEADLINE_EXCEEDED, (status, error())
        assert time.monotonic() - began < 10 * PATIENCE, "late"
        print(error())
        assert all_reduce(group, values) == DEADLINE_EXCEEDED, "the group goes on after an error"
        torch.cuda.synchronize()  # the kernel that waited is gone
    leave(group)


def death():
    """Rank 1 dies in the middle of work: the others' wait ends with its name."""
    group = join()
    values = torch.ones(1 << 20, device="cuda")
    check(all_reduce(group, values))
    check(wait(group))
    check(library.tutti_comm_barrier(group, 60.0))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    status = all_reduce(group, values, timeout=60.0) or wait(group, 60.0)
    seconds = time.monotonic() - began
    print(status, library.tutti_comm_last_lost_rank(), f"{seconds:.2f}", error())
    torch.cuda.synchronize()
    assert values.numel() == values.isfinite().sum().item(), "the GPU still works"


def medians(calls, rounds):
    """Microseconds of each of `calls`, interleaved: the median of `rounds`."""
    times = [[] for _ in calls]
    for _ in range(rounds):
        for call, seen in zip(calls, times):
            began = time.perf_counter()
            call()
            seen.append((time.perf_counter() - began) * 1e6)
    return [statistics.median(seen) for seen in times]


def speed():
    """The same NCCL through tutti and through torch.distributed, one after the other."""
    import torch.distributed as distributed
    group = join()
    distributed.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port + 1}", rank=rank, world_size=size)
    for count in (256, 1 << 14, 1 << 18, 1 << 22, 1 << 24):
        values = torch.ones(count, device="cuda")

        def ours():
            check(all_reduce(group, values, MEAN))
            check(wait(group))

        def theirs():
            distributed.all_reduce(values)
            torch.cuda.current_stream().synchronize()

        medians([ours, theirs], 3)
        mine, other = medians([ours, theirs], 30 if count < 1 << 22 else 8)
        if rank == 0:
            print(f"{values.nbytes} bytes: tutti {mine:.0f} us, torch.distributed {other:.0f} us, ratio {other / mine:.2f}")
    distributed.destroy_process_group()
    leave(group)


{"collectives": collectives, "refused": refused, "deadline": deadline, "death": death, "speed": speed}[story]()
