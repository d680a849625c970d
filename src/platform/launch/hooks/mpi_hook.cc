#include <poll.h>

#include <utility>

#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/mpi/open_mpi.h"

namespace tutti::launch {
namespace {

constexpr int kLookAtRanks = 1000;  // milliseconds; also without a sign

// What makes the ranks of the gang one MPI world.
class MpiHook : public NodeHook {
 public:
  absl::string_view name() const override { return "MPI"; }
  bool StartsSlowly(const spec::LaunchPlan& plan) const override { return WantsMpi(plan); }

  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (!WantsMpi(node.plan)) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(node.mpi, AgreeOnMpi(node.plan, node.facts, cancelled));
    node.facts.pmi = node.mpi.pmi_address;
    node.pmi = std::move(node.mpi.pmi);
    return absl::OkStatus();
  }

  // Ranks of other nodes that finalize after this node's would crash if their PMI went away.
  void AfterResults(NodeContext& node) override {
    while (node.pmi != nullptr && node.pmi->busy() && !node.delivery->gone() &&
           !node.signals->Take()) {
      pollfd waiting[3] = {{node.signals->fd(), POLLIN, 0},
                           {node.news->fd(), POLLIN, 0},
                           {node.pmi->idle().fd(), POLLIN, 0}};
      ::poll(waiting, 3, kLookAtRanks);
      node.news->Clear();
      node.pmi->idle().Clear();
    }
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeMpiHook() { return std::make_unique<MpiHook>(); }

}  // namespace tutti::launch
