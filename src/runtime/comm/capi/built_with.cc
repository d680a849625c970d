// What this build of the library can do on this machine.
#include <cstring>

#include "runtime/comm/capi/boundary.h"
#include "runtime/comm/collective/nccl/cuda_driver.h"
#include "runtime/comm/collective/nccl/nccl_library.h"
#ifdef TUTTI_HAS_UCX
#include "runtime/comm/transport/ucx_library.h"
#endif

namespace {

bool HasUcx() {
#ifdef TUTTI_HAS_UCX
  return tutti::comm::LoadUcx().ok();
#else
  return false;
#endif
}

}  // namespace

int tutti_comm_built_with(const char* what) {
  if (what == nullptr) return 0;
  for (const char* const always : {"shm", "tcp", "tls"}) {
    if (std::strcmp(what, always) == 0) return 1;
  }
  bool has = false;
  tutti::comm::capi::Guard([&] {
    if (std::strcmp(what, "ucx") == 0) has = HasUcx();
    if (std::strcmp(what, "cuda") == 0) has = tutti::comm::CudaDriver::Load().ok();
    if (std::strcmp(what, "nccl") == 0) has = tutti::comm::NcclLibrary::Load().ok();
    return absl::OkStatus();
  });
  return has ? 1 : 0;
}
