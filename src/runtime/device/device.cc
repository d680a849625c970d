#include "runtime/device/device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <torch/cuda.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/machine/processor_name.h"
#include "base/status.h"
#include "runtime/device/cpu/cpu_layers.h"

namespace tutti::device {
namespace {

Cuda* kernels = nullptr;

absl::Status NoGpu(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("there is no GPU to compute on: ", why));
}

absl::Status LoadLibtorchsPart() {
  if (::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return NoGpu("this machine has no NVIDIA driver (libcuda.so.1)");
  }
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return NoGpu(absl::StrCat("libtorch cannot use it: ", ::dlerror(),
                              " (tools/setup brings what it needs where there is a GPU)"));
  }
  if (!torch::cuda::is_available()) return NoGpu("the driver shows none to this process");
  return absl::OkStatus();
}

bool IsLoaded(const char* library) { return ::dlopen(library, RTLD_NOW | RTLD_NOLOAD) != nullptr; }

// The rank's number on its node, as launchers give it.
int64_t LocalRank() {
  const char* const text = std::getenv("LOCAL_RANK");
  int64_t rank = 0;
  return text != nullptr && absl::SimpleAtoi(text, &rank) && rank >= 0 ? rank : 0;
}

// Beside the program's folder, as built and as installed; TUTTI_CUDA_KERNELS names another.
std::string LibraryPath() {
  const char* const variable = std::getenv("TUTTI_CUDA_KERNELS");
  if (variable != nullptr) return variable;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "lib" / "libtutti_cuda.so";
}

void LoadKernels() {
  const std::string path = LibraryPath();
  void* const library = path.empty() ? nullptr : ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  const auto open = reinterpret_cast<Cuda* (*)()>(::dlsym(library, "tutti_cuda"));
  if (open != nullptr) kernels = open();
}

absl::StatusOr<torch::Device> OpenGpu() {
  static const absl::Status loaded = LoadLibtorchsPart();
  TUTTI_RETURN_IF_ERROR(loaded);
  const auto count = static_cast<int64_t>(torch::cuda::device_count());
  const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(LocalRank() % count));
  c10::impl::VirtualGuardImpl(torch::kCUDA).setDevice(device);
  if (kernels == nullptr) LoadKernels();
  return device;
}

// Prepares libtorch for processors that lack what its kernels for the CPU take for granted. Call it
// before anything is computed on the CPU.
//
// FailedPrecondition on x86 without SSE4.1, of before 2008: oneDNN, by which libtorch convolves,
// has nothing for it and would end the first step with "could not create a primitive". Without AVX2
// NNPACK is left out, which would say at every convolution that it does not start.
absl::Status PrepareOldProcessor() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("sse4.1")) {
    return absl::FailedPreconditionError(
        absl::StrCat("libtorch computes on x86-64 with SSE4.1 at least, and this processor (",
                     base::ProcessorName(), ") has none: take a machine of x86-64-v2 or newer"));
  }
  if (!__builtin_cpu_supports("avx2")) at::globalContext().setUserEnabledNNPACK(false);
#endif
  return absl::OkStatus();
}

absl::StatusOr<torch::Device> OpenCpu() {
  static const absl::Status prepared = PrepareOldProcessor();
  TUTTI_RETURN_IF_ERROR(prepared);
  return torch::Device(torch::kCPU);
}

}  // namespace

absl::StatusOr<torch::Device> Open(absl::string_view name) {
  if (name == "cpu") return OpenCpu();
  if (name == "cuda") return OpenGpu();
  if (name != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("no device \"", name, "\"; there are auto, cpu and cuda"));
  }
  const auto gpu = OpenGpu();
  if (gpu.ok()) return *gpu;
  // A driver and yet no GPU is not what anybody would expect.
  if (LocalRank() == 0 && IsLoaded("libcuda.so.1") && !IsLoaded("libtorch_cuda.so")) {
    base::Warn(absl::StrCat("computing on the CPU: ", gpu.status().message()));
  }
  return OpenCpu();
}

Cuda* Kernels() { return kernels; }

Layers* LayersOn(torch::Device device) {
  if (device.is_cpu()) return &CpuLayers();
  return device.is_cuda() ? kernels : nullptr;
}

}  // namespace tutti::device
