// Head is what a backup says of itself, in its first entry.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::backup {

inline constexpr char kHeadName[] = "BACKUP.json";

struct Head {
  std::string version;  // of the tutti that made it
  std::string home;     // the folder that was saved
  absl::Time made;      // what had been accepted before is in it; seconds are kept
  bool with_results = false;
};

std::string ToJson(const Head& head);
// Parses a head; InvalidArgument for what is none; FailedPrecondition for one of a form that came
// later.
absl::StatusOr<Head> HeadFromJson(absl::string_view text);

// Returns "2026-11-24T20:50:01+00:00", as messages have it.
std::string ShownTime(absl::Time time);

}  // namespace tutti::backup
