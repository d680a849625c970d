#include "runtime/train/setup/precision.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "runtime/device/precision/detect.h"
#include "runtime/models/script_model.h"

namespace tutti::train {
namespace {

// RankPrecision as ranks send it: texts end with a zero, longer ones are cut.
struct PrecisionRecord {
  char asked[8] = {}, kept[8] = {}, kind[12] = {};
  char bf16 = 0;
  char why[483] = {};
};
static_assert(sizeof(PrecisionRecord) == 512);

template <size_t N>
void Put(absl::string_view text, char (&field)[N]) {
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

template <size_t N>
std::string Got(const char (&field)[N]) {
  return std::string(field, ::strnlen(field, N));
}

PrecisionRecord Packed(const RankPrecision& own) {
  PrecisionRecord record;
  Put(own.asked, record.asked);
  Put(own.kept, record.kept);
  Put(own.kind, record.kind);
  Put(own.why, record.why);
  record.bf16 = static_cast<char>(own.bf16);
  return record;
}

RankPrecision Unpacked(const PrecisionRecord& record) {
  return {Got(record.asked), Got(record.kept), record.bf16 != 0, Got(record.kind), Got(record.why)};
}

absl::StatusOr<std::vector<RankPrecision>> GatherPrecisions(const RankPrecision& own,
                                                            comm::Communicator& group,
                                                            base::Deadline deadline) {
  if (group.size() == 1) return std::vector{own};
  const PrecisionRecord mine = Packed(own);
  std::vector<PrecisionRecord> records(static_cast<size_t>(group.size()));
  TUTTI_RETURN_IF_ERROR(group.AllGather(&mine, sizeof(mine), records.data(), deadline));
  std::vector<RankPrecision> ranks;
  std::transform(records.begin(), records.end(), std::back_inserter(ranks), Unpacked);
  return ranks;
}

absl::Status CheckSameAsked(std::span<const RankPrecision> ranks) {
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].asked == ranks[0].asked) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " was asked for --precision ",
                                                   ranks[rank].asked, " and rank 0 for ",
                                                   ranks[0].asked, ": give all ranks the same"));
  }
  return absl::OkStatus();
}

std::string SubjectOf(const RankPrecision& of, size_t rank) {
  return rank == 0 ? absl::StrCat("this ", of.kind)
                   : absl::StrCat("the ", of.kind, " of rank ", rank);
}

// The first rank for which fp32 is fastest; the number of ranks: bf16 is, on all.
size_t FirstWithoutBf16(std::span<const RankPrecision> ranks) {
  const auto found = std::find_if(ranks.begin(), ranks.end(),
                                  [](const RankPrecision& rank) { return !rank.bf16; });
  return static_cast<size_t>(found - ranks.begin());
}

PrecisionTaken FastestOfAll(std::span<const RankPrecision> ranks) {
  const size_t slow = FirstWithoutBf16(ranks);
  const size_t decides = slow == ranks.size() ? 0 : slow;
  const RankPrecision& of = ranks[decides];
  return device::Taken({of.bf16, of.why}, SubjectOf(of, decides));
}

}  // namespace

AgreedPrecision Agree(std::span<const RankPrecision> ranks, int rank) {
  const std::string& asked = ranks[static_cast<size_t>(rank)].asked;
  const std::string& kept = ranks[0].kept;
  AgreedPrecision agreed;
  if (asked != "auto") {
    agreed.taken.precision = asked;
  } else if (!kept.empty()) {
    agreed.taken = {kept, absl::StrCat("precision ", kept, ": that of the run that is resumed")};
  } else {
    agreed.taken = FastestOfAll(ranks);
    return agreed;
  }
  const size_t slow = FirstWithoutBf16(ranks);
  if (agreed.taken.precision == "bf16" && slow < ranks.size()) {
    agreed.emulating = static_cast<int>(slow);
  }
  return agreed;
}

absl::StatusOr<PrecisionTaken> TakePrecision(absl::string_view asked, absl::string_view kept,
                                             torch::Device device, comm::Communicator& group,
                                             base::Deadline deadline) {
  const FactsSource source = {
      [device] { return device::FactsOf(device); },
      [device] { return device::InstructionFactsOf(device); },
      [device](device::PrecisionFacts& facts) { device::AddSlowdown(device, facts); }};
  return TakePrecision(asked, kept, source, group, deadline);
}

absl::StatusOr<PrecisionTaken> TakePrecision(absl::string_view asked, absl::string_view kept,
                                             const FactsSource& source, comm::Communicator& group,
                                             base::Deadline deadline) {
  RankPrecision own = {.asked = std::string(asked), .kept = std::string(kept)};
  TUTTI_ASSIGN_OR_RETURN(std::vector<RankPrecision> ranks, GatherPrecisions(own, group, deadline));
  TUTTI_RETURN_IF_ERROR(CheckSameAsked(ranks));
  const std::string named = asked == "auto" ? ranks[0].kept : own.asked;
  if (named == "fp32") return Agree(ranks, group.rank()).taken;
  device::PrecisionFacts facts = named.empty() ? source.measured() : source.of_instructions();
  const device::PrecisionChoice choice = device::Choose(facts);
  own.bf16 = named.empty() ? choice.bf16 : facts.bf16 != device::Bf16::kEmulated;
  own.kind = facts.kind;
  own.why = choice.why;
  TUTTI_ASSIGN_OR_RETURN(ranks, GatherPrecisions(own, group, deadline));
  AgreedPrecision agreed = Agree(ranks, group.rank());
  if (agreed.emulating < 0) return std::move(agreed.taken);
  const auto emulating = static_cast<size_t>(agreed.emulating);
  const std::string subject = SubjectOf(ranks[emulating], emulating);
  const auto reason = asked == "auto" ? device::Bf16Reason::kKept : device::Bf16Reason::kAskedFor;
  if (agreed.emulating == group.rank()) {
    source.add_slowdown(facts);
    base::Warn(device::WarningOf(facts, subject, reason));
  } else if (group.rank() == 0) {
    base::Warn(device::WarningOfAnother(ranks[emulating].why, subject, reason));
  }
  return std::move(agreed.taken);
}

bool UsesWinograd(const Recipe& recipe) {
  return recipe.winograd.value_or(recipe.precision == "fp32" ||
                                  models::ScriptFile(recipe.model).empty());
}

absl::StatusOr<bool> TakeWinograd(const Recipe& recipe, std::optional<bool> kept,
                                  comm::Communicator& group, base::Deadline deadline) {
  auto taken = static_cast<char>(kept.value_or(UsesWinograd(recipe)));
  if (group.size() > 1) {
    TUTTI_RETURN_IF_ERROR(group.Broadcast(&taken, sizeof(taken), /*root=*/0, deadline));
  }
  return recipe.winograd.value_or(taken != 0);
}

}  // namespace tutti::train
