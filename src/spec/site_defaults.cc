#include "spec/site_defaults.h"

namespace tutti::spec {

const absl::string_view kSiteDefaults = R"yaml(
# Azure ML's curated environments, by name without "AzureML-": what of them runs on CPU nodes.
environments:
  host: host
  sklearn-*: {packages: [scikit-learn, numpy, scipy, pandas, matplotlib, joblib, mlflow]}
  lightgbm-*: {packages: [lightgbm, scikit-learn, numpy, pandas, matplotlib, joblib, mlflow]}
  xgboost-*: {packages: [xgboost, scikit-learn, numpy, pandas, matplotlib, joblib, mlflow]}
  acpt-pytorch-*: &pytorch
    packages: [torch, torchvision, numpy, pandas, matplotlib, pillow, tqdm, psutil, tensorboard,
               accelerate, transformers, datasets, evaluate, mlflow]
  pytorch-*: *pytorch
  tensorflow-*: {packages: [tensorflow-cpu, numpy, pandas, matplotlib, pillow, h5py, mlflow]}
  python-*: {packages: []}
  minimal-*: {packages: []}
  openmpi*: {packages: []}
  automl*: &no_service {refused: "it is made for services of Azure ML that are not here"}
  responsibleai-*: *no_service
  model-evaluation*: *no_service

# Images by name: what stands for them where jobs do not run in containers. Those of the curated
# environments are looked up by their names above.
images:
  python: {packages: []}
  python:*: {packages: []}
  library/python*: {packages: []}
  docker.io/python*: {packages: []}
  docker.io/library/python*: {packages: []}
  mcr.microsoft.com/azureml/openmpi*: {packages: []}
  mcr.microsoft.com/azureml/base*: {packages: []}
  mcr.microsoft.com/azureml/intelmpi*: {packages: []}
  mcr.microsoft.com/azureml/minimal-*: {packages: []}
  mcr.microsoft.com/azureml/inference-base*: {packages: []}
  mcr.microsoft.com/devcontainers/python*: {packages: []}
  ubuntu*: {packages: []}
  library/ubuntu*: {packages: []}
  debian*: {packages: []}
  library/debian*: {packages: []}
  continuumio/*conda*: {packages: []}
  pytorch/pytorch*: *pytorch
  tensorflow/tensorflow*: {packages: [tensorflow-cpu, numpy]}
  nvcr.io/nvidia/pytorch*: *pytorch

# Conda packages whose names on PyPI differ, that need nothing here ("") or that cannot be had.
# Every other name is taken from PyPI as it is.
conda_packages:
  pytorch: torch
  pytorch-cpu: torch
  pytorch-gpu: torch
  torchvision-cpu: torchvision
  tensorflow-gpu: tensorflow
  tensorflow-cpu: tensorflow-cpu
  tensorflow-mkl: tensorflow-cpu
  pytables: tables
  opencv: opencv-python-headless
  py-opencv: opencv-python-headless
  py-xgboost: xgboost
  py-xgboost-cpu: xgboost
  xgboost-cpu: xgboost
  matplotlib-base: matplotlib
  numpy-base: numpy
  dask-core: dask
  ray-default: ray
  msgpack-python: msgpack
  python-graphviz: graphviz
  pillow-simd: pillow
  faiss: faiss-cpu
  faiss-gpu: faiss-cpu
  ipython_genutils: ipython-genutils
  simpleitk: SimpleITK
  tbb: tbb
  cpuonly: ""
  cudatoolkit: ""
  cuda-toolkit: ""
  cuda: ""
  cuda-nvcc: ""
  cuda-version: ""
  cudnn: ""
  nccl: ""
  pytorch-cuda: ""
  pytorch-mutex: ""
  blas: ""
  libblas: ""
  openblas: ""
  mkl: ""
  mkl-include: ""
  intel-openmp: ""
  libgcc-ng: ""
  libstdcxx-ng: ""
  libffi: ""
  openssl: ""
  ca-certificates: ""
  certifi: certifi
  sqlite: ""
  zlib: ""
  openmpi: ""
  mpich: ""
  dataclasses: ""
  wheel: wheel
  nomkl: ""
  gcc: "refused: compilers come from the machine; install gcc there"
  gxx: "refused: compilers come from the machine; install g++ there"
  gcc_linux-64: "refused: compilers come from the machine; install gcc there"
  gxx_linux-64: "refused: compilers come from the machine; install g++ there"
  nodejs: "refused: only Python packages can be installed; install nodejs on the machine"
  openjdk: "refused: only Python packages can be installed; install a JDK on the machine"
  ffmpeg: "refused: only Python packages can be installed; install ffmpeg on the machine"
  r-base: "refused: R is not installed by tutti; install it on the machine and use the host"
)yaml";

}  // namespace tutti::spec
