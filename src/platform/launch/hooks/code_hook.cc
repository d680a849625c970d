#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/unpack.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

absl::Status FetchAndUnpack(const NodeFolders& folders, Delivery& delivery) {
  const fs::path own = folders.scratch() / "snapshot.tar.zst";
  TUTTI_ASSIGN_OR_RETURN(const fs::path archive, delivery.FetchCode(own));
  // The code may have something else of that name.
  ::rmdir(folders.work_logs().c_str());
  ::rmdir(folders.work_outputs().c_str());
  const absl::Status unpacked = UnpackArchive(archive, folders.work());
  ::unlink(own.c_str());
  return unpacked;
}

class CodeHook : public NodeHook {
 public:
  absl::string_view name() const override { return "code"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return !plan.snapshot.empty();
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    const NodeFolders folders(node.plan.directory);
    if (!node.plan.snapshot.empty()) {
      TUTTI_RETURN_IF_ERROR(base::Annotate(FetchAndUnpack(folders, *node.delivery), "code"));
    }
    TUTTI_RETURN_IF_ERROR(base::Annotate(base::MakeDirectories(folders.work_logs()), "code"));
    return base::Annotate(base::MakeDirectories(folders.work_outputs()), "code");
  }
  void Abandon(NodeContext& node) override { node.delivery->AbandonCode(); }
};

}  // namespace

std::unique_ptr<NodeHook> MakeCodeHook() { return std::make_unique<CodeHook>(); }

}  // namespace tutti::launch
