#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/mpi/pmi_failure_watch.h"
#include "platform/launch/node/rank_failure.h"
#include "platform/launch/ranks/rank_table.h"

namespace tutti::launch {
namespace {

// MpiHook makes the ranks of the gang one MPI world.
class MpiHook : public NodeHook {
 public:
  absl::string_view name() const override { return "MPI"; }
  bool StartsSlowly(const spec::LaunchPlan& plan) const override { return WantsMpi(plan); }

  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (!WantsMpi(node.plan)) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(node.mpi, AgreeOnMpi(node.plan, node.facts, cancelled));
    node.facts.pmi = node.mpi.pmi_address;
    node.pmi = node.mpi.pmi;
    return absl::OkStatus();
  }

  // Ranks of other nodes that finalize after this node's would crash if their PMI went away. One of
  // this node's may have left MPI while they need it, and any may have called MPI_Abort as the last
  // thing that it did.
  absl::Status AfterResults(NodeContext& node) override {
    if (node.pmi == nullptr) return absl::OkStatus();
    PmiFailureWatch watch;
    bool waits = true;
    while (waits) {
      waits = node.pmi->busy() && !node.delivery->gone() && !node.signals->Take();
      if (const auto failure = watch.Look(node.pmi->failure(), base::SteadyNow())) {
        AppendMpiFailure(*node.events, *failure);
        return RankFailure(absl::StatusCode::kInternal, failure->rank, failure->error);
      }
      if (waits) Wait(node);
    }
    return absl::OkStatus();
  }

 private:
  static void Wait(NodeContext& node) {
    pollfd waiting[3] = {{node.signals->fd(), POLLIN, 0},
                         {node.news->fd(), POLLIN, 0},
                         {node.pmi->news().fd(), POLLIN, 0}};
    ::poll(waiting, 3, static_cast<int>(absl::ToInt64Milliseconds(PmiFailureWatch::kInterval)));
    node.news->Clear();
    node.pmi->news().Clear();
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeMpiHook() { return std::make_unique<MpiHook>(); }

}  // namespace tutti::launch
