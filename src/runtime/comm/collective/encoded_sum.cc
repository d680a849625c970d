#include "runtime/comm/collective/encoded_sum.h"

#include <algorithm>
#include <numeric>

#include "base/status.h"

namespace tutti::comm {
namespace {

// Long enough that a collective of a segment is not a matter of latency, short enough that what
// nothing overlaps with (encoding the first one, decoding the last one) does not count.
constexpr size_t kLeastSegment = 256 << 10, kMostSegment = 2 << 20;  // values

size_t SegmentLength(size_t count) {
  return std::clamp(count / 8, kLeastSegment, kMostSegment) / kEncodingBlock * kEncodingBlock;
}

struct Part {
  size_t begin, count;
};

// Of a segment of `length` values: whole blocks, as equal as that allows; the last ranks' may be
// shorter or empty.
Part PartOf(int rank, int ranks, size_t length) {
  const size_t blocks = (length + kEncodingBlock - 1) / kEncodingBlock;
  const auto n = static_cast<size_t>(ranks), r = static_cast<size_t>(rank);
  const size_t stride = (blocks + n - 1) / n * kEncodingBlock;
  const size_t begin = std::min(length, r * stride);
  return {begin, std::min(length, begin + stride) - begin};
}

}  // namespace

struct EncodedSum::Call {
  Communicator& group;
  const Encoding encoding;
  const std::span<float> data;
  const std::span<float> residual;  // may be empty
  const base::Deadline deadline;
};

// A part of the data on its way through the two phases.
class EncodedSum::Segment {
 public:
  void EncodeForOwners(const Call& call, size_t begin, size_t length);
  absl::Status Exchange(const Call& call);
  void SumUp(const Call& call);
  absl::Status Gather(const Call& call);
  void Decode(const Call& call);

 private:
  void Cut(const Call& call, size_t begin, size_t length);
  void EncodePart(const Call& call, const Part& part, std::byte* to) const;
  std::byte* OwnSum() {
    return encoded_.data() + std::accumulate(bytes_.begin(), bytes_.begin() + own_, size_t{0});
  }

  int own_ = 0;                                      // this rank
  std::vector<Part> parts_;                          // by owner, in the call's data
  std::vector<size_t> bytes_;                        // of the parts, encoded
  std::vector<size_t> sent_, received_;              // bytes in the first phase, by rank
  std::vector<std::byte> encoded_, received_bytes_;  // first for the owners, then the sums; theirs
};

void EncodedSum::Segment::Cut(const Call& call, size_t begin, size_t length) {
  own_ = call.group.rank();
  parts_.clear();
  bytes_.clear();
  for (int rank = 0; rank < call.group.size(); ++rank) {
    const Part part = PartOf(rank, call.group.size(), length);
    parts_.push_back({begin + part.begin, part.count});
    bytes_.push_back(EncodedBytes(call.encoding, part.count));
  }
  const auto own = static_cast<size_t>(own_);
  sent_ = bytes_;
  sent_[own] = 0;
  received_.assign(bytes_.size(), bytes_[own]);
  received_[own] = 0;
  encoded_.resize(std::accumulate(bytes_.begin(), bytes_.end(), size_t{0}));
  received_bytes_.resize(std::accumulate(received_.begin(), received_.end(), size_t{0}));
}

void EncodedSum::Segment::EncodePart(const Call& call, const Part& part, std::byte* to) const {
  if (part.count == 0) return;
  float* const residual = call.residual.empty() ? nullptr : &call.residual[part.begin];
  Encode(call.encoding, &call.data[part.begin], residual, part.count, to);
}

void EncodedSum::Segment::EncodeForOwners(const Call& call, size_t begin, size_t length) {
  Cut(call, begin, length);
  std::byte* to = encoded_.data();
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    if (sent_[rank] > 0) EncodePart(call, parts_[rank], to);
    to += sent_[rank];
  }
}

absl::Status EncodedSum::Segment::Exchange(const Call& call) {
  return call.group.AllToAllV(encoded_.data(), sent_, received_bytes_.data(), received_,
                              call.deadline);
}

void EncodedSum::Segment::SumUp(const Call& call) {
  const Part& part = parts_[static_cast<size_t>(own_)];
  const std::byte* from = received_bytes_.data();
  for (const size_t bytes : received_) {
    if (bytes > 0) DecodeAndAdd(call.encoding, from, part.count, &call.data[part.begin]);
    from += bytes;
  }
  EncodePart(call, part, OwnSum());
}

absl::Status EncodedSum::Segment::Gather(const Call& call) {
  return call.group.AllGatherV(OwnSum(), bytes_, encoded_.data(), call.deadline);
}

void EncodedSum::Segment::Decode(const Call& call) {
  const std::byte* from = encoded_.data();
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const Part& part = parts_[rank];
    if (part.count > 0) comm::Decode(call.encoding, from, part.count, &call.data[part.begin]);
    from += bytes_[rank];
  }
}

// Of the segments at most one each is encoded, exchanged, summed up or gathered, and decoded.
EncodedSum::EncodedSum(Encoding encoding) : encoding_(encoding), segments_(4) {}
EncodedSum::~EncodedSum() = default;

absl::Status EncodedSum::Run(Communicator& group, std::span<float> data, std::span<float> residual,
                             base::Deadline deadline) {
  if (group.size() == 1 || data.empty()) return absl::OkStatus();
  const size_t length = SegmentLength(data.size());
  const auto count = static_cast<int64_t>((data.size() + length - 1) / length);
  return RunSegments({group, encoding_, data, residual, deadline}, length, count);
}

absl::Status EncodedSum::RunSegments(const Call& call, size_t length, int64_t count) {
  const auto at = [&](int64_t i) -> Segment* {
    return i < 0 || i >= count ? nullptr : &segments_[static_cast<size_t>(i) % segments_.size()];
  };
  const auto encode = [&](int64_t i) {
    const size_t begin = static_cast<size_t>(i) * length;
    if (at(i) == nullptr) return;
    at(i)->EncodeForOwners(call, begin, std::min(length, call.data.size() - begin));
  };
  const auto together = [&](Segment* moved, auto move, auto work) {
    if (moved == nullptr || count == 1) {
      work();
      return moved == nullptr ? absl::OkStatus() : move(*moved);
    }
    calculator_.Begin(work);
    absl::Status status = move(*moved);
    calculator_.Finish();
    return status;
  };
  encode(0);
  for (int64_t i = 0; i <= count + 1; ++i) {
    TUTTI_RETURN_IF_ERROR(together(
        at(i), [&](Segment& segment) { return segment.Exchange(call); },
        [&] {
          if (at(i - 1) != nullptr) at(i - 1)->SumUp(call);
          encode(i + 1);
        }));
    TUTTI_RETURN_IF_ERROR(together(
        at(i - 1), [&](Segment& segment) { return segment.Gather(call); },
        [&] {
          if (at(i - 2) != nullptr) at(i - 2)->Decode(call);
        }));
  }
  return absl::OkStatus();
}

void EncodedSum::ForEachPartOf(int rank, int size, size_t count,
                               const std::function<void(size_t begin, size_t end)>& visit) {
  const size_t segment = SegmentLength(count);
  for (size_t begin = 0; begin < count; begin += segment) {
    const Part part = PartOf(rank, size, std::min(segment, count - begin));
    if (part.count > 0) visit(begin + part.begin, begin + part.begin + part.count);
  }
}

}  // namespace tutti::comm
