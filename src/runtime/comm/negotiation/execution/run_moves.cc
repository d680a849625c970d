// What moves tensors from rank to rank as they are.
#include <algorithm>

#include "base/status.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/negotiation/execution/response_run.h"
#include "runtime/comm/negotiation/execution/scale.h"

namespace tutti::comm {

absl::Status Run::Broadcast() {
  const int root = RequestOf(0).root;
  const auto found = std::lower_bound(team_.ranks.begin(), team_.ranks.end(), root);
  for (const Pack& pack : PackPieces(Pieces(), response_.fusion_bytes, false)) {
    TUTTI_RETURN_IF_ERROR(BroadcastPack(pack, static_cast<int>(found - team_.ranks.begin())));
  }
  return absl::OkStatus();
}

absl::Status Run::BroadcastPack(const Pack& pack, int root) {
  const bool sends = group_.rank() == root;
  const bool single = pack.pieces.size() == 1;
  std::byte* buffer = static_cast<std::byte*>(pack.pieces[0].output);
  if (!single) {
    TUTTI_ASSIGN_OR_RETURN(buffer, team_.scratch.Get(group_, pack.bytes));
  }
  std::byte* at = buffer;
  for (const Piece& piece : pack.pieces) {
    if (sends) CopyScaled(piece.input, at, piece.count, piece.type, 1);
    at += piece.bytes();
  }
  TUTTI_RETURN_IF_ERROR(Timed(
      pack, "BROADCAST", [&] { return group_.Broadcast(buffer, pack.bytes, root, deadline_); }));
  at = buffer;
  for (const Piece& piece : pack.pieces) {
    if (!single) CopyScaled(sends ? piece.input : at, piece.output, piece.count, piece.type, 1);
    at += piece.bytes();
  }
  return absl::OkStatus();
}

absl::Status Run::AllGather(Task& task, const Unit& unit) {
  const std::vector<Part>& parts = task.submission.request.parts;
  const size_t ranks = team_.ranks.size();
  for (size_t part = 0; part < parts.size(); ++part) {
    const size_t row_bytes = RowBytes(parts[part]);
    std::vector<size_t> bytes(ranks);
    std::vector<int64_t> shape = parts[part].shape;
    for (size_t rank = 0; rank < ranks; ++rank) {
      const int64_t rows = unit.rows[rank * parts.size() + part];
      task.operation->received().push_back(rows);
      bytes[rank] = static_cast<size_t>(rows) * row_bytes;
      shape[0] += rows;
    }
    void* const output = OutputOf(task, part, std::move(shape));
    TUTTI_RETURN_IF_ERROR(
        group_.AllGatherV(task.submission.inputs[part], bytes, output, deadline_));
  }
  return absl::OkStatus();
}

// The ranks first tell each other how many rows come.
absl::Status Run::AllToAll(Task& task) {
  const size_t ranks = team_.ranks.size();
  std::vector<int64_t>& received = task.operation->received();
  received.resize(ranks);
  const std::vector<size_t> one(ranks, sizeof(int64_t));
  TUTTI_RETURN_IF_ERROR(
      group_.AllToAllV(task.submission.splits.data(), one, received.data(), one, deadline_));
  const Part& part = task.submission.request.parts[0];
  const size_t row_bytes = RowBytes(part);
  std::vector<size_t> send(ranks), receive(ranks);
  std::vector<int64_t> shape = part.shape;
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (!AreRows(part, received[rank])) {
      return ErrorAboutRank(static_cast<int>(rank), absl::StatusCode::kInternal,
                            "it sends no number of rows to an all-to-all");
    }
    send[rank] = static_cast<size_t>(task.submission.splits[rank]) * row_bytes;
    receive[rank] = static_cast<size_t>(received[rank]) * row_bytes;
    shape[0] += received[rank];
  }
  void* const output = OutputOf(task, 0, std::move(shape));
  return group_.AllToAllV(task.submission.inputs[0], send, output, receive, deadline_);
}

}  // namespace tutti::comm
