#include "spec/file/asset_file.h"

#include <array>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/command/code.h"
#include "spec/data/asset_head.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"
#include "spec/environment/job_environment.h"
#include "spec/flow/pipeline_reader.h"
#include "spec/flow/step_reader.h"
#include "spec/site/read_context.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/other_kinds.h"

namespace tutti::spec {
namespace fs = std::filesystem;
namespace {

constexpr std::array<absl::string_view, 3> kDataTypes = {"uri_folder", "uri_file", "mltable"};
constexpr std::array<absl::string_view, 3> kEnvironmentTypes = {"build", "conda_file", "image"};

using Node = std::shared_ptr<const YamlNode>;

// Whether a step may leave the input out.
bool MayBeLeftOut(const YamlNode::Entry& input) {
  const YamlNode::Entry* const optional = FindEntry(*input.value, "optional");
  return FindEntry(*input.value, "default") != nullptr ||
         (optional != nullptr && absl::EqualsIgnoreCase(optional->value->scalar, "true"));
}

// One of its values, for what cannot be read without: how many nodes, which compute. Nothing for a
// file or folder.
std::optional<std::string> SampleOf(const YamlNode::Entry& input) {
  const YamlNode::Entry* const written = FindEntry(*input.value, "type");
  const std::string type = written == nullptr ? "" : absl::AsciiStrToLower(written->value->scalar);
  const YamlNode::Entry* const choices = FindEntry(*input.value, "enum");
  if (choices != nullptr && !choices->value->items.empty()) return choices->value->items[0]->scalar;
  if (type == "integer" || type == "number") return "1";
  if (type == "boolean") return "True";
  if (type == "string") return "local";
  return std::nullopt;
}

void ReadAssetHead(MappingReader& reader, Asset& asset, Diagnostics& diagnostics) {
  ReadHead(reader, asset, diagnostics);
  const YamlNode::Entry* const version = reader.Text("version", asset.version);
  const absl::Status fits = version ? CheckAssetName("version", asset.version) : absl::OkStatus();
  if (!fits.ok()) diagnostics.Error(version->line, fits.message());
}

// The line of its path.
int ReadData(const YamlNode& root, const fs::path& base, Asset& asset, Diagnostics& diagnostics) {
  MappingReader reader(root, "a data file", diagnostics, {"data", ""});
  ReadAssetHead(reader, asset, diagnostics);
  asset.type = "uri_folder";
  reader.Choice("type", kDataTypes, asset.type);
  const YamlNode::Entry* const path = reader.Text("path", asset.path);
  reader.Finish();
  if (path == nullptr || asset.path.empty()) {
    diagnostics.Error(path == nullptr ? root.line : path->line,
                      "the key \"path\" is missing: say where the data lie");
  } else if (!IsAddress(asset.path)) {
    const auto local = LocalPath(asset.path, base);
    if (local.ok()) {
      asset.path = *local;
    } else {
      diagnostics.Error(path->line, local.status().message());
    }
  }
  return path == nullptr ? root.line : path->line;
}

// Reads environments and components as jobs do that name them.
class PartsReader {
 public:
  PartsReader(const ReadContext& context, AssetFile& file, Diagnostics& diagnostics)
      : context_(context), parts_(file.parts), builds_(file.builds), diagnostics_(diagnostics) {}

  // As a job that has it and runs nothing.
  JobSpec ReadEnvironmentFile(const std::string& file, const YamlNode& root, Asset& asset) {
    const YamlNode::Entry entry{"environment", 1, TextNode(absl::StrCat("file:", file))};
    JobSpec job;
    job.file_name = file;
    job.environment = ReadEnvironment(entry, context_, diagnostics_);
    AddParts(job.environment);
    for (const absl::string_view type : kEnvironmentTypes) {
      if (FindEntry(root, type) == nullptr) continue;
      asset.type = std::string(type);
      break;
    }
    return job;
  }

  // As a step, with the pipeline's inputs for those that have no value in the file.
  JobSpec ReadComponent(const std::string& file, const YamlNode& root, Asset& asset) {
    JobSpec pipeline;
    std::set<std::string> open;
    std::vector<YamlNode::Entry> bound;
    const YamlNode::Entry* const inputs = FindEntry(root, "inputs");
    const Node none = MappingNode({});
    for (const YamlNode::Entry& input : (inputs ? inputs->value : none)->entries) {
      if (MayBeLeftOut(input)) continue;
      const std::optional<std::string> sample = SampleOf(input);
      pipeline.inputs[input.key] = {.type = "", .mode = "", .literal = sample.value_or("")};
      if (!sample) open.insert(input.key);
      bound.push_back({input.key, 1, TextNode(absl::StrCat("${{parent.inputs.", input.key, "}}"))});
    }
    std::vector<YamlNode::Entry> keys = {{"component", 1, TextNode(absl::StrCat("file:", file))},
                                         {"inputs", 1, MappingNode(std::move(bound))}};
    if (const YamlNode::Entry* const type = FindEntry(root, "type")) keys.push_back(*type);
    const Node step = MappingNode(std::move(keys));
    const Source source{*step, "", context_, diagnostics_};
    const Scope scope{pipeline, open, "local"};
    JobSpec job = ReadStep({"component", 1, step}, source, scope, ReadPipelineComponent).job;
    asset.type = job.kind == JobKind::kPipeline ? "pipeline" : "command";
    AddPartsOf(job);
    return job;
  }

 private:
  void AddPartsOf(const JobSpec& job) {
    if (!job.code.empty() && !IsRemoteCode(job.code)) parts_.emplace_back(job.code);
    for (const std::string& include : job.additional_includes) parts_.emplace_back(include);
    AddParts(job.environment);
    for (const Step& step : job.steps) AddPartsOf(step.job);
  }

  void AddParts(const Environment& environment) {
    AddBuild(environment.image.context);
    // A Dockerfile that is followed is not built, but what it copies is looked for.
    for (const CopiedFile& copied : environment.copied) AddBuild(copied.folder);
    for (const Requirement& package : environment.packages) AddPath(package.text);
    for (const std::string& option : environment.options) {
      AddPath(option.substr(option.find('=') + 1));
    }
  }

  void AddBuild(const fs::path& folder) {
    const bool is_known = !builds_.empty() && builds_.back() == folder;
    if (!folder.empty() && !is_known) builds_.push_back(folder);
  }

  // Packages that lie beside their list.
  void AddPath(const std::string& path) {
    if (absl::StartsWith(path, "/")) parts_.emplace_back(path);
  }

  const ReadContext& context_;
  std::vector<fs::path>&parts_, &builds_;
  Diagnostics& diagnostics_;
};

// Has what was read, with the job that a component makes.
struct AssetAndJob {
  AssetFile file;
  JobSpec job;
  int path_line = 0;  // of data
};

// Tells `parts` of each file that is read.
ReadFileFunction Noting(const ReadFileFunction& read_file, std::vector<fs::path>& parts) {
  return [&read_file, &parts](const fs::path& file) {
    auto text = read_file(file);
    if (text.ok()) parts.push_back(file);
    return text;
  };
}

absl::StatusOr<AssetAndJob> ReadKind(AssetKind kind, const std::string& file,
                                     const fs::path& folder, const Site& site,
                                     const ReadFileFunction& read_file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, read_file(folder / file));
  TUTTI_ASSIGN_OR_RETURN(const Node root, ParseYaml(text, file));
  Diagnostics diagnostics(file);
  TUTTI_RETURN_IF_ERROR(CheckKind(AssetKindName(kind), *root, diagnostics));
  AssetAndJob read;
  Asset& asset = read.file.asset;
  if (kind == AssetKind::kData) {
    read.path_line = ReadData(*root, (folder / file).parent_path(), asset, diagnostics);
  } else {
    const ReadFileFunction noting = Noting(read_file, read.file.parts);
    int files_left = kMostFiles;
    const ReadContext context{folder, site, noting, files_left};
    PartsReader parts(context, read.file, diagnostics);
    if (kind == AssetKind::kEnvironment) {
      read.job = parts.ReadEnvironmentFile(file, *root, asset);
      read.file.environment = read.job.environment;
    } else {
      read.job = parts.ReadComponent(file, *root, asset);
    }
    TUTTI_RETURN_IF_ERROR(diagnostics.status());
    MappingReader head(*root, AssetKindName(kind), diagnostics);
    ReadAssetHead(head, asset, diagnostics);
  }
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  read.file.warnings = diagnostics.warnings();
  return read;
}

}  // namespace

absl::StatusOr<AssetFile> ReadAssetFile(AssetKind kind, const std::string& file,
                                        const fs::path& folder, const Site& site,
                                        const ReadFileFunction& read_file) {
  TUTTI_ASSIGN_OR_RETURN(AssetAndJob read, ReadKind(kind, file, folder, site, read_file));
  return std::move(read.file);
}

absl::StatusOr<AssetFile> ReadAssetFile(AssetKind kind, const std::string& file, const Site& site) {
  TUTTI_ASSIGN_OR_RETURN(AssetAndJob read,
                         ReadKind(kind, file, fs::current_path(), site, ReadFromDisk));
  const Asset& asset = read.file.asset;
  if (kind == AssetKind::kData) {
    const std::string fault = PathFault({.type = asset.type, .path = asset.path});
    if (!fault.empty()) {
      return absl::NotFoundError(absl::StrCat(file, ":", read.path_line, ": path: ", fault));
    }
  }
  TUTTI_RETURN_IF_ERROR(CheckPaths(read.job, read.file.warnings));
  return std::move(read.file);
}

}  // namespace tutti::spec
