#include "platform/cluster/slurm_nodes.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/types/node_state.h"

namespace tutti::cluster {
namespace {

// Returns the value of " KEY=…" up to the next space; "" if there is none.
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

std::vector<NodeState> ReadNodeStates(absl::string_view text) {
  std::vector<NodeState> nodes;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (!absl::StartsWith(line, "NodeName=")) continue;
    const std::string spaced = absl::StrCat(" ", line);
    NodeState node;
    node.name = std::string(FieldOf(spaced, "NodeName"));
    node.address = std::string(FieldOf(spaced, "NodeAddr"));
    node.state = spec::StateOfSlurmNode(FieldOf(spaced, "State"));
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
