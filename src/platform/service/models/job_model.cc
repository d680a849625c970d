#include "platform/service/models/job_model.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/results/disk_room.h"
#include "spec/data/asset.h"
#include "spec/json/json_fields.h"
#include "spec/views/view_writer.h"

namespace tutti::service {
namespace {

using nlohmann::json;

constexpr size_t kMostOutputsNamed = 10;

absl::Status NothingThere(absl::string_view job, absl::string_view path,
                          const std::vector<JobFile>& files) {
  std::set<std::string> there;
  for (const JobFile& file : files) {
    if (!absl::StartsWith(file.path, "outputs/")) continue;
    there.insert(file.path.substr(0, file.path.find('/', sizeof "outputs/" - 1)));
    if (there.size() == kMostOutputsNamed) break;
  }
  return absl::NotFoundError(absl::StrCat("job ", job, " has no ", path.substr(0, 200),
                                          there.empty() ? "; it has no outputs here" : ", but ",
                                          absl::StrJoin(there, ", ")));
}

json EnvironmentOf(const spec::Environment& environment) {
  json packages = json::array();
  for (const spec::Requirement& package : environment.packages) packages.push_back(package.text);
  return {{"name", environment.name},
          {"python", environment.python},
          {"packages", std::move(packages)},
          {"image", environment.image.reference}};
}

// Where an input's data are; of a value nothing.
std::string AddressOf(const spec::Input& input) {
  if (!input.place) return input.path;
  return absl::StrCat(spec::StoreOf(*input.place), "/", input.place->path);
}

}  // namespace

absl::StatusOr<ModelContent> AdoptResults(const JobFiles& files, const ModelContents& contents,
                                          absl::string_view job, absl::string_view path) {
  absl::ConsumeSuffix(&path, "/");
  TUTTI_RETURN_IF_ERROR(CheckRelativePath(path));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<JobFile> all, files.List(job));
  ModelContent content;
  uint64_t bytes = 0;
  const std::string folder = absl::StrCat(path, "/");
  std::vector<const JobFile*> chosen;
  const bool is_result = path == "outputs" || absl::StartsWith(path, "outputs/");
  for (const JobFile& file : all) {
    if (!is_result || (file.path != path && !absl::StartsWith(file.path, folder))) continue;
    if (base::BoundedUtf8(file.path) != file.path) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name of ", base::BoundedUtf8(file.path), " is not UTF-8"));
    }
    chosen.push_back(&file);
    bytes += file.bytes;
  }
  if (chosen.empty()) return NothingThere(job, path, all);
  if (chosen.size() > kMostModelFiles) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", chosen.size(), " files, and a ",
                                                   "model at most ", kMostModelFiles));
  }
  TUTTI_RETURN_IF_ERROR(CheckRoom(contents.folder().parent_path(), bytes));
  content.is_file = chosen.size() == 1 && chosen[0]->path == path;
  for (const JobFile* file : chosen) {
    TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path from, files.Find(job, file->path));
    const std::string name = content.is_file ? std::filesystem::path(file->path).filename().string()
                                             : file->path.substr(folder.size());
    TUTTI_ASSIGN_OR_RETURN(ModelFile adopted, contents.Adopt(from, name));
    content.files.push_back(std::move(adopted));
  }
  return content;
}

absl::StatusOr<RegisteredVersion> RegisterResults(const JobFiles& files, RegisteredModels& models,
                                                  ModelCreation creation, const store::Job& job,
                                                  absl::string_view path) {
  TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("name", creation.name));  // before files are copied
  TUTTI_ASSIGN_OR_RETURN(creation.content, AdoptResults(files, models.contents(), job.id, path));
  files.NoteUse(job.id, path);
  creation.lineage = LineageOf(job, path);
  return models.Register(creation);
}

std::string LineageOf(const store::Job& job, absl::string_view path) {
  json data = json::array(), values = json::object();
  for (const auto& [name, input] : job.spec.inputs) {
    if (!input.literal.empty()) values[name] = input.literal;
    const std::string address = AddressOf(input);
    if (address.empty()) continue;
    data.push_back(
        {{"input", name}, {"type", input.type}, {"asset", input.asset}, {"address", address}});
  }
  return spec::Dump({{"job", job.id},
                     {"path", std::string(path)},
                     {"submitted", spec::Rfc3339(job.created)},
                     {"experiment", job.spec.experiment_name},
                     {"command", job.spec.command},
                     {"code", job.snapshot},
                     {"environment", EnvironmentOf(job.spec.environment)},
                     {"data", std::move(data)},
                     {"values", std::move(values)}});
}

}  // namespace tutti::service
