// Tells whether the wall's clock may say how old something is. One that was set ahead (a battery
// that is dead, before the network has told the time) would make everything look old, and what is
// removed for that does not come back. So a jump has to hold for a day of the machine's own time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tutti::service {

inline constexpr absl::Duration kLongestOff = absl::Hours(7 * 24);  // of a machine, without doubt
inline constexpr absl::Duration kJumpHolds = absl::Hours(24);       // until it is believed

// One moment by both clocks.
struct ClockMark {
  std::string boot_id;        // base::BootId
  absl::Duration since_boot;  // by the clock that nobody sets
  absl::Time wall;
};

struct ClockRecord {
  ClockMark trusted;                 // the last moment whose wall time was believed
  std::optional<ClockMark> doubted;  // since when a jump ahead is known that is not believed yet
  // Since when the clock is behind the trusted moment. That may have been of a clock set ahead, at
  // the first look: after a day this one is trusted.
  std::optional<ClockMark> behind;
};

// Returns what is known at `now` after `last`, which is nothing at the first look; in doubt if
// `doubted` is set. Pure.
ClockRecord LookAtClock(const std::optional<ClockRecord>& last, const ClockMark& now);

// Looks, and keeps what is known in `file`, where the disk takes it. FailedPrecondition, with what
// jumped and what to do, while the clock is in doubt; `is_right`: its user says that it is not.
absl::Status CheckClock(const std::filesystem::path& file, const ClockMark& now,
                        bool is_right = false);

std::string ToJson(const ClockRecord& record);
// Nothing of what is no such record.
std::optional<ClockRecord> ClockRecordFromJson(absl::string_view text);

}  // namespace tutti::service
