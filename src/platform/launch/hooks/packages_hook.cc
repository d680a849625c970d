#include <algorithm>
#include <filesystem>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/process/command.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/environment/process_environment.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

// The rest of a user's log folder is the job's own, and so is this file if the job writes it.
constexpr char kPackagesResult[] = "logs/environment.txt";
constexpr absl::Duration kPatienceWithPython = absl::Seconds(5);  // it takes some 30 ms

// Prints what pip would freeze, by the names of the folders that installers leave: importlib's
// metadata of each of hundreds of packages takes several times as long.
constexpr char kListPackages[] = R"(import os, sys
found = {}
for folder in sys.path:
    try:
        entries = os.listdir(folder)
    except OSError:
        continue
    for entry in entries:
        name, ending = os.path.splitext(entry)
        parts = name.split('-')
        if ending in ('.dist-info', '.egg-info') and len(parts) > 1:
            package = parts[0].replace('_', '-')
            found.setdefault(package.lower(), package + '==' + parts[1])
print('# Python %d.%d.%d' % sys.version_info[:3], '(' + sys.executable + ')')
for key in sorted(found):
    print(found[key])
)";

// Keeps with the job which Python its command had in PATH and what was installed there, also by the
// job itself. The command may run another one: it may activate an environment.
class PackagesHook : public NodeHook {
 public:
  absl::string_view name() const override { return "packages"; }

  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    const bool runs_python =
        !node.plan.environment.is_host || absl::StrContains(node.command, "py");
    if (node.plan.node_index != 0 || !node.facts.image.empty() || !runs_python) {
      return absl::OkStatus();
    }
    NodeFacts facts = node.facts;
    facts.secrets.clear();
    variables_ = EnvironmentOf(node.plan, 0, facts);
    return absl::OkStatus();
  }

  // A job of which that cannot be told has no such list.
  void Describe(const NodeContext& node, bool /*failed*/, Results& results,
                nlohmann::json& /*left*/) override {
    const bool has_its_own =
        std::any_of(results.files.begin(), results.files.end(),
                    [](const Result& result) { return result.path == kPackagesResult; });
    if (!variables_ || has_its_own) return;
    // Not in the job's folder, whose modules Python would take for its own.
    const auto listed =
        base::RunCommand({.arguments = {"/usr/bin/env", "python3", "-c", kListPackages},
                          .environment = *variables_,
                          .directory = node.plan.directory},
                         "", base::Deadline::After(kPatienceWithPython));
    if (!listed.ok() || !listed->exit.ok()) return;
    const std::filesystem::path file = NodeFolders(node.plan.directory).packages();
    if (base::WriteFileAtomic(file, listed->out).ok())
      results.files.push_back({file, kPackagesResult});
  }

 private:
  std::optional<Variables> variables_;  // of the first rank; none where nothing is to be told
};

}  // namespace

std::unique_ptr<NodeHook> MakePackagesHook() { return std::make_unique<PackagesHook>(); }

}  // namespace tutti::launch
