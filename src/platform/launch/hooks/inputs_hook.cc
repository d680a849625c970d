#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/launch/data/data_cache.h"
#include "platform/launch/data/data_stream.h"
#include "platform/launch/data/fetch_input.h"
#include "platform/launch/data/fetch_place.h"
#include "platform/launch/data/place_mount.h"
#include "platform/launch/data/store_wait.h"
#include "platform/launch/data/stream_name.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/hooks/node_storage.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/copy.h"
#include "platform/launch/staging/table_folder.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_program.h"
#include "spec/data/remote_input.h"
#include "spec/data/signed_address.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithLook = absl::Minutes(10);

std::string Called(const std::string& name) { return absl::StrCat("input \"", name, "\""); }

absl::Status CheckType(const std::string& name, const spec::Input& input, const fs::path& path,
                       bool is_folder) {
  const bool either = !absl::StartsWith(input.type, "uri_");  // a model is a file or a folder
  if (either || is_folder == (input.type == "uri_folder")) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Called(name), ": ", path.string(), " is a ",
      is_folder ? "folder, so its type must be uri_folder" : "file, so its type must be uri_file"));
}

// Or a file.
absl::StatusOr<bool> IsFolder(const std::string& name, const fs::path& path,
                              const std::string& node) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const std::string called = absl::StrCat(Called(name), ": ", path.string());
  if (status.type() == fs::file_type::not_found) {
    return absl::NotFoundError(absl::StrCat(called, " does not exist on node ", node));
  }
  if (error) return base::ErrnoStatus(absl::StrCat(called, " on node ", node), error.value());
  return fs::is_directory(status);
}

// Stores is what this node needs to read stores.
struct Stores {
  SecretValues secrets;  // their credentials, and signatures of addresses, by the secrets' names
  StorageFunction run = storage::RunStorage;
  fs::path program = {};  // that it runs; empty: this node's own
};

// The list of a streamed input, between its name and the start of what serves it.
fs::path ListOf(const spec::LaunchPlan& plan, const std::string& name) {
  return NodeFolders(plan.directory).root / absl::StrCat("list-", name);
}

storage::StreamHome StreamHomeOf(const spec::LaunchPlan& plan) {
  const DataCache cache = CacheOf(plan);
  storage::StreamHome home{.cache = cache.folder, .most_bytes = cache.most_bytes};
  if (plan.shared_folder.empty()) return home;
  home.node = plan.node().name;
  home.nodes = static_cast<int>(plan.nodes.size());
  return home;
}

// One run after the other, while the store of the input is away.
StorageFunction StorageOf(NodeContext& node, const std::string& name, const Stores& stores) {
  return WaitingStorage(Called(name), stores.run, WaitPartsOf(node));
}

absl::StatusOr<FetchedInput> Found(NodeContext& node, const std::string& name,
                                   const spec::Input& input, const Stores& stores,
                                   const std::atomic<bool>& cancelled) {
  const DataCache cache = CacheOf(node.plan);
  if (input.place) {
    return FetchPlace(name, input, stores.secrets, cache, cancelled, StorageOf(node, name, stores));
  }
  if (spec::IsRemote(input)) {
    spec::Input whole = input;
    auto address = spec::WithSignature(input.path, stores.secrets);
    TUTTI_RETURN_IF_ERROR(base::Annotate(address.status(), Called(name)));
    whole.path = *std::move(address);
    return FetchWaiting(
        Called(name),
        [&](const std::function<void(int64_t)>& progress) {
          return FetchInput(name, whole, cache, cancelled, progress);
        },
        WaitPartsOf(node), cancelled);
  }
  return FetchedInput{std::string(absl::StripPrefix(input.path, "file://")), base::UniqueFd()};
}

// Makes the folder of the job that has what `parts` name. A container gets those that patterns
// match each by itself: `instead` says what else there is.
absl::StatusOr<std::string> LayOut(NodeContext& node, const std::string& name,
                                   const std::vector<TablePart>& parts, TableFiles files,
                                   absl::string_view instead, const std::atomic<bool>& cancelled) {
  const fs::path place = NodeFolders(node.plan.directory).inputs() / name;
  const auto matched = MakeTableFolder(parts, place, files, cancelled);
  TUTTI_RETURN_IF_ERROR(base::Annotate(matched.status(), Called(name)));
  if (files == TableFiles::kCopies) return place.string();
  for (const fs::path& file : *matched) node.facts.matched.insert(file.native());
  if (!node.plan.environment.image.empty() && node.facts.matched.size() > kMostMatchedMounts) {
    return absl::ResourceExhaustedError(absl::StrCat(
        Called(name), ": its patterns match ", matched->size(), " files of this machine, and a ",
        "container gets ", kMostMatchedMounts, " at most, each by itself: take ", instead,
        ", or name a folder in place of a pattern"));
  }
  return place.string();
}

// Where the input lies on this node. Under inputs/NAME there is a copy, or a link to it. `pins`
// gets what keeps it there while the job reads it.
absl::StatusOr<std::string> StageInput(NodeContext& node, const std::string& name,
                                       const spec::Input& input, const Stores& stores,
                                       std::vector<base::UniqueFd>& pins,
                                       const std::atomic<bool>& cancelled) {
  if (input.path.empty() && (!input.place || input.mode == "direct")) return input.literal;
  TUTTI_ASSIGN_OR_RETURN(FetchedInput found, Found(node, name, input, stores, cancelled));
  const fs::path& path = found.path;
  TUTTI_ASSIGN_OR_RETURN(const bool is_folder, IsFolder(name, path, node.plan.node().name));
  TUTTI_RETURN_IF_ERROR(CheckType(name, input, path, is_folder));
  if (!input.table.empty()) {
    pins.push_back(std::move(found.pin));
    return path.string();
  }
  if (!input.pattern.empty()) {
    const TablePart part{path, input.pattern, "", spec::WildcardsOf(input)};
    const bool is_copied = input.mode == "download";
    return LayOut(node, name, {part}, is_copied ? TableFiles::kCopies : TableFiles::kLinks,
                  "mode: download", cancelled);
  }
  const fs::path place = NodeFolders(node.plan.directory).inputs() / name;
  if (input.mode != "download") {
    std::error_code ignored;
    fs::create_symlink(path, place, ignored);  // for those who look below AZ_BATCHAI_MOUNT_ROOT
    pins.push_back(std::move(found.pin));
    return path.string();
  }
  const fs::path copy = is_folder ? place : place / path.filename();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(place));
  TUTTI_RETURN_IF_ERROR(base::Annotate(Copy(path, copy, cancelled), Called(name)));
  return copy.string();
}

// Returns where what the table names lies on this node, once that was staged: all of one folder,
// where it lies, else a folder of the job's.
absl::StatusOr<std::string> StageTable(NodeContext& node, const std::string& name,
                                       const spec::Input& table,
                                       const std::atomic<bool>& cancelled) {
  std::vector<TablePart> parts;
  for (const auto& [called, input] : node.plan.inputs) {
    if (input.table != name || input.absent) continue;
    const auto staged = node.facts.inputs.find(called);
    if (staged == node.facts.inputs.end()) {
      return absl::InternalError(absl::StrCat(Called(called), " was not staged"));
    }
    parts.push_back({staged->second, input.pattern, input.placed});
  }
  const bool is_linked = table.mode == "eval_mount";
  const bool is_one = parts.size() == 1 && parts[0].pattern.empty() && parts[0].placed.empty();
  if (is_linked && is_one) {
    std::error_code ignored;
    fs::create_symlink(parts[0].path, NodeFolders(node.plan.directory).inputs() / name, ignored);
    return parts[0].path.string();
  }
  return LayOut(node, name, parts, is_linked ? TableFiles::kLinks : TableFiles::kCopies,
                "eval_download", cancelled);
}

class InputsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "inputs"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const auto& named) {
      const spec::Input& input = named.second;
      return input.mode == "download" || input.place || spec::IsRemote(input) ||
             spec::IsEvaluated(input) || !input.pattern.empty();
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
      stores.program = *program;
      stores.run = std::bind_front(storage::RunStorageAt, *std::move(program));
    }
    TUTTI_RETURN_IF_ERROR(NameStreams(node, stores, cancelled));
    for (const auto& [name, input] : node.plan.inputs) {
      if (input.absent || spec::IsEvaluated(input)) continue;
      if (IsStreamed(input)) TUTTI_RETURN_IF_ERROR(Stream(node, name, input, stores, cancelled));
      if (IsToBeMounted(node.plan, name, input)) {
        TUTTI_ASSIGN_OR_RETURN(const bool done, Mount(node, name, input, stores, cancelled));
        if (done) continue;
      }
      TUTTI_ASSIGN_OR_RETURN(node.facts.inputs[name],
                             StageInput(node, name, input, stores, pins_, cancelled));
    }
    for (const auto& [name, input] : node.plan.inputs) {
      if (input.absent || !spec::IsEvaluated(input)) continue;
      TUTTI_ASSIGN_OR_RETURN(node.facts.inputs[name], StageTable(node, name, input, cancelled));
    }
    return absl::OkStatus();
  }
  // No process reads them any more. Of a launcher that died the mounts are still there.
  void AfterEnd(const spec::LaunchPlan& plan) override {
    pins_.clear();
    streams_.clear();
    mounts_.clear();
    for (const std::string& name : plan.mounts) {
      Unmount(NodeFolders(plan.directory).inputs() / name);
    }
  }
  // A node that was not prepared has no end of processes.
  void CleanUp(const spec::LaunchPlan& /*plan*/) override { mounts_.clear(); }
  void Abandon(NodeContext& node) override {
    if (NeedsSecrets(node.plan) || !node.plan.storage_program.empty()) {
      node.delivery->AbandonCode();
    }
  }

 private:
  // The processes of the job do not get those of its inputs.
  static bool NeedsSecrets(const spec::LaunchPlan& plan) {
    return std::any_of(plan.inputs.begin(), plan.inputs.end(), [](const auto& named) {
      const spec::Input& input = named.second;
      return (input.place && !input.place->secret.empty()) ||
             !spec::SecretOfAddress(input.path).empty();
    });
  }

  static bool IsStreamed(const spec::Input& input) {
    return !input.absent && input.place && input.mode == "direct";
  }
  static absl::StatusOr<storage::StorageRequest> StreamRequestOf(const spec::Input& input,
                                                                 const Stores& stores) {
    auto request = storage::RequestFor(storage::Operation::kList, input, stores.secrets);
    if (request.ok()) request->type = storage::PlaceType::kAny;
    return request;
  }
  static absl::Status StoreFault(const std::string& name, const spec::Input& input,
                                 const absl::Status& status) {
    if (absl::IsCancelled(status)) return status;
    return absl::Status(status.code(),
                        absl::StrCat(Called(name), ": ", storage::InputFault(input, status)));
  }

  static bool IsToBeMounted(const spec::LaunchPlan& plan, const std::string& name,
                            const spec::Input& input) {
    return std::count(plan.mounts.begin(), plan.mounts.end(), name) > 0 &&
           input.mode == "ro_mount" && input.place &&
           input.place->kind != spec::StoreKind::kLocal && !input.place->is_pattern;
  }

  // Returns whether the job has the input by a mount; else it is told why, and gets a copy.
  absl::StatusOr<bool> Mount(NodeContext& node, const std::string& name, const spec::Input& input,
                             const Stores& stores, const std::atomic<bool>& cancelled) {
    auto request = storage::RequestFor(storage::Operation::kStat, input, stores.secrets);
    if (!request.ok()) return StoreFault(name, input, request.status());
    // A wrong key or a folder that is not there is told as a fetch tells it.
    const auto there = StorageOf(node, name, stores)(
        *request, base::Deadline::After(kPatienceWithLook), cancelled, {}, -1);
    if (!there.ok()) return StoreFault(name, input, there.status());
    const fs::path place = NodeFolders(node.plan.directory).inputs() / name;
    auto mount = PlaceMount::Make(*request, place,
                                  {{"TUTTI_ALLOCATION_ID", node.plan.allocation_id},
                                   {"TUTTI_NODE_NAME", node.plan.node().name}},
                                  cancelled);
    if (absl::IsCancelled(mount.status())) return mount.status();
    if (!mount.ok()) {
      std::error_code ignored;
      fs::remove(place, ignored);  // where the copy, or the link to it, is to be
      node.notes.push_back(absl::StrCat(Called(name), " is fetched, not mounted, on node ",
                                        node.plan.node().name, ": ", mount.status().message()));
      return false;
    }
    mounts_.push_back(*std::move(mount));
    node.facts.inputs[name] = place.native();
    return true;
  }

  // Tells the job's streams from those of jobs with other keys, and from those whose list is older.
  static absl::Status NameStreams(NodeContext& node, const Stores& stores,
                                  const std::atomic<bool>& cancelled) {
    std::vector<std::string> names;
    for (const auto& [name, input] : node.plan.inputs) {
      if (!IsStreamed(input)) continue;
      auto request = StreamRequestOf(input, stores);
      if (!request.ok()) return StoreFault(name, input, request.status());
      auto of_input = StreamNameOf(*std::move(request), ListOf(node.plan, name),
                                   StorageOf(node, name, stores), cancelled);
      if (!of_input.ok()) return StoreFault(name, input, of_input.status());
      names.push_back(*std::move(of_input));
    }
    node.facts.data_stream = StreamNameOfAll(names);
    return absl::OkStatus();
  }

  // Serves what the processes read by themselves, through the node's cache.
  absl::Status Stream(NodeContext& node, const std::string& name, const spec::Input& input,
                      const Stores& stores, const std::atomic<bool>& cancelled) {
    node.facts.data_cache = CacheOf(node.plan).folder.string();
    auto request = StreamRequestOf(input, stores);
    if (!request.ok()) return StoreFault(name, input, request.status());
    auto program = stores.program.empty() ? storage::StorageProgram()
                                          : absl::StatusOr<fs::path>(stores.program);
    if (!program.ok()) return StoreFault(name, input, program.status());
    storage::StreamHome home = StreamHomeOf(node.plan);
    home.list = ListOf(node.plan, name);
    auto stream = DataStream::Open(*program, *std::move(request), input.literal, home,
                                   node.facts.data_stream, cancelled);
    std::error_code ignored;
    fs::remove(home.list, ignored);
    if (!stream.ok()) return StoreFault(name, input, stream.status());
    streams_.push_back(*std::move(stream));
    return absl::OkStatus();
  }

  std::vector<base::UniqueFd> pins_;  // of the job's data in the node's cache
  std::vector<std::unique_ptr<DataStream>> streams_;
  std::vector<std::unique_ptr<PlaceMount>> mounts_;
};

}  // namespace

std::unique_ptr<NodeHook> MakeInputsHook() { return std::make_unique<InputsHook>(); }

}  // namespace tutti::launch
