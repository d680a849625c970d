#include "runtime/comm/transport/connect/ucx_rdma.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

namespace fs = std::filesystem;

constexpr char kUcxsName[] = "ib";  // UCX's word for all of its RDMA transports

}  // namespace

bool MayUseRdma(const Hello& hello) {
  return hello.transport == GroupOptions::Transport::kAuto && !hello.encrypt;
}

absl::Status CheckRdma(const fs::path& devices) {
  const std::vector<std::string> ports = base::ActiveRdmaPorts(devices);
  if (ports.empty()) return absl::NotFoundError("no RDMA");
  const absl::Status probed = ProbeUcx(kUcxsName);
  if (probed.ok()) return probed;
  return absl::FailedPreconditionError(
      absl::StrCat("RDMA is there (", absl::StrJoin(ports, ", "),
                   ") and not used, so ranks talk over TCP: ", probed.message()));
}

std::string UnusedRdma(const std::vector<Hello>& ranks, const absl::Status& own) {
  const Hello& first = ranks.front();
  const bool spans_nodes = std::any_of(ranks.begin(), ranks.end(),
                                       [&](const Hello& each) { return each.node != first.node; });
  if (!spans_nodes || !MayUseRdma(first)) return "";
  if (absl::IsFailedPrecondition(own)) return std::string(own.message());
  const auto has = std::find_if(ranks.begin(), ranks.end(), [](const auto& r) { return r.rdma; });
  const auto lacks =
      std::find_if(ranks.begin(), ranks.end(), [](const auto& r) { return !r.rdma; });
  if (has == ranks.end() || lacks == ranks.end()) return "";
  return absl::StrCat("RDMA of rank ", has->rank, "'s node is not used towards rank ", lacks->rank,
                      "'s, which has none that UCX can use: they talk over TCP");
}

}  // namespace tutti::comm
