#include <algorithm>

#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"

namespace tutti::client {

absl::StatusOr<ExitCode> NodeCordon(Context& context, const NodeCordonOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_RETURN_IF_ERROR(service.Cordon(options.compute, options.node, options.reason));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Nodes());
  TUTTI_ASSIGN_OR_RETURN(const NodesView view, Parse<NodesView>(text));
  context.out << options.node << " is cordoned: no job starts on it";
  for (const NodeView& node : view.nodes) {
    if (node.name != options.node || node.compute != options.compute || node.job.empty()) continue;
    context.out << "; job " << node.job << " goes on there";
  }
  context.out << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> NodeUncordon(Context& context, const NodeCordonOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_RETURN_IF_ERROR(service.Uncordon(options.compute, options.node));
  context.out << options.node << " takes jobs again\n";
  return ExitCode::kOk;
}

}  // namespace tutti::client
