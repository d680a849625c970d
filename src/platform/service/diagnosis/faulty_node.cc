#include "platform/service/diagnosis/faulty_node.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

// The words of ENOSPC, EIO, EROFS, EUCLEAN, and of ENOTCONN for a FUSE file system that has died. A
// quota is its user's. In small letters, as programs in Go write them.
constexpr std::array<absl::string_view, 5> kOfADisk = {
    "no space left on device", "input/output error", "read-only file system",
    "structure needs cleaning", "transport endpoint is not connected"};

}  // namespace

bool SpeaksOfABrokenDisk(absl::string_view reason) {
  const std::string said = absl::AsciiStrToLower(reason);
  return std::any_of(kOfADisk.begin(), kOfADisk.end(),
                     [&](absl::string_view words) { return absl::StrContains(said, words); });
}

std::vector<NodeFault> NodeFaultsOf(const GangEnd& end) {
  std::vector<NodeFault> faults;
  for (const NodeEnd& node : end.nodes) {
    if (node.lost) {
      faults.push_back({node.node, "its launcher was lost"});
    } else if (!node.ill.empty()) {
      faults.push_back({node.node, node.ill});
    } else if (node.disk_fault) {
      faults.push_back({node.node, absl::StrCat("it could not prepare: ", node.reason)});
    }
  }
  return faults;
}

std::vector<std::string> NodesToAvoid(const GangEnd& end) {
  std::vector<std::string> nodes;
  for (const NodeFault& fault : NodeFaultsOf(end)) nodes.push_back(fault.node);
  const bool any_is_ill = std::any_of(end.nodes.begin(), end.nodes.end(),
                                      [](const NodeEnd& node) { return !node.ill.empty(); });
  if (!any_is_ill && nodes.size() > 1 && nodes.size() == end.nodes.size()) return {};
  return nodes;
}

}  // namespace tutti::service
