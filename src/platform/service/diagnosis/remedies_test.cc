#include "platform/service/diagnosis/remedies.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <string>

namespace tutti::service {
namespace {
using ::testing::HasSubstr;

TEST(RemedyOfTest, KnowsWhatToDoAboutCommonFailures) {
  const std::pair<const char*, const char*> kCases[] = {
      {"ModuleNotFoundError: No module named 'torch'", "environment"},
      {"ModuleNotFoundError: No module named 'horovod'", "it is tutti's own there"},
      {"ModuleNotFoundError: No module named 'azureml'", "tutti-client's wheel and its forwarder"},
      {"ModuleNotFoundError: No module named 'azureml.core'", "forwarder"},
      {"ModuleNotFoundError: No module named 'azureml.mlflow'", "add azureml-mlflow"},
      {"ERROR: Failed to build horovod", "it is tutti's own there"},
      {"mlflow.exceptions.MlflowException: Model Registry features are not supported by the store "
       "with URI: '/a/outputs/mlruns'. Stores with the following URI schemes are supported: ['",
       "mlflow>=2"},
      {"KeyError: 'MLFLOW_RUN_ID'", "mlflow.start_run()"},
      {"/bin/bash: line 1: MLFLOW_RUN_ID: unbound variable", "mlflow.start_run()"},
      {"ImportError: libcudart.so.12: cannot open shared object file: No such file", "CPU builds"},
      {"ImportError: libGL.so.1: cannot open shared object file", "not on the node"},
      {"RuntimeError: Found no NVIDIA driver on your system.", "no usable GPU"},
      {"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried", "smaller batch"},
      {"OSError: [Errno 98] Address already in use", "MASTER_PORT"},
      {"socket.gaierror: [Errno -2] Name or service not known", "MASTER_ADDR"},
      {"OSError: [Errno 28] No space left on device", "disk"},
      {"OSError: [Errno 30] Read-only file system: '/mnt/data/model.pt'", "./outputs"},
      {"/bin/bash: line 1: ./train.sh: Permission denied", "chmod"},
      {"PermissionError: [Errno 13] Permission denied: '/x'", "user of the service"},
      {"torch.distributed.DistStoreError: wait timeout after 6000ms, keys: /default_pg/0",
       "WORLD_SIZE"},
      {"ImportError: /usr/lib/libcudnn.so.9: undefined symbol: x, version libcublasLt.so.12",
       "mixed"},
      {"ImportError: libtorch_cuda.so: undefined symbol: ncclCommRegister", "mixed"},
      {"RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please "
       "update your GPU driver",
       "older than the packages' CUDA"},
      {"RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
       "older than the packages, or there is none"},
      {"RuntimeError: Cannot re-initialize CUDA in forked subprocess.", "spawn"},
      {"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 93.1 GiB", "smaller batch"},
      {"std::bad_alloc", "smaller batch"},
      {"RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.", "fewer workers"},
      {"RuntimeError: The server socket has failed to bind to 0.0.0.0:29500 (errno: 98 - Address "
       "already in use). EADDRINUSE",
       "MASTER_PORT"},
      {"curl: (6) Could not resolve host: example.org", "as an input"},
      {"urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
       "as an input"},
      {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)",
       "slowest"},
      {"RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 5000ms for recv "
       "operation to complete",
       "slowest"},
      {"torch.distributed.DistStoreError: Timed out after 61 seconds waiting for clients. 1/2 "
       "clients joined.",
       "WORLD_SIZE"},
      {"RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error",
       "GLOO_SOCKET_IFNAME"},
      {"RuntimeError: CUDA error: out of memory", "GPU's memory"},
      {"W dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'", "CPU builds"},
      {"error: externally-managed-environment", "job's environment"},
      {"Loss.cu:240: nll_loss: Assertion `t >= 0 && t < n_classes` failed.", "number of classes"},
      {"ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!", "gloo"},
      {"torch.distributed.DistBackendError: NCCL error in: x, unhandled cuda error: Cuda failure "
       "'no "
       "CUDA-capable device is detected'",
       "gloo"},
      {"ValueError: Error initializing torch.distributed using env:// rendezvous: environment "
       "variable RANK expected, but not set",
       "--distribution pytorch"},
      {"KeyError: 'LOCAL_RANK'", "--distribution pytorch"},
      {"bash: line 1: NOPE: unbound variable", "set -u"},
      {"bash: line 1: deepspeed: command not found", "environment"}};
  for (const auto& [words, remedy] : kCases) {
    EXPECT_THAT(std::string(RemedyOf({.code = 1}, words)), HasSubstr(remedy)) << words;
  }
}

TEST(RemedyOfTest, AKeyOfTheUsersOwnDataIsNoVariable) {
  EXPECT_EQ(RemedyOf({.code = 1}, "KeyError: 'rank'"), "");
}

TEST(RemedyOfTest, KnowsWhatSignalsAndCodesMean) {
  const auto remedy = [](base::ExitStatus end, const char* words = "epoch 3") {
    return std::string(RemedyOf(end, words));
  };
  EXPECT_THAT(remedy({.signal = SIGSEGV}), HasSubstr("PYTHONFAULTHANDLER"));
  EXPECT_THAT(remedy({.code = 128 + SIGSEGV}), HasSubstr("PYTHONFAULTHANDLER"));
  EXPECT_THAT(remedy({.signal = SIGFPE}), HasSubstr("native code"));
  EXPECT_THAT(remedy({.signal = SIGBUS}), HasSubstr("/dev/shm"));
  EXPECT_THAT(remedy({.signal = SIGILL}), HasSubstr("processors"));
  EXPECT_THAT(remedy({.signal = SIGABRT}, ""), HasSubstr("native code"));
  EXPECT_THAT(remedy({.code = 124}), HasSubstr("`timeout`"));
  EXPECT_THAT(remedy({.code = 126}, ""), HasSubstr("cannot be executed"));
  EXPECT_THAT(remedy({.code = 126}, "sh: ./a: cannot execute: required file not found"),
              HasSubstr("cannot be executed"));
  EXPECT_EQ(remedy({.code = 126}), "");
  // Podman ends with it for whatever it could not begin.
  EXPECT_THAT(
      remedy({.code = 126}, "level=error msg=\"cannot start a container that has stopped\""),
      HasSubstr("was killed before the command began"));
  EXPECT_THAT(remedy({.code = 127}, ""), HasSubstr("environment"));
  EXPECT_THAT(remedy({.code = 127}, "sh: 1: x: not found"), HasSubstr("environment"));
  EXPECT_EQ(remedy({.code = 127}), "");
}

TEST(RemedyOfTest, LeavesASignalToTheWordsThatTellIt) {
  EXPECT_EQ(RemedyOf({.signal = SIGABRT}, "std::out_of_range: map::at"), "");
  EXPECT_EQ(RemedyOf({.signal = SIGSEGV}, "Fatal Python error: Segmentation fault"), "");
  EXPECT_EQ(RemedyOf({.signal = SIGSEGV}, "application called MPI_Abort(MPI_COMM_WORLD, 3)"), "");
  EXPECT_THAT(std::string(RemedyOf({.signal = SIGBUS}, "std::bad_alloc")), HasSubstr("memory"));
}

TEST(RemedyOfTest, SaysNothingOfOtherFailures) {
  EXPECT_EQ(RemedyOf({.code = 1}, "ValueError: boom"), "");
  EXPECT_EQ(RemedyOf({.code = 1}, ""), "");
}

}  // namespace
}  // namespace tutti::service
