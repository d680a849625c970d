#include "platform/service/usage/node_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "spec/json/json_fields.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr int kVersion = 2, kVersionWithoutGpus = 1;
constexpr absl::Duration kSampleGap = absl::Seconds(5);  // one is missing
constexpr uint64_t kLargestFile = uint64_t{1} << 30;
constexpr int kMostRanks = 1 << 16;

struct UsageFile {
  int first_rank = 0, ranks = 0;
  int64_t span = 0;  // milliseconds
  bool has_gpus = true;
  std::string rows;
};

absl::StatusOr<UsageFile> ParseUsageFile(const fs::path& file, const std::string& text) {
  const size_t end = text.find('\n');
  const auto header = nlohmann::json::parse(
      text.begin(), text.begin() + static_cast<ptrdiff_t>(std::min(end, text.size())), nullptr,
      /*allow_exceptions=*/false);
  const auto number = [&](const char* name, int64_t most) -> int64_t {
    const auto at = header.is_object() ? header.find(name) : header.end();
    if (!header.is_object() || at == header.end() || !at->is_number_integer()) return -1;
    const auto value = at->get<int64_t>();
    return value <= most ? value : -1;
  };
  UsageFile kept{.first_rank = static_cast<int>(number("first_rank", kMostRanks * int64_t{1024})),
                 .ranks = static_cast<int>(number("ranks", kMostRanks)),
                 .span = number("span", int64_t{1} << 50)};
  const int64_t version = number("version", kVersion);
  kept.has_gpus = version > kVersionWithoutGpus;
  if (end == std::string::npos || version < kVersionWithoutGpus || kept.first_rank < 0 ||
      kept.ranks < 0 || kept.span < 0) {
    return absl::NotFoundError(absl::StrCat(file.native(), " is no file of usage"));
  }
  kept.rows = text.substr(end + 1);
  return kept;
}

absl::StatusOr<UsageFile> ReadUsageFile(const fs::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kLargestFile));
  return ParseUsageFile(file, text);
}

}  // namespace

NodeHistory::NodeHistory(int first_rank, int ranks, Rows most)
    : first_rank_(first_rank),
      ranks_(ranks),
      most_(most),
      recent_(ranks),
      spans_(ranks),
      open_(recent_.width()),
      states_(ranks) {}

void NodeHistory::Add(const spec::UsageSample& sample) {
  const int64_t time = absl::ToUnixMillis(sample.time);
  const auto last =
      recent_.size() > 0 ? std::optional(recent_.time(recent_.size() - 1)) : std::nullopt;
  if (last && time <= *last) return;
  if (last && time - *last > absl::ToInt64Milliseconds(kSampleGap)) states_.assign(ranks_, {});
  const std::vector<float> row = RowOf(sample, first_rank_, ranks_);
  recent_.Add(time, row);
  const int64_t oldest = time - absl::ToInt64Milliseconds(kRecent);
  size_t old = recent_.size() > most_.recent ? recent_.size() - most_.recent : 0;
  while (recent_.time(old) < oldest) ++old;
  recent_.DropFirst(old);

  const int64_t span = absl::ToInt64Milliseconds(span_);
  const int64_t begin = time - (time % span + span) % span;
  if (!open_.empty() && begin > open_begin_) EndSpan();
  if (open_.empty()) open_begin_ = begin;
  open_.Add(row);

  std::vector<RankState> states(ranks_);
  for (const spec::RankUsage& rank : sample.ranks) {
    const int local = rank.rank - first_rank_;
    if (local < 0 || local >= ranks_) continue;
    states[local] = {.stopped = Goes(rank.stopped, states_[local].stopped, sample.time),
                     .blocked = Goes(rank.blocked, states_[local].blocked, sample.time)};
  }
  states_ = std::move(states);
}

NodeHistory::Spell NodeHistory::Goes(bool on, const Spell& before, absl::Time time) {
  if (!on) return {};
  return {.since = std::min(before.since, time), .samples = before.samples + 1};
}

void NodeHistory::DropAfter(absl::Time time) {
  const int64_t last = absl::ToUnixMillis(time);
  const auto drop = [last](UsageTable& table) {
    size_t late = 0;
    while (late < table.size() && table.time(table.size() - 1 - late) > last) ++late;
    table.DropLast(late);
    return late > 0;
  };
  if (!drop(recent_) && (open_.empty() || open_begin_ <= last)) return;
  rewrite_ |= drop(spans_);
  if (open_begin_ > last) open_.Clear();
  states_.assign(ranks_, {});
}

void NodeHistory::EndSpan() {
  if (spans_.size() == 0 || spans_.time(spans_.size() - 1) < open_begin_) {
    spans_.Add(open_begin_, open_.Row());
  }
  open_.Clear();
  while (spans_.size() >= most_.spans) Fold();
}

// A span begins at a multiple of its length, so that of two neighbours the first may be missing.
void NodeHistory::Fold() {
  span_ *= 2;
  const int64_t span = absl::ToInt64Milliseconds(span_);
  UsageTable folded(ranks_);
  RowMerger pair(spans_.width());
  for (size_t i = 0; i < spans_.size(); ++i) {
    const int64_t begin = spans_.time(i) / span * span;
    pair.Add(spans_.row(i));
    if (i + 1 < spans_.size() && spans_.time(i + 1) / span * span == begin) continue;
    folded.Add(begin, pair.Row());
    pair.Clear();
  }
  spans_ = std::move(folded);
  rewrite_ = true;
}

UsageTable NodeHistory::Whole() const {
  UsageTable whole = spans_;
  if (!open_.empty()) whole.Add(open_begin_, open_.Row());
  return whole;
}

float NodeHistory::PeakRankMemory() const {
  float peak = std::numeric_limits<float>::quiet_NaN();
  const auto look = [&](absl::Span<const float> row) {
    for (size_t at = kNodeWidth + kRankMemoryColumn; at < row.size(); at += kRankWidth) {
      peak = std::fmax(peak, row[at]);  // of a number and NaN the number
    }
  };
  for (size_t i = 0; i < spans_.size(); ++i) look(spans_.row(i));
  if (!open_.empty()) look(open_.Row());
  return peak;
}

std::string NodeHistory::Header(absl::Duration span) const {
  return spec::Dump({{"version", kVersion},
                     {"first_rank", first_rank_},
                     {"ranks", ranks_},
                     {"span", absl::ToInt64Milliseconds(span)}}) +
         "\n";
}

NodeHistory::Unsaved NodeHistory::TakeUnsaved(bool end) {
  if (end && !open_.empty()) EndSpan();
  Unsaved unsaved{.header = Header(span_), .all = rewrite_};
  unsaved.rows = spans_.Bytes(rewrite_ ? 0 : saved_);
  if (spans_.size() == 0) return {};
  saved_ = spans_.size();
  rewrite_ = false;
  return unsaved;
}

NodeHistory::Unsaved NodeHistory::RecentToSave() const {
  if (recent_.size() == 0) return {};
  return {.header = Header(absl::ZeroDuration()), .rows = recent_.Bytes(0), .all = true};
}

absl::Status NodeHistory::Write(const fs::path& file, const Unsaved& unsaved) {
  if (unsaved.rows.empty()) return absl::OkStatus();
  if (unsaved.all) return base::ReplaceFile(file, unsaved.header + unsaved.rows);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_WRONLY | O_APPEND));
  return base::AppendWhole(fd.get(), unsaved.rows, file.native());
}

absl::StatusOr<NodeHistory> NodeHistory::Read(const fs::path& name, Rows most) {
  TUTTI_ASSIGN_OR_RETURN(const UsageFile whole, ReadUsageFile(name.native() + ".whole"));
  NodeHistory history(whole.first_rank, whole.ranks, most);
  history.span_ = std::max(absl::Milliseconds(whole.span), kShortestSpan);
  history.spans_.AddBytes(whole.rows, whole.has_gpus);
  while (history.spans_.size() >= most.spans) history.Fold();
  const auto recent = ReadUsageFile(name.native() + ".recent");
  if (recent.ok() && recent->first_rank == whole.first_rank && recent->ranks == whole.ranks) {
    history.recent_.AddBytes(recent->rows, recent->has_gpus);
    history.recent_ = history.recent_.Newest(most.recent);
  }
  return history;
}

absl::StatusOr<NodeHistory> NodeHistory::Read(const fs::path& name, int first_rank, int ranks,
                                              Rows most) {
  TUTTI_ASSIGN_OR_RETURN(NodeHistory history, Read(name, most));
  if (history.first_rank_ != first_rank || history.ranks_ != ranks) {
    return absl::NotFoundError("it is of other ranks");
  }
  return history;
}

absl::StatusOr<int> NodeHistory::ReadRanks(const fs::path& name) {
  constexpr size_t kLongestHeader = 1 << 10;
  const std::string file = name.native() + ".whole";
  std::string header(kLongestHeader, '\0');
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(file, O_RDONLY));
  const ssize_t size = ::read(fd.get(), header.data(), header.size());
  header.resize(size < 0 ? 0 : static_cast<size_t>(size));
  TUTTI_ASSIGN_OR_RETURN(const UsageFile whole, ParseUsageFile(file, header));
  return whole.ranks;
}

}  // namespace tutti::service
