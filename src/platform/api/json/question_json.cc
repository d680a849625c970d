#include "platform/api/json/question_json.h"

#include <nlohmann/json.hpp>

#include "spec/json/json_fields.h"

namespace tutti::api {
namespace {

using json = nlohmann::ordered_json;

// What has not been read is null.
json StacksOrNull(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json ProcessJson(const spec::ProcessStacks& process) {
  return {{"pid", process.pid},
          {"command", process.command},
          {"python", StacksOrNull(process.python)},
          {"native", StacksOrNull(process.native)},
          {"kernel", StacksOrNull(process.kernel)},
          {"notes", process.notes}};
}

json GroupJson(const service::StackGroup& group) {
  json processes = json::array();
  for (const spec::ProcessStacks& process : group.stacks.processes) {
    processes.push_back(ProcessJson(process));
  }
  return {{"ranks", group.ranks},
          {"shown", group.shown},
          {"note", StacksOrNull(group.stacks.error)},
          {"processes", std::move(processes)}};
}

}  // namespace

std::string StacksJson(absl::string_view job, const service::QuestionAnswer& answer) {
  json groups = json::array(), missing = json::array();
  for (const service::StackGroup& group : answer.groups) groups.push_back(GroupJson(group));
  for (const service::QuestionAnswer::Missing& left : answer.missing) {
    missing.push_back({{"node", left.node}, {"ranks", left.ranks}, {"why", left.why}});
  }
  return spec::Dump({{"job", job}, {"groups", std::move(groups)}, {"missing", std::move(missing)}});
}

std::string SentResultsJson(absl::string_view job, const service::QuestionAnswer& answer) {
  json nodes = json::array(), missing = json::array();
  for (const service::QuestionAnswer::Sent& sent : answer.sent) {
    nodes.push_back(
        {{"node", sent.node}, {"files", sent.results.files}, {"bytes", sent.results.bytes}});
  }
  for (const service::QuestionAnswer::Missing& left : answer.missing) {
    missing.push_back({{"node", left.node}, {"why", left.why}});
  }
  return spec::Dump({{"job", job}, {"nodes", std::move(nodes)}, {"missing", std::move(missing)}});
}

}  // namespace tutti::api
