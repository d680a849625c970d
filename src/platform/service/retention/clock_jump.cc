#include "platform/service/retention/clock_jump.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using nlohmann::json;

// A clock may gain this much, or be corrected by it.
constexpr absl::Duration kSlack = absl::Hours(1);

// Returns what the wall's clock has to say at `now` at the most.
absl::Time LatestAt(const ClockMark& before, const ClockMark& now) {
  if (before.boot_id != now.boot_id) return before.wall + kLongestOff;
  return before.wall + (now.since_boot - before.since_boot) + kSlack;
}

bool JumpedAhead(const ClockMark& before, const ClockMark& now) {
  return now.wall > LatestAt(before, now);
}

// Both marks are of the same start of the machine.
bool HasHeld(const ClockMark& since, const ClockMark& now) {
  return now.since_boot - since.since_boot >= kJumpHolds;
}

json JsonOf(const ClockMark& mark) {
  return {{"boot_id", mark.boot_id},
          {"since_boot", absl::ToDoubleSeconds(mark.since_boot)},
          {"wall", absl::ToUnixMillis(mark.wall)}};
}

std::optional<ClockMark> MarkOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_object()) return std::nullopt;
  const json& mark = *found;
  const bool is_mark = mark.contains("boot_id") && mark["boot_id"].is_string() &&
                       mark.contains("since_boot") && mark["since_boot"].is_number() &&
                       mark.contains("wall") && mark["wall"].is_number_integer();
  if (!is_mark) return std::nullopt;
  return ClockMark{mark["boot_id"].get<std::string>(),
                   absl::Seconds(mark["since_boot"].get<double>()),
                   absl::FromUnixMillis(mark["wall"].get<int64_t>())};
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace

ClockRecord LookAtClock(const std::optional<ClockRecord>& last, const ClockMark& now) {
  if (!last) return {now, {}, {}};
  const bool is_behind = now.wall < last->trusted.wall;
  const auto& behind = last->behind;
  // One that was set back makes nothing old; once it is right again it has not jumped.
  if (is_behind && (!behind || now.wall < behind->wall)) return {last->trusted, {}, now};
  const ClockMark& before = is_behind ? *behind : last->trusted;
  const std::optional<ClockMark> kept = is_behind ? behind : std::nullopt;
  if (!JumpedAhead(before, now)) {
    if (!is_behind) return {now, {}, {}};
    if (behind->boot_id != now.boot_id) return {last->trusted, {}, now};
    return HasHeld(*behind, now) ? ClockRecord{now, {}, {}} : ClockRecord{last->trusted, {}, kept};
  }
  const auto& doubted = last->doubted;
  if (!doubted || doubted->boot_id != now.boot_id || JumpedAhead(*doubted, now)) {
    return {last->trusted, now, kept};
  }
  return HasHeld(*doubted, now) ? ClockRecord{now, {}, {}}
                                : ClockRecord{last->trusted, doubted, kept};
}

absl::Status CheckClock(const std::filesystem::path& file, const ClockMark& now, bool is_right) {
  const auto text = base::ReadFile(file, 4096);
  const auto last = text.ok() && !is_right ? ClockRecordFromJson(*text) : std::nullopt;
  const ClockRecord record = LookAtClock(last, now);
  // On a full disk retention is to go on: it makes room.
  const absl::Status kept = base::UpdateFile(file, ToJson(record), 0600);
  if (!kept.ok()) spdlog::warn("what the clock says is not kept: {}", kept.ToString());
  if (!record.doubted) return absl::OkStatus();
  const absl::Duration rest =
      absl::Ceil(kJumpHolds - (now.since_boot - record.doubted->since_boot), absl::Hours(1));
  return absl::FailedPreconditionError(absl::StrCat(
      "this machine's clock was set ahead: it says ", TimeText(now.wall), ", and can be at ",
      TimeText(LatestAt(record.behind.value_or(record.trusted), now)),
      " at the most, by what it said before. Nothing is removed for its age or size until it is "
      "set right, or has gone on so for a day, which is in ",
      rest / absl::Hours(1), " hours; if it is right, say so: tutti prune --clock-is-right"));
}

std::string ToJson(const ClockRecord& record) {
  json object = {{"trusted", JsonOf(record.trusted)}};
  if (record.doubted) object["doubted"] = JsonOf(*record.doubted);
  if (record.behind) object["behind"] = JsonOf(*record.behind);
  return object.dump();
}

std::optional<ClockRecord> ClockRecordFromJson(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  auto trusted = MarkOf(object, "trusted");
  if (!trusted) return std::nullopt;
  return ClockRecord{*std::move(trusted), MarkOf(object, "doubted"), MarkOf(object, "behind")};
}

}  // namespace tutti::service
