#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/staging/folders.h"

namespace tutti::launch {
namespace {

class FoldersHook : public NodeHook {
 public:
  absl::string_view name() const override { return "folders"; }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    node.facts.temporary = ShortScratch(node.plan).string();
    return MakeFolders(node.plan);
  }
  void CleanUp(const spec::LaunchPlan& plan) override { RemoveShortScratch(plan); }
};

}  // namespace

std::unique_ptr<NodeHook> MakeFoldersHook() { return std::make_unique<FoldersHook>(); }

}  // namespace tutti::launch
