#include "platform/client/script/environment_choice.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "platform/client/archive/ignore.h"
#include "platform/client/archive/snapshot.h"
#include "platform/client/text/amounts.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

// The files are looked for in this order.
constexpr const char* kEnvironmentFiles[] = {"requirements.txt", "conda.yaml",
                                             "conda.yml",        "environment.yaml",
                                             "environment.yml",  "pyproject.toml"};
constexpr int kMostFiles = 20'000;
constexpr int kManyFiles = 2'000;
constexpr uint64_t kMostBytes = uint64_t{2} << 30;
constexpr uint64_t kManyBytes = uint64_t{200} << 20;

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string TextOrNothing(const fs::path& file) {
  return base::ReadFile(file, 1 << 20).value_or("");
}

// A pyproject.toml may be of tools alone; an environment.yml may be of tutti's kind.
bool SaysPackages(const fs::path& file) {
  const std::string text = "\n" + TextOrNothing(file);
  if (file.extension() == ".toml") return absl::StrContains(text, "\n[project]");
  if (file.extension() == ".txt") return true;
  return absl::StrContains(text, "\ndependencies:");
}

bool IsInPath(const fs::path& folder) {
  const char* path = std::getenv("PATH");
  const std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& each) {
    std::error_code error;
    return fs::equivalent(folder, each, error);
  });
}

}  // namespace

absl::StatusOr<EnvironmentChoice> EnvironmentOf(const std::string& given) {
  std::error_code error;
  const fs::path path = fs::absolute(given).lexically_normal();
  if (fs::is_directory(path, error)) {
    if (Exists(path / "Dockerfile")) return EnvironmentChoice{.dockerfile_folder = path.string()};
    return absl::InvalidArgumentError(
        absl::StrCat("--environment ", given, ": the folder has no Dockerfile"));
  }
  if (!fs::is_regular_file(path, error)) {
    const bool is_file = absl::EndsWith(given, ".txt") || absl::EndsWith(given, ".toml") ||
                         absl::EndsWith(given, ".yml") || absl::EndsWith(given, ".yaml");
    if (is_file && !absl::StartsWith(given, "azureml:")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--environment ", given, ": there is no such file"));
    }
    return EnvironmentChoice{.name = given};
  }
  if (path.filename() == "Dockerfile") {
    return EnvironmentChoice{.dockerfile_folder = path.parent_path().string()};
  }
  if (SaysPackages(path)) return EnvironmentChoice{.conda_file = path.string()};
  if (path.extension() == ".toml") {
    return absl::InvalidArgumentError(
        absl::StrCat("--environment ", given, ": it has no [project] with dependencies"));
  }
  return EnvironmentChoice{.name = "file:" + path.string()};
}

EnvironmentChoice EnvironmentIn(const fs::path& folder, const std::string& place,
                                std::vector<std::string>& remarks) {
  std::vector<std::string> found;
  for (const char* name : kEnvironmentFiles) {
    if (Exists(folder / name) && SaysPackages(folder / name)) found.emplace_back(name);
  }
  if (found.empty()) {
    remarks.push_back(absl::StrCat(
        "environment: host, since no requirements.txt, conda.yaml or pyproject.toml is ", place,
        " (--environment says otherwise)"));
    return {.name = "host"};
  }
  std::string remark = absl::StrCat("environment: ", found.front(), " ", place);
  if (found.size() > 1) {
    const std::vector<std::string> others(found.begin() + 1, found.end());
    absl::StrAppend(&remark, ", and not ", absl::StrJoin(others, ", "));
  }
  remarks.push_back(absl::StrCat(remark, " (--environment says otherwise)"));
  return {.conda_file = (folder / found.front()).string()};
}

Project ProjectOf(const fs::path& folder) {
  const char* home = std::getenv("HOME");
  std::error_code error;
  for (fs::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    if (home != nullptr && fs::equivalent(at, home, error)) break;
    if (at != folder && MayHoldOthersFiles(at, folder)) break;
    for (const char* name : kEnvironmentFiles) {
      const fs::path file = at / name;
      const bool is_mark = file.extension() == ".toml" || SaysPackages(file);
      if (Exists(file) && is_mark) return {at, name};
    }
    if (Exists(at / ".git")) return {at, ".git"};
  }
  return {folder, ""};
}

absl::Status CheckCodeFolder(const fs::path& folder, const std::string& script,
                             std::vector<std::string>& remarks) {
  const CodeSize size = MeasureCode(folder, kMostFiles, kMostBytes);
  const bool is_huge = size.files >= kMostFiles || size.bytes >= kMostBytes;
  const std::string holds = absl::StrCat(
      WithCommas(size.files), is_huge ? " files or more, " : " files, ", Bytes(size.bytes));
  const bool is_large = size.files >= kManyFiles || size.bytes >= kManyBytes;
  std::string no_code;
  if (is_huge) {
    no_code = holds;
  } else if (IsUnfilteredHome(folder) || folder == folder.root_path()) {
    no_code = "a home folder";
  } else if (is_large && IsInPath(folder)) {
    no_code = absl::StrCat("programs of this machine, ", holds);
  }
  const std::string remedy =
      absl::StrCat("put it into a folder of its own, name in ", (folder / ".amlignore").string(),
                   " what stays here",
                   script.empty() ? ""
                                  : absl::StrCat(", name another folder by --code, or send it "
                                                 "alone: --set code=",
                                                 script));
  if (!no_code.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "all of ", folder.string(), " would be sent with it (", no_code, "): ", remedy));
  }
  if (is_large) {
    remarks.push_back(absl::StrCat("all of ", folder.string(), " is sent with it (", holds,
                                   "); if that is not meant: ", remedy));
  }
  return absl::OkStatus();
}

}  // namespace tutti::client
