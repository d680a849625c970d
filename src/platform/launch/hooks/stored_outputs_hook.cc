#include <spdlog/spdlog.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/hooks/node_storage.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/earlier_files.h"
#include "platform/launch/outputs/store_outputs.h"
#include "platform/launch/process/own_children.h"
#include "platform/storage/storage_program.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kPatienceWithManifests = absl::Minutes(10);
constexpr absl::Duration kPatienceAtTheEnd =
    absl::Seconds(20);  // of a launcher that is told to end

// Puts by the program, which is not ended with the job's processes.
PutFunction PutBy(fs::path program) {
  return [program = std::move(program)](
             const storage::StorageRequest& request, const PutLimits& limits,
             const std::function<void(const storage::StoredObject&)>& object) {
    OwnChild child;
    return storage::RunStorageWatched(
               program, request, limits.deadline, limits.cancelled,
               {.began = [&](pid_t pid) { child.Set(pid); }, .object = object})
        .status();
  };
}

// Brings the job's outputs that have a place in a store there.
class StoredOutputsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "outputs to stores"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return HasStoredOutputs(plan);
  }
  bool HasToStore(const spec::LaunchPlan& plan) const override { return HasStoredOutputs(plan); }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (!HasStoredOutputs(node.plan)) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(FetchEarlier(node, cancelled));
    TUTTI_RETURN_IF_ERROR(Open(node, cancelled));
    return outputs_->Check();
  }
  absl::Status BeforeStart(NodeContext& /*node*/, const std::atomic<bool>& /*cancelled*/) override {
    if (outputs_ != nullptr) outputs_->Begin();
    return absl::OkStatus();
  }
  void Abandon(NodeContext& node) override {
    if (HasStoredOutputs(node.plan)) node.delivery->AbandonCode();
  }

  absl::Status Store(NodeContext& node, Storing how, const std::atomic<bool>& cancelled) override {
    if (!HasStoredOutputs(node.plan)) return absl::OkStatus();
    if (outputs_ == nullptr) TUTTI_RETURN_IF_ERROR(Open(node, cancelled));
    const absl::Status finished = outputs_->Finish(how, cancelled);
    SendManifests(node, cancelled ? kPatienceAtTheEnd : kPatienceWithManifests);
    return finished;
  }

  // A thread that asks a service that is away for credentials is not waited for.
  ~StoredOutputsHook() override {
    if (outputs_ != nullptr) delivery_->AbandonCode();
  }

 private:
  // Fetches what the places of the outputs have already.
  static absl::Status FetchEarlier(NodeContext& node, const std::atomic<bool>& cancelled) {
    const auto& outputs = node.plan.outputs;
    const auto begins_there = [](const auto& named) { return BeginsWithItsStore(named.second); };
    if (std::none_of(outputs.begin(), outputs.end(), begins_there)) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const EarlierParts parts, PartsOf(node, cancelled));
    for (const auto& [name, output] : outputs) {
      if (!BeginsWithItsStore(output)) continue;
      EarlierParts waiting = parts;
      waiting.run =
          WaitingStorage(absl::StrCat("output \"", name, "\""), parts.run, WaitPartsOf(node));
      TUTTI_ASSIGN_OR_RETURN(std::string note,
                             FetchEarlierFiles(node.plan, name, waiting, cancelled));
      node.notes.push_back(std::move(note));
    }
    return absl::OkStatus();
  }

  static absl::StatusOr<EarlierParts> PartsOf(NodeContext& node,
                                              const std::atomic<bool>& cancelled) {
    auto program = StorageProgramOf(node, cancelled);
    TUTTI_RETURN_IF_ERROR(base::Annotate(program.status(), "outputs"));
    EarlierParts parts{.run = std::bind_front(storage::RunStorageAt, *std::move(program)),
                       .cache = CacheOf(node.plan)};
    const bool needs_secrets =
        std::any_of(node.plan.outputs.begin(), node.plan.outputs.end(), [](const auto& named) {
          return BeginsWithItsStore(named.second) && !named.second.place->secret.empty();
        });
    if (!needs_secrets) return parts;
    auto values = node.delivery->FetchSecrets();
    TUTTI_RETURN_IF_ERROR(base::Annotate(values.status(), "outputs"));
    parts.secrets = *std::move(values);
    return parts;
  }

  absl::Status Open(NodeContext& node, const std::atomic<bool>& cancelled) {
    auto program = StorageProgramOf(node, cancelled);
    TUTTI_RETURN_IF_ERROR(base::Annotate(program.status(), "outputs"));
    Delivery* const delivery = delivery_ = node.delivery;
    const StoreParts parts = {.put = PutBy(*std::move(program)),
                              .secrets = [delivery] { return delivery->FetchSecrets(); },
                              .now = absl::Now,
                              .steady = base::SteadyNow};
    auto outputs = StoreOutputs::Open(node.plan, parts, node.events, {});
    TUTTI_RETURN_IF_ERROR(base::Annotate(outputs.status(), "outputs"));
    outputs_ = *std::move(outputs);
    return absl::OkStatus();
  }

  // Also where not all has come: they say what has.
  void SendManifests(NodeContext& node, absl::Duration patience) const {
    std::vector<Result> results;
    for (const fs::path& file :
         outputs_->WriteManifests(NodeFolders(node.plan.directory).work_logs() / "stored")) {
      results.push_back({file, absl::StrCat("logs/stored/", file.filename().native())});
    }
    const absl::Status sent = node.delivery->SendResults(results, base::Deadline::After(patience));
    if (!sent.ok()) spdlog::warn("the lists of stored files: {}", sent.ToString());
  }

  Delivery* delivery_ = nullptr;  // of the outputs
  std::unique_ptr<StoreOutputs> outputs_;
};

}  // namespace

std::unique_ptr<NodeHook> MakeStoredOutputsHook() { return std::make_unique<StoredOutputsHook>(); }

}  // namespace tutti::launch
