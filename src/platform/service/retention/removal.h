// Decides which of the things that are kept go: the decision alone. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "spec/types/retention.h"

namespace tutti::service {

enum class KeptKind { kSnapshots, kData, kEnvironments, kImages, kLogs, kResults };
inline constexpr std::array<KeptKind, 6> kKeptKinds = {KeptKind::kSnapshots,    KeptKind::kData,
                                                       KeptKind::kEnvironments, KeptKind::kImages,
                                                       KeptKind::kLogs,         KeptKind::kResults};
// Returns a kind's name in site.yml: "snapshots".
absl::string_view Name(KeptKind kind);
const spec::KeepFor& LimitOf(const spec::Retention& retention, KeptKind kind);

// One thing that goes or stays as a whole.
struct Kept {
  KeptKind kind = KeptKind::kSnapshots;
  std::string name;  // a snapshot's, a folder's, an image's, a job's
  uint64_t bytes = 0;
  absl::Time last_use;
  bool in_use = false;  // it stays, whatever the limit
  // Where it lies: in the folder of the compute "hpc", on its node "hpc/n1"; "": on this machine.
  std::string place = "";
};

// How to remove.
struct Pruning {
  bool dry_run = false;
  bool clock_is_right = false;  // its user says so (clock_jump.h)
  // Given: Python environments that were not used for so long, and nothing else, whatever the site
  // keeps.
  std::optional<absl::Duration> environments_unused_for = {};
};

struct Removal {
  Kept what;
  std::string why;
};

// Returns what goes of one kind at one place: first what is too old, then the longest unused until
// the rest, with what is in use, fits. The longest unused comes first.
std::vector<Removal> ToRemove(std::vector<Kept> kept, const spec::KeepFor& limit, absl::Time now);

}  // namespace tutti::service
