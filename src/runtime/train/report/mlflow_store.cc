#include "runtime/train/report/mlflow_store.h"

#include <pwd.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;

constexpr char kMeta[] = "meta.yaml", kTrash[] = ".trash", kDefault[] = "0";

std::string Decoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto is_digit = [&](size_t at) {
      return at < text.size() && absl::ascii_isxdigit(static_cast<unsigned char>(text[at]));
    };
    if (text[i] == '%' && is_digit(i + 1) && is_digit(i + 2)) {
      absl::StrAppend(&decoded, absl::HexStringToBytes(text.substr(i + 1, 2)));
      i += 2;
    } else {
      decoded.push_back(text[i]);
    }
  }
  return decoded;
}

// "http:" of an address; empty: it has none.
absl::string_view SchemeOf(absl::string_view uri) {
  if (uri == "databricks") return uri;  // the one word that is no folder
  const size_t colon = uri.find(':');
  if (colon == uri.npos || !absl::ascii_isalpha(static_cast<unsigned char>(uri[0]))) return "";
  for (const char c : uri.substr(0, colon)) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '+' || c == '-';
    if (!fits && c != '.') return "";
  }
  return uri.substr(0, colon + 1);
}

// "" is the machine itself, as "localhost" is.
std::pair<absl::string_view, absl::string_view> HostAndPath(absl::string_view rest) {
  if (!absl::ConsumePrefix(&rest, "//")) return {"", rest};
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::string_view host = rest.substr(0, slash);
  return {host == "localhost" ? "" : host, rest.substr(slash)};
}

void ReadTrackingUri(absl::string_view uri, MlflowTarget& target) {
  const absl::string_view scheme = SchemeOf(uri);
  if (scheme.empty()) {
    target.store = Decoded(uri);
    return;
  }
  const auto [host, path] = HostAndPath(uri.substr(scheme.size()));
  if (scheme != "file:") {
    target.elsewhere = std::string(scheme);
  } else if (!host.empty()) {
    target.elsewhere = absl::StrCat("file://", host);
  } else {
    target.store = Decoded(path);
  }
}

// As Python's getpass.getuser, which MLflow asks.
std::string User() {
  for (const char* name : {"LOGNAME", "USER", "LNAME", "USERNAME"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  passwd entry = {};
  passwd* found = nullptr;
  std::vector<char> buffer(1 << 14);
  const int error = ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? entry.pw_name : "unknown";
}

// A string of JSON is one of YAML.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Millis(absl::Time time) { return absl::StrCat(absl::ToUnixMillis(time)); }

// What a folder's meta.yaml says under `key`; empty: nothing, or there is no such file.
std::string Said(const fs::path& folder, const char* key) {
  const auto text = base::ReadFile(folder / kMeta);
  if (!text.ok()) return "";
  try {
    const YAML::Node root = YAML::Load(*text);
    return root.IsMap() && root[key] && root[key].IsScalar() ? root[key].Scalar() : "";
  } catch (const YAML::Exception&) {
    return "";
  }
}

bool Holds(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kMeta, error);
}

std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (Holds(entry->path())) folders.push_back(entry->path());
  }
  return folders;
}

absl::StatusOr<fs::path> MakeExperiment(const fs::path& store, const std::string& id,
                                        const std::string& name, absl::Time now) {
  const fs::path folder = store / id;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(
      folder / kMeta,
      absl::StrCat("artifact_location: ", Quoted(folder), "\ncreation_time: ", Millis(now),
                   "\nexperiment_id: '", id, "'\nlast_update_time: ", Millis(now),
                   "\nlifecycle_stage: active\nname: ", Quoted(name), "\n")));
  return folder;
}

absl::StatusOr<fs::path> ExperimentByName(const MlflowTarget& target, const fs::path& store,
                                          absl::Time now) {
  const std::string& name = target.experiment_name;
  for (const fs::path& folder : FoldersIn(store / kTrash)) {
    if (Said(folder, "name") != name) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("MLFLOW_EXPERIMENT_NAME: experiment \"", name, "\" was deleted and lies in ",
                     folder.string(), ": restore it or choose another name"));
  }
  for (const fs::path& folder : FoldersIn(store)) {
    if (Said(folder, "name") != name) continue;
    const std::string id = folder.filename();
    if (target.experiment_id.empty() || target.experiment_id == id) return folder;
    return absl::FailedPreconditionError(
        absl::StrCat("MLFLOW_EXPERIMENT_ID is ", target.experiment_id, ", but \"", name,
                     "\" of MLFLOW_EXPERIMENT_NAME is experiment ", id, " of ", store.string(),
                     ": set one of the two"));
  }
  uint64_t random = 0;
  (void)absl::SimpleHexAtoi(base::RandomHex(sizeof(random)), &random);
  constexpr uint64_t kLeast = 100'000'000'000'000'000;  // the ids have 18 digits
  return MakeExperiment(store, absl::StrCat(kLeast + random % (9 * kLeast)), name, now);
}

// What the client takes for an id; no way out of the store.
bool IsId(absl::string_view id) {
  if (id.empty() || id.size() > 256) return false;
  for (const char c : id) {
    const bool fits = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-';
    if (!fits) return false;
  }
  return true;
}

}  // namespace

MlflowTarget MlflowFromEnvironment(const std::map<std::string, std::string>& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? "" : found->second;
  };
  MlflowTarget target;
  const std::string uri = value("MLFLOW_TRACKING_URI");
  if (!uri.empty() && uri == value("TUTTI_TRACKING")) return target;
  ReadTrackingUri(uri, target);
  target.run_id = value("MLFLOW_RUN_ID");
  target.experiment_name = value("MLFLOW_EXPERIMENT_NAME");
  target.experiment_id = value("MLFLOW_EXPERIMENT_ID");
  return target;
}

absl::StatusOr<fs::path> MlflowExperiment(const MlflowTarget& target, absl::Time now) {
  const fs::path store = (fs::absolute(target.store) / "").lexically_normal().parent_path();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(store / kTrash));
  if (!Holds(store / kDefault)) {
    TUTTI_RETURN_IF_ERROR(MakeExperiment(store, kDefault, "Default", now).status());
  }
  if (!target.experiment_name.empty()) return ExperimentByName(target, store, now);
  const std::string id = target.experiment_id.empty() ? kDefault : target.experiment_id;
  if (IsId(id) && Holds(store / id)) return store / id;
  return absl::NotFoundError(absl::StrCat("MLFLOW_EXPERIMENT_ID: ", store.string(),
                                          " has no experiment ", id,
                                          ": choose one that it has, or MLFLOW_EXPERIMENT_NAME"));
}

// A run is one once it has its meta.yaml, which therefore comes last.
absl::StatusOr<fs::path> MakeMlflowRun(const fs::path& experiment, absl::string_view kind,
                                       absl::Time now) {
  const std::string id = base::RandomHex(16), user = User();
  const std::string name = absl::StrCat(kind, "-", id.substr(0, 8));
  const fs::path run = experiment / id;
  for (const char* part : {"metrics", "params", "artifacts", "tags"}) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(run / part));
  }
  for (const auto& [tag, value] :
       std::map<std::string, std::string>{{"mlflow.runName", name},
                                          {"mlflow.user", user},
                                          {"mlflow.source.name", "tutti-train"},
                                          {"mlflow.source.type", "LOCAL"}}) {
    TUTTI_RETURN_IF_ERROR(base::ReplaceFile(run / "tags" / tag, value));
  }
  const std::string artifacts =
      absl::StrCat(Said(experiment, "artifact_location"), "/", id, "/artifacts");
  const std::string meta = absl::StrCat(
      "artifact_uri: ", Quoted(artifacts), "\nend_time: null\nentry_point_name: ''\n",
      "experiment_id: '", experiment.filename().string(), "'\nlifecycle_stage: active\nrun_id: '",
      id, "'\nrun_name: ", Quoted(name), "\nrun_uuid: '", id,
      "'\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: ", Millis(now),
      "\nstatus: ", static_cast<int>(MlflowStatus::kRunning), "\ntags: []\nuser_id: ", Quoted(user),
      "\n");
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(run / kMeta, meta));
  return run;
}

std::optional<fs::path> FindMlflowRun(const fs::path& store, const std::string& id) {
  if (!IsId(id)) return std::nullopt;
  for (const fs::path& experiment : FoldersIn(store)) {
    const fs::path run = experiment / id;
    if (Holds(run) && Said(run, "lifecycle_stage") != "deleted") return run;
  }
  return std::nullopt;
}

absl::Status SetMlflowStatus(const fs::path& run, MlflowStatus status, absl::Time now) {
  TUTTI_ASSIGN_OR_RETURN(const std::string meta, base::ReadFile(run / kMeta));
  std::string changed;
  // Line by line: a parser's writer would not keep '0123' a string.
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(meta, "\n"), '\n')) {
    const bool ours = absl::StartsWith(line, "status:") || absl::StartsWith(line, "end_time:");
    if (!ours) absl::StrAppend(&changed, line, "\n");
  }
  const std::string end = status == MlflowStatus::kRunning ? "null" : Millis(now);
  absl::StrAppend(&changed, "status: ", static_cast<int>(status), "\nend_time: ", end, "\n");
  return base::WriteFileAtomic(run / kMeta, changed);
}

}  // namespace tutti::train
