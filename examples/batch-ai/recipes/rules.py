"""What today's frameworks, CPUs and tutti need changed in six recipes of github.com/microsoftarchive/BatchAI.

A rule is an expression that finds a place, what goes there, and why. docs/formats/batch-ai-recipes.md tells what came of them.
"""
from porting import Rule

COMMIT = "2238607"  # of github.com/microsoftarchive/BatchAI

GLOO = "recipes/PyTorch/PyTorch-GPU-Distributed-Gloo"
REPLICA = "recipes/TensorFlow/TensorFlow-GPU-Distributed"
CONVOLUTIONAL = "recipes/TensorFlow/TensorFlow-GPU"
KERAS = "recipes/Keras/Keras-GPU"
HOROVOD_TORCH = "recipes/Horovod/Horovod-PyTorch"
HOROVOD_TF = "recipes/Horovod/Horovod-Tensorflow"

# What their instructions have one download, as those pages name it; below DOWNLOADS.
PYTORCH_MNIST = "downloads/pytorch_mnist.py"        # horovod/horovod v0.13.5, examples/
TENSORFLOW_MNIST = "downloads/tensorflow_mnist.py"  # horovod/horovod v0.9.10, examples/
MNIST_CNN = "downloads/mnist_cnn.py"                # keras-team/keras 2.2.0, examples/
CONVOLUTION = "downloads/convolutional.py"          # tensorflow/models, tutorials/image/mnist/

# Where each file goes: scripts as their instructions upload them to the share.
FILES = {
    f"{GLOO}/job.json": "pytorch-gloo",
    f"{GLOO}/mnist_trainer.py": "scripts/pytorch",
    f"{REPLICA}/job.json": "tensorflow-distributed",
    f"{REPLICA}/mnist_replica.py": "scripts/tensorflow",
    f"{CONVOLUTIONAL}/job.json": "tensorflow",
    CONVOLUTION: "scripts/tensorflow",
    f"{KERAS}/job_tensorflow.json": "keras",
    MNIST_CNN: "scripts/keras",
    f"{HOROVOD_TORCH}/job.json": "horovod-pytorch",
    PYTORCH_MNIST: "scripts/horovod",
    f"{HOROVOD_TF}/job.json": "horovod-tensorflow",
    TENSORFLOW_MNIST: "scripts/horovod",
}


def volume(name):
    return f'{{"mountCommand": "mount --bind @FOLDER@/{name}", "relativeMountPath": "{name}"}}'


def job(path, prepare):
    """@FOLDER@ is the folder that port.py writes. `prepare` brings MNIST to where the script would have downloaded it to."""
    of_all = ", ".join(map(volume, ("logs", "scripts", "data")))
    shares = [
        Rule(path, r'"azureFileShares": \[[\s\S]+?\]', f'"unmanagedFileSystems": [{of_all}]', "the shares are folders of this machine"),
        Rule(path, r',\s*"containerSettings": \{\s*"imageSourceRegistry": \{[^}]*\}\s*\}', "",
             "the image is of 2018, for CUDA 9; the frameworks are those of the machine's Python"),
    ]
    if not prepare:
        return shares
    return shares + [Rule(path, r'"stdOutErrPathPrefix"', f'"jobPreparation": {{"commandLine": "{prepare}"}}, ' r"\g<0>",
                          "MNIST is not downloaded by each node")]


def without_preparation(path):
    return [Rule(path, r'"jobPreparation": \{[^}]*\},', "", "it installs what the machine's Python has")]


def legacy_keras(path):
    return [Rule(path, r'"nodeCount": \d,', r'\g<0> "environmentVariables": [{"name": "TF_USE_LEGACY_KERAS", "value": "1"}],',
                 "the layers of TensorFlow 1 are those of Keras 2")]


MOUNTED = "$AZ_BATCHAI_JOB_MOUNT_ROOT/data"
JOBS = [
    *job(f"{GLOO}/job.json", f"cp -r {MOUNTED}/torch data"),
    *job(f"{REPLICA}/job.json", ""),
    Rule(f"{REPLICA}/job.json", r',\s*"azureBlobFileSystems": \[[\s\S]+?\]', "", "the container is a folder of this machine"),
    Rule(f"{REPLICA}/job.json", r"\$AZ_BATCHAI_INPUT_DATASET", f"{MOUNTED}/mnist_data",
         "the file has no such directory: TensorFlow's reader took the empty path, and downloaded"),
    Rule(f"{REPLICA}/job.json", r"--num_gpus=1", "--num_gpus=0", "runs on a CPU"),
    *job(f"{CONVOLUTIONAL}/job.json", f"cp -r {MOUNTED}/mnist_data data"),
    *without_preparation(f"{KERAS}/job_tensorflow.json"),
    *job(f"{KERAS}/job_tensorflow.json", f"cp -r {MOUNTED}/mnist_data data"),
    *without_preparation(f"{HOROVOD_TORCH}/job.json"),
    *job(f"{HOROVOD_TORCH}/job.json", f"cp -r {MOUNTED}/torch data-$RANK"),
    Rule(f"{HOROVOD_TORCH}/job.json", r"\$AZ_BATCHAI_MOUNT_ROOT/external", "$AZ_BATCHAI_JOB_MOUNT_ROOT/logs", "there is no cluster with that volume"),
    *without_preparation(f"{HOROVOD_TF}/job.json"),
    *job(f"{HOROVOD_TF}/job.json", f"cp -r {MOUNTED}/mnist_data MNIST-data-$RANK"),
    *legacy_keras(f"{HOROVOD_TF}/job.json"),
]

TRAINER = f"{GLOO}/mnist_trainer.py"
OF_PYTORCH = [
    Rule(TRAINER, r"^best_prec1 = 0", r"device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')" r"\n\g<0>", "runs on a CPU where there is no GPU"),
    Rule(TRAINER, r"^    model\.cuda\(\)", "    model.to(device)", "the same"),
    Rule(TRAINER, r"nn\.CrossEntropyLoss\(\)\.cuda\(\)", "nn.CrossEntropyLoss().to(device)", "the same"),
    Rule(TRAINER, r"target\.cuda\(async=True\)", "target.to(device, non_blocking=True)", "async is a word of Python's since 3.7"),
    Rule(TRAINER, r"pin_memory=True", "pin_memory=torch.cuda.is_available()", "memory is pinned for a GPU"),
    Rule(TRAINER, r"loss\.data\[0\]", "loss.item()", "a loss has no dimension since PyTorch 0.5"),
    Rule(TRAINER, r"correct\[:k\]\.view\(", "correct[:k].reshape(", "it is not contiguous since PyTorch 1.7"),
    Rule(TRAINER, r"^import time", r"import sys\n\g<0>", "what is caught is told by sys, which the script lacks"),
    Rule(PYTORCH_MNIST, r"loss\.data\[0\]", "loss.item()", "a loss has no dimension since PyTorch 0.5"),
    Rule(PYTORCH_MNIST, r"size_average=False\)\.data\[0\]", "reduction='sum').item()", "the same, and the argument's name"),
    Rule(PYTORCH_MNIST, r"Variable\(data, volatile=True\)", "Variable(data)", "volatile has no effect since PyTorch 0.4"),
]

READER = "TensorFlow 1's reader of MNIST left with 2.0: shims/input_data.py is ours"
ONE_IN_TWO = "TensorFlow 1 is a part of 2"


def tensorflow_1(path):
    return [Rule(path, r"^import tensorflow as tf$", r"import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()", ONE_IN_TWO)]


REPLICA_SCRIPT = f"{REPLICA}/mnist_replica.py"
OF_TENSORFLOW = [
    *tensorflow_1(REPLICA_SCRIPT),
    Rule(REPLICA_SCRIPT, r'^flags\.DEFINE_string\("log_dir", "",\s*"[^"]*"\)\n', "", "the flags of TensorFlow are absl's, which has one of this name"),
    Rule(REPLICA_SCRIPT, r"^from tensorflow\.examples\.tutorials\.mnist import input_data", "import input_data", READER),
    *tensorflow_1(CONVOLUTION),
    Rule(CONVOLUTION, r"\b(60000|10000)\b", r"\1 // 10", "the stand-in has a tenth of MNIST's images"),
    Rule(CONVOLUTION, r"^VALIDATION_SIZE = 5000", r"\g<0> // 10", "the same"),
    *tensorflow_1(TENSORFLOW_MNIST),
    Rule(TENSORFLOW_MNIST, r"^layers = tf\.contrib\.layers", "layers = tf.layers", "contrib left with 2.0"),
    Rule(TENSORFLOW_MNIST, r"^learn = tf\.contrib\.learn", "import input_data", READER),
    Rule(TENSORFLOW_MNIST, r"learn\.datasets\.mnist\.read_data_sets", "input_data.read_data_sets", READER),
    Rule(TENSORFLOW_MNIST, r"kernel_size=\[5, 5\], activation_fn=", "kernel_size=[5, 5], padding='SAME', activation=",
         "of contrib's layers in those of TensorFlow"),
    Rule(TENSORFLOW_MNIST, r"activation_fn=", "activation=", "the same"),
    Rule(TENSORFLOW_MNIST, r"layers\.fully_connected", "layers.dense", "the same"),
    Rule(TENSORFLOW_MNIST, r"keep_prob=0\.5", "rate=0.5", "the same"),
    Rule(TENSORFLOW_MNIST, r"is_training=mode", "training=mode", "the same"),
    Rule(TENSORFLOW_MNIST, r"tf\.contrib\.learn\.ModeKeys\.TRAIN", "'train'", "its value"),
    Rule(TENSORFLOW_MNIST, r"tf\.contrib\.framework\.get_or_create_global_step", "tf.train.get_or_create_global_step", "contrib left with 2.0"),
]

OF_KERAS = [
    Rule(MNIST_CNN, r"^from keras\.datasets import mnist", "import input_data", "Keras takes a file by its hash, and a stand-in has another"),
    Rule(MNIST_CNN, r"optimizers\.Adadelta\(\)", "optimizers.Adadelta(learning_rate=1.0)", "what Keras 2.2 took, in place of Keras 3's 0.001"),
    Rule(MNIST_CNN, r"mnist\.load_data\(\)", "input_data.load_data('data')", "the same"),
]

RULES = JOBS + OF_PYTORCH + OF_TENSORFLOW + OF_KERAS
