#include "platform/service/models/registered_model.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/service/results/job_files.h"
#include "spec/data/asset.h"

namespace tutti::service {
namespace {

constexpr std::array<absl::string_view, 3> kTypes = {"custom_model", "mlflow_model",
                                                     "triton_model"};
constexpr char kMlflowFile[] = "MLmodel";
constexpr size_t kLongestDescription = 64 << 10, kLongestKey = 256, kLongestValue = 8 << 10;
constexpr size_t kLongestPath = 1024, kMostTexts = 200, kLongestNonce = 128;
constexpr uint64_t kLargestModelFile = uint64_t{1} << 50;

absl::Status TooLong(absl::string_view what, size_t most) {
  return absl::InvalidArgumentError(absl::StrCat(what, " has more than ", most, " bytes"));
}

absl::Status CheckTexts(absl::string_view what, const std::map<std::string, std::string>& texts) {
  if (texts.size() > kMostTexts) {
    return absl::InvalidArgumentError(absl::StrCat("there are more than ", kMostTexts, " ", what));
  }
  for (const auto& [key, value] : texts) {
    if (key.empty()) return absl::InvalidArgumentError(absl::StrCat(what, " have an empty name"));
    if (key.size() > kLongestKey) return TooLong(absl::StrCat("a name of ", what), kLongestKey);
    if (value.size() > kLongestValue) {
      return TooLong(absl::StrCat(what, ".", key), kLongestValue);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDescription(const std::string& text) {
  return text.size() > kLongestDescription ? TooLong("description", kLongestDescription)
                                           : absl::OkStatus();
}

absl::Status CheckStage(const std::string& stage) {
  return stage.empty() ? absl::OkStatus() : spec::CheckAssetName("stage", stage);
}

bool IsSha256(absl::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

absl::Status CheckFile(const ModelFile& file) {
  TUTTI_RETURN_IF_ERROR(CheckRelativePath(file.path));
  if (file.path.size() > kLongestPath) return TooLong("a file's path", kLongestPath);
  if (file.bytes > kLargestModelFile) {
    return absl::InvalidArgumentError(absl::StrCat("file ", file.path, " is too large"));
  }
  if (IsSha256(file.sha256)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the sha256 of file ", file.path, " must be 64 lower-case hexadecimal digits"));
}

// No file has the name of another's folder, nor that of another.
absl::Status CheckPaths(const std::vector<ModelFile>& files) {
  std::set<absl::string_view> paths;
  for (const ModelFile& file : files) {
    if (!paths.insert(file.path).second) {
      return absl::InvalidArgumentError(absl::StrCat("there are two files ", file.path));
    }
  }
  for (const ModelFile& file : files) {
    for (size_t end = file.path.find('/'); end != std::string::npos;
         end = file.path.find('/', end + 1)) {
      const absl::string_view folder = absl::string_view(file.path).substr(0, end);
      if (!paths.contains(folder)) continue;
      return absl::InvalidArgumentError(absl::StrCat(folder, " is a file and a folder"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckContent(const ModelCreation& creation) {
  const std::vector<ModelFile>& files = creation.content.files;
  if (files.empty()) return absl::InvalidArgumentError("the model has no files");
  if (files.size() > kMostModelFiles) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the model has ", files.size(), " files, more than ", kMostModelFiles, ": pack them"));
  }
  for (const ModelFile& file : files) TUTTI_RETURN_IF_ERROR(CheckFile(file));
  TUTTI_RETURN_IF_ERROR(CheckPaths(files));
  if (creation.content.is_file && (files.size() > 1 || absl::StrContains(files[0].path, '/'))) {
    return absl::InvalidArgumentError("a model that is one file has one, without a folder");
  }
  const bool has_mlmodel = std::any_of(
      files.begin(), files.end(), [](const ModelFile& file) { return file.path == kMlflowFile; });
  if (creation.type != "mlflow_model" || (has_mlmodel && !creation.content.is_file)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "an mlflow_model is a folder with the file MLmodel, which this has not: take its folder, or "
      "type custom_model");
}

}  // namespace

std::string DigestOf(const ModelContent& content) {
  std::vector<const ModelFile*> files;
  for (const ModelFile& file : content.files) files.push_back(&file);
  std::sort(files.begin(), files.end(),
            [](const ModelFile* a, const ModelFile* b) { return a->path < b->path; });
  base::Sha256 hash;
  hash.Update(content.is_file ? "file\n" : "folder\n");
  // No path has a NUL.
  for (const ModelFile* file : files) {
    hash.Update(
        absl::StrCat(file->sha256, " ", file->bytes, " ", file->path, absl::string_view("\0", 1)));
  }
  return base::Hex(hash.Finish());
}

absl::Status CheckModel(const ModelCreation& creation) {
  TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("name", creation.name));
  if (!creation.version.empty()) {
    TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("version", creation.version));
  }
  if (std::find(kTypes.begin(), kTypes.end(), creation.type) == kTypes.end()) {
    return absl::InvalidArgumentError(absl::StrCat("type is \"", creation.type.substr(0, 80),
                                                   "\", but must be one of ",
                                                   absl::StrJoin(kTypes, ", ")));
  }
  TUTTI_RETURN_IF_ERROR(CheckDescription(creation.description));
  TUTTI_RETURN_IF_ERROR(CheckStage(creation.stage));
  TUTTI_RETURN_IF_ERROR(CheckTexts("tags", creation.tags));
  TUTTI_RETURN_IF_ERROR(CheckTexts("properties", creation.properties));
  if (creation.nonce.size() > kLongestNonce) return TooLong("nonce", kLongestNonce);
  return CheckContent(creation);
}

absl::Status CheckModelChange(const ModelChange& change) {
  if (change.description) TUTTI_RETURN_IF_ERROR(CheckDescription(*change.description));
  if (change.stage) TUTTI_RETURN_IF_ERROR(CheckStage(*change.stage));
  if (change.tags) TUTTI_RETURN_IF_ERROR(CheckTexts("tags", *change.tags));
  if (change.properties) TUTTI_RETURN_IF_ERROR(CheckTexts("properties", *change.properties));
  return absl::OkStatus();
}

absl::Status CheckModelAlias(absl::string_view alias) {
  TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("alias", alias));
  if (!absl::EqualsIgnoreCase(alias, kLatestModel)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "alias \"latest\" is that of the newest version already: take another");
}

}  // namespace tutti::service
