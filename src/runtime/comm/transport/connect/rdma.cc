#include "runtime/comm/transport/connect/rdma.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "runtime/comm/transport/ucx_channel.h"

namespace tutti::comm {
namespace {

namespace fs = std::filesystem;

constexpr char kUcxsName[] = "ib";  // UCX's word for all of its RDMA transports

bool Says(const fs::path& file, absl::string_view word) {
  return absl::StrContains(base::ReadFile(file, 4096).value_or(""), word);
}

std::vector<fs::path> Below(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

bool MayUseRdma(const Hello& hello) {
  return hello.transport == GroupOptions::Transport::kAuto && !hello.encrypt;
}

std::vector<std::string> ActiveRdmaPorts(const fs::path& devices) {
  std::vector<std::string> active;
  for (const fs::path& device : Below(devices)) {
    if (Says(device / "node_type", "RNIC")) continue;
    for (const fs::path& port : Below(device / "ports")) {
      if (!Says(port / "state", "ACTIVE")) continue;
      active.push_back(
          absl::StrCat(device.filename().string(), " port ", port.filename().string()));
    }
  }
  return active;
}

absl::Status CheckRdma(const fs::path& devices) {
  const std::vector<std::string> ports = ActiveRdmaPorts(devices);
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
