#include "runtime/comm/collective/nccl/cuda_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/symbol.h"

namespace tutti::comm {
namespace {

absl::Status CudaIsNotThere(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("CUDA is not there: ", why));
}

template <typename Function>
void Look(void* library, const char* name, Function& function, std::string& missing) {
  if (!base::Resolve(library, name, function) && missing.empty()) missing = name;
}

absl::StatusOr<cuda::Functions> ResolveCuda(void* library) {
  cuda::Functions f = {};
  std::string missing;
  Look(library, "cuInit", f.Init, missing);
  Look(library, "cuGetErrorString", f.GetErrorString, missing);
  Look(library, "cuDeviceGet", f.DeviceGet, missing);
  Look(library, "cuDevicePrimaryCtxRetain", f.DevicePrimaryCtxRetain, missing);
  Look(library, "cuCtxPushCurrent_v2", f.CtxPushCurrent, missing);
  Look(library, "cuCtxPopCurrent_v2", f.CtxPopCurrent, missing);
  Look(library, "cuCtxGetStreamPriorityRange", f.CtxGetStreamPriorityRange, missing);
  Look(library, "cuStreamCreateWithPriority", f.StreamCreateWithPriority, missing);
  Look(library, "cuStreamDestroy_v2", f.StreamDestroy, missing);
  Look(library, "cuStreamWaitEvent", f.StreamWaitEvent, missing);
  Look(library, "cuEventCreate", f.EventCreate, missing);
  Look(library, "cuEventRecord", f.EventRecord, missing);
  Look(library, "cuEventQuery", f.EventQuery, missing);
  Look(library, "cuEventDestroy_v2", f.EventDestroy, missing);
  Look(library, "cuMemAlloc_v2", f.MemAlloc, missing);
  Look(library, "cuMemFree_v2", f.MemFree, missing);
  Look(library, "cuMemcpyHtoDAsync_v2", f.MemcpyHtoDAsync, missing);
  if (!missing.empty()) return CudaIsNotThere(absl::StrCat("its driver has no ", missing));
  return f;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CudaDriver>> CudaDriver::Load() {
  const char* const named = std::getenv("TUTTI_CUDA_LIBRARY");
  const bool is_named = named != nullptr && *named != '\0';
  void* const library = ::dlopen(is_named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return CudaIsNotThere(::dlerror());
  std::shared_ptr<CudaDriver> loaded(new CudaDriver());
  TUTTI_ASSIGN_OR_RETURN(loaded->functions_, ResolveCuda(library));
  TUTTI_RETURN_IF_ERROR(loaded->ToStatus(loaded->functions_.Init(0), "begin"));
  return std::shared_ptr<const CudaDriver>(std::move(loaded));
}

absl::Status CudaDriver::ToStatus(cuda::Result result, absl::string_view what) const {
  if (result == cuda::kSuccess) return absl::OkStatus();
  const char* text = nullptr;
  functions_.GetErrorString(result, &text);
  return absl::InternalError(absl::StrCat("CUDA could not ", what, ": ",
                                          text == nullptr ? "error" : text, " (",
                                          static_cast<int>(result), ")"));
}

}  // namespace tutti::comm
