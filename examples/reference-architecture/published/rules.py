"""What today's frameworks, CPUs and tutti need changed in Microsoft's reference architecture, at one commit of its repository.

A rule is an expression that finds a place, what goes there, and why. docs/data/published-reference.md has them as a table.
"""
from porting import Rule

COMMIT = "3a99ab8"  # of github.com/microsoft/DistributedDeepLearning

PYTORCH = "HorovodPytorch/src/imagenet_pytorch_horovod.py"
KERAS = "HorovodKeras/src/imagenet_keras_horovod.py"
KERAS_FAKE = "HorovodKeras/src/data_generator.py"
TENSORFLOW = "HorovodTF/src/imagenet_estimator_tf_horovod.py"
NETWORK = "HorovodTF/src/resnet_model.py"
GENERATOR = "experiments/generate_job_spec.py"
CLUSTER = "cluster_config/cluster.json"

# Where each file of the clone goes: scripts side by side on the share, as their Makefile uploads them.
FILES = {path: "extfs/scripts" for path in (PYTORCH, KERAS, KERAS_FAKE, TENSORFLOW, NETWORK, "common/timer.py")} | {GENERATOR: ".", CLUSTER: "."}

# @FOLDER@ is the folder that port.py writes.
VOLUMES = """"mountVolumes": {"unmanagedFileSystems": [
    {"mountCommand": "mount --bind @FOLDER@/extfs", "relativeMountPath": "extfs"},
    {"mountCommand": "mount --bind @FOLDER@/extcn", "relativeMountPath": "extcn"}]}, """

# What a job passes on of the environment in which its file is made.
SETTINGS = ("EPOCHS", "BATCHSIZE", "NUM_WORKERS", "LOG_STEPS", "BUFFER", "TF_CPP_MIN_LOG_LEVEL", "PYTHONPATH", "TUTTI_COMM_LIBRARY")
VARIABLES = f'[{{"name": name, "value": os.environ[name]}} for name in {SETTINGS} if name in os.environ]'

ON_A_CPU = "runs on a CPU where there is no GPU"
KERAS_2 = "it is written for Keras 2, which is now the package tf_keras, and TensorFlow's own Keras to Horovod"
NO_SESSIONS = "TensorFlow 2 has no sessions: shims/one_gpu.py gives each rank its GPU without one"
TENSORFLOW_1 = "TensorFlow 1's interface is a part of TensorFlow 2"


def of_all_three(path):
    return [
        Rule(path, r"os\.getenv\('EPOCHS', 1\)", r"int(\g<0>)", "the value of a variable is text"),
        Rule(path, r"_BATCHSIZE = 64", "_BATCHSIZE = int(os.getenv('BATCHSIZE', 64))", "64 images a rank are for GPUs"),
    ]


RULES = [
    Rule(CLUSTER, r'"setupTask"', VOLUMES + r"\g<0>",
         "az batchai cluster create mounted a share and a container by its options; here they are folders, and stand in the file"),

    Rule(GENERATOR, r"mpirun -np[\s\S]+?(?=\{fake\})", "env DISTRIBUTED=True TF_USE_LEGACY_KERAS=1 ",
         "tutti starts the ranks, on both nodes; they get variables by env, of which one asks for Keras 2"),
    Rule(GENERATOR, r"--allow-run-as-root", "", "an option of mpirun"),
    Rule(GENERATOR, r"'-x (FAKE\w*=)", r"'\1", "a variable for env in place of one for mpirun"),
    Rule(GENERATOR, r"cat \$AZ_BATCHAI_MPI_HOST_FILE;", "", "a file of hosts is for mpirun"),
    Rule(GENERATOR, r"generate_job_dict\(image_name,", r"\g<0> total_processes,", "the job has to say how many ranks it has"),
    Rule(GENERATOR, r'"customToolkitSettings": \{', f'"environmentVariables": {VARIABLES}, "customMpiSettings": {{"processCount": total_processes,',
         "the command is each rank's, not the first node's alone, and the size of a run comes by variables"),
    Rule(GENERATOR, r"^import json$", r"\g<0>" "\nimport os", "for these variables"),

    *of_all_three(PYTORCH),
    Rule(PYTORCH, r"_SEED=42", r"\g<0>" "\n_DEVICE = torch.device('cuda' if torch.cuda.is_available() else 'cpu')", ON_A_CPU),
    Rule(PYTORCH, r"(data|target)\.cuda\(", r"\1.to(_DEVICE, ", ON_A_CPU),
    Rule(PYTORCH, r"model\.cuda\(\)", "model.to(_DEVICE)", ON_A_CPU),
    Rule(PYTORCH, r"torch\.cuda\.set_device", r"torch.cuda.is_available() and \g<0>", ON_A_CPU),
    Rule(PYTORCH, r"'pin_memory': True", "'pin_memory': torch.cuda.is_available()", ON_A_CPU),
    Rule(PYTORCH, r"'num_workers': 5", "'num_workers': int(os.getenv('NUM_WORKERS', 5))", "a rank may have fewer than five processors"),
    Rule(PYTORCH, r"pretrained=False", "weights=None", "torchvision 0.13 renamed it"),
    Rule(PYTORCH, r"i % 100 ==", "i % int(os.getenv('LOG_STEPS', 100)) ==", "a short epoch has fewer than 100 steps"),

    *of_all_three(KERAS),
    Rule(KERAS, r"^import keras$", "import tf_keras as keras", KERAS_2),
    Rule(KERAS, r"^from keras", "from tf_keras", KERAS_2),
    Rule(KERAS, r"horovod\.keras", "horovod.tensorflow.keras", KERAS_2),
    Rule(KERAS, r"K\.set_session\(.+", "one_gpu.hold(hvd.local_rank() if _DISTRIBUTED else 0)", NO_SESSIONS),
    Rule(KERAS, r"^import os$", r"\g<0>" "\nimport one_gpu", NO_SESSIONS),
    Rule(KERAS, r"keras\.optimizers\.SGD", "keras.optimizers.legacy.SGD", "this is the one that knows lr, and whose momentum the callbacks correct"),
    Rule(KERAS, r"(Warmup|Schedule)Callback\(", r"\g<0>initial_lr=_LR * hvd.size(), ", "Horovod 0.28 asks for the rate that a callback changes"),
    Rule(KERAS, r"def __init__\(self, logger, data_length\):", r"\g<0>" "\n        super().__init__()", "Keras's own part of a callback is made there now"),

    Rule(KERAS_FAKE, r"^import keras$", "import tf_keras as keras", KERAS_2),

    *of_all_three(TENSORFLOW),
    Rule(TENSORFLOW, r"^import tensorflow as tf$", "import estimator\nimport tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()", TENSORFLOW_1),
    Rule(TENSORFLOW, r"tf\.estimator\.", "estimator.", "TensorFlow 2.16 has none; shims/estimator.py has as much of it as is asked for"),
    Rule(TENSORFLOW, r"tf\.contrib\.data\.", "tf.data.experimental.", "contrib ended with TensorFlow 1"),
    Rule(TENSORFLOW, r"tf\.data\.Dataset\(\)", "tf.data.Dataset", "the class is abstract, and from_generator a function of it"),
    Rule(TENSORFLOW, r"'channels_first'", r"\g<0> if tf.test.is_gpu_available() else 'channels_last'",
         "convolutions on a CPU take channels_last alone"),
    Rule(TENSORFLOW, r"inputs=features", r"\g<0> if tf.test.is_gpu_available() else tf.transpose(features, [0, 2, 3, 1])",
         "convolutions on a CPU take channels_last alone"),
    Rule(TENSORFLOW, r"_BUFFER = 256", "_BUFFER = int(os.getenv('BUFFER', 256))", "256 batches kept ready are for GPUs"),

    Rule(NETWORK, r"^import tensorflow as tf$", "import tensorflow.compat.v1 as tf", TENSORFLOW_1),
]
