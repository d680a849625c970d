// Retention says how long a service keeps what it can make or fetch again, and what ended jobs have
// left.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace tutti::spec {

// Items that are longer unused than `age` go, and of the rest those that are longest unused until
// `size` bytes are left. Without both all are kept.
struct KeepFor {
  std::optional<absl::Duration> age;
  std::optional<uint64_t> size;
};

// The defaults are those of a site that does not say: users' files stay, and caches go after a
// while, since they can be fetched or made again.
struct Retention {
  KeepFor snapshots{.age = absl::Hours(24 * 30)};     // code that was sent
  KeepFor data{.age = absl::Hours(24 * 30)};          // inputs that were fetched
  KeepFor environments{.age = absl::Hours(24 * 90)};  // Python environments
  KeepFor images{.age = absl::Hours(24 * 90)};        // of podman, pulled or built for jobs
  KeepFor logs, results;                              // of jobs that have ended
};

}  // namespace tutti::spec
