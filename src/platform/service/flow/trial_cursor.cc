#include "platform/service/flow/trial_cursor.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::service {
namespace {

using Order = store::TrialFilter::Order;

}  // namespace

std::string TrialCursor(Order order, const store::TrialRecord& last) {
  const int64_t sequence = last.job.job.sequence;
  if (order == Order::kNumber) return absl::StrCat(sequence);
  return absl::StrCat(sequence, "-", absl::Hex(std::bit_cast<uint64_t>(*last.cost)));
}

absl::Status BeginBehind(absl::string_view cursor, store::TrialFilter& filter) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(cursor, absl::MaxSplits('-', 1));
  uint64_t cost = 0;
  const bool is_of_best = absl::SimpleHexAtoi(parts.second, &cost);
  const bool is_one = absl::SimpleAtoi(parts.first, &filter.after) && filter.after >= 0 &&
                      (filter.order == Order::kBest ? is_of_best : parts.second.empty());
  if (!is_one) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", cursor.substr(0, 80), "\" is no cursor of this list of trials"));
  }
  if (is_of_best) filter.after_cost = std::bit_cast<double>(cost);
  return absl::OkStatus();
}

}  // namespace tutti::service
