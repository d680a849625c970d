#include "platform/launch/hooks/node_storage.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "platform/launch/data/gang_peers.h"
#include "platform/launch/staging/carried_program.h"
#include "platform/storage/storage_program.h"

namespace tutti::launch {

namespace fs = std::filesystem;

fs::path HomeOf(const spec::LaunchPlan& plan) {
  return fs::path(plan.environments_directory).parent_path();
}

// A folder of all nodes has a server that looks after its disks, and each node would read it anew.
DataCache CacheOf(const spec::LaunchPlan& plan) {
  DataCache cache{.folder = HomeOf(plan) / "data"};
  cache.most_bytes = static_cast<uint64_t>(plan.data_bytes);
  if (!plan.shared_folder.empty()) cache.reread = cache::Reread::kNever;
  cache.peers = GangPeers(plan);
  return cache;
}

absl::StatusOr<fs::path> StorageProgramOf(NodeContext& node, const std::atomic<bool>& cancelled) {
  const std::string& snapshot = node.plan.storage_program;
  if (snapshot.empty()) return storage::StorageProgram();
  return CarriedProgram(
      storage::kStorageProgram, snapshot, HomeOf(node.plan) / "programs",
      [&](const fs::path& file) { return node.delivery->FetchProgram(snapshot, file); }, cancelled);
}

WaitParts WaitPartsOf(NodeContext& node) {
  WaitParts parts{.job = node.plan.job_id};
  parts.held = [events = node.events](const std::string& line) {
    events->Append("held", {{"note", line}});
  };
  parts.log = [&node](const std::string& line) {
    spdlog::warn("{}", line);
    const absl::Status kept = node.spool->Stderr(0).Append(absl::StrCat("tutti: ", line, "\n"));
    if (!kept.ok()) spdlog::warn("{}", kept.ToString());
    node.delivery->Wake();
  };
  return parts;
}

}  // namespace tutti::launch
