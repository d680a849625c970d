// Checks the network by which the nodes of a job would communicate.
#include <dlfcn.h>
#include <sys/resource.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/machine/rdma_ports.h"
#include "platform/client/doctor/checks.h"

namespace tutti::client {
namespace {

constexpr rlim_t kLeastLockedMemory = rlim_t{64} << 20;  // of what RDMA registers

}  // namespace

Check CheckRdma(const DoctorSubject& subject) {
  const std::vector<std::string> ports = base::ActiveRdmaPorts(subject.rdma_devices);
  if (ports.empty()) {
    return {"RDMA", Check::Outcome::kOk, "no InfiniBand or RoCE: nodes talk over TCP", ""};
  }
  const std::string there = absl::StrJoin(ports, ", ");
  void* const ucx = ::dlopen(subject.ucx.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (ucx == nullptr) {
    return {"RDMA", Check::Outcome::kWarning,
            absl::StrCat(there, "; not used, since UCX (", subject.ucx, ") is not here"),
            "apt-get install libucx0 ibverbs-providers, on the nodes too"};
  }
  ::dlclose(ucx);
  rlimit locked{};
  ::getrlimit(RLIMIT_MEMLOCK, &locked);
  if (locked.rlim_cur < kLeastLockedMemory) {
    return {"RDMA", Check::Outcome::kWarning,
            absl::StrCat(there, "; a process may lock ", locked.rlim_cur >> 10,
                         " KiB of memory, and RDMA needs more"),
            "ulimit -l unlimited, or memlock in /etc/security/limits.conf"};
  }
  return {"RDMA", Check::Outcome::kOk,
          absl::StrCat(there, "; used by tutti, Horovod and NCCL, not by PyTorch's gloo"), ""};
}

}  // namespace tutti::client
