// All-reduce and reduce-scatter.
#include "base/status.h"
#include "runtime/comm/negotiation/execution/response_run.h"
#include "runtime/comm/negotiation/execution/scale.h"

namespace tutti::comm {

absl::Status Run::AllReduce() {
  const Request& request = RequestOf(0);
  for (const Pack& pack :
       PackPieces(Pieces(), response_.fusion_bytes, request.op == ReduceOp::kAdasum)) {
    TUTTI_RETURN_IF_ERROR(ReducePack(pack, request));
  }
  return absl::OkStatus();
}

absl::Status Run::ReducePack(const Pack& pack, const Request& request) {
  const Piece& first = pack.pieces[0];
  const bool single = pack.pieces.size() == 1;
  std::byte* buffer = static_cast<std::byte*>(first.output);
  if (!single || buffer == nullptr) {
    TUTTI_ASSIGN_OR_RETURN(buffer, team_.scratch.Get(group_, pack.bytes));
  }
  const auto copy_in = [&] {
    std::byte* at = buffer;
    for (const Piece& piece : pack.pieces) {
      if (piece.input != nullptr) {
        CopyScaled(piece.input, at, piece.count, piece.type, request.prescale);
      } else {
        FillNeutral(at, piece.count, piece.type, request.op);
      }
      at += piece.bytes();
    }
    return absl::OkStatus();
  };
  const auto copy_out = [&] {
    const std::byte* at = buffer;
    for (const Piece& piece : pack.pieces) {
      if (piece.output != nullptr) {
        CopyScaled(at, piece.output, piece.count, piece.type, request.postscale);
      }
      at += piece.bytes();
    }
    return absl::OkStatus();
  };
  TUTTI_RETURN_IF_ERROR(Timed(pack, "MEMCPY_IN_FUSION_BUFFER", copy_in));
  TUTTI_RETURN_IF_ERROR(Timed(pack, "ALLREDUCE", [&] { return Sum(pack, request, buffer); }));
  return Timed(pack, "MEMCPY_OUT_FUSION_BUFFER", copy_out);
}

absl::Status Run::Sum(const Pack& pack, const Request& request, std::byte* buffer) {
  if (request.wire != Wire::kPlain) {
    return SumEncoded(request, {reinterpret_cast<float*>(buffer), pack.count()});
  }
  return group_.AllReduce(buffer, pack.count(), pack.pieces[0].type, request.op, deadline_);
}

// It is the response's only tensor (IsFusable), and null where this rank has joined.
absl::Status Run::SumEncoded(const Request& request, std::span<float> values) {
  const auto encoding = static_cast<Encoding>(static_cast<int>(request.wire) - 1);
  auto& encoded = team_.encoded[static_cast<size_t>(encoding)];
  if (encoded == nullptr) encoded = std::make_unique<CompressedAllReduce>(encoding);
  const auto feedback = tasks_[0] != nullptr ? tasks_[0]->submission.feedback : nullptr;
  const absl::Status status = encoded->Run(group_, values, request.op, feedback.get(), deadline_);
  if (!status.ok() && feedback != nullptr) feedback->Clear();  // it would be garbage
  return status;
}

// Rows are dealt out evenly; the first ranks have one more where it does not come out even.
absl::Status Run::ReduceScatter(Task& task) {
  const Request& request = task.submission.request;
  const int64_t ranks = static_cast<int64_t>(team_.ranks.size());
  for (size_t i = 0; i < request.parts.size(); ++i) {
    const Part& part = request.parts[i];
    const size_t row = RowBytes(part) / SizeOf(part.type);
    std::vector<size_t> counts;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      counts.push_back(static_cast<size_t>(part.shape[0] / ranks + (rank < part.shape[0] % ranks)) *
                       row);
    }
    std::vector<int64_t> shape = part.shape;
    shape[0] = shape[0] / ranks + (group_.rank() < shape[0] % ranks);
    void* const output = OutputOf(task, i, std::move(shape));
    const void* input = task.submission.inputs[i];
    if (request.prescale != 1) {
      TUTTI_ASSIGN_OR_RETURN(std::byte* const scaled, team_.scratch.Get(group_, Bytes(part)));
      CopyScaled(input, scaled, Elements(part), part.type, request.prescale);
      input = scaled;
    }
    TUTTI_RETURN_IF_ERROR(
        group_.ReduceScatter(input, counts, output, part.type, request.op, deadline_));
    CopyScaled(output, output, counts[group_.rank()], part.type, request.postscale);
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
