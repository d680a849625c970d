#include "platform/cluster/node_state.h"

#include <array>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::cluster {
namespace {

// The value of " KEY=…" up to the next space. Empty: there is none.
absl::string_view FieldOf(absl::string_view line, absl::string_view key) {
  const std::string start = absl::StrCat(" ", key, "=");
  const size_t at = line.find(start);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = line.substr(at + start.size());
  return rest.substr(0, rest.find(' '));
}

// It comes last, may have spaces, and ends with "[user@time]".
absl::string_view ReasonOf(absl::string_view line) {
  static constexpr absl::string_view kStart = " Reason=";
  const size_t at = line.find(kStart);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = line.substr(at + kStart.size());
  return absl::StripTrailingAsciiWhitespace(rest.substr(0, rest.rfind(" [")));
}

}  // namespace

std::string StateInWords(absl::string_view slurm_state) {
  const std::set<absl::string_view> flags = absl::StrSplit(slurm_state, '+');
  const auto any = [&](std::initializer_list<absl::string_view> names) {
    for (const absl::string_view name : names) {
      if (flags.contains(name)) return true;
    }
    return false;
  };
  const bool works = any({"ALLOCATED", "MIXED", "COMPLETING"});
  if (any({"DOWN", "ERROR", "FAIL", "INVAL", "INVALID_REG", "UNKNOWN", "FUTURE"})) {
    return "unusable";
  }
  if (any({"POWERING_DOWN", "POWER_DOWN"})) return "leaving";
  if (any({"POWERED_DOWN"})) return works ? "preparing" : "off";
  if (any({"POWERING_UP", "POWER_UP", "REBOOT_ISSUED"})) return "preparing";
  if (any({"NOT_RESPONDING"})) return "unusable";
  if (any({"DRAIN"})) return works ? "leaving" : "unusable";
  return works ? "running" : "idle";
}

std::vector<NodeState> ReadNodeStates(absl::string_view text) {
  std::vector<NodeState> nodes;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "NodeName=")) continue;
    const std::string spaced = absl::StrCat(" ", line);
    NodeState node;
    node.name = std::string(FieldOf(spaced, "NodeName"));
    node.address = std::string(FieldOf(spaced, "NodeAddr"));
    node.state = StateInWords(FieldOf(spaced, "State"));
    node.reason = std::string(ReasonOf(spaced));
    for (const auto& [key, value] :
         {std::pair{"CPUTot", &node.cpus}, {"CPUAlloc", &node.cpus_used}}) {
      if (!absl::SimpleAtoi(FieldOf(spaced, key), value)) *value = 0;
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace tutti::cluster
