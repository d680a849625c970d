#include "platform/launch/hooks/node_storage.h"

#include "platform/launch/staging/carried_program.h"
#include "platform/storage/storage_program.h"

namespace tutti::launch {

namespace fs = std::filesystem;

fs::path HomeOf(const spec::LaunchPlan& plan) {
  return fs::path(plan.environments_directory).parent_path();
}

absl::StatusOr<fs::path> StorageProgramOf(NodeContext& node, const std::atomic<bool>& cancelled) {
  const std::string& snapshot = node.plan.storage_program;
  if (snapshot.empty()) return storage::StorageProgram();
  return CarriedProgram(
      storage::kStorageProgram, snapshot, HomeOf(node.plan) / "programs",
      [&](const fs::path& file) { return node.delivery->FetchProgram(snapshot, file); }, cancelled);
}

}  // namespace tutti::launch
