#include "platform/service/retention/in_use.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/service/models/model_contents.h"

namespace tutti::service {
namespace {

constexpr char kSinceFile[] = "retention_since";
// What was sent or made is taken by a job soon after, which is not known here before.
constexpr absl::Duration kFreshlyMade = absl::Hours(1);
// The clocks of a cluster's file server and of the service differ by this much at most.
constexpr absl::Duration kClocksDiffer = absl::Minutes(10);

void AddInputs(const spec::JobSpec& job, const std::string& jobs, std::set<std::string>& ids) {
  for (const auto& [name, input] : job.inputs) {
    for (absl::string_view path :
         {absl::string_view(input.path), absl::string_view(input.job_folder)}) {
      absl::ConsumePrefix(&path, "file://");
      if (!absl::ConsumePrefix(&path, jobs)) continue;
      ids.emplace(path.substr(0, path.find('/')));
    }
  }
  if (!job.resume.empty()) ids.insert(job.resume);
  for (const spec::Step& step : job.steps) AddInputs(step.job, jobs, ids);
}

void AddSnapshots(const spec::JobSpec& job, std::set<std::string>& snapshots) {
  for (const spec::Step& step : job.steps) {
    snapshots.insert(step.snapshot);
    AddSnapshots(step.job, snapshots);
  }
}

void AddImages(const spec::JobSpec& job, std::map<std::string, spec::Image>& images) {
  const spec::Image& image = job.environment.image;
  if (!image.empty()) {
    images.try_emplace(absl::StrCat(image.reference, image.context, "/", image.dockerfile), image);
  }
  for (const spec::Step& step : job.steps) AddImages(step.job, images);
}

void AddModels(const spec::JobSpec& job, const std::filesystem::path& home,
               std::set<std::string>& digests) {
  for (const auto& [name, input] : job.inputs) {
    const std::string digest = ModelContents::DigestAt(home, input.path);
    if (!digest.empty()) digests.insert(digest);
  }
  for (const spec::Step& step : job.steps) AddModels(step.job, home, digests);
}

absl::Time MarkedSince(const std::filesystem::path& home) {
  struct stat info = {};
  const bool known = ::stat((home / kSinceFile).c_str(), &info) == 0;
  return known ? absl::TimeFromTimespec(info.st_mtim) : absl::InfiniteFuture();
}

}  // namespace

std::set<std::string> JobsInInputs(const spec::JobSpec& job, const std::filesystem::path& jobs) {
  std::set<std::string> ids;
  AddInputs(job, (jobs / "").native(), ids);
  return ids;
}

absl::Time InUse::UsedSince(const std::string& place, absl::Time now) const {
  absl::Time since = std::min(first_placed, now - kFreshlyMade);
  const auto first = first_of_cluster.find(place);
  if (first != first_of_cluster.end()) since = std::min(since, first->second);
  return place.empty() ? since : since - kClocksDiffer;
}

absl::Status NoteThatUseIsMarked(const std::filesystem::path& home) {
  return base::Open(home / kSinceFile, O_WRONLY | O_CREAT, 0600).status();
}

InUse WhatIsInUse(SharedState& state, const JobTable& table) {
  InUse in_use;
  const absl::Time marked_since = MarkedSince(state.options.directory);
  const std::filesystem::path jobs = state.options.directory / "jobs";
  StateLock lock(state);
  for (const auto& [id, live] : table.live()) {
    const store::Job& job = live->record.job;
    in_use.snapshots.insert(job.snapshot);
    AddSnapshots(job.spec, in_use.snapshots);
    in_use.jobs.merge(JobsInInputs(job.spec, jobs));
    AddModels(job.spec, state.options.directory, in_use.models);
    AddImages(job.spec, in_use.images);
    if (live->placed != nullptr) in_use.first_placed = std::min(in_use.first_placed, job.created);
    if (!state.engines.clusters.contains(job.spec.compute)) continue;
    const auto [first, is_new] =
        in_use.first_of_cluster.emplace(job.spec.compute, absl::InfiniteFuture());
    first->second = std::min(first->second, job.created);
  }
  in_use.jobs.insert(state.inputs_on_their_way.begin(), state.inputs_on_their_way.end());
  if (in_use.first_placed < marked_since) in_use.first_placed = absl::InfinitePast();
  return in_use;
}

}  // namespace tutti::service
