#include "spec/site/site_defaults.h"

#include "absl/strings/match.h"

namespace tutti::spec {

bool IsInBuiltInTable(absl::string_view location) {
  return absl::StartsWith(location, kBuiltInTable);
}

const absl::string_view kSiteDefaults = R"yaml(
# Azure ML's environments, by name without "AzureML-", in versions that curated_environments.cc does
# not have. MLflow 3 refuses what published examples do (log_model of PyTorch without a signature),
# and old ones, to which the resolver would go back, fail to import beside today's protobuf.
environments:
  host: host
  host-horovod: {host: true, packages: [horovod]}
  sklearn-*:
    packages: [scikit-learn, numpy, scipy, pandas, matplotlib, joblib, &mlflow "mlflow>=2.9,<3"]
  lightgbm-*: {packages: [lightgbm, scikit-learn, numpy, pandas, matplotlib, joblib, *mlflow]}
  xgboost-*: {packages: [xgboost, scikit-learn, numpy, pandas, matplotlib, joblib, *mlflow]}
  acpt-pytorch-*: &pytorch
    packages: [torch, torchvision, numpy, pandas, matplotlib, pillow, tqdm, psutil, tensorboard,
               accelerate, transformers, "datasets>=2.14", evaluate, horovod, *mlflow]
  pytorch-*: *pytorch
  tensorflow-*: &tensorflow
    packages: [tensorflow-cpu, tf-keras, numpy, pandas, matplotlib, pillow, h5py, tensorboard,
               horovod, *mlflow]
  python-*: {python: named, packages: []}
  minimal-*: {python: named, packages: []}
  openmpi*: {packages: []}
  automl*: &no_service {refused: "it is made for services of Azure ML that are not here"}
  responsibleai-*: *no_service
  model-evaluation*: *no_service

# Images by name: what stands for them where jobs do not run in containers. Those of the curated
# environments are looked up by their names above.
images:
  python: {packages: []}
  python:*: {python: named, packages: []}
  library/python*: {python: named, packages: []}
  docker.io/python*: {python: named, packages: []}
  docker.io/library/python*: {python: named, packages: []}
  mcr.microsoft.com/azureml/openmpi*: {packages: []}
  mcr.microsoft.com/azureml/base*: {packages: []}
  mcr.microsoft.com/azureml/intelmpi*: {packages: []}
  mcr.microsoft.com/azureml/minimal-*: {packages: []}
  mcr.microsoft.com/azureml/inference-base*: {packages: []}
  mcr.microsoft.com/devcontainers/python*: {python: named, packages: []}
  ubuntu:latest: &plain {packages: []}
  ubuntu:*: &system {packages: [], differs: "the system and the Python are those of this machine"}
  ubuntu*: *plain
  library/ubuntu:latest: *plain
  library/ubuntu:*: *system
  library/ubuntu*: *plain
  debian:latest: *plain
  debian:*: *system
  debian*: *plain
  library/debian:latest: *plain
  library/debian:*: *system
  library/debian*: *plain
  continuumio/*conda*:latest: *plain
  continuumio/*conda*:*: {packages: [], differs: "a plain Python of this machine, of any version"}
  continuumio/*conda*: *plain
  # Where the tag says a version: the nearest that is pinned (framework_image.cc).
  pytorch/pytorch*: *pytorch
  tensorflow/tensorflow*: *tensorflow
  nvcr.io/nvidia/pytorch*: *pytorch

# Conda packages whose names on PyPI differ, that need nothing here (""), that are a program, which
# the nodes must have, or that cannot be had. Every other name is taken from PyPI as it is.
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
  libgcc: ""
  libstdcxx: ""
  libgomp: ""
  libgfortran: ""
  libgfortran-ng: ""
  libgfortran5: ""
  libsndfile: ""
  libpng: ""
  libjpeg-turbo: ""
  jpeg: ""
  libtiff: ""
  libwebp: ""
  libwebp-base: ""
  lcms2: ""
  freetype: ""
  libxml2: ""
  libxslt: ""
  libcurl: ""
  libuuid: ""
  libuv: ""
  libnsl: ""
  expat: ""
  icu: ""
  glib: ""
  gmp: ""
  hdf5: ""
  ncurses: ""
  readline: ""
  tk: ""
  xz: ""
  bzip2: ""
  zstd: ""
  lz4-c: ""
  tzdata: ""
  ld_impl_linux-64: ""
  llvm-openmp: ""
  libffi: ""
  openssl: ""
  ca-certificates: ""
  certifi: certifi
  sqlite: ""
  zlib: ""
  mpi: ""
  impi_rt: impi-rt
  dataclasses: ""
  wheel: wheel
  nomkl: ""
  gcc: "program: gcc"
  gcc_linux-64: "program: gcc"
  c-compiler: "program: gcc"
  gxx: "program: g++"
  gxx_linux-64: "program: g++"
  cxx-compiler: "program: g++"
  compilers: "program: g++"
  gfortran: "program: gfortran"
  gfortran_linux-64: "program: gfortran"
  fortran-compiler: "program: gfortran"
  clang: "program: clang"
  make: "program: make"
  git: "program: git"
  git-lfs: "program: git-lfs"
  wget: "program: wget"
  curl: "program: curl"
  unzip: "program: unzip"
  zip: "program: zip"
  nodejs: "program: node"
  openjdk: "program: java"
  ffmpeg: "program: ffmpeg"
  pandoc: "program: pandoc"
  tesseract: "program: tesseract"
  perl: "program: perl"
  r-base: "program: R"
)yaml";

}  // namespace tutti::spec
