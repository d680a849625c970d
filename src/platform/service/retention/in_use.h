// InUse says what jobs that have not ended need of the files that are kept.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "platform/service/jobs/job_table.h"
#include "spec/types/job.h"

namespace tutti::service {

struct InUse {
  std::set<std::string> snapshots;  // "sha256:…"
  std::set<std::string> jobs;       // whose results are inputs
  std::set<std::string> models;     // digests of registered models that are inputs
  // The first of the jobs that have nodes was submitted then: what it or a later one has taken of
  // the caches was marked as used since. The infinite past if an earlier version of tutti, which
  // marked nothing, may have begun one.
  absl::Time first_placed = absl::InfiniteFuture();
  // Likewise of the jobs of each cluster, also of those that wait there: a cluster may have begun
  // one before the service hears of it.
  std::map<std::string, absl::Time> first_of_cluster;
  std::map<std::string, spec::Image> images;  // by their name, or their build's folder

  // Returns since when what was taken of the caches at that place ("": here) is in use, or about to
  // be: what a job takes is marked before the service hears of it.
  absl::Time UsedSince(const std::string& place, absl::Time now) const;
};

// Makes HOME/retention_since when retention first looks there: what launchers take from then on is
// marked.
absl::Status NoteThatUseIsMarked(const std::filesystem::path& home);

// Returns what is in use at this moment, by jobs on their way into the store too. Before the caller
// removes something it must look again.
InUse WhatIsInUse(SharedState& state, const JobTable& table) ABSL_LOCKS_EXCLUDED(service_lock);

// Returns the jobs, by their folders below `jobs`, whose files are inputs of that job or of one
// below it.
std::set<std::string> JobsInInputs(const spec::JobSpec& job, const std::filesystem::path& jobs);

}  // namespace tutti::service
