#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/service.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"

namespace tutti::client {

absl::StatusOr<ExitCode> NodeList(Context& context, Format format) {
  Service service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Nodes());
  if (format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ParseNodes(text));
  Table table({{"NAME"},
               {"ADDRESS"},
               {"STATE"},
               {"CORES", Table::Align::kLeft, true},
               {"MEMORY", Table::Align::kRight},
               {"JOB"}});
  for (const NodeView& node : nodes) {
    table.Add({{node.name},
               {node.address},
               {node.state, TintOfState(node.state)},
               {absl::StrJoin(node.cores, ",")},
               {Bytes(node.memory_bytes)},
               {node.job}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

}  // namespace tutti::client
