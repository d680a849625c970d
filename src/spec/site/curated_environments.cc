#include "spec/site/site_defaults.h"

namespace tutti::spec {

// Each line is what the name held as of the last commit of its published definition whose framework
// has the version of the name (github.com/Azure/azureml-assets, assets/training/general and
// assets/inference), of the packages that training scripts import. `differs` says what of those
// could not be had so; what is otherwise in all lines stands in docs/curated-environments.md, not
// in a warning: psutil, torch-tb-profiler, what speaks with Azure ML. MLflow is held below 3, which
// refuses what scripts of their day do, and above what fails to import beside today's protobuf;
// frameworks go by the date of the image.
const absl::string_view kCuratedEnvironments = R"yaml(
environments:
  sklearn-1.5:
    python: "3.10"
    packages: [scikit-learn~=1.5.0, "scikit-learn-intelex<2025", pandas~=1.5.3, scipy~=1.10.0,
               numpy~=1.22.0, joblib~=1.2.0, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3,
               tensorboard, ipykernel~=6.0, debugpy~=1.6.3, py-cpuinfo, "mlflow>=2.9,<3",
               azureml-core]
  sklearn-1.1-ubuntu20.04-py38-*:
    python: "3.8"
    packages: [scikit-learn~=1.1.0, pandas~=1.3.0, scipy~=1.7.0, numpy~=1.22.0, joblib~=1.2.0,
               matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, "mlflow>=2.9,<3", azureml-core]
  sklearn-1.1:
    python: "3.9"
    packages: [scikit-learn~=1.1.0, "scikit-learn-intelex<2024", pandas~=1.3.0, scipy~=1.10.0,
               numpy~=1.22.0, joblib~=1.2.0, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3,
               tensorboard, ipykernel~=6.0, debugpy~=1.6.3, py-cpuinfo, "mlflow>=2.9,<3",
               azureml-core]
  sklearn-1.0-ubuntu20.04-py38-*:
    python: "3.8"
    packages: [scikit-learn~=1.0.0, pandas~=1.3.0, scipy~=1.7.0, numpy~=1.22.0, joblib~=1.2.0,
               matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, "mlflow>=2.9,<3", azureml-core]
  sklearn-1.0:
    python: "3.9"
    packages: [scikit-learn~=1.0.0, pandas~=1.3.0, scipy~=1.10.0, numpy~=1.22.0, joblib~=1.2.0,
               matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard, ipykernel~=6.0,
               debugpy~=1.6.3, py-cpuinfo, "mlflow>=2.9,<3", azureml-core]
  sklearn-0.24*:
    python: "3.8"
    packages: [scikit-learn~=0.24.1, "pandas>=1.1,<1.4", scipy~=1.7.0, numpy~=1.21.0,
               "joblib>=1,<1.3", matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, "mlflow>=2.9,<3",
               azureml-core]
    differs: Python 3.8 in place of 3.7

  lightgbm-3.3:
    python: "3.10"
    packages: [lightgbm~=3.3.5, xgboost~=1.7.6, scikit-learn~=1.5.1, pandas~=1.5.3, scipy~=1.10.0,
               numpy~=1.22.0, distributed~=2021.10.0, adlfs~=0.7.0, matplotlib~=3.5.0,
               psutil~=5.9.0, tqdm~=4.66.3, tensorboard, ipykernel~=6.0, debugpy~=1.6.3, py-cpuinfo,
               "mlflow>=2.9,<3", azureml-core]
  lightgbm:
    python: "3.10"
    packages: [lightgbm>=4.6.0, xgboost~=1.7.6, scikit-learn~=1.5.1, pandas~=1.5.3, scipy~=1.10.0,
               numpy~=1.22.0, distributed~=2021.10.0, adlfs~=0.7.0, matplotlib~=3.5.0,
               psutil~=5.9.0, tqdm~=4.66.3, tensorboard, ipykernel~=6.0, debugpy~=1.6.3, py-cpuinfo,
               "mlflow>=2.9,<3", azureml-core]
  lightgbm-3.2-*:
    python: "3.8"
    packages: [lightgbm~=3.2.1, scikit-learn~=0.24.1, "pandas>=1.1,<1.4", scipy~=1.7.0,
               numpy~=1.21.0, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, "mlflow>=2.9,<3",
               azureml-core]
    differs: Python 3.8 in place of 3.7

  acpt-pytorch-2.8-*:
    python: "3.10"
    packages: [torch==2.8.0, torchvision==0.23.0, torchaudio==2.8.0, transformers,
               "datasets>=3,<4.1", accelerate>=1, deepspeed>=0.17, onnxruntime-training==1.19.2,
               evaluate, scikit-learn, pandas, pillow, regex, pybind11, matplotlib, psutil, tqdm,
               tensorboard, torch-tb-profiler, py-cpuinfo, ipykernel, debugpy, "mlflow>=2.9,<3",
               azureml-core]
    differs: &acpt >-
      DeepSpeed's and ORTModule's kernels are not built ahead, which takes nvcc on nodes with GPUs
  acpt-pytorch-2.7-*:
    python: "3.10"
    packages: [torch==2.7.1, torchvision==0.22.1, torchaudio==2.7.1, transformers==4.54.1,
               "datasets>=3,<4.1", accelerate>=1, deepspeed~=0.17.4, onnxruntime-training==1.19.2,
               evaluate, scikit-learn, pandas, numpy<2, pillow==11.3.0, regex, pybind11,
               matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, ipykernel~=6.0, debugpy~=1.6.3,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.5-*:
    python: "3.10"
    packages: [torch==2.5.1, torchvision==0.20.1, torchaudio==2.5.1, transformers~=4.46.0,
               "datasets>=2.14,<3.2", accelerate~=1.1, deepspeed~=0.15.1,
               onnxruntime-training==1.19.2, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, ipykernel~=6.0, debugpy~=1.6.3,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.4-*:
    python: "3.10"
    packages: [torch==2.4.1, torchvision==0.19.1, torchaudio==2.4.1, transformers~=4.46.0,
               "datasets>=2.14,<3.2", accelerate~=1.1, deepspeed~=0.15.1,
               onnxruntime-training==1.19.2, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, ipykernel~=6.0, debugpy~=1.6.3,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.3-*:
    python: "3.10"
    packages: [torch==2.3.1, torchvision==0.18.1, torchaudio==2.3.1, transformers~=4.46.0,
               "datasets>=2.14,<3.2", accelerate~=1.1, deepspeed~=0.14.2,
               onnxruntime-training==1.18.0, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, ipykernel~=6.0, debugpy~=1.6.3,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.2-*:
    python: "3.10"
    packages: [torch==2.2.2, torchvision==0.17.2, torchaudio==2.2.2, transformers~=4.46.0,
               "datasets>=2.14,<3.2", accelerate~=1.1, deepspeed==0.13.1,
               onnxruntime-training==1.17.1, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, ipykernel~=6.0, debugpy~=1.6.3,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.1-*-py3.10:
    python: "3.10"
    packages: [torch==2.2.1, torchvision==0.17.1, torchaudio==2.2.1, transformers~=4.38.0,
               "datasets>=2.14,<2.20", accelerate<0.31, deepspeed==0.13.1,
               onnxruntime-training==1.17.1, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib, psutil, tqdm, tensorboard, torch-tb-profiler~=0.4.0,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.1-*:
    python: "3.8"
    packages: [torch==2.1.2, torchvision==0.16.2, torchaudio==2.1.2, transformers~=4.40.0,
               "datasets>=2.14,<2.20", accelerate<0.31, deepspeed==0.11.1,
               onnxruntime-training==1.16.0, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib, psutil, tqdm, tensorboard, torch-tb-profiler~=0.4.0,
               "mlflow>=2.9,<3", azureml-core]
    differs: *acpt
  acpt-pytorch-2.0-*:
    python: "3.8"
    packages: [torch==2.0.1, torchvision==0.15.2, torchaudio==2.0.2, transformers~=4.40.0,
               "datasets>=2.14,<2.20", accelerate<0.31, deepspeed~=0.9.5,
               onnxruntime-training==1.14.1, evaluate, scikit-learn, pandas, numpy<2, pillow, regex,
               pybind11, matplotlib, psutil, tqdm, tensorboard, torch-tb-profiler~=0.4.0,
               "mlflow>=2.9,<3", azureml-core]
    differs: &old-acpt >-
      DeepSpeed 0.9 in place of 0.8; its and ORTModule's kernels are not built ahead, which takes
      nvcc on nodes with GPUs
  acpt-pytorch-1.13-*:
    python: "3.8"
    packages: [torch==1.13.1, torchvision==0.14.1, torchaudio==0.13.1, transformers~=4.40.0,
               "datasets>=2.14,<2.20", accelerate<0.31, deepspeed~=0.9.5,
               onnxruntime-training==1.14.1, evaluate, scikit-learn, pandas, numpy<1.24, pillow,
               regex, pybind11, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.66.3, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, ipykernel~=6.0, debugpy~=1.6.3,
               "mlflow>=2.9,<3", azureml-core]
    differs: *old-acpt
  acpt-pytorch-1.12-py39-*:
    python: "3.9"
    packages: [torch==1.12.1, torchvision==0.13.1, torchaudio==0.12.1, transformers~=4.31.0,
               "datasets>=2.14,<2.15", accelerate<0.22, deepspeed~=0.9.5,
               onnxruntime-training==1.14.1, evaluate, scikit-learn, pandas, numpy<1.24, pillow,
               regex, pybind11, matplotlib, psutil, tqdm, tensorboard, torch-tb-profiler~=0.4.0,
               ipykernel~=6.20.2, debugpy~=1.6.3, "mlflow>=2.9,<3", azureml-core]
    differs: *old-acpt
  acpt-pytorch-1.12-*:
    python: "3.8"
    packages: [torch==1.12.1, torchvision==0.13.1, torchaudio==0.12.1, transformers~=4.31.0,
               "datasets>=2.14,<2.15", accelerate<0.22, deepspeed~=0.9.5,
               onnxruntime-training==1.14.1, evaluate, scikit-learn, pandas, numpy<1.24, pillow,
               regex, pybind11, matplotlib, psutil, tqdm, tensorboard, torch-tb-profiler~=0.4.0,
               "mlflow>=2.9,<3", azureml-core]
    differs: *old-acpt
  acpt-pytorch-1.11-*:
    python: "3.8"
    packages: [torch==1.11.0, torchvision==0.12.0, torchaudio==0.11.0, transformers~=4.31.0,
               "datasets>=2.14,<2.15", accelerate<0.22, deepspeed~=0.9.5,
               onnxruntime-training==1.14.1, evaluate, scikit-learn, pandas, numpy<1.24, pillow,
               regex, pybind11, matplotlib, psutil, tqdm, tensorboard, torch-tb-profiler~=0.4.0,
               "mlflow>=2.9,<3", azureml-core]
    differs: *old-acpt

  pytorch-1.10-*:
    python: "3.8"
    packages: [torch==1.10.2, torchvision==0.11.3, torchaudio==0.10.2, numpy<1.24, pandas,
               scikit-learn, pillow, matplotlib~=3.5.0, psutil~=5.9.0, tqdm, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, "setuptools<59.6", "mlflow>=2.9,<3",
               azureml-core, horovod]
  pytorch-1.9-*:
    python: "3.8"
    packages: [torch==1.9.1, torchvision==0.10.1, torchaudio==0.9.1, numpy<1.24, pandas,
               scikit-learn, pillow, matplotlib~=3.5.0, psutil~=5.9.0, tqdm, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, "setuptools<59.6", "mlflow>=2.9,<3",
               azureml-core, horovod]
    differs: Python 3.8 in place of 3.7
  pytorch-1.8-*:
    python: "3.8"
    packages: [torch==1.8.1, torchvision==0.9.1, torchaudio==0.8.1, numpy<1.24, pandas,
               scikit-learn, pillow, matplotlib~=3.5.0, psutil~=5.9.0, tqdm, tensorboard,
               torch-tb-profiler~=0.4.0, py-cpuinfo, "setuptools<59.6", "mlflow>=2.9,<3",
               azureml-core, horovod]
    differs: Python 3.8 in place of 3.7
  pytorch-1.7-*:
    python: "3.8"
    packages: [torch==1.7.1, torchvision==0.8.2, torchaudio==0.7.2, numpy<1.24, pandas,
               scikit-learn, pillow, matplotlib~=3.5.0, psutil~=5.9.0, tqdm, tensorboard,
               py-cpuinfo, "setuptools<59.6", "mlflow>=2.9,<3", azureml-core, horovod]
    differs: Python 3.8 in place of 3.7

  tensorflow-2.16-*:
    python: "3.11"
    packages: ["tensorflow[and-cuda]==2.16.2", tf-keras==2.16.0, keras>=3.12.1, tensorboard~=2.16.0,
               tensorflow-datasets~=4.9.0, pandas==2.2.2, numpy==1.23.5, scipy~=1.14.0,
               matplotlib~=3.6.0, psutil~=5.9.0, tqdm~=4.66.3, ipykernel~=6.20.2, debugpy~=1.6.3,
               pillow, h5py, "mlflow>=2.9,<3", azureml-core, horovod]
    variables: {TF_USE_LEGACY_KERAS: 1}
    differs: Matplotlib 3.6 in place of 3.5
  tensorflow-2.12-*:
    python: "3.8"
    packages: [tensorflow-cpu~=2.12.0, tensorboard~=2.12.0, tensorflow-datasets~=4.5.0,
               pandas~=1.3.0, numpy~=1.22.0, scipy~=1.7.0, matplotlib~=3.5.0, psutil~=5.9.0,
               tqdm~=4.62.0, ipykernel~=6.20.2, debugpy~=1.6.3, protobuf~=3.20.3, onnxruntime,
               pillow, h5py, "mlflow>=2.9,<3", azureml-core, horovod]
    differs: without GPUs, whose CUDA 11 is not on PyPI for it; protobuf 3.20 in place of 4.22
  tensorflow-2.11-*:
    python: "3.8"
    packages: [tensorflow-cpu~=2.11.1, tensorflow-datasets~=4.5.0, pandas~=1.3.0, numpy~=1.22.0,
               scipy~=1.7.0, matplotlib~=3.5.0, psutil~=5.9.0, tqdm~=4.62.0, protobuf~=3.19.0,
               onnxruntime, pillow, h5py, "mlflow>=2.9,<3", azureml-core, horovod]
    differs: &cpu without GPUs, whose CUDA 11 is not on PyPI for it
  tensorflow-2.7-*:
    python: "3.8"
    packages: [tensorflow-cpu~=2.7.0, pandas~=1.3.0, numpy~=1.22.0, scipy~=1.7.0, matplotlib~=3.5.0,
               psutil~=5.9.0, tqdm~=4.62.0, protobuf~=3.19.0, pillow, h5py,
               "mlflow>=2.9,<3", azureml-core, horovod]
    differs: *cpu

  minimal-py31*: &minimal
    python: named
    packages: [azureml-inference-server-http, azure-storage-blob, azure-identity, numpy, joblib]
  minimal-*-inference: *minimal
  mlflow-*-inference:
    python: named
    packages: ["mlflow>=2.9", azureml-inference-server-http, scikit-learn, cloudpickle, psutil,
               pandas, numpy, joblib]
  minimal: {packages: []}
)yaml";

}  // namespace tutti::spec
