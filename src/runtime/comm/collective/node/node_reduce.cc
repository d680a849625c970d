#include <algorithm>
#include <cstring>
#include <vector>

#include "base/machine/copy_bytes.h"
#include "base/status.h"
#include "runtime/comm/collective/node/copy_to_slot.h"
#include "runtime/comm/collective/node/node_collectives.h"
#include "runtime/comm/collective/reduction/combine.h"

namespace tutti::comm {
namespace {

// In bytes that a rank reads of the others' data (measured with benchmarks/collectives). Up to the
// first it does not pay to ask whether the data lie in shared buffers; up to the second a rank
// rather reads all of everybody's data than waits for another phase.
constexpr size_t kTiny = 4 << 10;
constexpr size_t kFlat = 64 << 10;

// Reads where it lies what this rank reduces: one place for each rank, in their order.
class Reducer {
 public:
  Reducer(NodeTeam& team, const Reduction& reduction, bool last)
      : team_(team), reduction_(reduction), last_(last), inputs_(team.size()) {}

  // From place(rank) of every rank.
  template <typename Place>
  void Run(const Place& place, std::span<std::byte* const> outputs, size_t bytes) {
    if (bytes == 0) return;
    for (int rank = 0; rank < team_.size(); ++rank) inputs_[rank] = place(rank);
    Combine(reduction_, inputs_, outputs, bytes / SizeOf(reduction_.type), last_);
  }

 private:
  NodeTeam& team_;
  const Reduction& reduction_;
  const bool last_;
  std::vector<const std::byte*> inputs_;
};

void ReduceSlots(NodeTeam& team, std::span<std::byte> data, Reducer& reducer) {
  std::byte* const output = data.data();
  reducer.Run([&](int rank) { return rank == team.rank() ? output : team.SlotOf(rank); },
              {&output, 1}, data.size());
}

absl::Status FlatAllReduce(NodeTeam& team, std::span<std::byte> data, Reducer& reducer,
                           base::Deadline deadline) {
  CopyToSlot(team.slot(), data);
  TUTTI_RETURN_IF_ERROR(team.NextPhase(deadline));
  ReduceSlots(team, data, reducer);
  return absl::OkStatus();
}

// This rank's chunk, from everybody's data into everybody's.
absl::Status DirectAllReduce(NodeTeam& team, std::span<std::byte* const> places, const Chunks& data,
                             Reducer& reducer, base::Deadline deadline) {
  const std::span<std::byte> own = data[team.rank()];
  std::vector<std::byte*> outputs;
  for (std::byte* const place : places) outputs.push_back(place + (own.data() - data.All().data()));
  reducer.Run([&](int rank) { return outputs[rank]; }, outputs, own.size());
  return team.NextPhase(deadline);
}

// The part of a chunk that belongs to block `t`, of `block` bytes.
std::span<std::byte> BlockOf(std::span<std::byte> chunk, size_t t, size_t block) {
  const size_t begin = std::min(chunk.size(), t * block);
  return chunk.subspan(begin, std::min(block, chunk.size() - begin));
}

// What the staged ways share: a slot is cut into a place for each rank's chunk.
class Staging {
 public:
  Staging(NodeTeam& team, const Chunks& chunks)
      : team_(team), chunks_(chunks), block_(NodeTeam::kSlotBytes / team.size() / 64 * 64) {
    for (int rank = 0; rank < team.size(); ++rank) {
      blocks_ = std::max(blocks_, (chunks[rank].size() + block_ - 1) / block_);
    }
  }

  size_t blocks() const { return blocks_; }
  std::span<std::byte> Own(size_t t) const { return BlockOf(chunks_[team_.rank()], t, block_); }

  void CopyIn(size_t t) const {
    for (int rank = 0; rank < team_.size(); ++rank) {
      const auto part = BlockOf(chunks_[rank], t, block_);
      if (rank == team_.rank() || part.empty()) continue;
      CopyToSlot(team_.slot() + rank * block_, part);
    }
  }
  // This rank's reduced part, to where the others will copy it from.
  void ShowResult(size_t t) const { CopyToSlot(team_.slot() + team_.rank() * block_, Own(t)); }
  void Reduce(size_t t, Reducer& reducer, std::span<std::byte* const> outputs) const {
    const std::byte* const own = Own(t).data();
    reducer.Run(
        [&](int rank) {
          return rank == team_.rank() ? own : team_.SlotOf(rank) + team_.rank() * block_;
        },
        outputs, Own(t).size());
  }
  void CopyOut(size_t t) const {
    for (int rank = 0; rank < team_.size(); ++rank) {
      const auto part = BlockOf(chunks_[rank], t, block_);
      if (rank == team_.rank() || part.empty()) continue;
      base::CopyBytes(part.data(), team_.SlotOf(rank) + rank * block_, part.size());
    }
  }

 private:
  NodeTeam& team_;
  const Chunks& chunks_;
  const size_t block_;
  size_t blocks_ = 0;
};

absl::Status StagedAllReduce(NodeTeam& team, const Chunks& chunks, Reducer& reducer,
                             base::Deadline deadline) {
  const Staging staging(team, chunks);
  const size_t blocks = staging.blocks();
  for (size_t phase = 0; phase < blocks + 2; ++phase) {
    if (phase > 0) TUTTI_RETURN_IF_ERROR(team.NextPhase(deadline));
    if (phase < blocks) staging.CopyIn(phase);
    if (phase >= 1 && phase <= blocks) {
      std::byte* const output = staging.Own(phase - 1).data();
      staging.Reduce(phase - 1, reducer, {&output, 1});
      staging.ShowResult(phase - 1);
    }
    if (phase >= 2) staging.CopyOut(phase - 2);
  }
  return absl::OkStatus();
}

absl::Status StagedReduceScatter(NodeTeam& team, const Chunks& input, std::byte* output,
                                 Reducer& reducer, base::Deadline deadline) {
  const Staging staging(team, input);
  const size_t blocks = staging.blocks();
  for (size_t phase = 0; phase <= blocks; ++phase) {
    if (phase > 0) TUTTI_RETURN_IF_ERROR(team.NextPhase(deadline));
    if (phase < blocks) staging.CopyIn(phase);
    if (phase == 0) continue;
    staging.Reduce(phase - 1, reducer, {&output, 1});
    output += staging.Own(phase - 1).size();
  }
  return absl::OkStatus();
}

bool AllReached(std::span<std::byte* const> places) {
  return std::find(places.begin(), places.end(), nullptr) == places.end();
}
bool NoneReached(std::span<std::byte* const> places) {
  return std::all_of(places.begin(), places.end(), [](auto* place) { return place == nullptr; });
}

}  // namespace

absl::Status NodeAllReduce(NodeTeam& team, std::byte* data, size_t count,
                           const Reduction& reduction, bool last, base::Deadline deadline) {
  const std::span<std::byte> all(data, count * SizeOf(reduction.type));
  const size_t read = all.size() * (team.size() - 1);
  Reducer reducer(team, reduction, last);
  if (read <= kTiny) return FlatAllReduce(team, all, reducer, deadline);
  // In case that nobody's data can be reached: then they are in the slots already.
  const std::byte* const slot = team.slot();
  if (read <= kFlat && !team.buffers().Has(all)) CopyToSlot(team.slot(), all);
  const std::vector<size_t> sizes(team.size(), all.size());
  TUTTI_ASSIGN_OR_RETURN(const auto places, team.Locate(data, sizes, deadline));
  const Chunks chunks = Chunks::Even(data, count, SizeOf(reduction.type), team.size());
  if (AllReached(places)) return DirectAllReduce(team, places, chunks, reducer, deadline);
  if (read > kFlat) return StagedAllReduce(team, chunks, reducer, deadline);
  // Another phase has gone by where a buffer was new, and somebody may not have copied in.
  const bool in_slots = NoneReached(places) && team.SlotOf(team.rank()) == slot;
  if (!in_slots) return FlatAllReduce(team, all, reducer, deadline);
  ReduceSlots(team, all, reducer);
  return absl::OkStatus();
}

absl::Status NodeReduceScatter(NodeTeam& team, const Chunks& input, std::byte* output,
                               const Reduction& reduction, bool last, base::Deadline deadline) {
  Reducer reducer(team, reduction, last);
  const std::span<std::byte> all = input.All();
  if (all.size() <= NodeTeam::kSlotBytes / 4) {
    return StagedReduceScatter(team, input, output, reducer, deadline);
  }
  const std::vector<size_t> sizes(team.size(), all.size());
  TUTTI_ASSIGN_OR_RETURN(const auto places, team.Locate(all.data(), sizes, deadline));
  if (!AllReached(places)) return StagedReduceScatter(team, input, output, reducer, deadline);
  const std::span<std::byte> own = input[team.rank()];
  const size_t offset = static_cast<size_t>(own.data() - all.data());
  reducer.Run([&](int rank) { return places[rank] + offset; }, {&output, 1}, own.size());
  return team.NextPhase(deadline);
}

}  // namespace tutti::comm
