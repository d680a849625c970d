#include "spec/json/gang_plan.h"

#include <limits>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {
using nlohmann::json;

constexpr uint64_t kLargest = 64 << 20;
constexpr char kShared[] = "shared";  // the field that names the other file

json JsonOf(const NodePart& part) {
  json document = {{"node_index", part.node_index},
                   {"directory", part.directory},
                   {"former_directory", part.former_directory},
                   {"memory_bytes", part.memory_bytes}};
  AddPart(part.cores, part.gpus, document);
  return document;
}

struct OwnDocument {
  NodePart part;
  std::string shared;
};

absl::StatusOr<OwnDocument> ReadOwn(const json& document) {
  OwnDocument own;
  JsonFields fields(document, "", Missing::kIsAnError);
  fields.Read(kShared, own.shared);
  fields.Read("node_index", own.part.node_index, 0, std::numeric_limits<int>::max());
  fields.Read("directory", own.part.directory);
  fields.Read("former_directory", own.part.former_directory);
  fields.Read("memory_bytes", own.part.memory_bytes, 0);
  fields.ReadIfThere("cores", own.part.cores);
  fields.ReadIfThere("gpus", own.part.gpus);
  TUTTI_RETURN_IF_ERROR(base::Annotate(fields.Finish(), "launch plan"));
  return own;
}

}  // namespace

LaunchPlan PlanFor(LaunchPlan shared, const NodePart& part) {
  shared.node_index = part.node_index;
  shared.directory = part.directory;
  shared.former_directory = part.former_directory;
  shared.memory_bytes = part.memory_bytes;
  shared.cores = part.cores;
  shared.gpus = part.gpus;
  return shared;
}

std::string SharedToJson(const LaunchPlan& plan) {
  json document = json::parse(ToJson(plan));
  const json own = JsonOf(NodePart{.cores = {0}});  // with all that there may be
  for (const auto& [name, value] : own.items()) document.erase(name);
  return Dump(document);
}

std::string ToJson(const NodePart& part, const std::filesystem::path& shared) {
  json document = JsonOf(part);
  document[kShared] = shared.native();
  return Dump(document);
}

absl::StatusOr<LaunchPlan> ReadLaunchPlan(const std::filesystem::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kLargest));
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, "launch plan"));
  if (!document.contains(kShared)) return LaunchPlanFromJson(text);
  TUTTI_ASSIGN_OR_RETURN(const OwnDocument own, ReadOwn(document));
  TUTTI_ASSIGN_OR_RETURN(const std::string rest, base::ReadFile(own.shared, kLargest));
  TUTTI_ASSIGN_OR_RETURN(json whole, ParseJsonObject(rest, own.shared));
  whole.update(JsonOf(own.part));
  auto plan = LaunchPlanFromJson(Dump(whole));
  if (!plan.ok()) return base::Annotate(plan.status(), own.shared);
  return plan;
}

absl::StatusOr<NodePart> NodePartOf(absl::string_view text) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, "launch plan"));
  if (document.contains(kShared)) {
    TUTTI_ASSIGN_OR_RETURN(OwnDocument own, ReadOwn(document));
    return std::move(own.part);
  }
  TUTTI_ASSIGN_OR_RETURN(LaunchPlan plan, LaunchPlanFromJson(text));
  return NodePart{.node_index = plan.node_index,
                  .directory = std::move(plan.directory),
                  .former_directory = std::move(plan.former_directory),
                  .memory_bytes = plan.memory_bytes,
                  .cores = std::move(plan.cores),
                  .gpus = std::move(plan.gpus)};
}

}  // namespace tutti::spec
