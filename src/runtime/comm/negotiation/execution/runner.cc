#include "runtime/comm/negotiation/execution/runner.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "runtime/comm/collective/node/plain_buffer.h"
#include "runtime/comm/negotiation/execution/response_run.h"

namespace tutti::comm {

size_t RowBytes(const Part& part) {
  Part row = part;
  row.shape[0] = 1;
  return Bytes(row);
}

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
      task.fault = absl::ResourceExhaustedError(
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
    if (task != nullptr) task->operation->Finish(task->fault);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> Scratch::Get(Communicator& group, size_t bytes) {
  if (buffer_ == nullptr || bytes > buffer_->size()) {
    buffer_.reset();
    auto buffer = group.AllocateShared(std::bit_ceil(std::max(bytes, kLeast)));
    if (!buffer.ok()) buffer = AllocatePlain(bytes);
    TUTTI_RETURN_IF_ERROR(buffer.status());
    buffer_ = *std::move(buffer);
  }
  return static_cast<std::byte*>(buffer_->data());
}

absl::Status RunResponse(Team& team, const Response& response,
                         const std::vector<std::unique_ptr<Task>>& tasks, Timeline* timeline,
                         base::Deadline deadline) {
  return Run(team, response, tasks, timeline, deadline).All();
}

}  // namespace tutti::comm
