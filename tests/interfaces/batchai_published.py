"""Small stand-ins of our own for what github.com/microsoftarchive/BatchAI publishes: a job for each recipe, which has its keys, volumes and variables,
and files with every key of each schema (batchai_keys.yml). test_batchai_recipes.py holds them to a clone where there is one."""
import json
import pathlib
import re

import yaml

ACCOUNT = "<AZURE_BATCHAI_STORAGE_ACCOUNT>"  # of which the command makes the one that it is given
MOUNTS = "$AZ_BATCHAI_JOB_MOUNT_ROOT"
EXTERNAL = "$AZ_BATCHAI_MOUNT_ROOT/external"  # a volume of the cluster
MODEL = "$AZ_BATCHAI_OUTPUT_MODEL"
CNTK = "microsoft/cntk:2.5.1-gpu-python2.7-cuda9.0-cudnn7.0"
TENSORFLOW = "tensorflow/tensorflow:1.8.0-gpu"
INSTALL, FROM_SHARE = "pip install horovod", f"sh {MOUNTS}/scripts/prepare.sh"  # preparations


def script(path, arguments=None, processes=None, **more):
    settings = {"pythonScriptFilePath": path if path[0] == "$" else f"{MOUNTS}/scripts/{path}", "commandLineArgs": arguments, "processCount": processes, **more}
    return {key: value for key, value in settings.items() if value is not None}


def job(nodes, image, outputs=(), prepare=None, data=False, **more):
    """A job's file whose logs and scripts are shares, its data a container. `more` has its toolkit's settings, and keys in place of those given here."""
    volumes = {"azureFileShares": [
        {"azureFileUrl": f"https://{ACCOUNT}.file.core.windows.net/{name}", "relativeMountPath": name} for name in ("logs", "scripts")]}
    if data:
        volumes["azureBlobFileSystems"] = [{"accountName": ACCOUNT, "containerName": "data", "relativeMountPath": "data"}]
    properties = {
        "nodeCount": nodes,
        "mountVolumes": volumes,
        "jobPreparation": prepare and {"commandLine": prepare},
        "stdOutErrPathPrefix": f"{MOUNTS}/logs",
        "outputDirectories": [{"id": name, "pathPrefix": f"{MOUNTS}/logs"} for name in outputs],
        "containerSettings": {"imageSourceRegistry": {"image": image}},
        **more,
    }
    return {"$schema": "https://raw.githubusercontent.com/Azure/BatchAI/master/schemas/2018-05-01/job.json",
            "properties": {key: value for key, value in properties.items() if value}}


def brain_script(nodes, config):
    """A job's file of the first version, all of whose folders are on a volume of its cluster."""
    made = job(nodes, "microsoft/cntk:2.1-gpu-python3.5-cuda8.0-cudnn6.0", mountVolumes=None, stdOutErrPathPrefix=EXTERNAL,
               outputDirectories=[{"id": "MODEL", "pathPrefix": EXTERNAL, "pathSuffix": "best"}],
               inputDirectories=[{"id": "DATASET", "path": f"{EXTERNAL}/images"}, {"id": "CONFIG", "path": f"{EXTERNAL}/configs"}],
               cntkSettings={"configFilePath": f"$AZ_BATCHAI_INPUT_CONFIG/{config}", "commandLineArgs": f"from=$AZ_BATCHAI_INPUT_DATASET to={MODEL}"})
    return {**made, "$schema": made["$schema"].replace("2018-05-01", "2017-09-01-preview")}


OF_GANG = "--ps_hosts=$AZ_BATCHAI_PS_HOSTS --worker_hosts=$AZ_BATCHAI_WORKER_HOSTS --task_index=$AZ_BATCHAI_TASK_INDEX"
OF_WORKER = f"--num_gpus=1 {OF_GANG} --to={MODEL} --log=$AZ_BATCHAI_OUTPUT_TENSORBOARD --from=$AZ_BATCHAI_INPUT_DATASET"

RECIPES = {
    "Batch-Scoring/Distributed-Batch-Scoring-in-Tensorflow-with-GPU/job.json": job(
        2, "tensorflow/tensorflow:1.7.0-gpu", ["LABEL"], INSTALL, data=True,
        inputDirectories=[{"id": "SCRIPT", "path": f"{MOUNTS}/scripts/score"}, {"id": "IMAGES", "path": f"{MOUNTS}/data/images"},
                          {"id": "MODEL", "path": f"{MOUNTS}/data/models"}],
        customMpiSettings={"commandLine": "python -u $AZ_BATCHAI_INPUT_SCRIPT/batch_image_label.py $AZ_BATCHAI_INPUT_IMAGES $AZ_BATCHAI_INPUT_MODEL "
                                          "$AZ_BATCHAI_OUTPUT_LABEL"}),
    "CNTK/CNTK-GPU-BrainScript/job.json": brain_script(1, "ConvNet_MNIST.cntk"),
    "CNTK/CNTK-GPU-BrainScript-Distributed/job.json": brain_script(2, "DistributedConvNet_MNIST.cntk"),
    "CNTK/CNTK-GPU-Python/job.json": job(
        1, CNTK, ["MODEL"], data=True, cntkSettings=script("cntk/ConvNet_MNIST.py", f"{MOUNTS}/data/mnist_data {MODEL}")),
    "CNTK/CNTK-GPU-Python-Distributed/job.json": job(
        2, CNTK, ["MODEL"], FROM_SHARE, cntkSettings=script("cntk/ConvNet_CIFAR10_DataAug_Distributed.py", f"$AZ_BATCHAI_JOB_TEMP {MODEL}", 2)),
    "CNTK/CNTK-GPU-Python-Distributed-Infiniband/job.json": job(
        2, "batchaitraining/cntk:2.3-gpu-1bitsgd-py36-cuda8-cudnn6-intelmpi", ["MODEL"], FROM_SHARE,
        cntkSettings=script("cntk/TrainResNet_CIFAR10_Distributed.py", f"$AZ_BATCHAI_JOB_TEMP {MODEL}", 8)),
    "Caffe2/Caffe2-GPU-Distributed/job.json": job(
        2, "caffe2ai/caffe2", data=True,
        caffe2Settings=script("caffe2/resnet50_trainer.py", f"$AZ_BATCHAI_TASK_INDEX {MOUNTS}/data/images $AZ_BATCHAI_SHARED_JOB_TEMP")),
    "Chainer/Chainer-GPU-Distributed/job.json": job(
        2, "batchaitraining/chainermn:openMPI", ["MODEL"], chainerSettings=script("chainer/train_mnist.py", MODEL)),
    "Chainer/Chainer-GPU-Distributed-Infiniband/job.json": job(
        2, "batchaitraining/chainermn:IntelMPI", ["MODEL"], FROM_SHARE, chainerSettings=script("chainer/train_mnist.py", MODEL, 8)),
    "Horovod/Horovod-Infiniband-Benchmark/job.json": job(
        2, TENSORFLOW, prepare=FROM_SHARE,
        horovodSettings=script("$AZ_BATCHAI_JOB_TEMP/benchmarks/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py", "--steps 1", 8)),
    "Horovod/Horovod-PyTorch/job.json": job(
        2, "batchaitraining/pytorch:0.4.0-cp36-cuda9-cudnn7", prepare=INSTALL, horovodSettings=script("horovod/pytorch_mnist.py"),
        outputDirectories=[{"id": "MODEL", "pathPrefix": EXTERNAL, "pathSuffix": "best"}]),
    "Horovod/Horovod-Tensorflow/job.json": job(2, TENSORFLOW, prepare=INSTALL, horovodSettings=script("horovod/tensorflow_mnist.py")),
    "Keras/Keras-GPU/job_cntk.json": job(1, CNTK, cntkSettings=script("keras/mnist_cnn.py")),
    "Keras/Keras-GPU/job_tensorflow.json": job(1, TENSORFLOW, prepare=INSTALL, tensorFlowSettings=script("keras/mnist_cnn.py")),
    "PyTorch/PyTorch-GPU-Distributed-Gloo/job.json": job(
        2, "pytorch/pytorch:0.4_cuda9_cudnn7", pyTorchSettings=script(
            "pytorch/mnist_trainer.py", "--dist-url $AZ_BATCHAI_PYTORCH_INIT_METHOD --rank $AZ_BATCHAI_TASK_INDEX", communicationBackend="gloo")),
    "TensorFlow/TensorFlow-GPU/job.json": job(1, TENSORFLOW, tensorFlowSettings=script("tensorflow/convolutional.py")),
    "TensorFlow/TensorFlow-GPU-Distributed/job.json": job(
        2, TENSORFLOW, data=True,
        outputDirectories=[{"id": name, "pathPrefix": f"{MOUNTS}/logs", "pathSuffix": "best"} for name in ("MODEL", "TENSORBOARD")],
        tensorFlowSettings=script("tensorflow/mnist_replica.py", workerCount=2, parameterServerCount=1, masterCommandLineArgs=f"--job_name=worker {OF_WORKER}",
                                  workerCommandLineArgs=f"--job_name=worker {OF_WORKER}",
                                  parameterServerCommandLineArgs=f"--job_name=ps {OF_GANG} {MOUNTS}/data/images")),
}

EXACT = {"$schema", "id", "image", "pythonScriptFilePath", "configFilePath", "azureFileUrl", "accountName", "containerName", "relativeMountPath",
         "communicationBackend"}


def variables_of(text):
    return set(re.findall(r"\$AZ_BATCHAI_\w+", text))


def facts(value, key=""):
    """What a stand-in shares with the job that it stands for: keys, numbers, some values; of other texts the variables alone."""
    if isinstance(value, dict):
        return {name: facts(of, name) for name, of in value.items()}
    if isinstance(value, list):
        return [facts(of) for of in value]
    return variables_of(value) if isinstance(value, str) and key not in EXACT else value


KEYS = yaml.safe_load(pathlib.Path(__file__).with_name("batchai_keys.yml").read_text())
OF_FIRST = {"cntk": "cntk", "caffe": "caffe", "caffe2": "caffe2", "chainer": "chainer", "tensorflow": "tensorFlow", "custom": "customToolkit"}
OF_SECOND = {**OF_FIRST, "pytorch": "pyTorch"}
# The toolkits of each version by the names of their schemas; the first version has one schema for all.
TOOLKITS = {"2017-09-01-preview": OF_FIRST, "2018-03-01": OF_SECOND, "2018-05-01": {**OF_SECOND, "horovod": "horovod", "mpi": "customMpi"}}
SCHEMAS = [f"{version}/{name}.json" for version, toolkits in TOOLKITS.items()
           for name in (["job"] if version.startswith("2017") else [*toolkits, "job", "cluster", "nfs"])]


def with_every_key(schema):
    """[(toolkit, properties)]: files that have every key of a schema between them; of a cluster or file server it is one."""
    version, name = schema.removesuffix(".json").split("/")
    if name in ("cluster", "nfs"):
        return [("", KEYS[name][version])]
    properties = {key: value for key, value in KEYS["job"][version].items() if value is not None}
    toolkits = TOOLKITS[version]
    return [(f"{toolkit}Settings", {**properties, f"{toolkit}Settings": settings})
            for toolkit in (toolkits.values() if name == "job" else [toolkits[name]]) for settings in KEYS["toolkits"][toolkit]]


def write(folder):
    """Lays the stand-ins out as the clone has what they stand for. Of schemas only what tells one from a file."""
    files = {f"recipes/{name}": content for name, content in RECIPES.items()}
    files |= {f"schemas/{name}": {"title": "Ours", "properties": {"properties": {"type": "object"}}, "definitions": {}} for name in SCHEMAS}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content, indent=2))
    return folder
