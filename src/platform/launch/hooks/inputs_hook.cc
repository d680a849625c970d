#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/hooks/node_storage.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/copy.h"
#include "platform/launch/staging/data_cache.h"
#include "platform/launch/staging/fetch_input.h"
#include "platform/launch/staging/fetch_place.h"
#include "platform/storage/storage_program.h"
#include "spec/data/remote_input.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

absl::Status CheckType(const std::string& name, const spec::Input& input, const fs::path& path,
                       bool is_folder) {
  const bool either = !absl::StartsWith(input.type, "uri_");  // a model is a file or a folder
  if (either || is_folder == (input.type == "uri_folder")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "input \"", name, "\": ", path.string(), " is a ",
      is_folder ? "folder, so its type must be uri_folder" : "file, so its type must be uri_file"));
}

// Or a file.
absl::StatusOr<bool> IsFolder(const std::string& name, const fs::path& path,
                              const std::string& node) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const std::string called = absl::StrCat("input \"", name, "\": ", path.string());
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(called, " does not exist on node ", node));
  }
  if (error) return base::ErrnoStatus(absl::StrCat(called, " on node ", node), error.value());
  return fs::is_directory(status);
}

// What reads stores on this node.
struct Stores {
  SecretValues secrets;  // their credentials, by the secrets' names
  StorageFunction run = storage::RunStorage;
};

// A folder of all nodes has a server that looks after its disks, and each node would read it anew.
DataCache CacheOf(const spec::LaunchPlan& plan) {
  DataCache cache{.folder = HomeOf(plan) / "data"};
  cache.most_bytes = static_cast<uint64_t>(plan.data_bytes);
  if (!plan.shared_folder.empty()) cache.reread = cache::Reread::kNever;
  return cache;
}

absl::StatusOr<FetchedInput> Found(const spec::LaunchPlan& plan, const std::string& name,
                                   const spec::Input& input, const Stores& stores,
                                   const std::atomic<bool>& cancelled) {
  const DataCache cache = CacheOf(plan);
  if (input.place) return FetchPlace(name, input, stores.secrets, cache, cancelled, stores.run);
  if (spec::IsRemote(input)) return FetchInput(name, input, cache, cancelled);
  return FetchedInput{std::string(absl::StripPrefix(input.path, "file://")), base::UniqueFd()};
}

// Where the input lies on this node. Under inputs/NAME there is a copy, or a link to it. `pins`
// gets what keeps it there while the job reads it.
absl::StatusOr<std::string> StageInput(const spec::LaunchPlan& plan, const std::string& name,
                                       const spec::Input& input, const Stores& stores,
                                       std::vector<base::UniqueFd>& pins,
                                       const std::atomic<bool>& cancelled) {
  if (input.path.empty() && !input.place) return input.literal;
  TUTTI_ASSIGN_OR_RETURN(FetchedInput found, Found(plan, name, input, stores, cancelled));
  const fs::path& path = found.path;
  TUTTI_ASSIGN_OR_RETURN(const bool is_folder, IsFolder(name, path, plan.node().name));
  TUTTI_RETURN_IF_ERROR(CheckType(name, input, path, is_folder));
  const fs::path place = NodeFolders(plan.directory).inputs() / name;
  if (input.mode != "download") {
    std::error_code ignored;
    fs::create_symlink(path, place, ignored);  // for those who look below AZ_BATCHAI_MOUNT_ROOT
    pins.push_back(std::move(found.pin));
    return path.string();
  }
  const fs::path copy = is_folder ? place : place / path.filename();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(place));
  TUTTI_RETURN_IF_ERROR(
      base::Annotate(Copy(path, copy, cancelled), absl::StrCat("input \"", name, "\"")));
  return copy.string();
}

class InputsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "inputs"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const auto& named) {
      const spec::Input& input = named.second;
      return input.mode == "download" || input.place || spec::IsRemote(input);
    });
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    Stores stores;
    if (NeedsSecrets(node.plan)) {
      auto values = node.delivery->FetchSecrets();
      TUTTI_RETURN_IF_ERROR(base::Annotate(values.status(), "inputs"));
      stores.secrets = *std::move(values);
    }
    if (!node.plan.storage_program.empty()) {
      auto program = StorageProgramOf(node, cancelled);
      TUTTI_RETURN_IF_ERROR(base::Annotate(program.status(), "inputs"));
      stores.run = std::bind_front(storage::RunStorageAt, *std::move(program));
    }
    for (const auto& [name, input] : node.plan.inputs) {
      if (input.absent) continue;
      TUTTI_ASSIGN_OR_RETURN(node.facts.inputs[name],
                             StageInput(node.plan, name, input, stores, pins_, cancelled));
    }
    return absl::OkStatus();
  }
  // No process reads them any more.
  void AfterEnd(const spec::LaunchPlan& /*plan*/) override { pins_.clear(); }
  void Abandon(NodeContext& node) override {
    if (NeedsSecrets(node.plan) || !node.plan.storage_program.empty()) {
      node.delivery->AbandonCode();
    }
  }

 private:
  // The processes of the job do not get those of its inputs.
  static bool NeedsSecrets(const spec::LaunchPlan& plan) {
    return std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const auto& named) {
      return named.second.place && !named.second.place->secret.empty();
    });
  }

  std::vector<base::UniqueFd> pins_;  // of the job's data in the node's cache
};

}  // namespace

std::unique_ptr<NodeHook> MakeInputsHook() { return std::make_unique<InputsHook>(); }

}  // namespace tutti::launch
