#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"

namespace tutti::client {
namespace {

using nlohmann::json;

// How many nodes, and on a cluster which.
struct Nodes {
  int count = 1;
  std::vector<std::string> names;
};

absl::StatusOr<Nodes> NodesOf(const CacheOptions& options) {
  Nodes nodes;
  if (options.nodes.empty()) return nodes;
  if (absl::SimpleAtoi(options.nodes, &nodes.count)) {
    if (nodes.count > 0) return nodes;
    return absl::InvalidArgumentError("--nodes: at least one node");
  }
  if (options.compute == "local") {
    return absl::InvalidArgumentError(
        "--nodes: nodes of this machine share one cache and have no names: write how many, or name "
        "a cluster by --compute");
  }
  nodes.names = absl::StrSplit(options.nodes, ',', absl::SkipEmpty());
  nodes.count = static_cast<int>(nodes.names.size());
  return nodes;
}

// A job that has the data as its input and does nothing with them: so they come in the way in which
// those of any job do, with the datastore's credentials, and to the same place.
json JobOf(const CacheOptions& options, const Nodes& nodes) {
  json job = {{"type", "command"},
              {"display_name", "tutti cache warm"},
              {"command", "true"},
              {"environment", "host"},
              {"compute", options.compute},
              {"inputs", {{"data", {{"type", options.type}, {"path", options.data}}}}},
              {"resources", {{"instance_count", nodes.count}}}};
  if (nodes.count > 1) {
    job["distribution"] = {{"type", "pytorch"}, {"process_count_per_instance", 1}};
  }
  if (!nodes.names.empty()) {
    const std::string list = absl::StrCat("--nodelist=", options.nodes);
    job["resources"]["properties"]["slurm"]["options"] = json::array({list});
  }
  return job;
}

}  // namespace

absl::StatusOr<ExitCode> CacheWarm(Context& context, const CacheOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Nodes nodes, NodesOf(options));
  const base::TemporaryDirectory folder("tutti-warm");
  const std::filesystem::path file = folder.path() / "warm.yml";
  const std::string text =
      JobOf(options, nodes).dump(-1, ' ', false, json::error_handler_t::replace);
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(file, text));
  return Run(context, {.file = file.native(), .detach = options.detach, .format = options.format});
}

}  // namespace tutti::client
