#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/cluster/cluster.h"
#include "platform/client/text/columns.h"
#include "platform/client/text/table.h"
#include "platform/cluster/check.h"
#include "platform/cluster/description.h"
#include "platform/cluster/remote.h"
#include "platform/cluster/work.h"

namespace tutti::client {
namespace {

using cluster::Description;
using cluster::Finding;
using nlohmann::json;

const char* WordOf(Finding::Outcome outcome) {
  switch (outcome) {
    case Finding::Outcome::kOk:
      return "ok";
    case Finding::Outcome::kWarning:
      return "warning";
    case Finding::Outcome::kFailed:
      return "failed";
  }
  return "";
}

Tint TintOf(Finding::Outcome outcome) {
  if (outcome == Finding::Outcome::kOk) return Tint::kGreen;
  return outcome == Finding::Outcome::kFailed ? Tint::kRed : Tint::kYellow;
}

void ShowFinding(Context& context, const Finding& finding) {
  const bool colour = context.out_screen.colour;
  context.out << Styled(PadRight(WordOf(finding.outcome), 8), TintOf(finding.outcome), colour)
              << PadRight(finding.host, 12) << " " << PadRight(finding.name, 10) << " "
              << Printable(finding.detail) << "\n";
  if (finding.remedy.empty()) return;
  context.out << PadRight("", 21) << Styled("fix: ", Tint::kBold, colour) << finding.remedy << "\n";
}

}  // namespace

absl::StatusOr<ExitCode> ClusterStatus(Context& context, const ClusterOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<cluster::NodeState> nodes,
                         cluster::AskNodeStates(remote, description.controller));
  if (options.format != Format::kTable) {
    json array = json::array();
    for (const cluster::NodeState& node : nodes) {
      array.push_back({{"name", node.name},
                       {"address", node.address},
                       {"state", node.state},
                       {"cpus", node.cpus},
                       {"cpus_used", node.cpus_used},
                       {"reason", node.reason}});
    }
    TUTTI_RETURN_IF_ERROR(
        WriteStructured(context.out, json{{"nodes", array}}.dump(), options.format));
    return ExitCode::kOk;
  }
  Table table({{"NAME"},
               {"ADDRESS"},
               {"STATE"},
               {"CPUS", Table::Align::kRight},
               {"REASON", Table::Align::kLeft, true}});
  for (const cluster::NodeState& node : nodes) {
    table.Add({{node.name},
               {node.address},
               {node.state},
               {absl::StrCat(node.cpus_used, "/", node.cpus)},
               {node.reason}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> ClusterCheck(Context& context, const ClusterOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const Description description,
                         cluster::ReadDescription(context.home, options.name));
  cluster::SshRemote remote(description.user, description.ssh_config);
  const auto link = cluster::PackLinkProgram(context.program_folder / "tutti-link");
  const std::vector<Finding> findings = cluster::CheckHosts(remote, description, link);
  json array = json::array();
  ExitCode code = ExitCode::kOk;
  for (const Finding& finding : findings) {
    if (finding.outcome == Finding::Outcome::kFailed) code = ExitCode::kJobFailed;
    if (options.format == Format::kTable) ShowFinding(context, finding);
    array.push_back({{"host", finding.host},
                     {"name", finding.name},
                     {"outcome", WordOf(finding.outcome)},
                     {"detail", finding.detail},
                     {"remedy", finding.remedy}});
  }
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(
        WriteStructured(context.out, json{{"checks", array}}.dump(), options.format));
  }
  return code;
}

}  // namespace tutti::client
