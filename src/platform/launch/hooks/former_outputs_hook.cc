#include <filesystem>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/copy.h"
#include "platform/mlflow/file_store.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// What the attempt before this one had written: it may have checkpoints to resume from. Copied,
// since a launcher that is cut off may still be writing there.
class FormerOutputsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "outputs of the attempt before"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return !plan.former_directory.empty();
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (node.plan.former_directory.empty()) return absl::OkStatus();
    const NodeFolders former(node.plan.former_directory), own(node.plan.directory);
    const std::pair<fs::path, fs::path> folders[] = {{former.work_outputs(), own.work_outputs()},
                                                     {former.outputs(), own.outputs()}};
    std::error_code error;
    for (const auto& [from, to] : folders) {
      if (!fs::is_directory(from, error)) continue;
      TUTTI_RETURN_IF_ERROR(base::Annotate(CopyAsItIs(from, to, cancelled), std::string(name())));
    }
    mlflow::AdoptMovedStores(own.work_outputs());
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeFormerOutputsHook() { return std::make_unique<FormerOutputsHook>(); }

}  // namespace tutti::launch
