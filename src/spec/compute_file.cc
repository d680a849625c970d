#include "spec/compute_file.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "spec/data_asset.h"
#include "spec/diagnostics.h"
#include "spec/json_fields.h"
#include "spec/mapping_reader.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr char kComputesFile[] = "computes.json";
constexpr uint64_t kLargestComputesFile = 16 << 20;
constexpr int kMostInstances = 100'000;
constexpr std::array<absl::string_view, 5> kComputeTypes = {
    "amlcompute", "computeinstance", "virtualmachine", "kubernetes", "synapsespark"};

void CheckComputeName(const YamlNode& root, const YamlNode::Entry* entry, const std::string& name,
                      Diagnostics& diagnostics) {
  if (entry == nullptr) return diagnostics.Error(root.line, "the key \"name\" is missing");
  const absl::Status fits = CheckAssetName("name", name);
  if (!fits.ok()) diagnostics.Error(entry->line, fits.message());
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
  MappingReader reader(*root, "a compute file", diagnostics, {"compute", ""});
  ComputeFile compute;
  std::string unused;
  reader.Text("$schema", unused);
  const YamlNode::Entry* const name = reader.Text("name", compute.name);
  CheckComputeName(*root, name, compute.name, diagnostics);
  const YamlNode::Entry* const type = reader.Choice("type", kComputeTypes, compute.type);
  if (compute.type == "synapsespark") {
    diagnostics.Error(type->line,
                      "type synapsespark is a Spark cluster: jobs here do not run on one");
  }
  reader.Text("description", compute.description);
  reader.TextMap("tags", compute.tags);
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

absl::StatusOr<ComputeFiles> ComputesFromJson(absl::string_view text, const std::string& file) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, file));
  JsonFields fields(document, "", Missing::kIsAnError);
  ComputeFiles computes;
  const json* const list = fields.Array("computes");
  TUTTI_RETURN_IF_ERROR(base::Annotate(fields.Finish(), file));
  for (size_t i = 0; i < list->size(); ++i) {
    auto compute = ComputeOf((*list)[i], absl::StrCat("computes[", i, "]"));
    TUTTI_RETURN_IF_ERROR(base::Annotate(compute.status(), file));
    computes[absl::AsciiStrToLower(compute->name)] = *std::move(compute);
  }
  return computes;
}

absl::StatusOr<ComputeFiles> ReadComputes(const std::filesystem::path& home) {
  const std::string file = (home / kComputesFile).string();
  const auto text = base::ReadFile(file, kLargestComputesFile);
  if (absl::IsNotFound(text.status())) return ComputeFiles();
  TUTTI_RETURN_IF_ERROR(text.status());
  return ComputesFromJson(*text, file);
}

absl::Status WriteComputes(const std::filesystem::path& home, const ComputeFiles& computes) {
  const json document = {{"computes", JsonOf(computes)}};
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home));
  return base::WriteFileAtomic(home / kComputesFile, absl::StrCat(document.dump(1), "\n"));
}

}  // namespace tutti::spec
