#include "runtime/comm/collective/call.h"

#include <cstring>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/collective/all_gather.h"

namespace tutti::comm {
namespace {

bool IsReduction(const Call& call) {
  return call.kind == Call::Kind::kAllReduce || call.kind == Call::Kind::kReduceScatter;
}

std::string Place(const Call& call) {
  return call.number == 0 ? "before any collective" : absl::StrCat("after ", call.number);
}

absl::Status Differ(int a, const Call& of_a, int b, const Call& of_b) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the ranks call different things: rank ", a, " ", Describe(of_a), " (", Place(of_a),
      "), rank ", b, " ", Describe(of_b), " (", Place(of_b), ")",
      of_a.parts != of_b.parts && Describe(of_a) == Describe(of_b) ? "; the sizes by rank differ"
                                                                   : ""));
}

}  // namespace

uint64_t HashOf(std::span<const size_t> parts) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a over the sizes
  for (const size_t part : parts) hash = (hash ^ part) * 1099511628211u;
  return hash;
}

const char* NameOf(Call::Kind kind) {
  constexpr const char* kNames[] = {"all-reduce", "reduce-scatter", "broadcast", "all-gather",
                                    "all-to-all", "barrier",        "send",      "receive"};
  const size_t index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "something unknown";
}

std::string Describe(const Call& call) {
  std::string text = NameOf(call.kind);
  if (IsReduction(call)) {
    return absl::StrCat(text, " of ", call.count, " ", NameOf(call.type), " (", NameOf(call.op),
                        ")");
  }
  if (call.kind == Call::Kind::kBarrier || call.kind == Call::Kind::kAllToAll) return text;
  absl::StrAppend(&text, " of ", call.count, " bytes");
  if (call.kind == Call::Kind::kBroadcast) absl::StrAppend(&text, " from root ", call.peer);
  if (call.kind == Call::Kind::kSend) absl::StrAppend(&text, " to rank ", call.peer);
  if (call.kind == Call::Kind::kReceive) absl::StrAppend(&text, " from rank ", call.peer);
  return text;
}

absl::Status CheckReduction(DataType type, ReduceOp op) {
  if (op == ReduceOp::kAdasum && !IsFloatingPoint(type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("Adasum of ", NameOf(type), ": it is of floating point alone"));
  }
  if (op == ReduceOp::kMean && type == DataType::kBool) {
    return absl::InvalidArgumentError("there is no mean of bools");
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const char* what, int rank, int size) {
  if (rank >= 0 && rank < size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " ", rank, " in a group of ", size));
}

absl::Status CheckOther(const char* what, int other, int rank, int size) {
  TUTTI_RETURN_IF_ERROR(CheckRank(what, other, size));
  if (other != rank) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " ", other, ", which is this rank itself"));
}

absl::Status CheckParts(const char* what, std::span<const size_t> parts, int size) {
  if (parts.size() != static_cast<size_t>(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(parts.size(), " ", what, " in a group of ", size));
  }
  size_t rest = std::numeric_limits<ptrdiff_t>::max() / 8;  // of the widest type
  for (const size_t part : parts) {
    if (part > rest) return absl::InvalidArgumentError(absl::StrCat("the ", what, " overflow"));
    rest -= part;
  }
  return absl::OkStatus();
}

absl::Status CheckAllToAll(std::span<const size_t> sent, std::span<const size_t> received, int rank,
                           int size) {
  TUTTI_RETURN_IF_ERROR(CheckParts("sizes to send", sent, size));
  TUTTI_RETURN_IF_ERROR(CheckParts("sizes to receive", received, size));
  if (sent[rank] == received[rank]) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " sends ", sent[rank],
                                                 " bytes to itself and receives ", received[rank]));
}

absl::Status CheckBuffer(const char* what, const void* buffer, size_t bytes) {
  if (buffer != nullptr || bytes == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no memory for ", what, " of ", bytes, " bytes"));
}

absl::Status CompareCalls(Links& links, const Call& call, base::Deadline deadline) {
  const int n = links.size();
  std::vector<Call> calls(n);
  calls[links.rank()] = call;
  const std::vector<size_t> sizes(n, sizeof(Call));
  const Chunks chunks(reinterpret_cast<std::byte*>(calls.data()), sizes, 1);
  TUTTI_RETURN_IF_ERROR(BruckAllGather(links, chunks, deadline));
  return JudgeCalls(calls);
}

absl::Status JudgeCalls(std::span<const Call> calls) {
  for (size_t rank = 1; rank < calls.size(); ++rank) {
    if (calls[rank] == calls[0]) continue;
    return Differ(0, calls[0], static_cast<int>(rank), calls[rank]);
  }
  return absl::OkStatus();
}

absl::Status ComparePair(Links& links, const Call& call, base::Deadline deadline) {
  Call other;
  TUTTI_RETURN_IF_ERROR(links.Exchange(call.peer, std::as_bytes(std::span(&call, 1)), call.peer,
                                       std::as_writable_bytes(std::span(&other, 1)), deadline));
  return JudgePair(links.rank(), call, other);
}

absl::Status JudgePair(int rank, const Call& call, const Call& other) {
  Call expected = call;
  expected.kind = call.kind == Call::Kind::kSend ? Call::Kind::kReceive : Call::Kind::kSend;
  expected.peer = rank;
  if (other == expected) return absl::OkStatus();
  return rank < call.peer ? Differ(rank, call, call.peer, other)
                          : Differ(call.peer, other, rank, call);
}

absl::Status CompareParts(Links& links, std::span<const size_t> sent,
                          std::span<const size_t> received, base::Deadline deadline) {
  const size_t n = static_cast<size_t>(links.size());
  std::vector<uint64_t> rows(2 * n * n);  // of every rank: what it sends, what it receives
  const size_t own = 2 * n * static_cast<size_t>(links.rank());
  std::copy(sent.begin(), sent.end(), &rows[own]);
  std::copy(received.begin(), received.end(), &rows[own + n]);
  const std::vector<size_t> sizes(n, 2 * n * sizeof(uint64_t));
  const Chunks chunks(reinterpret_cast<std::byte*>(rows.data()), sizes, 1);
  TUTTI_RETURN_IF_ERROR(BruckAllGather(links, chunks, deadline));
  return JudgeParts(rows, n);
}

absl::Status JudgeParts(std::span<const uint64_t> rows, size_t ranks) {
  for (size_t from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < ranks; ++to) {
      const uint64_t gives = rows[2 * ranks * from + to];
      const uint64_t wants = rows[2 * ranks * to + ranks + from];
      if (gives == wants) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("in an all-to-all rank ", from, " sends ", gives, " bytes to rank ", to,
                       ", which receives ", wants, " bytes from it"));
    }
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
