// Lists the parts of a service's folder that make it the same service elsewhere, beside its
// databases, its snapshots and its results. What is made anew is left out: where it listens,
// environments, what lies on its nodes.
#pragma once

#include <filesystem>
#include <set>
#include <string>

namespace tutti::backup {

inline constexpr char kDatabase[] = "tutti.db";
inline constexpr char kSnapshots[] = "snapshots";
inline constexpr char kJobs[] = "jobs";
// These are what MLflow's clients have logged, and the files that they have left.
inline constexpr char kTracking[] = "tracking.db";
inline constexpr char kArtifacts[] = "tracking/artifacts";
// These are the registered models, and their files as jobs see them.
inline constexpr char kModels[] = "models.db";
inline constexpr char kModelTrees[] = "models/trees";

// Returns the names in `home` of files and folders, whether they are there or not: token, keys,
// what the site says of itself, assets, clusters; and what site.yml names below `home`, with what
// lies beside it. Data that site.yml maps are not among them.
std::set<std::string> PartsOf(const std::filesystem::path& home);

}  // namespace tutti::backup
