#include "runtime/comm/lost_rank.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {
namespace {
constexpr char kPayload[] = "tutti.comm/lost_rank";
}  // namespace

absl::Status ErrorAboutRank(int rank, absl::StatusCode code, absl::string_view text) {
  absl::Status status(code, text);
  status.SetPayload(kPayload, absl::Cord(absl::StrCat(rank)));
  return status;
}

std::optional<int> LostRank(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) {
    return std::nullopt;
  }
  return rank;
}

absl::Status Renumbered(const absl::Status& status, std::span<const int> whole) {
  const std::optional<int> lost = LostRank(status);
  if (!lost || *lost < 0 || *lost >= static_cast<int>(whole.size())) return status;
  return ErrorAboutRank(whole[static_cast<size_t>(*lost)], status.code(), status.message());
}

}  // namespace tutti::comm
