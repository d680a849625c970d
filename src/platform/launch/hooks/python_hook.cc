#include <filesystem>
#include <utility>

#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/python_environment.h"
#include "platform/mlflow/model_registry.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// The job's Python environment, on top of the one that is shared by all jobs that ask for the same.
class PythonHook : public NodeHook {
 public:
  absl::string_view name() const override { return "environment"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return !plan.environment.is_host && plan.environment.image.empty();
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (!PreparesSlowly(node.plan)) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(
        MadeEnvironment made,
        MakeEnvironment(node.plan.environment, node.plan.environments_directory, cancelled));
    const fs::path own = NodeFolders(node.plan.directory).python();
    TUTTI_RETURN_IF_ERROR(MakeJobPython(made.folder, own));
    TUTTI_ASSIGN_OR_RETURN(const std::string library, LibraryOf(made.folder));
    const fs::path packages = fs::path("lib") / library / "site-packages";
    TUTTI_RETURN_IF_ERROR(mlflow::AddModelRegistry(made.folder / packages, own / packages));
    node.facts.python = own.string();
    node.notes.push_back(std::move(made.note));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakePythonHook() { return std::make_unique<PythonHook>(); }

}  // namespace tutti::launch
