#include "platform/client/top/live_view_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace tutti::client {
namespace {

using Json = nlohmann::ordered_json;

Json NumberOrNull(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json TextOrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

// Named as the service's own answer names them.
Json UseJson(const Use& use) {
  if (!use.is_known()) return nullptr;
  return {{"age", absl::ToDoubleSeconds(use.age)},
          {"partial", use.is_partial},
          {"cpu", NumberOrNull(use.cores)},
          {"memory", NumberOrNull(use.memory)},
          {"memory_left", NumberOrNull(use.left)},
          {"disk_read", NumberOrNull(use.read)},
          {"disk_write", NumberOrNull(use.written)},
          {"net_receive", NumberOrNull(use.received)},
          {"net_send", NumberOrNull(use.sent)},
          {"gpu_use", NumberOrNull(use.gpus)},
          {"gpu_memory", NumberOrNull(use.gpu_memory)},
          {"gpu_memory_total", NumberOrNull(use.gpu_memory_total)},
          {"gpu_power", NumberOrNull(use.gpu_power)},
          {"gpu_temperature", NumberOrNull(use.gpu_temperature)}};
}

std::vector<std::string> ProblemsOf(const LiveView& view, const std::string& id) {
  const auto found = view.usage.find(id);
  return found == view.usage.end() ? std::vector<std::string>() : found->second.usage.problems;
}

Json JobJson(const LiveView& view, const JobView& job) {
  return {{"id", job.id},
          {"display_name", job.display_name},
          {"experiment_name", job.experiment_name},
          {"state", job.state},
          {"reason", job.reason},
          {"created", TextOrNull(job.created)},
          {"started", TextOrNull(job.started)},
          {"ended", TextOrNull(job.ended)},
          {"node_count", job.node_count},
          {"priority", job.priority},
          {"problems", ProblemsOf(view, job.id)},
          {"use", UseJson(view.UseOfJob(job.id))}};
}

Json NodeJson(const LiveView& view, const NodeView& node) {
  return {{"name", node.name},
          {"compute", node.compute},
          {"state", node.state},
          {"reason", TextOrNull(node.reason)},
          {"jobs", node.jobs},
          {"cores", node.cores.size()},
          {"memory_bytes", node.memory_bytes},
          {"gpus", node.gpus.size()},
          {"given",
           {{"cores", node.used.cores},
            {"memory_bytes", node.used.memory_bytes},
            {"gpus", node.used.gpus}}},
          {"use", UseJson(view.UseOfNode(node))}};
}

// Returns the nodes that a job has, or had, and their ranks.
Json PlacesJson(const LiveView& view) {
  Json places = Json::array();
  const auto found = view.usage.find(view.open);
  if (found == view.usage.end()) return places;
  const JobUsageView& usage = found->second.usage;
  for (const NodeUsageView& node : usage.nodes) {
    Json ranks = Json::array();
    for (const RankUsageView& rank : node.ranks) {
      ranks.push_back({{"rank", rank.rank}, {"use", UseJson(UseOf(node, rank, usage.live))}});
    }
    places.push_back({{"node", node.number},
                      {"name", TextOrNull(node.name)},
                      {"use", UseJson(UseOf(node, usage.live))},
                      {"ranks", std::move(ranks)}});
  }
  return places;
}

}  // namespace

std::string LiveViewJson(const LiveView& view) {
  Json document = {
      {"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", view.time, absl::UTCTimeZone())}};
  if (view.job) {
    const auto found = view.usage.find(view.open);
    document["job"] = JobJson(view, *view.job);
    document["live"] = found != view.usage.end() && found->second.usage.live;
    document["nodes"] = PlacesJson(view);
  } else {
    document["nodes"] = Json::array();
    for (const NodeView& node : view.nodes.nodes) {
      document["nodes"].push_back(NodeJson(view, node));
    }
    document["jobs"] = Json::array();
    for (const JobView& job : view.jobs) {
      document["jobs"].push_back(JobJson(view, job));
    }
    document["more_jobs"] = view.has_more_jobs;
    document["warnings"] = view.nodes.warnings;
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tutti::client
