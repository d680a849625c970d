// NodeHistory keeps what the processes of a node used in two resolutions: each sample of the last
// ten minutes, and the whole life of the job in spans of 30 s. Once there are 1,440 of these (12
// hours), pairs become one of twice the length, so that it never has more, however long the job
// runs. Not thread-safe.
//
// Files: NAME.whole, to which spans are appended as they end, and NAME.recent, written at the
// job's end alone. Each is a line of JSON and then rows of bytes (UsageTable::Bytes). Losing the
// end of one loses samples, and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/service/usage/usage_table.h"
#include "spec/json/usage_sample.h"

namespace tutti::service {

class NodeHistory {
 public:
  static constexpr absl::Duration kRecent = absl::Minutes(10);
  static constexpr absl::Duration kShortestSpan = absl::Seconds(30);
  static constexpr size_t kMostRecent = 600, kMostSpans = 1440;
  // How much it keeps at most: less of a large gang.
  struct Rows {
    size_t recent = kMostRecent, spans = kMostSpans;
  };

  // Since when a rank was seen in a state in all samples, of which none is missing, and in how
  // many.
  struct Spell {
    absl::Time since = absl::InfiniteFuture();
    int samples = 0;
  };
  struct RankState {
    Spell stopped, blocked;
  };
  // Holds what is to be written to a file, by somebody who holds no lock.
  struct Unsaved {
    std::string header, rows;
    bool all = false;  // the file is to be written anew; else rows are to be appended
  };

  NodeHistory(int first_rank, int ranks, Rows most = {kMostRecent, kMostSpans});

  // Adds a sample. One that is not newer than the last is passed over.
  void Add(const spec::UsageSample& sample);
  // Drops what is dated later than that, as by a clock that was wrong: new samples are older.
  void DropAfter(absl::Time time);

  int first_rank() const { return first_rank_; }
  int ranks() const { return ranks_; }
  const UsageTable& recent() const { return recent_; }
  // Returns the whole life, with the span that is not over.
  UsageTable Whole() const;
  // Returns the bytes that the largest of its ranks had at once; NaN if no memory was measured.
  float PeakRankMemory() const;
  absl::Duration span() const { return span_; }
  const std::vector<RankState>& states() const { return states_; }

  // Returns what NAME.whole lacks since the last call; with `end` also the span that is not over.
  Unsaved TakeUnsaved(bool end);
  // Has the next TakeUnsaved return everything.
  void NoteLost() { rewrite_ = true; }
  Unsaved RecentToSave() const;

  // Reads what an earlier service has kept; NotFound where there is nothing, or it is of other
  // ranks.
  static absl::StatusOr<NodeHistory> Read(const std::filesystem::path& name, int first_rank,
                                          int ranks, Rows most);
  // Reads it whatever ranks it has.
  static absl::StatusOr<NodeHistory> Read(const std::filesystem::path& name,
                                          Rows most = {kMostRecent, kMostSpans});
  // Reads how many ranks it has; NotFound.
  static absl::StatusOr<int> ReadRanks(const std::filesystem::path& name);
  // Writes what was returned to be saved. Other than `unsaved.all` has to follow such a one.
  static absl::Status Write(const std::filesystem::path& file, const Unsaved& unsaved);

 private:
  std::string Header(absl::Duration span) const;
  static Spell Goes(bool on, const Spell& before, absl::Time time);
  void EndSpan();
  void Fold();

  int first_rank_, ranks_;
  Rows most_;
  UsageTable recent_, spans_;
  absl::Duration span_ = kShortestSpan;
  RowMerger open_;
  int64_t open_begin_ = 0;  // milliseconds since 1970
  std::vector<RankState> states_;
  size_t saved_ = 0;     // spans
  bool rewrite_ = true;  // the file lacks more than the last spans
};

}  // namespace tutti::service
