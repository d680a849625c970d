// CudaDriver loads the functions of CUDA's driver interface that are used here: putting work on a
// stream in its order needs neither CUDA's headers nor its runtime. Streams and events of the
// runtime interface (cudaStream_t, cudaEvent_t) are those of the driver, and a device's context is
// the one that the runtime and every framework use (the primary one).
//
// Written from the documented ABI, whose functions and numbers have not changed since CUDA 5.5.
// Immutable, safe to share between threads. It stays loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::comm {

namespace cuda {

using Context = void*;
using CudaStream = void*;  // null: the default one
using Event = void*;
using Address = uintptr_t;

enum Result : int { kSuccess = 0, kNotReady = 600 };

inline constexpr unsigned kBesideDefaultStream = 1;  // CU_STREAM_NON_BLOCKING
inline constexpr unsigned kWithoutTime = 2;          // CU_EVENT_DISABLE_TIMING

// The functions, by the names that they have in the library after "cu" (some with a version
// behind).
struct Functions {
  Result (*Init)(unsigned flags);
  Result (*GetErrorString)(Result error, const char** text);
  Result (*DeviceGet)(int* device, int ordinal);
  Result (*DevicePrimaryCtxRetain)(Context* context, int device);
  Result (*CtxPushCurrent)(Context context);
  Result (*CtxPopCurrent)(Context* context);
  Result (*CtxGetStreamPriorityRange)(int* least, int* greatest);
  Result (*StreamCreateWithPriority)(CudaStream* stream, unsigned flags, int priority);
  Result (*StreamDestroy)(CudaStream stream);
  Result (*StreamWaitEvent)(CudaStream stream, Event event, unsigned flags);
  Result (*EventCreate)(Event* event, unsigned flags);
  Result (*EventRecord)(Event event, CudaStream stream);
  Result (*EventQuery)(Event event);
  Result (*EventDestroy)(Event event);
  Result (*MemAlloc)(Address* address, size_t bytes);
  Result (*MemFree)(Address address);
  Result (*MemcpyHtoDAsync)(Address to, const void* from, size_t bytes, CudaStream stream);
};

}  // namespace cuda

class CudaDriver {
 public:
  // Loads TUTTI_CUDA_LIBRARY, else libcuda.so.1. FailedPrecondition "CUDA is not there: ...".
  static absl::StatusOr<std::shared_ptr<const CudaDriver>> Load();

  const cuda::Functions& call() const { return functions_; }
  absl::Status ToStatus(cuda::Result result, absl::string_view what) const;

 private:
  CudaDriver() = default;
  cuda::Functions functions_ = {};
};

}  // namespace tutti::comm
