#include "runtime/comm/collective/compression/encoded_sum.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/comm/collective/chunks.h"

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

// Returns the part that `rank` sums of a segment of `length` values.
Part PartOf(int rank, int ranks, size_t length) {
  const auto n = static_cast<size_t>(ranks), r = static_cast<size_t>(rank);
  const size_t begin = EvenCut(length, kEncodingBlock, n, r);
  return {begin, EvenCut(length, kEncodingBlock, n, r + 1) - begin};
}

}  // namespace

struct EncodedSum::Call {
  Communicator& group;
  const Encoding encoding;
  const std::span<float> data;
  const std::span<float> residual;  // may be empty
  const base::Deadline deadline;
  const size_t length;     // of a segment; the last one may be shorter
  const int64_t segments;  // how many

  int ranks() const { return group.size(); }
  // Returns a rank's part of a segment, as a place in the data; an empty one for a segment that is
  // not there.
  Part PartIn(int64_t segment, int rank) const {
    if (segment < 0 || segment >= segments) return {0, 0};
    const size_t begin = static_cast<size_t>(segment) * length;
    const Part part = PartOf(rank, ranks(), std::min(length, data.size() - begin));
    return {begin + part.begin, part.count};
  }
  Part OwnPartIn(int64_t segment) const { return PartIn(segment, group.rank()); }
  size_t BytesOf(const Part& part) const { return EncodedBytes(encoding, part.count); }
  void EncodeTo(std::byte* to, const Part& part) const {
    if (part.count == 0) return;
    float* const kept = residual.empty() ? nullptr : &residual[part.begin];
    Encode(encoding, &data[part.begin], kept, part.count, to);
  }
};

// What goes to and comes from every rank in a step, one rank's after the other's: the values of
// that rank's (this rank's) part of segment `step`, and the sum of this rank's (that rank's) part
// of segment `step` - 2.
struct EncodedSum::Message {
  struct Piece {
    size_t begin = 0, values = 0, sum = 0;  // bytes
    size_t size() const { return values + sum; }
  };
  std::vector<Piece> out, in;  // by rank; empty for this one
  std::vector<std::byte> sent, received;

  void Prepare(const Call& call, int64_t step) {
    const auto size = static_cast<size_t>(call.ranks());
    out.assign(size, {});
    in.assign(size, {});
    size_t sent_bytes = 0, received_bytes = 0;
    for (int rank = 0; rank < call.ranks(); ++rank) {
      const auto r = static_cast<size_t>(rank);
      out[r].begin = sent_bytes;
      in[r].begin = received_bytes;
      if (rank == call.group.rank()) continue;
      out[r].values = call.BytesOf(call.PartIn(step, rank));
      out[r].sum = call.BytesOf(call.OwnPartIn(step - 2));
      in[r].values = call.BytesOf(call.OwnPartIn(step));
      in[r].sum = call.BytesOf(call.PartIn(step - 2, rank));
      sent_bytes += out[r].size();
      received_bytes += in[r].size();
    }
    sent.resize(sent_bytes);
    received.resize(received_bytes);
  }
  absl::Status Exchange(const Call& call) {
    std::vector<size_t> to, from;
    for (const Piece& piece : out) to.push_back(piece.size());
    for (const Piece& piece : in) from.push_back(piece.size());
    return call.group.AllToAllV(sent.data(), to, received.data(), from, call.deadline);
  }
};

namespace {

void EncodeValues(const auto& call, int64_t segment, auto& message) {
  for (int rank = 0; rank < call.ranks(); ++rank) {
    const auto& piece = message.out[static_cast<size_t>(rank)];
    if (piece.values > 0) call.EncodeTo(&message.sent[piece.begin], call.PartIn(segment, rank));
  }
}

// This rank's part of `segment`, whose values came in `from`; the sum goes out in `to`.
void SumUp(const auto& call, int64_t segment, const auto& from, auto& to) {
  const Part part = call.OwnPartIn(segment);
  if (part.count == 0) return;
  float* const values = &call.data[part.begin];
  for (const auto& piece : from.in) {
    if (piece.values == 0) continue;
    DecodeAndAdd(call.encoding, &from.received[piece.begin], part.count, values);
  }
  const std::byte* first = nullptr;
  for (const auto& piece : to.out) {
    if (piece.sum == 0) continue;
    std::byte* const place = &to.sent[piece.begin + piece.values];
    if (first == nullptr) {
      call.EncodeTo(place, part);
      Decode(call.encoding, place, part.count, values);
      first = place;
    } else {
      std::copy_n(first, piece.sum, place);
    }
  }
}

void DecodeSums(const auto& call, int64_t segment, const auto& message) {
  for (int rank = 0; rank < call.ranks(); ++rank) {
    const auto& piece = message.in[static_cast<size_t>(rank)];
    if (piece.sum == 0) continue;
    const Part part = call.PartIn(segment, rank);
    Decode(call.encoding, &message.received[piece.begin + piece.values], part.count,
           &call.data[part.begin]);
  }
}

}  // namespace

EncodedSum::EncodedSum(Encoding encoding) : encoding_(encoding), messages_(3) {}
EncodedSum::~EncodedSum() = default;

EncodedSum::Message& EncodedSum::At(int64_t step) {
  return messages_[static_cast<size_t>(step + 3) % messages_.size()];
}

// Beside the message of `step`: takes in the one before and makes the next one.
void EncodedSum::Calculate(const Call& call, int64_t step) {
  Message& next = At(step + 1);
  next.Prepare(call, step + 1);
  EncodeValues(call, step + 1, next);
  const Message& before = At(step - 1);
  SumUp(call, step - 1, before, next);
  DecodeSums(call, step - 3, before);
}

absl::Status EncodedSum::RunStep(const Call& call, int64_t step) {
  const bool moves = step < call.segments || (step >= 2 && step - 2 < call.segments);
  if (!moves || call.segments == 1) {  // nothing to overlap
    Calculate(call, step);
    return moves ? At(step).Exchange(call) : absl::OkStatus();
  }
  absl::Status status;
  compute_thread_.Run([&] { Calculate(call, step); }, [&] { status = At(step).Exchange(call); });
  return status;
}

absl::Status EncodedSum::Run(Communicator& group, std::span<float> data, std::span<float> residual,
                             base::Deadline deadline) {
  if (group.size() == 1 || data.empty()) return absl::OkStatus();
  const size_t length = SegmentLength(data.size());
  const auto segments = static_cast<int64_t>((data.size() + length - 1) / length);
  const Call call{group, encoding_, data, residual, deadline, length, segments};
  At(0).Prepare(call, 0);
  EncodeValues(call, 0, At(0));
  At(-1).Prepare(call, -1);  // empty
  for (int64_t step = 0; step <= segments + 2; ++step) TUTTI_RETURN_IF_ERROR(RunStep(call, step));
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
