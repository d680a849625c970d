#include "platform/service/retention/clock_jump.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using nlohmann::json;

// What a clock may gain or be corrected by.
constexpr absl::Duration kSlack = absl::Hours(1);

// Returns what the wall's clock has to say at `now` at the most.
absl::Time LatestAt(const ClockMark& before, const ClockMark& now) {
  if (before.boot_id != now.boot_id) return before.wall + kLongestOff;
  return before.wall + (now.since_boot - before.since_boot) + kSlack;
}

bool JumpedAhead(const ClockMark& before, const ClockMark& now) {
  return now.wall > LatestAt(before, now);
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
  if (!last) return {now, std::nullopt};
  // One that was set back makes nothing old; once it is right again it has not jumped.
  if (now.wall < last->trusted.wall) return {last->trusted, std::nullopt};
  if (!JumpedAhead(last->trusted, now)) return {now, std::nullopt};
  const auto& doubted = last->doubted;
  if (!doubted || doubted->boot_id != now.boot_id || JumpedAhead(*doubted, now)) {
    return {last->trusted, now};
  }
  if (now.since_boot - doubted->since_boot < kJumpHolds) return {last->trusted, doubted};
  return {now, std::nullopt};
}

absl::Status CheckClock(const std::filesystem::path& file, const ClockMark& now) {
  const auto text = base::ReadFile(file, 4096);
  const ClockRecord record =
      LookAtClock(text.ok() ? ClockRecordFromJson(*text) : std::nullopt, now);
  const absl::Status kept = base::UpdateFile(file, ToJson(record), 0600);
  if (!record.doubted) return kept;
  const absl::Duration rest =
      absl::Ceil(kJumpHolds - (now.since_boot - record.doubted->since_boot), absl::Hours(1));
  return absl::FailedPreconditionError(absl::StrCat(
      "this machine's clock was set ahead: it says ", TimeText(now.wall), ", and can be at ",
      TimeText(LatestAt(record.trusted, now)),
      " at the most, by what it said before. Nothing is removed for its age or size until it is "
      "set right, or has gone on so for a day, which is in ",
      rest / absl::Hours(1), " hours"));
}

std::string ToJson(const ClockRecord& record) {
  json object = {{"trusted", JsonOf(record.trusted)}};
  if (record.doubted) object["doubted"] = JsonOf(*record.doubted);
  return object.dump();
}

std::optional<ClockRecord> ClockRecordFromJson(absl::string_view text) {
  const json object = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  auto trusted = MarkOf(object, "trusted");
  if (!trusted) return std::nullopt;
  return ClockRecord{*std::move(trusted), MarkOf(object, "doubted")};
}

}  // namespace tutti::service
