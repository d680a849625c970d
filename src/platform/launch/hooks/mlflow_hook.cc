#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "http/identity.h"
#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"
#include "spec/types/service_endpoint.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kForARun = absl::Seconds(60);  // no job waits longer for its metrics' sake

// The job's run in the service's tracking, as the processes of this node reach it.
absl::StatusOr<Tracking> TrackingOf(const spec::LaunchPlan& plan, Delivery& delivery) {
  TUTTI_ASSIGN_OR_RETURN(const TrackedRun run, delivery.FetchRun(base::Deadline::After(kForARun)));
  TUTTI_ASSIGN_OR_RETURN(const spec::Endpoint service, spec::ReadEndpoint(plan.service_file));
  Tracking tracking{.address = service.address,
                    .run = ChoosesItsExperiment(plan) ? "" : run.id,
                    .experiment = run.experiment,
                    .certificate = {},
                    .token = run.token};
  // One that an authority has issued is proved by that, which the machine knows or does not.
  if (!http::IsSelfSigned(service.certificate)) return tracking;
  const auto file = NodeFolders(plan.directory).service_certificate();
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(file, service.certificate, 0644));
  tracking.certificate = file.native();
  return tracking;
}

// Where what the job logs with MLflow goes: to the service's tracking, or to stores in its results.
// Without the former it takes the latter: what keeps it from logging keeps it from nothing else.
class MlflowHook : public NodeHook {
 public:
  absl::string_view name() const override { return "MLflow"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override { return MayTrack(plan); }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    if (MayTrack(node.plan) && !ChoosesItsTracking(node.plan)) {
      auto tracking = TrackingOf(node.plan, *node.delivery);
      if (tracking.ok()) {
        node.facts.tracking = *std::move(tracking);
        return absl::OkStatus();
      }
      const absl::Status& status = tracking.status();
      if (absl::IsAborted(status) || absl::IsCancelled(status)) return status;
      node.notes.push_back(
          absl::StrCat("what MLflow logs goes to files in the results: ", status.message()));
    }
    node.facts.mlflow_run = MakeMlflowStores(node.plan);
    return absl::OkStatus();
  }
  void Abandon(NodeContext& node) override {
    if (MayTrack(node.plan)) node.delivery->AbandonCode();
  }
  void AfterEnd(const spec::LaunchPlan& plan) override { RemoveUnusedMlflowStores(plan); }
};

}  // namespace

std::unique_ptr<NodeHook> MakeMlflowHook() { return std::make_unique<MlflowHook>(); }

}  // namespace tutti::launch
