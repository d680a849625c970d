#include "platform/service/flow/flow_transitions.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/status.h"
#include "platform/service/results/folder_content.h"

namespace tutti::service {
namespace {

using store::JobState;

store::JobState StateOf(flow::Outcome outcome) {
  return outcome == flow::Outcome::kCompleted ? JobState::kCompleted
         : outcome == flow::Outcome::kFailed  ? JobState::kFailed
                                              : JobState::kCanceled;
}

}  // namespace

absl::Status FlowTransitions::TellProgress(LiveJob& parent, const std::string& line) {
  if (MustStop(parent.cause)) return absl::OkStatus();
  const store::Event& last = parent.record.last;
  if (last.state == JobState::kRunning && last.reason == line) return absl::OkStatus();
  return table_.Append(parent, {JobState::kRunning, line, parent.cause});
}

absl::Status FlowTransitions::StopChild(LiveJob& parent, const std::string& step,
                                        const std::string& reason) {
  LiveJob* const child = table_.Find(parent.flow->children.at(step).id);
  return child == nullptr ? absl::OkStatus() : table_.Cancel(*child, reason).status();
}

absl::StatusOr<bool> FlowTransitions::End(LiveJob& parent, flow::Outcome outcome,
                                          const std::string& line, std::vector<Result> results,
                                          Effects& effects) {
  LiveFlow& flow = *parent.flow;
  if (parent.record.last.state != JobState::kFinalizing) {
    TUTTI_RETURN_IF_ERROR(table_.Append(
        parent, {JobState::kFinalizing, "all of its jobs have ended; collecting results",
                 parent.cause == Cause::kNone ? Cause::kEnded : parent.cause}));
  }
  if (!results.empty() && flow.results != LiveFlow::Results::kThere) {
    if (flow.results == LiveFlow::Results::kNone) {
      const store::Job& job = parent.record.job;
      effects.tasks.push_back(
          {job.id, [this, id = job.id, is_step = !job.step_key.empty(),
                    results = std::move(results)] { Collect(id, results, is_step); }});
    }
    flow.results = LiveFlow::Results::kUnderWay;
    return false;
  }
  TUTTI_RETURN_IF_ERROR(table_.Append(parent, {StateOf(outcome), line, parent.cause}));
  return true;
}

void FlowTransitions::Collect(const std::string& id, const std::vector<Result>& results,
                              bool is_step) {
  const std::filesystem::path outputs = state_.files.FolderOf(id) / "outputs";
  for (const Result& result : results) {
    std::error_code error;
    if (!std::filesystem::exists(result.from, error)) continue;  // nothing was written
    const std::filesystem::path to = result.name.empty() ? outputs : outputs / result.name;
    const absl::Status status = LinkContent(result.from, to);
    if (!status.ok()) spdlog::error("job {}: {}", id, status.ToString());
  }
  if (is_step) StampForReuse(state_, id);
  StateLock lock(state_);
  const LiveJob* const job = table_.Find(id);
  if (job == nullptr) return;
  job->flow->results = LiveFlow::Results::kThere;
  job->flow->changed = true;
  state_.Wake();
}

}  // namespace tutti::service
