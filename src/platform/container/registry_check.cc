#include "platform/container/registry_check.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/child_process.h"
#include "base/command.h"
#include "base/deadline.h"
#include "platform/container/image.h"
#include "platform/container/podman.h"

namespace tutti::container {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(3);
constexpr size_t kMostAtOnce = 4;

using Missing = std::map<std::string, bool>;  // by reference

bool IsOfRegistry(const spec::JobSpec& job) {
  const spec::Image& image = job.environment.image;
  return job.compute == "local" && !image.reference.empty() && image.context.empty() &&
         !absl::StartsWith(image.reference, "localhost/");
}

void Collect(const spec::JobSpec& job, Missing& images) {
  if (IsOfRegistry(job)) images.try_emplace(job.environment.image.reference, false);
  for (const spec::Step& step : job.steps) Collect(step.job, images);
}

// What podman says of a registry that has answered and has no such image. After mirrors have failed
// it speaks of several.
bool SaysThatThereIsNone(absl::string_view words) {
  const bool unknown =
      absl::StrContains(words, "manifest unknown") || absl::StrContains(words, "name unknown");
  return unknown && !absl::StrContains(words, "Mirrors also failed");
}

bool IsMissing(const std::string& podman, const std::string& reference, base::Deadline deadline) {
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), podman);
    return base::RunCommand(
        {.arguments = std::move(arguments), .environment = base::CurrentEnvironment()}, "",
        deadline);
  };
  const auto here = run({"image", "exists", reference});
  if (!here.ok() || here->exit.code != 1) return false;
  const auto asked = run({"manifest", "inspect", FullReference(reference)});
  return asked.ok() && !asked->exit.ok() && SaysThatThereIsNone(asked->err);
}

// Several registries at a time, all by one deadline.
void AskAll(const std::string& podman, Missing& images) {
  const base::Deadline deadline = base::Deadline::After(kPatience);
  std::vector<Missing::value_type*> list;
  for (auto& entry : images) list.push_back(&entry);
  std::atomic<size_t> next = 0;
  const auto ask = [&] {
    for (size_t i = next++; i < list.size() && !deadline.Expired(); i = next++) {
      list[i]->second = IsMissing(podman, list[i]->first, deadline);
    }
  };
  std::vector<std::thread> threads(std::min(list.size(), kMostAtOnce));
  for (std::thread& thread : threads) thread = std::thread(ask);
  for (std::thread& thread : threads) thread.join();
}

// "" if it may be there.
std::string Fault(const spec::JobSpec& job, const Missing& images) {
  const spec::Image& image = job.environment.image;
  const auto found = images.find(image.reference);
  if (!IsOfRegistry(job) || found == images.end() || !found->second) return "";
  return absl::StrCat(image.place, ": image ", image.reference,
                      " cannot be pulled: its registry does not have it");
}

void Warn(const spec::JobSpec& job, const Missing& images, std::vector<std::string>& warnings) {
  for (const spec::Step& step : job.steps) {
    std::string fault = Fault(step.job, images);
    if (!fault.empty()) warnings.push_back(absl::StrCat(fault, ", unless it is pushed by then"));
    Warn(step.job, images, warnings);
  }
}

}  // namespace

absl::Status CheckRegistries(const spec::JobSpec& job, std::vector<std::string>& warnings) {
  Missing images;
  Collect(job, images);
  if (images.empty()) return absl::OkStatus();
  const auto podman = FindPodman();
  if (!podman.ok()) return absl::OkStatus();
  AskAll(*podman, images);
  Warn(job, images, warnings);
  const std::string fault = Fault(job, images);
  return fault.empty() ? absl::OkStatus() : absl::InvalidArgumentError(fault);
}

}  // namespace tutti::container
