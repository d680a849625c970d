#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

absl::StatusOr<std::vector<std::string>> NodesToCheck(ServiceClient& service,
                                                      const NodeCordonOptions& options) {
  if (!options.node.empty()) return std::vector<std::string>{options.node};
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Nodes());
  TUTTI_ASSIGN_OR_RETURN(const NodesView view, Parse<NodesView>(text));
  std::vector<std::string> names;
  for (const NodeView& node : view.nodes) {
    if (node.compute == options.compute) names.push_back(node.name);
  }
  return names;
}

}  // namespace

absl::StatusOr<ExitCode> NodeCheck(Context& context, const NodeCordonOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> names, NodesToCheck(service, options));
  Table table({{"NODE"}, {"CHECK"}, {"FOUND"}, {"DETAIL", Table::Align::kLeft, true}});
  bool any_ill = false;
  for (const std::string& name : names) {
    TUTTI_ASSIGN_OR_RETURN(const std::string text, service.CheckNode(options.compute, name));
    TUTTI_ASSIGN_OR_RETURN(const NodeChecksView looked, Parse<NodeChecksView>(text));
    for (const NodeCheckView& check : looked.checks) {
      table.Add({{name}, {check.name}, {check.outcome}, {check.detail}});
      any_ill = any_ill || check.outcome == "ill";
    }
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return any_ill ? ExitCode::kJobFailed : ExitCode::kOk;
}

}  // namespace tutti::client
