#include "runtime/comm/negotiation/negotiation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "runtime/comm/negotiation/negotiation_engine.h"
#include "runtime/comm/rendezvous/wire/codec.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {
namespace {

constexpr size_t kLongestAnnouncement = kLongestPayload / 4;

absl::Status Expect(bool holds, absl::string_view what) {
  return holds ? absl::OkStatus() : absl::InvalidArgumentError(what);
}

absl::Status CheckMemory(const Submission& submission) {
  const Request& request = submission.request;
  const size_t parts = request.parts.size();
  const bool has_rows = request.kind == Kind::kAllGather || request.kind == Kind::kAllToAll;
  TUTTI_RETURN_IF_ERROR(Expect(submission.inputs.size() == parts, "an input for every part"));
  TUTTI_RETURN_IF_ERROR(Expect(submission.outputs.empty() || submission.outputs.size() == parts,
                               "an output for every part, or none"));
  TUTTI_RETURN_IF_ERROR(
      Expect(submission.rows.size() == (has_rows ? parts : 0), "the rows of every part"));
  for (size_t i = 0; i < parts; ++i) {
    Part part = request.parts[i];
    if (has_rows) {
      TUTTI_RETURN_IF_ERROR(Expect(part.shape[0] == 0 && AreRows(part, submission.rows[i]),
                                   "rows are told beside the shape, neither negative nor more "
                                   "than there are"));
      part.shape[0] = submission.rows[i];
    }
    TUTTI_RETURN_IF_ERROR(
        Expect(submission.inputs[i] != nullptr || Bytes(part) == 0, "no input memory"));
    if (!request.device || Bytes(part) == 0) continue;
    TUTTI_RETURN_IF_ERROR(Expect(!submission.outputs.empty() && submission.outputs[i] != nullptr,
                                 "no output memory on the GPU"));
  }
  return absl::OkStatus();
}

absl::Status CheckSplits(const Submission& submission, size_t ranks) {
  int64_t rest = submission.rows[0];
  for (const int64_t rows : submission.splits) {
    TUTTI_RETURN_IF_ERROR(Expect(rows >= 0, "splits are not negative"));
    TUTTI_RETURN_IF_ERROR(Expect(rows <= rest, "splits add up to more rows than there are"));
    rest -= rows;
  }
  if (submission.splits.size() == ranks && rest == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(submission.splits.size(), " splits that leave ",
                                                 rest, " of ", submission.rows[0], " rows, for ",
                                                 ranks, " ranks"));
}

// What is wrong with a submission to a set of these ranks.
absl::Status CheckFor(const std::vector<int>& ranks, int rank, const Submission& submission) {
  const Request& request = submission.request;
  if (!std::binary_search(ranks.begin(), ranks.end(), rank)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " is not in process set ", request.set));
  }
  if (request.kind == Kind::kBroadcast &&
      !std::binary_search(ranks.begin(), ranks.end(), request.root)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no root ", request.root, " in process set ", request.set));
  }
  if (request.kind == Kind::kAllToAll) return CheckSplits(submission, ranks.size());
  const bool counts = request.kind < Kind::kBarrier;
  return Expect(counts == !request.parts.empty(), "no tensors, or tensors where none belong");
}

}  // namespace

absl::Status Engine::CheckSubmission(const Submission& submission) const {
  TUTTI_RETURN_IF_ERROR(Check(submission.request));
  TUTTI_RETURN_IF_ERROR(CheckMemory(submission));
  TUTTI_RETURN_IF_ERROR(
      Expect(submission.request.kind != Kind::kAllToAll || submission.request.parts.size() == 1,
             "an all-to-all is of one tensor"));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int> ranks, executor_->RanksOf(submission.request.set));
  TUTTI_RETURN_IF_ERROR(CheckFor(ranks, rank_, submission));
  const absl::Status used = executor_->UseDevice(submission.device);
  if (submission.request.kind != Kind::kJoin) TUTTI_RETURN_IF_ERROR(used);
  return Expect(MessageBytes(submission.request) <= kLongestAnnouncement,
                "the group has too many tensors with too many dimensions");
}

OperationOr Engine::Submit(Submission submission) {
  Request& request = submission.request;
  if (request.name.empty() || request.kind == Kind::kJoin) request.name = NextName(request);
  const absl::Status fault = CheckSubmission(submission);
  if (!fault.ok()) {
    return base::Annotate(fault, absl::StrCat("tensor \"", request.name, "\""));
  }
  auto task = std::make_unique<Task>();
  task->submission = std::move(submission);
  task->operation = std::make_shared<Operation>();
  return Enqueue(std::move(task));
}

OperationOr Engine::Enqueue(std::unique_ptr<Task> task) {
  const std::shared_ptr<Operation> operation = task->operation;
  const std::string name = task->submission.request.name;
  const Kind kind = task->submission.request.kind;
  task->since = Now();
  const std::lock_guard<std::mutex> lock(mutex_);
  TUTTI_RETURN_IF_ERROR(end_);
  if (leaving_) return absl::CancelledError("this rank has shut down");
  TUTTI_ASSIGN_OR_RETURN(Announcement announcement, submissions_.Add(std::move(task)));
  if (const auto timeline = timeline_.get()) {
    timeline->Begin(
        name, absl::StrCat("NEGOTIATE_", absl::StrReplaceAll(absl::AsciiStrToUpper(NameOf(kind)),
                                                             {{"-", ""}, {" ", "_"}})));
  }
  outbox_.announcements.push_back(std::move(announcement));
  WakeThread();
  return operation;
}

// Unnamed submissions are matched by their number: every rank makes them in the same order.
std::string Engine::NextName(const Request& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::string kind = absl::StrCat(NameOf(request.kind));
  if (request.kind == Kind::kJoin) return kind;
  return absl::StrCat(kind, ".", ++unnamed_[absl::StrCat(request.set, kind)]);
}

OperationOr Engine::AddProcessSet(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  Submission submission;
  submission.request.kind = Kind::kAddSet;
  submission.request.ranks = std::move(ranks);
  for (const int rank : submission.request.ranks) {
    TUTTI_RETURN_IF_ERROR(
        Expect(rank >= 0 && rank < size_, absl::StrCat("there is no rank ", rank, " of ", size_)));
  }
  return Submit(std::move(submission));
}

OperationOr Engine::RemoveProcessSet(int set) {
  TUTTI_RETURN_IF_ERROR(Expect(set > kWorldSet, "the process set of all ranks stays"));
  Submission submission;
  submission.request.kind = Kind::kRemoveSet;
  submission.request.root = set;
  return Submit(std::move(submission));
}

absl::Status Engine::StartTimeline(const std::string& path, bool mark_cycles) {
  TUTTI_ASSIGN_OR_RETURN(std::shared_ptr<Timeline> timeline, Timeline::Start(path, rank_));
  mark_cycles_ = mark_cycles;
  const std::shared_ptr<Timeline> former = timeline_.Set(std::move(timeline));
  if (former != nullptr) former->Stop();
  return absl::OkStatus();
}

absl::Status Engine::StopTimeline() {
  const std::shared_ptr<Timeline> stopped = timeline_.Set(nullptr);
  if (stopped != nullptr) stopped->Stop();
  return absl::OkStatus();
}

}  // namespace tutti::comm
