#include "platform/tracking/rows/point_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace tutti::tracking {
namespace {

using store::CachedStatement;
using store::SqliteConnection;

constexpr int64_t kSplitAt = 512;
constexpr int64_t kPiece = 256;  // of a block that is split
constexpr Place kEnd{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};

struct Block {
  Place place;
  int64_t count = 0;
  int64_t split_at = kSplitAt;
};

Place PlaceOf(const Point& point) { return {point.step, point.time}; }

void BindPlace(const CachedStatement& statement, int index, const Place& place) {
  statement->bind(index, place.step);
  statement->bind(index + 1, place.time);
}

Place PlaceIn(const CachedStatement& row) {
  return {row->getColumn(0).getInt64(), row->getColumn(1).getInt64()};
}

std::optional<Place> NextPlace(SqliteConnection& sqlite, int64_t series, const Place& place) {
  const CachedStatement row(sqlite,
                            "SELECT step, time_ms FROM blocks WHERE series = ? AND "
                            "(step, time_ms) > (?, ?) ORDER BY step, time_ms LIMIT 1");
  row->bind(1, series);
  BindPlace(row, 2, place);
  return row->executeStep() ? std::optional(PlaceIn(row)) : std::nullopt;
}

// Returns the block that holds `place`.
Block FindBlock(SqliteConnection& sqlite, int64_t series, const Place& place) {
  const CachedStatement row(sqlite,
                            "SELECT step, time_ms, count, split_at FROM blocks WHERE series = ? "
                            "AND (step, time_ms) <= (?, ?) "
                            "ORDER BY step DESC, time_ms DESC LIMIT 1");
  row->bind(1, series);
  BindPlace(row, 2, place);
  if (!row->executeStep()) return {};
  return {PlaceIn(row), row->getColumn(2).getInt64(), row->getColumn(3).getInt64()};
}

void PutBlock(SqliteConnection& sqlite, int64_t series, const Block& block) {
  const CachedStatement put(sqlite, "INSERT OR REPLACE INTO blocks VALUES (?, ?, ?, ?, ?)");
  put->bind(1, series);
  BindPlace(put, 2, block.place);
  put->bind(4, block.count);
  put->bind(5, block.split_at);
  put->exec();
}

// Returns the pieces of a block: each but the last has kPiece points or, where more share a place,
// these.
std::vector<Block> PiecesOf(SqliteConnection& sqlite, int64_t series, const Block& block) {
  std::vector<Block> pieces{{.place = block.place}};
  const Place end = NextPlace(sqlite, series, block.place).value_or(kEnd);
  const CachedStatement rows(sqlite,
                             "SELECT step, time_ms FROM points WHERE series = ? AND "
                             "(step, time_ms) >= (?, ?) AND (step, time_ms) < (?, ?) "
                             "ORDER BY step, time_ms");
  rows->bind(1, series);
  BindPlace(rows, 2, block.place);
  BindPlace(rows, 4, end);
  std::optional<Place> before;
  while (rows->executeStep()) {
    const Place place = PlaceIn(rows);
    if (pieces.back().count >= kPiece && place != before) pieces.push_back({.place = place});
    ++pieces.back().count;
    before = place;
  }
  return pieces;
}

void Split(SqliteConnection& sqlite, int64_t series, const Block& block) {
  std::vector<Block> pieces = PiecesOf(sqlite, series, block);
  int64_t rest = block.count;  // those at kEnd itself are of the last piece
  for (const Block& piece : pieces) rest -= piece.count;
  pieces.back().count += rest;
  for (Block& piece : pieces) {
    piece.split_at = std::max(kSplitAt, 2 * piece.count);
    PutBlock(sqlite, series, piece);
  }
}

void StoreBlock(SqliteConnection& sqlite, int64_t series, const Block& block) {
  if (block.count >= block.split_at) return Split(sqlite, series, block);
  const CachedStatement update(
      sqlite, "UPDATE blocks SET count = ? WHERE series = ? AND step = ? AND time_ms = ?");
  update->bind(1, block.count);
  update->bind(2, series);
  BindPlace(update, 3, block.place);
  update->exec();
}

// Adds those points from `at` on that lie in one block; returns where the others begin. Where the
// block ends is asked only if there are others.
size_t AddToBlock(SqliteConnection& sqlite, int64_t series, const std::vector<Point>& points,
                  size_t at) {
  Block block = FindBlock(sqlite, series, PlaceOf(points[at]));
  size_t end = at + 1;
  if (end < points.size()) {
    const std::optional<Place> next = NextPlace(sqlite, series, block.place);
    while (end < points.size() && (!next || PlaceOf(points[end]) < *next)) ++end;
  }
  {
    const CachedStatement insert(sqlite, "INSERT OR IGNORE INTO points VALUES (?, ?, ?, ?)");
    for (; at < end; ++at) {
      insert->reset();
      insert->bind(1, series);
      BindPlace(insert, 2, PlaceOf(points[at]));
      insert->bind(4, BitsOf(points[at].value));
      block.count += insert->exec();
    }
  }
  StoreBlock(sqlite, series, block);
  return end;
}

// Blocks that have points of a range, in order, as far as they lie in it.
struct Part {
  Place place;         // from where its points are counted
  int64_t before = 0;  // points of the range in the parts before this one
};

struct Parts {
  std::vector<Part> parts;
  int64_t count = 0;  // points of the range
};

// Returns how many points of a block lie before the range's first step, or in it (from `first` to
// `last`).
int64_t CountRows(SqliteConnection& sqlite, int64_t series, const Place& from, int64_t last) {
  const CachedStatement row(sqlite,
                            "SELECT count(*) FROM points WHERE series = ? AND "
                            "(step, time_ms) >= (?, ?) AND step <= ?");
  row->bind(1, series);
  BindPlace(row, 2, from);
  row->bind(4, last);
  row->executeStep();
  return row->getColumn(0).getInt64();
}

Place PlaceOfStep(int64_t step) { return {step, std::numeric_limits<int64_t>::min()}; }

Parts PartsOf(SqliteConnection& sqlite, int64_t series, const StepRange& range) {
  Parts found;
  if (range.first > range.last) return found;
  const Place first = PlaceOfStep(range.first);
  const Block begin = FindBlock(sqlite, series, first);
  int64_t skipped = 0;  // of the first block's points
  if (range.first > std::numeric_limits<int64_t>::min()) {
    skipped = CountRows(sqlite, series, begin.place, range.first - 1);
  }
  std::vector<int64_t> counts;
  {
    const CachedStatement rows(sqlite,
                               "SELECT step, time_ms, count FROM blocks WHERE series = ? AND "
                               "(step, time_ms) >= (?, ?) AND step <= ? ORDER BY step, time_ms");
    rows->bind(1, series);
    BindPlace(rows, 2, begin.place);
    rows->bind(4, range.last);
    while (rows->executeStep()) {
      found.parts.push_back({PlaceIn(rows)});
      counts.push_back(rows->getColumn(2).getInt64());
    }
  }
  if (found.parts.empty()) return found;
  found.parts.front().place = std::max(found.parts.front().place, first);
  counts.front() -= skipped;
  counts.back() = CountRows(sqlite, series, found.parts.back().place, range.last);
  for (size_t i = 0; i < counts.size(); ++i) {
    found.parts[i].before = found.count;
    found.count += counts[i];
  }
  return found;
}

Point PointIn(const CachedStatement& row) {
  const Place place = PlaceIn(row);
  return {place.step, place.time, ValueOf(row->getColumn(2).getInt64())};
}

// Adds those points of one part that are `ranks[from…end)`-th of the range.
void AddRanks(SqliteConnection& sqlite, int64_t series, const Part& part,
              std::vector<int64_t>::const_iterator from, std::vector<int64_t>::const_iterator end,
              std::vector<Point>& points) {
  const CachedStatement rows(sqlite,
                             "SELECT step, time_ms, bits FROM points WHERE series = ? AND "
                             "(step, time_ms) >= (?, ?) ORDER BY step, time_ms, bits "
                             "LIMIT -1 OFFSET ?");
  rows->bind(1, series);
  BindPlace(rows, 2, part.place);
  rows->bind(4, *from - part.before);
  int64_t rank = *from;
  while (from != end && rows->executeStep()) {
    if (rank++ != *from) continue;
    points.push_back(PointIn(rows));
    ++from;
  }
}

// Returns the first of each of `most` parts of equal size, but of the last part the last: as MLflow
// samples (NTILE of SQL).
std::vector<int64_t> RanksOf(int64_t count, int64_t most) {
  std::vector<int64_t> ranks;
  const int64_t parts = std::min(count, most);
  if (parts == 0) return ranks;
  const int64_t size = count / parts, larger = count % parts;
  for (int64_t i = 0; i < parts; ++i) ranks.push_back(i * size + std::min(i, larger));
  ranks.back() = count - 1;
  return ranks;
}

}  // namespace

// The bits of numbers below zero ascend as the numbers fall: of these all but the sign are
// inverted.
int64_t BitsOf(double value) {
  const double plain = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
  const auto bits = std::bit_cast<int64_t>(plain);
  return bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits;
}

double ValueOf(int64_t bits) {
  return std::bit_cast<double>(bits < 0 ? bits ^ std::numeric_limits<int64_t>::max() : bits);
}

void AddFirstBlock(SqliteConnection& sqlite, int64_t series) { PutBlock(sqlite, series, {}); }

void AddPoints(SqliteConnection& sqlite, int64_t series, const std::vector<Point>& points) {
  size_t at = 0;
  while (at < points.size()) at = AddToBlock(sqlite, series, points, at);
}

int64_t CountPoints(SqliteConnection& sqlite, int64_t series, const StepRange& range) {
  return PartsOf(sqlite, series, range).count;
}

std::vector<Point> SamplePoints(SqliteConnection& sqlite, int64_t series, const StepRange& range,
                                int64_t most) {
  const Parts found = PartsOf(sqlite, series, range);
  const std::vector<int64_t> ranks = RanksOf(found.count, std::max<int64_t>(most, 1));
  std::vector<Point> points;
  points.reserve(ranks.size());
  auto from = ranks.begin();
  for (size_t i = 0; i < found.parts.size() && from != ranks.end(); ++i) {
    const bool is_last = i + 1 == found.parts.size();
    const auto end =
        is_last ? ranks.end() : std::lower_bound(from, ranks.end(), found.parts[i + 1].before);
    if (from != end) AddRanks(sqlite, series, found.parts[i], from, end, points);
    from = end;
  }
  return points;
}

}  // namespace tutti::tracking
