#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"

namespace tutti::client {
namespace {

// {0, 1, 2, 5} -> "0-2,5".
std::string Ranges(const std::vector<int>& numbers) {
  std::string text;
  for (size_t first = 0, last = 0; first < numbers.size(); first = ++last) {
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", numbers[first]);
    if (last > first) absl::StrAppend(&text, "-", numbers[last]);
  }
  return text;
}

}  // namespace

absl::StatusOr<ExitCode> NodeList(Context& context, Format format) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Nodes());
  if (format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const NodesView view, ParseNodes(text));
  for (const std::string& warning : view.warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  Table table({{"NAME"},
               {"COMPUTE"},
               {"ADDRESS"},
               {"STATE"},
               {"CORES", Table::Align::kLeft, true},
               {"MEMORY", Table::Align::kRight},
               {"JOB"},
               {"REASON", Table::Align::kLeft, true}});
  for (const NodeView& node : view.nodes) {
    table.Add({{node.name},
               {node.compute},
               {node.address},
               {node.state, TintOfState(node.state)},
               {Ranges(node.cores)},
               {Bytes(node.memory_bytes)},
               {node.job},
               {node.reason}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

}  // namespace tutti::client
