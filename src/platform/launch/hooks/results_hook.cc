#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "base/text/utf8.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/unkept.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

nlohmann::json ToJson(const Unkept& one) {
  return {{"path", base::BoundedUtf8(one.path, 200)}, {"bytes", one.bytes}, {"result", one.result}};
}

// Says what of the job's files is not kept.
class ResultsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "results"; }

  // Notes when the code came, by the clock of the folder's file system; without code all in it is
  // the job's own.
  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    if (!node.plan.snapshot.empty()) {
      code_is_there_ = ChangeTime(NodeFolders(node.plan.directory).events());
    }
    return absl::OkStatus();
  }

  void Describe(const NodeContext& node, bool /*failed*/, Results& results,
                nlohmann::json& left) override {
    DescribeLeftOut(results, node.plan.nodes.size() > 1, left);
    left["kept_files"] = results.files.size();
    const UnkeptFiles unkept = UnkeptBelow(NodeFolders(node.plan.directory).work(), code_is_there_);
    left["unkept_more"] = unkept.more;
    if (unkept.small.bytes > 0) left["unkept_small"] = ToJson(unkept.small);
    for (const Unkept& one : unkept.largest) left["unkept"].push_back(ToJson(one));
  }

 private:
  absl::Time code_is_there_ = absl::InfinitePast();
};

}  // namespace

std::unique_ptr<NodeHook> MakeResultsHook() { return std::make_unique<ResultsHook>(); }

}  // namespace tutti::launch
