#include "runtime/comm/negotiation/runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "runtime/comm/negotiation/pack.h"
#include "runtime/comm/negotiation/scale.h"

namespace tutti::comm {
namespace {

using Tasks = std::vector<std::unique_ptr<Task>>;

size_t RowBytes(const Part& part) {
  Part row = part;
  row.shape[0] = 1;
  return Bytes(row);
}

// A run of one response.
class Run {
 public:
  Run(Team& team, const Response& response, const Tasks& tasks, Timeline* timeline,
      base::Deadline deadline)
      : team_(team),
        group_(*team.group),
        response_(response),
        tasks_(tasks),
        timeline_(timeline),
        deadline_(deadline) {}

  absl::Status All();

 private:
  absl::Status AllReduce();
  absl::Status ReducePack(const Pack& pack, const Request& request);
  absl::Status Broadcast();
  absl::Status BroadcastPack(const Pack& pack, int root);
  absl::Status AllGather(Task& task, const Unit& unit);
  absl::Status AllToAll(Task& task);
  absl::Status ReduceScatter(Task& task);

  std::vector<Piece> Pieces();
  const Request& RequestOf(size_t unit) const;
  // The memory of an output; the operation's own, with a fault to be told, when the caller has
  // none.
  void* OutputOf(Task& task, size_t part, std::vector<int64_t> shape);
  void Phase(const Pack& pack, const char* phase);
  template <typename Collective>
  absl::Status Timed(const Pack& pack, const char* phase, const Collective& collective);

  Team& team_;
  Communicator& group_;
  const Response& response_;
  const Tasks& tasks_;
  Timeline* const timeline_;
  const base::Deadline deadline_;
  absl::Status fault_;  // of this rank alone: the collective goes on, the operation fails
};

const Request& Run::RequestOf(size_t unit) const {
  return tasks_[unit] != nullptr ? tasks_[unit]->submission.request : response_.units[unit].request;
}

void* Run::OutputOf(Task& task, size_t part, std::vector<int64_t> shape) {
  Submission& submission = task.submission;
  std::vector<Output>& outputs = task.operation->outputs();
  outputs.resize(std::max(outputs.size(), part + 1));
  Output& output = outputs[part];
  const size_t bytes = Bytes(Part{submission.request.parts[part].type, shape});
  output.shape = std::move(shape);
  output.bytes = bytes;
  if (part < submission.outputs.size()) output.data = submission.outputs[part];
  if (output.data == nullptr && submission.allocate) {
    output.data = submission.allocate(part, output.shape, bytes);
    if (output.data == nullptr && bytes > 0) {
      fault_ = absl::ResourceExhaustedError(
          absl::StrCat("no memory was given for an output of ", bytes, " bytes"));
    }
  }
  if (output.data == nullptr) {
    output.owned = std::make_unique_for_overwrite<std::byte[]>(bytes);
    output.data = output.owned.get();
  }
  return output.data;
}

std::vector<Piece> Run::Pieces() {
  std::vector<Piece> pieces;
  for (size_t unit = 0; unit < tasks_.size(); ++unit) {
    const Request& request = RequestOf(unit);
    Task* const task = tasks_[unit].get();
    for (size_t part = 0; part < request.parts.size(); ++part) {
      Piece piece{nullptr, nullptr, static_cast<size_t>(Elements(request.parts[part])),
                  request.parts[part].type, &request.name};
      if (task != nullptr) {
        piece.input = task->submission.inputs[part];
        piece.output = OutputOf(*task, part, request.parts[part].shape);
      }
      pieces.push_back(piece);
    }
  }
  return pieces;
}

void Run::Phase(const Pack& pack, const char* phase) {
  for (const Piece& piece : pack.pieces) {
    if (phase != nullptr) {
      timeline_->Begin(*piece.name, phase);
    } else {
      timeline_->End(*piece.name);
    }
  }
}

template <typename Collective>
absl::Status Run::Timed(const Pack& pack, const char* phase, const Collective& collective) {
  if (timeline_ == nullptr) return collective();
  Phase(pack, phase);
  const absl::Status status = collective();
  Phase(pack, nullptr);
  return status;
}

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
  std::byte* const buffer = single && first.output != nullptr
                                ? static_cast<std::byte*>(first.output)
                                : team_.scratch.Get(pack.bytes);
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
  TUTTI_RETURN_IF_ERROR(Timed(pack, "ALLREDUCE", [&] {
    return group_.AllReduce(buffer, pack.count(), first.type, request.op, deadline_);
  }));
  return Timed(pack, "MEMCPY_OUT_FUSION_BUFFER", copy_out);
}

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
  std::byte* const buffer =
      single ? static_cast<std::byte*>(pack.pieces[0].output) : team_.scratch.Get(pack.bytes);
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
    send[rank] = static_cast<size_t>(task.submission.splits[rank]) * row_bytes;
    receive[rank] = static_cast<size_t>(received[rank]) * row_bytes;
    shape[0] += received[rank];
  }
  void* const output = OutputOf(task, 0, std::move(shape));
  return group_.AllToAllV(task.submission.inputs[0], send, output, receive, deadline_);
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
      std::byte* const scaled = team_.scratch.Get(Bytes(part));
      CopyScaled(input, scaled, Elements(part), part.type, request.prescale);
      input = scaled;
    }
    TUTTI_RETURN_IF_ERROR(
        group_.ReduceScatter(input, counts, output, part.type, request.op, deadline_));
    CopyScaled(output, output, counts[group_.rank()], part.type, request.postscale);
  }
  return absl::OkStatus();
}

absl::Status Run::All() {
  const Kind kind = RequestOf(0).kind;
  if (kind == Kind::kAllReduce) {
    TUTTI_RETURN_IF_ERROR(AllReduce());
  } else if (kind == Kind::kBroadcast) {
    TUTTI_RETURN_IF_ERROR(Broadcast());
  } else if (kind != Kind::kBarrier) {
    Pack named;  // for the timeline
    for (size_t i = 0; i < tasks_.size(); ++i) {
      named.pieces = {{nullptr, nullptr, 0, DataType::kUint8, &RequestOf(i).name}};
      const std::string phase =
          absl::StrReplaceAll(absl::AsciiStrToUpper(NameOf(kind)), {{"-", ""}});
      TUTTI_RETURN_IF_ERROR(Timed(named, phase.c_str(), [&] {
        return kind == Kind::kAllGather  ? AllGather(*tasks_[i], response_.units[i])
               : kind == Kind::kAllToAll ? AllToAll(*tasks_[i])
                                         : ReduceScatter(*tasks_[i]);
      }));
    }
  }
  for (const auto& task : tasks_) {
    if (task != nullptr) task->operation->Finish(fault_);
  }
  return absl::OkStatus();
}

}  // namespace

std::byte* Scratch::Get(size_t bytes) {
  if (bytes > size_) {
    memory_.reset();
    memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    size_ = bytes;
  }
  return memory_.get();
}

absl::Status RunResponse(Team& team, const Response& response, const Tasks& tasks,
                         Timeline* timeline, base::Deadline deadline) {
  return Run(team, response, tasks, timeline, deadline).All();
}

}  // namespace tutti::comm
