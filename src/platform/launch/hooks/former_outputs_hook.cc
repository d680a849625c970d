#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/delivery/patience.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/resumed_files.h"
#include "platform/launch/staging/copy.h"
#include "platform/mlflow/file_store.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// The service keeps files durable before it answers, and may be away.
constexpr absl::Duration kPatienceWithResumedFiles = absl::Minutes(10);

// FormerOutputsHook copies what the attempt before this one had written, or the earlier job from
// which this one resumes: it may have checkpoints to go on from. It makes copies, since a launcher
// that is cut off may still be writing there.
class FormerOutputsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "outputs of the attempt before"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return !plan.former_directory.empty() || !plan.resume.empty();
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    const bool has_former = !node.plan.former_directory.empty();
    if (has_former && FormerAttemptHadBegun(node.plan)) return TakeFormer(node, cancelled);
    return node.plan.resume.empty() ? absl::OkStatus() : Resume(node, cancelled);
  }

 private:
  absl::Status TakeFormer(const NodeContext& node, const std::atomic<bool>& cancelled) const {
    const NodeFolders former(node.plan.former_directory), own(node.plan.directory);
    const std::pair<fs::path, fs::path> folders[] = {{former.work_outputs(), own.work_outputs()},
                                                     {former.outputs(), own.outputs()}};
    std::error_code error;
    for (const auto& [from, to] : folders) {
      if (!fs::is_directory(from, error)) continue;
      TUTTI_RETURN_IF_ERROR(base::Annotate(CopyAsItIs(from, to, cancelled), std::string(name())));
    }
    mlflow::AdoptMovedStores(own.work_outputs());
    return KeepResumedFiles(node.plan);
  }

  // No other node sends a newer file before this one has sent the earlier job's: processes start
  // once all nodes are prepared.
  static absl::Status Resume(NodeContext& node, const std::atomic<bool>& cancelled) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Result> first, CopyResumedFiles(node.plan, cancelled));
    if (first.empty() || node.delivery == nullptr) return absl::OkStatus();
    return base::Annotate(
        node.delivery->SendResults(first, Patience::For(kPatienceWithResumedFiles)),
        absl::StrCat("resume from job ", node.plan.resume));
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeFormerOutputsHook() { return std::make_unique<FormerOutputsHook>(); }

}  // namespace tutti::launch
