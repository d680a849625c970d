#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "spec/text/expressions.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// The folders of the job's outputs, and its command, now that all paths are known.
class CommandHook : public NodeHook {
 public:
  absl::string_view name() const override { return "command"; }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    for (const auto& [name, output] : node.plan.outputs) {
      const fs::path folder = NodeFolders(node.plan.directory).outputs() / name;
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
      const std::string file = spec::WithOwnName(output.file, node.plan.job_id);
      node.facts.outputs[name] = (file.empty() ? folder : folder / file).string();
    }
    TUTTI_ASSIGN_OR_RETURN(
        node.command,
        spec::ExpandExpressions(node.plan.command,
                                ValuesOf(node.plan, node.facts.inputs, node.facts.outputs)));
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeCommandHook() { return std::make_unique<CommandHook>(); }

}  // namespace tutti::launch
