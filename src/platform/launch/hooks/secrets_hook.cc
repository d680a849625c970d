#include <spdlog/spdlog.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/launch/delivery/secret_masks.h"
#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/staging/secret_folder.h"

namespace tutti::launch {
namespace {

absl::StatusOr<std::string> ValueOf(const SecretValues& values, const std::string& secret) {
  const auto found = values.find(secret);
  if (found != values.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("the service has not sent secret \"", secret, "\""));
}

// For the job's events: what was given, and as what.
std::string NoteOf(const spec::LaunchPlan& plan) {
  std::vector<std::string> given;
  for (const auto& [name, secret] : plan.secret_variables) {
    given.push_back(absl::StrCat(secret, " as ", name));
  }
  for (const auto& [name, secret] : plan.secret_files) {
    given.push_back(absl::StrCat(secret, " as the file ", name));
  }
  return absl::StrCat("given secrets: ", absl::StrJoin(given, ", "));
}

// Whether the job's processes may be given the token of its run, by the plan alone.
bool MayHaveToken(const spec::LaunchPlan& plan) {
  return MayTrack(plan) && !NamesVariable(plan, kTrackingToken) &&
         !plan.secret_files.contains(kTrackingToken);
}

// The secrets that the job names, as variables and as files in memory, and the token of its run in
// MLflow's tracking. From then on what its processes print is masked.
class SecretsHook : public NodeHook {
 public:
  absl::string_view name() const override { return "secrets"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override { return plan.has_secrets(); }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    const bool has_token = MayHaveToken(node.plan) && !node.facts.tracking.token.empty();
    if (!node.plan.has_secrets() && !has_token) return absl::OkStatus();
    const absl::Status given = Give(node, has_token);
    if (!given.ok() && !node.plan.has_secrets()) {
      LogToFiles(node, given);
      return absl::OkStatus();
    }
    TUTTI_RETURN_IF_ERROR(base::Annotate(given, "secrets"));
    if (node.plan.has_secrets()) node.notes.push_back(NoteOf(node.plan));
    return absl::OkStatus();
  }
  void Abandon(NodeContext& node) override { node.delivery->AbandonCode(); }
  void AfterEnd(const spec::LaunchPlan& plan) override {
    if (HasFolder(plan)) LogIfTheyStay(SecretFolder::RemoveFiles(plan));
  }
  // Removes also what the next launcher would have masked output with.
  void CleanUp(const spec::LaunchPlan& plan) override {
    if (!HasFolder(plan)) return;
    folder_.reset();
    LogIfTheyStay(SecretFolder::Remove(plan));
  }

 private:
  // As where the service cannot make the run: no job fails for its metrics.
  static void LogToFiles(NodeContext& node, const absl::Status& why) {
    node.facts.tracking = {};
    node.facts.secrets_in_files.clear();
    node.facts.mlflow_run = MakeMlflowStores(node.plan);
    node.notes.push_back(
        absl::StrCat("what MLflow logs goes to files in the results: ", why.message()));
  }

  static bool HasFolder(const spec::LaunchPlan& plan) {
    return plan.has_secrets() || MayHaveToken(plan);
  }
  static void LogIfTheyStay(const absl::Status& removed) {
    if (!removed.ok()) spdlog::error("files of secrets stay: {}", removed.ToString());
  }

  // Without what opens stores of inputs, which the job's processes do not get and can read here.
  static SecretValues OfProcesses(const spec::LaunchPlan& plan, const SecretValues& values) {
    SecretValues given;
    for (const auto* secrets : {&plan.secret_files, &plan.secret_variables}) {
      for (const auto& [variable, name] : *secrets) {
        const auto found = values.find(name);
        if (found != values.end()) given.insert(*found);
      }
    }
    return given;
  }

  // A job that is given variables alone does without, where there is no memory for files.
  absl::Status MakeFolder(const spec::LaunchPlan& plan, const SecretValues& kept,
                          bool needs_files) {
    auto made = SecretFolder::Make(plan);
    if (!made.ok()) return needs_files ? made.status() : absl::OkStatus();
    folder_ = *std::move(made);
    const absl::Status copied = folder_->Keep(kept);
    return needs_files ? copied : absl::OkStatus();
  }

  absl::Status GiveVariable(NodeContext& node, bool in_image, const std::string& name,
                            std::string value) {
    if (in_image) {
      TUTTI_ASSIGN_OR_RETURN(node.facts.secrets_in_files[name], folder_->AddFile(name, value));
    } else {
      node.facts.secrets[name] = std::move(value);
    }
    return absl::OkStatus();
  }

  absl::Status Give(NodeContext& node, bool has_token) {
    SecretValues values;
    if (node.plan.has_secrets()) {
      TUTTI_ASSIGN_OR_RETURN(values, node.delivery->FetchSecrets());
    }
    SecretValues hidden = values;
    if (has_token) hidden[kTokenOfRun] = node.facts.tracking.token;
    MaskOutput(hidden, *node.spool, *node.events);
    // Podman writes down what variables it is given; the container's shell reads them from files.
    const bool in_image = !node.plan.environment.is_host && !node.plan.environment.image.empty();
    const bool needs_files = in_image || !node.plan.secret_files.empty();
    SecretValues kept = OfProcesses(node.plan, values);
    if (has_token) kept[kTokenOfRun] = node.facts.tracking.token;
    TUTTI_RETURN_IF_ERROR(MakeFolder(node.plan, kept, needs_files));
    if (has_token) {
      TUTTI_RETURN_IF_ERROR(
          GiveVariable(node, in_image, kTrackingToken, node.facts.tracking.token));
    }
    for (const auto& [name, secret] : node.plan.secret_files) {
      TUTTI_ASSIGN_OR_RETURN(const std::string value, ValueOf(values, secret));
      TUTTI_ASSIGN_OR_RETURN(node.facts.secrets[name], folder_->AddFile(name, value));
    }
    for (const auto& [name, secret] : node.plan.secret_variables) {
      TUTTI_ASSIGN_OR_RETURN(std::string value, ValueOf(values, secret));
      TUTTI_RETURN_IF_ERROR(GiveVariable(node, in_image, name, std::move(value)));
    }
    return absl::OkStatus();
  }

  std::optional<SecretFolder> folder_;
};

}  // namespace

std::unique_ptr<NodeHook> MakeSecretsHook() { return std::make_unique<SecretsHook>(); }

}  // namespace tutti::launch
