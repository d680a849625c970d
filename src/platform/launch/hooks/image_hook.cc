#include <spdlog/spdlog.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/container/kept_images.h"
#include "platform/container/make_image.h"
#include "platform/container/registry_logins.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/staging/container_start.h"
#include "platform/launch/staging/pin_dates.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// The image that ranks run in, one container each.
class ImageHook : public NodeHook {
 public:
  absl::string_view name() const override { return "image"; }
  bool PreparesSlowly(const spec::LaunchPlan& plan) const override {
    return !plan.environment.is_host && !plan.environment.image.empty();
  }

  absl::Status Prepare(NodeContext& node, const std::atomic<bool>& cancelled) override {
    if (!PreparesSlowly(node.plan)) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(const container::Logins logins, LoginsOf(node));
    const fs::path& environments = node.plan.environments_directory;
    const spec::Environment environment =
        AsOfItsPins(node.plan.environment, environments, cancelled);
    TUTTI_ASSIGN_OR_RETURN(container::MadeImage made,
                           container::MakeImage(environment, environments, cancelled, logins));
    node.facts.image = std::move(made.id);
    node.notes.push_back(std::move(made.note));
    if (!environment.newest_day.empty()) {
      node.notes.push_back(absl::StrCat("packages that are not pinned are as of ",
                                        environment.newest_day,
                                        ", a day after the newest pin, where ", "that can be had"));
    }
    node.notes.push_back(ContainerRemark(node.plan, node.facts));
    return absl::OkStatus();
  }
  // Before the first of them: whoever finds this launcher dead is to look for them.
  absl::Status BeforeStart(NodeContext& node, const std::atomic<bool>& /*cancelled*/) override {
    return PreparesSlowly(node.plan) ? NoteContainers(node.plan) : absl::OkStatus();
  }
  void Abandon(NodeContext& node) override {
    if (PreparesSlowly(node.plan)) node.delivery->AbandonCode();
  }
  void AfterEnd(const spec::LaunchPlan& plan) override {
    if (PreparesSlowly(plan)) container::LoginFile::RemoveLeftovers();  // of one that was killed
    const absl::Status removed = RemoveContainers(plan);
    if (!removed.ok()) spdlog::warn("{}", removed.ToString());
  }
  // Nobody else can on this node; whatever the job runs in.
  void CleanUp(const spec::LaunchPlan& plan) override {
    const absl::Status removed = container::RemoveMarkedImages(plan.environments_directory);
    if (!removed.ok()) spdlog::warn("images that are to go: {}", removed.ToString());
  }

 private:
  // Returns the logins of the image's registries that are secrets of the service. The job's
  // processes do not get them. A node that reaches the service by a folder alone gets none.
  static absl::StatusOr<container::Logins> LoginsOf(NodeContext& node) {
    if (node.plan.service_file.empty()) return container::Logins();
    const auto registries = container::RegistriesOf(node.plan.environment.image);
    if (registries.empty()) return container::Logins();
    const auto values = node.delivery->FetchSecrets();
    TUTTI_RETURN_IF_ERROR(base::Annotate(values.status(), "image"));
    return container::LoginsFrom(*values, registries);
  }
};

}  // namespace

std::unique_ptr<NodeHook> MakeImageHook() { return std::make_unique<ImageHook>(); }

}  // namespace tutti::launch
