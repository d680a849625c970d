#include "runtime/comm/negotiation/execution/device_work.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/negotiation/execution/scale.h"

namespace tutti::comm {
namespace {

constexpr absl::Duration kConnect = absl::Minutes(10);  // NCCL's ranks to each other
constexpr size_t kApart = 256;  // bytes: neutral elements lie as aligned as a framework's tensors

const Request& RequestOf(const Response& response, const DeviceWork::Tasks& tasks, size_t unit) {
  return tasks[unit] != nullptr ? tasks[unit]->submission.request : response.units[unit].request;
}

// Where this rank has joined, it takes part with what changes nothing.
std::vector<std::byte> Neutral(std::vector<Piece>& pieces, ReduceOp op,
                               std::vector<size_t>& places) {
  size_t bytes = 0;
  for (const Piece& piece : pieces) {
    places.push_back(bytes);
    if (piece.input == nullptr) bytes += (piece.bytes() + kApart - 1) / kApart * kApart;
  }
  std::vector<std::byte> memory(bytes);
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].input != nullptr || pieces[i].count == 0) continue;
    FillNeutral(memory.data() + places[i], pieces[i].count, pieces[i].type, op);
  }
  return memory;
}

}  // namespace

absl::Status DeviceWork::Use(int device) {
  if (device == kHost) return absl::OkStatus();
  int former = kHost;
  if (device_.compare_exchange_strong(former, device) || former == device) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("it is on GPU ", device, ", and this rank's is ", former, ": one GPU a rank"));
}

absl::Status DeviceWork::Prepare() {
  if (stream_ != nullptr) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(nccl_, NcclLibrary::Load());
  TUTTI_ASSIGN_OR_RETURN(auto driver, CudaDriver::Load());
  TUTTI_ASSIGN_OR_RETURN(stream_,
                         DeviceStream::Open(std::move(driver), std::max(device_.load(), 0)));
  return absl::OkStatus();
}

// The ranks agree first on whether all can: none shall wait for one that cannot.
absl::Status DeviceWork::BringUp(Team& team, base::Deadline deadline) {
  if (team.device != nullptr || !team.device_fault.ok()) return team.device_fault;
  const absl::Status own = Prepare();
  int32_t all_can = own.ok() ? 1 : 0;
  TUTTI_RETURN_IF_ERROR(
      team.group->AllReduce(&all_can, 1, DataType::kInt32, ReduceOp::kMin, deadline));
  if (all_can == 0) {
    team.device_fault =
        own.ok() ? absl::FailedPreconditionError("not every rank has a GPU and NCCL") : own;
    return team.device_fault;
  }
  const auto current = stream_->Enter();
  TUTTI_RETURN_IF_ERROR(current->status());
  auto made = NcclGroup::Create(*team.group, nccl_,
                                base::Deadline::Sooner(deadline, base::Deadline::After(kConnect)));
  if (made.ok()) {
    team.device = *std::move(made);
  } else if (!LostRank(made.status()).has_value()) {
    team.device_fault = made.status();
  }
  return made.status();
}

absl::StatusOr<std::vector<Piece>> DeviceWork::Pieces(const Response& response,
                                                      const Tasks& tasks) {
  std::vector<Piece> pieces;
  for (size_t unit = 0; unit < tasks.size(); ++unit) {
    const Request& request = RequestOf(response, tasks, unit);
    for (size_t part = 0; part < request.parts.size(); ++part) {
      Piece piece;
      piece.count = static_cast<size_t>(Elements(request.parts[part]));
      piece.type = request.parts[part].type;
      if (piece.count == 0) continue;
      if (tasks[unit] != nullptr) {
        piece.input = tasks[unit]->submission.inputs[part];
        piece.output = tasks[unit]->submission.outputs[part];
      }
      pieces.push_back(piece);
    }
  }
  std::vector<size_t> places;
  const std::vector<std::byte> neutral = Neutral(pieces, RequestOf(response, tasks, 0).op, places);
  if (neutral.empty()) return pieces;
  TUTTI_ASSIGN_OR_RETURN(void* const memory, stream_->Write(neutral));
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].input != nullptr) continue;
    pieces[i].input = pieces[i].output = static_cast<std::byte*>(memory) + places[i];
  }
  return pieces;
}

absl::Status DeviceWork::Call(Team& team, const Response& response, const Tasks& tasks,
                              base::Deadline deadline) {
  for (const auto& task : tasks) {
    if (task == nullptr || task->submission.ready == nullptr) continue;
    TUTTI_RETURN_IF_ERROR(stream_->After(task->submission.ready));
  }
  const Request& request = RequestOf(response, tasks, 0);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, Pieces(response, tasks));
  const auto place = std::lower_bound(team.ranks.begin(), team.ranks.end(), request.root);
  const int root = static_cast<int>(place - team.ranks.begin());
  NcclGroup& nccl = *team.device;
  return nccl.Together(
      [&] {
        for (const Piece& piece : pieces) {
          TUTTI_RETURN_IF_ERROR(request.kind == Kind::kBroadcast
                                    ? nccl.Broadcast(piece.input, piece.output, piece.bytes(), root,
                                                     stream_->get(), deadline)
                                    : nccl.AllReduce(piece.input, piece.output, piece.count,
                                                     piece.type, request.op, stream_->get(),
                                                     deadline));
        }
        return absl::OkStatus();
      },
      deadline);
}

absl::Status DeviceWork::Issue(Team& team, const Response& response, Tasks& tasks,
                               base::Deadline deadline) {
  TUTTI_RETURN_IF_ERROR(BringUp(team, deadline));
  const auto current = stream_->Enter();
  TUTTI_RETURN_IF_ERROR(current->status());
  const bool reduces = RequestOf(response, tasks, 0).kind == Kind::kAllReduce;
  TUTTI_RETURN_IF_ERROR(Call(team, response, tasks, deadline));
  TUTTI_ASSIGN_OR_RETURN(const std::shared_ptr<const DeviceEvent> mark, stream_->Record());
  const auto timeline = timeline_->get();
  for (const auto& task : tasks) {
    if (task == nullptr) continue;
    if (timeline != nullptr) {
      timeline->Begin(task->submission.request.name, reduces ? "NCCL_ALLREDUCE" : "NCCL_BROADCAST");
    }
    task->operation->Issue(mark);
  }
  in_flight_.push_back({&team, std::exchange(tasks, {}), mark, deadline});
  return absl::OkStatus();
}

absl::Status DeviceWork::LookAt(const InFlight& work, bool& over) {
  absl::Status fault;
  const auto reached = [&] {
    const absl::StatusOr<bool> answer = work.mark->Reached();
    fault.Update(answer.status());
    over = !answer.ok() || *answer;
    return over;
  };
  const absl::Status status = work.team->device->Look(reached, work.deadline);
  over = over || !status.ok();
  return status.ok() ? fault : status;
}

void DeviceWork::Look(const Judge& judge) {
  while (!in_flight_.empty()) {
    bool over = false;
    absl::Status status = LookAt(in_flight_.front(), over);
    if (!over) return;
    InFlight work = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (!status.ok()) status = judge(status, *work.team);
    const auto timeline = timeline_->get();
    for (const auto& task : work.tasks) {
      if (task == nullptr) continue;
      if (timeline != nullptr) timeline->End(task->submission.request.name);
      task->operation->Finish(status);
    }
  }
}

}  // namespace tutti::comm
