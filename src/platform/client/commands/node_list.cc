#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/node_parts.h"
#include "platform/client/text/table.h"
#include "spec/data/file_server.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace {

// Writes "2/8": what is used of all. Where the node's scheduler is not tutti, it is not known.
std::string UsedOf(const NodeView& node, int used, size_t all) {
  return node.compute == "local" ? absl::StrCat(used, "/", all) : "";
}

std::string MemoryOf(const NodeView& node) {
  std::string all = Bytes(node.memory_bytes);
  if (node.compute != "local") return all;
  const uint64_t used = node.used.memory_bytes;
  return absl::StrCat(used == 0 ? "0" : Bytes(used), "/", all);
}

// GPUs only where there are any.
Table TableOf(const NodesView& view) {
  const bool gpus = std::any_of(view.nodes.begin(), view.nodes.end(),
                                [](const NodeView& node) { return !node.gpus.empty(); });
  std::vector<Table::Column> columns = {{"NAME"},
                                        {"COMPUTE"},
                                        {"ADDRESS"},
                                        {"STATE"},
                                        {"CORES", Table::Align::kLeft, true},
                                        {"USED", Table::Align::kRight},
                                        {"MEMORY", Table::Align::kRight}};
  if (gpus) columns.push_back({"GPUS", Table::Align::kRight});
  columns.push_back({"JOB", Table::Align::kLeft, true});
  columns.push_back({"REASON", Table::Align::kLeft, true});
  Table table(std::move(columns));
  for (const NodeView& node : view.nodes) {
    std::vector<Table::Cell> row = {
        {node.name},          {node.compute},
        {node.address},       {node.state, TintOfState(node.state)},
        {Ranges(node.cores)}, {UsedOf(node, node.used.cores, node.cores.size())},
        {MemoryOf(node)}};
    if (gpus) row.push_back({UsedOf(node, node.used.gpus, node.gpus.size())});
    row.push_back({node.jobs.empty() ? node.job : absl::StrJoin(node.jobs, " ")});
    row.push_back({node.reason});
    table.Add(std::move(row));
  }
  return table;
}

// Returns what clients mount: "nfs://10.0.0.5/photos".
std::string MountAddress(const FileServerView& server) {
  return absl::StrCat(spec::EndpointOf({.address = server.address, .port = server.port}), "/",
                      server.name);
}

std::string FillOf(const FileServerView& server) {
  if (!server.fill) return "";
  return absl::StrCat(server.fill->state, ": ",
                      PartOfCopy(server.fill->files, server.fill->of_files, server.fill->bytes,
                                 server.fill->of_bytes));
}

// Shows the file servers below the nodes, with a line for what is wrong with each.
void ShowFileServers(Context& context, const NodesView& view) {
  if (view.file_servers.empty()) return;
  Table table({{"NAME"}, {"ADDRESS"}, {"STATE"}, {"FILL", Table::Align::kLeft, true}});
  for (const FileServerView& server : view.file_servers) {
    table.Add({{server.name},
               {MountAddress(server)},
               {server.state, TintOfState(server.state)},
               {FillOf(server)}});
  }
  context.out << "\n" << table.Render(context.out_screen.width, context.out_screen.colour);
  for (const FileServerView& server : view.file_servers) {
    if (!server.reason.empty()) context.out << server.name << ": " << server.reason << "\n";
    if (server.fill && !server.fill->reason.empty()) {
      context.out << server.name << ": its fill was cut off: " << server.fill->reason << "\n";
    }
  }
}

// Returns of an answer the nodes of one compute, and no file servers, which are of none. A name
// that this machine does not know may be one of the service's.
absl::StatusOr<std::string> NodesOfCompute(const Context& context, const std::string& name,
                                           const std::string& text) {
  TUTTI_RETURN_IF_ERROR(Parse<NodesView>(text).status());
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const spec::ComputeFiles computes = AllComputes(site);
  const auto known = computes.find(absl::AsciiStrToLower(name));
  const std::string& listed_as = known == computes.end() ? name : known->second.stands_for;
  auto document = nlohmann::ordered_json::parse(text);
  auto nodes = nlohmann::ordered_json::array();
  for (const auto& node : document["nodes"]) {
    if (node.value("compute", "") == listed_as) nodes.push_back(node);
  }
  if (nodes.empty() && known == computes.end()) {
    return absl::NotFoundError(
        absl::StrCat("there is no compute ", name, "; `tutti compute list` shows all"));
  }
  document["nodes"] = std::move(nodes);
  document["file_servers"] = nlohmann::ordered_json::array();
  return document.dump();
}

// Returns of an answer the nodes that a job has, or had at its end, and no file servers. A cluster
// may have given back one that a job had: a warning names it.
absl::StatusOr<std::string> NodesOfJob(Context& context, ServiceClient& service,
                                       const std::string& job, const std::string& text) {
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, job));
  TUTTI_ASSIGN_OR_RETURN(const std::string answer, service.Job(id));
  TUTTI_ASSIGN_OR_RETURN(const JobView view, Parse<JobView>(answer));
  auto on_compute = NodesOfCompute(context, view.compute, text);
  if (absl::IsNotFound(on_compute.status())) on_compute = R"({"nodes": []})";  // it was deleted
  TUTTI_RETURN_IF_ERROR(on_compute.status());
  if (view.nodes.empty()) {
    context.err << "job " << id << " has no nodes (" << view.state << ")" << std::endl;
  }
  auto document = nlohmann::ordered_json::parse(*on_compute);
  auto nodes = nlohmann::ordered_json::array();
  for (const std::string& name : view.nodes) {  // in the order of ranks
    const auto& all = document["nodes"];
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const auto& node) { return node.value("name", "") == name; });
    if (found == all.end()) {
      context.err << "warning: node " << name << " of job " << id << " is there no more"
                  << std::endl;
    } else {
      nodes.push_back(*found);
    }
  }
  document["nodes"] = std::move(nodes);
  return document.dump();
}

}  // namespace

absl::StatusOr<ExitCode> NodeList(Context& context, const NodeListOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(std::string text, service.Nodes());
  if (!options.compute.empty()) {
    TUTTI_ASSIGN_OR_RETURN(text, NodesOfCompute(context, options.compute, text));
  }
  if (!options.job.empty()) {
    TUTTI_ASSIGN_OR_RETURN(text, NodesOfJob(context, service, options.job, text));
  }
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, text, options.format));
    return ExitCode::kOk;
  }
  TUTTI_ASSIGN_OR_RETURN(const NodesView view, Parse<NodesView>(text));
  for (const std::string& warning : view.warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  context.out << TableOf(view).Render(context.out_screen.width, context.out_screen.colour);
  ShowFileServers(context, view);
  return ExitCode::kOk;
}

}  // namespace tutti::client
