#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/process/command.h"
#include "base/status.h"
#include "platform/container/own_package.h"
#include "platform/container/python/uv.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/staging/python_environment.h"
#include "platform/launch/staging/torch_builds.h"
#include "platform/mlflow/model_registry.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLongestUnpacking = absl::Minutes(1);  // it takes some 0.2 s

// Which builds of PyTorch the node looks for, in the words of `tutti environment build`, whose
// machine may have GPUs where the node has none; "" where that decides nothing.
absl::string_view TorchOption(const NodeContext& node) {
  const auto variables = container::UvVariables(node.plan.environments_directory);
  const auto torch = [&](bool has_gpus) {
    return WithTorchBuilds(node.plan.environment, variables, has_gpus).torch;
  };
  if (torch(true) == torch(false)) return "";
  return node.facts.gpus.empty() ? "--no-gpu " : "--gpu ";
}

// Says what can be done where a node has no way to the package index. It is FailedPrecondition,
// since the job need not be begun again.
absl::Status WithRemedy(const absl::Status& away, const NodeContext& node) {
  std::string remedy =
      "let it reach an index (PIP_INDEX_URL in the service's environment), or run an image";
  if (!node.plan.shared_folder.empty()) {
    remedy = absl::StrCat(
        "build the environment where there is a network, on the service's machine: "
        "tutti environment build ",
        TorchOption(node), "FILE, which is the job's file");
  }
  return absl::FailedPreconditionError(absl::StrCat(away.message(), ": ", remedy));
}

// Lays tutti's own package, Horovod, beside the job for the machine's Python, into which nothing is
// installed.
absl::Status AddOwnPackage(NodeContext& node) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Environment found,
                         container::WithOwnPackage(node.plan.environment));
  const fs::path folder = NodeFolders(node.plan.directory).python();
  const base::ChildOptions unzip{.arguments = {"/usr/bin/env", "python3", "-m", "zipfile", "-e",
                                               found.packages.front().text, folder.string()},
                                 .environment = EnvironmentOf(node.plan, 0, node.facts),
                                 .directory = node.plan.directory};
  TUTTI_ASSIGN_OR_RETURN(const base::CommandResult ended,
                         base::RunCommand(unzip, "", base::Deadline::After(kLongestUnpacking)));
  if (!ended.exit.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("tutti's horovod cannot be unpacked by the machine's python3: ",
                     ended.err.empty() ? ended.out : ended.err));
  }
  node.facts.own_package = folder.string();
  return absl::OkStatus();
}

// The job's Python environment, on top of the one that is shared by all jobs that ask for the same.
class PythonHook : public NodeHook {
 public:
  absl::string_view name() const override { return "environment"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return plan.environment.is_host ? !plan.environment.packages.empty()
                                    : plan.environment.image.empty();
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (!PreparesSlowly(node.plan)) return absl::OkStatus();
    if (node.plan.environment.is_host) return AddOwnPackage(node);
    auto found = MakeEnvironment(node.plan.environment, node.plan.environments_directory, cancelled,
                                 !node.facts.gpus.empty());
    if (absl::IsUnavailable(found.status())) return WithRemedy(found.status(), node);
    TUTTI_ASSIGN_OR_RETURN(MadeEnvironment made, std::move(found));
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
