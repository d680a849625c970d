#include "platform/launch/node/rank_failure.h"

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/binary_size.h"

namespace tutti::launch {
namespace {

constexpr char kRank[] = "tutti/rank";
constexpr char kTimedOut[] = "tutti/timed_out";
constexpr char kIll[] = "tutti/ill";
constexpr char kSharedDiskFull[] = "tutti/shared_disk_full";
constexpr char kFilledByJob[] = "tutti/filled_by_job";

}  // namespace

absl::Status RankFailure(absl::StatusCode code, int rank, absl::string_view what) {
  absl::Status status(code, absl::StrCat("rank ", rank, " ", what));
  status.SetPayload(kRank, absl::Cord(absl::StrCat(rank)));
  return status;
}

absl::Status TimeLimitReached(double seconds) {
  absl::Status status =
      absl::DeadlineExceededError(absl::StrCat("wall time limit of ", seconds, " s reached"));
  status.SetPayload(kTimedOut, absl::Cord());
  return status;
}

absl::Status NodeIsIll(absl::string_view illness) {
  absl::Status status = absl::UnavailableError(absl::StrCat("it is ill: ", illness));
  status.SetPayload(kIll, absl::Cord(illness));
  return status;
}

absl::Status SharedDiskIsFull(absl::string_view why) {
  absl::Status status =
      absl::ResourceExhaustedError(absl::StrCat("the disk that all nodes share is full: ", why));
  status.SetPayload(kSharedDiskFull, absl::Cord());
  return status;
}

absl::Status BlameSharedDisk(const absl::Status& status, const std::string& shared_folder) {
  const bool is_new = !shared_folder.empty() && !status.GetPayload(kSharedDiskFull).has_value();
  const bool is_full = is_new && base::SpeaksOfAFullDisk(status.message()) &&
                       absl::StrContains(status.message(), shared_folder);
  return is_full ? SharedDiskIsFull(status.message()) : status;
}

absl::Status FilledByItsJob(const absl::Status& status, uint64_t bytes) {
  if (!status.GetPayload(kSharedDiskFull).has_value()) return status;
  absl::Status own = WithMore(
      status, absl::StrCat("the job's own files took about ", base::BinarySize(bytes), " of it"));
  own.SetPayload(kFilledByJob, absl::Cord());
  return own;
}

absl::Status WithMore(const absl::Status& status, absl::string_view more) {
  absl::Status longer(status.code(), absl::StrCat(status.message(), "; ", more));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& value) { longer.SetPayload(type, value); });
  return longer;
}

nlohmann::json EndOf(const absl::Status& status) {
  nlohmann::json end = {{"ok", status.ok()}, {"reason", std::string(status.message())}};
  if (!status.ok()) end["timed_out"] = status.GetPayload(kTimedOut).has_value();
  if (const auto ill = status.GetPayload(kIll)) end["ill"] = std::string(*ill);
  if (status.GetPayload(kSharedDiskFull).has_value()) end["shared_disk_full"] = true;
  if (status.GetPayload(kFilledByJob).has_value()) end["filled_by_job"] = true;
  int rank = -1;
  const auto of_rank = status.GetPayload(kRank);
  if (!of_rank || !absl::SimpleAtoi(std::string(*of_rank), &rank)) return end;
  end["rank"] = rank;
  end["reason"] =
      std::string(absl::StripPrefix(status.message(), absl::StrCat("rank ", rank, " ")));
  return end;
}

}  // namespace tutti::launch
