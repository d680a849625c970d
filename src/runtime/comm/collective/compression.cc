#include "runtime/comm/collective/compression.h"

#include <algorithm>

#include "base/status.h"

namespace tutti::comm {
namespace {

// Long enough that a collective of a segment is not a matter of latency, short enough that what
// nothing overlaps with (encoding the first one, decoding the last one) does not count.
constexpr size_t kLeastSegment = 128 << 10, kMostSegment = 2 << 20;  // values

size_t SegmentLength(size_t count) {
  return std::clamp(count / 16, kLeastSegment, kMostSegment) / kEncodingBlock * kEncodingBlock;
}

// The part of a segment of `length` values that `rank` adds up: whole blocks, as equal as that
// allows; the last ranks' may be shorter or empty.
struct Part {
  size_t begin, end;
};
Part PartOf(int rank, int ranks, size_t length) {
  const size_t blocks = (length + kEncodingBlock - 1) / kEncodingBlock;
  const auto n = static_cast<size_t>(ranks), r = static_cast<size_t>(rank);
  const size_t stride = (blocks + n - 1) / n * kEncodingBlock;
  return {std::min(length, r * stride), std::min(length, (r + 1) * stride)};
}

}  // namespace

std::span<float> ErrorFeedback::Residual(int rank, int size, size_t count) {
  if (rank != rank_ || size != size_ || count != residual_.size()) {
    rank_ = rank;
    size_ = size;
    residual_.assign(count, 0);
  }
  return residual_;
}

absl::Status ErrorFeedback::Settle(Communicator& group, std::span<float> owed,
                                   base::Deadline deadline) {
  const std::span<float> residual = Residual(group.rank(), group.size(), owed.size());
  std::copy(residual.begin(), residual.end(), owed.begin());
  TUTTI_RETURN_IF_ERROR(
      group.AllReduce(owed.data(), owed.size(), DataType::kFloat32, ReduceOp::kSum, deadline));
  TakeUp(group.rank(), group.size(), owed);
  return absl::OkStatus();
}

void ErrorFeedback::TakeUp(int rank, int size, std::span<const float> owed) {
  Clear();
  const std::span<float> residual = Residual(rank, size, owed.size());
  const size_t segment = SegmentLength(owed.size());
  for (size_t begin = 0; begin < owed.size(); begin += segment) {
    const Part own = PartOf(rank, size, std::min(segment, owed.size() - begin));
    for (size_t i = begin + own.begin; i < begin + own.end; ++i) residual[i] = owed[i];
  }
}

struct CompressedAllReduce::Call {
  Communicator& group;
  const std::span<float> data;
  const std::span<float> residual;  // empty: without error feedback
  const ReduceOp op;
  const base::Deadline deadline;
};

// A part of the data on its way through the two phases.
class CompressedAllReduce::Segment {
 public:
  void EncodeForOwners(const Call& call, Encoding encoding, size_t begin, size_t length);
  absl::Status Exchange(const Call& call);
  void AddAndEncodeSum(const Call& call);
  absl::Status Gather(const Call& call);
  void DecodeAll(const Call& call);

 private:
  struct Chunk {
    size_t begin, count;  // in the call's data
    size_t bytes;         // encoded
  };

  void Cut(const Call& call, size_t begin, size_t length);
  float* ResidualOf(const Call& call, const Chunk& chunk) const {
    return call.residual.empty() ? nullptr : &call.residual[chunk.begin];
  }

  Encoding encoding_;
  std::vector<Chunk> chunks_;                  // by owner
  std::vector<size_t> sent_, received_, all_;  // bytes, by rank
  std::vector<std::byte> encoded_;             // first what is sent to the owners, then the sums
  std::vector<std::byte> come_;
};

void CompressedAllReduce::Segment::Cut(const Call& call, size_t begin, size_t length) {
  const auto ranks = static_cast<size_t>(call.group.size());
  const auto own = static_cast<size_t>(call.group.rank());
  chunks_.clear();
  all_.clear();
  for (int rank = 0; rank < call.group.size(); ++rank) {
    const Part part = PartOf(rank, call.group.size(), length);
    const size_t count = part.end - part.begin;
    chunks_.push_back({begin + part.begin, count, EncodedBytes(encoding_, count)});
    all_.push_back(chunks_.back().bytes);
  }
  sent_ = all_;
  sent_[own] = 0;
  received_.assign(ranks, all_[own]);
  received_[own] = 0;
}

void CompressedAllReduce::Segment::EncodeForOwners(const Call& call, Encoding encoding,
                                                   size_t begin, size_t length) {
  encoding_ = encoding;
  Cut(call, begin, length);
  size_t total = 0;
  for (const size_t bytes : all_) total += bytes;
  encoded_.resize(total);
  come_.resize(received_.size() * *std::max_element(received_.begin(), received_.end()));
  std::byte* to = encoded_.data();
  for (size_t rank = 0; rank < chunks_.size(); ++rank) {
    if (sent_[rank] == 0) continue;
    const Chunk& chunk = chunks_[rank];
    Encode(encoding_, &call.data[chunk.begin], ResidualOf(call, chunk), chunk.count, to);
    to += sent_[rank];
  }
}

absl::Status CompressedAllReduce::Segment::Exchange(const Call& call) {
  return call.group.AllToAllV(encoded_.data(), sent_, come_.data(), received_, call.deadline);
}

void CompressedAllReduce::Segment::AddAndEncodeSum(const Call& call) {
  const auto own = static_cast<size_t>(call.group.rank());
  const Chunk& chunk = chunks_[own];
  if (chunk.count == 0) return;
  const std::span<float> sum = call.data.subspan(chunk.begin, chunk.count);
  const std::byte* from = come_.data();
  for (const size_t bytes : received_) {
    if (bytes > 0) DecodeAndAdd(encoding_, from, sum.size(), sum.data());
    from += bytes;
  }
  size_t before = 0;
  for (size_t rank = 0; rank < own; ++rank) before += all_[rank];
  Encode(encoding_, sum.data(), ResidualOf(call, chunk), sum.size(), &encoded_[before]);
}

absl::Status CompressedAllReduce::Segment::Gather(const Call& call) {
  size_t before = 0;
  for (int rank = 0; rank < call.group.rank(); ++rank) before += all_[static_cast<size_t>(rank)];
  return call.group.AllGatherV(encoded_.data() + before, all_, encoded_.data(), call.deadline);
}

void CompressedAllReduce::Segment::DecodeAll(const Call& call) {
  const std::byte* from = encoded_.data();
  for (const Chunk& chunk : chunks_) {
    const std::span<float> values = call.data.subspan(chunk.begin, chunk.count);
    Decode(encoding_, from, values.size(), values.data());
    from += chunk.bytes;
    if (call.op != ReduceOp::kMean) continue;
    for (float& value : values) value /= static_cast<float>(chunks_.size());
  }
}

CompressedAllReduce::CompressedAllReduce(Encoding encoding) : encoding_(encoding), segments_(4) {}
CompressedAllReduce::~CompressedAllReduce() = default;

absl::Status CompressedAllReduce::Run(Communicator& group, std::span<float> data, ReduceOp op,
                                      ErrorFeedback* feedback, base::Deadline deadline) {
  if (op != ReduceOp::kSum && op != ReduceOp::kMean) {
    return absl::InvalidArgumentError("only sums and means can be reduced in fewer bits");
  }
  if (group.size() == 1 || data.empty()) return absl::OkStatus();
  std::span<float> residual;
  if (feedback != nullptr) residual = feedback->Residual(group.rank(), group.size(), data.size());
  return RunSegments({group, data, residual, op, deadline});
}

// Of four segments at most one each is encoded, exchanged, added and gathered, or decoded.
absl::Status CompressedAllReduce::RunSegments(const Call& call) {
  const size_t length = SegmentLength(call.data.size());
  const auto count = static_cast<int64_t>((call.data.size() + length - 1) / length);
  const auto at = [&](int64_t i) -> Segment* {
    return i < 0 || i >= count ? nullptr : &segments_[static_cast<size_t>(i) % segments_.size()];
  };
  const auto encode = [&](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * length;
    if (at(i) == nullptr) return;
    at(i)->EncodeForOwners(call, encoding_, begin, std::min(length, call.data.size() - begin));
  };
  const auto together = [&](Segment* moved, auto move, auto work) {
    if (moved == nullptr || count == 1) {
      work();
      return moved == nullptr ? absl::OkStatus() : move(*moved);
    }
    calculator_.Begin(work);
    const absl::Status status = move(*moved);
    calculator_.Finish();
    return status;
  };
  encode(0);
  for (int64_t i = 0; i <= count + 1; ++i) {
    TUTTI_RETURN_IF_ERROR(together(
        at(i), [&](Segment& segment) { return segment.Exchange(call); },
        [&] {
          if (at(i - 1) != nullptr) at(i - 1)->AddAndEncodeSum(call);
          encode(i + 1);
        }));
    TUTTI_RETURN_IF_ERROR(together(
        at(i - 1), [&](Segment& segment) { return segment.Gather(call); },
        [&] {
          if (at(i - 2) != nullptr) at(i - 2)->DecodeAll(call);
        }));
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
