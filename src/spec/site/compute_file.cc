#include "spec/site/compute_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/data/asset_head.h"
#include "spec/data/home_list.h"
#include "spec/json/json_fields.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/other_kinds.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr char kComputesKey[] = "computes";
constexpr int kMostInstances = 100'000;
constexpr std::array<absl::string_view, 5> kComputeTypes = {
    "amlcompute", "computeinstance", "virtualmachine", "kubernetes", "synapsespark"};

void CheckComputeName(const YamlNode& root, const YamlNode::Entry* entry, const std::string& name,
                      Diagnostics& diagnostics) {
  if (entry == nullptr) return diagnostics.Error(root.line, "the key \"name\" is missing");
  const std::string lower = absl::AsciiStrToLower(name);
  if (lower == "local" || lower == "serverless") {
    diagnostics.Error(entry->line, absl::StrCat("\"", lower, "\" means this machine's nodes"));
  }
}

absl::StatusOr<ComputeFile> ComputeOf(const json& document, std::string path) {
  ComputeFile compute;
  JsonFields fields(document, std::move(path), Missing::kKeepsDefault);
  fields.Read("name", compute.name);
  fields.Read("type", compute.type);
  fields.Read("description", compute.description);
  fields.Read("tags", compute.tags);
  fields.Read("max_instances", compute.max_instances, 0, kMostInstances);
  fields.Read("stands_for", compute.stands_for);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return compute;
}

}  // namespace

absl::StatusOr<ReadComputeResult> ReadComputeFile(absl::string_view text,
                                                  absl::string_view file_name) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  Diagnostics diagnostics(file_name);
  TUTTI_RETURN_IF_ERROR(CheckKind("compute", *root, diagnostics));
  MappingReader reader(*root, "a compute file", diagnostics, {"compute", ""});
  ComputeFile compute;
  const YamlNode::Entry* const name = ReadHead(reader, compute, diagnostics);
  CheckComputeName(*root, name, compute.name, diagnostics);
  const YamlNode::Entry* const type = reader.Choice("type", kComputeTypes, compute.type);
  if (compute.type == "synapsespark") {
    diagnostics.Error(type->line,
                      "type synapsespark is a Spark cluster: jobs here do not run on one");
  }
  if (compute.type == "computeinstance") compute.max_instances = 1;
  reader.Count("max_instances", kMostInstances, compute.max_instances);
  reader.Finish();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return ReadComputeResult{std::move(compute), diagnostics.warnings()};
}

json JsonOf(const ComputeFiles& computes) {
  json list = json::array();
  for (const auto& [lower, compute] : computes) {
    list.push_back({{"name", compute.name},
                    {"type", compute.type},
                    {"description", compute.description},
                    {"tags", compute.tags},
                    {"max_instances", compute.max_instances},
                    {"stands_for", compute.stands_for}});
  }
  return list;
}

namespace {

// Returns the function that adds the entries of a list.
EachEntry AddTo(ComputeFiles& computes) {
  return [&computes](const json& entry, std::string location) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(ComputeFile compute, ComputeOf(entry, std::move(location)));
    computes[absl::AsciiStrToLower(compute.name)] = std::move(compute);
    return absl::OkStatus();
  };
}

}  // namespace

absl::StatusOr<ComputeFiles> ComputesFromJson(absl::string_view text, const std::string& file) {
  ComputeFiles computes;
  TUTTI_RETURN_IF_ERROR(ReadListText(text, file, kComputesKey, AddTo(computes)));
  return computes;
}

std::filesystem::path ComputesFile(const std::filesystem::path& home) {
  return home / "computes.json";
}

absl::StatusOr<ComputeFiles> ReadComputes(const std::filesystem::path& home) {
  ComputeFiles computes;
  TUTTI_RETURN_IF_ERROR(ReadList(ComputesFile(home), kComputesKey, AddTo(computes)));
  return computes;
}

absl::Status WriteComputes(const std::filesystem::path& home, const ComputeFiles& computes) {
  return WriteList(ComputesFile(home), kComputesKey, JsonOf(computes));
}

}  // namespace tutti::spec
