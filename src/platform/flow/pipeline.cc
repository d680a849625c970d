#include "platform/flow/pipeline.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "spec/flow/binding.h"

namespace tutti::flow {
namespace {

std::string Steps(size_t count) { return absl::StrCat(count, count == 1 ? " step" : " steps"); }

class Pipeline {
 public:
  Pipeline(const spec::JobSpec& spec, const PipelineNow& now) : spec_(spec), now_(now) {
    for (const auto& [name, child] : now.children) {
      if (child.state == ChildState::kActive) active_.push_back(name);
      if (child.state == ChildState::kCompleted) ++completed_;
      if (child.state == ChildState::kCompleted && child.reused) ++reused_;
      if (child.state == ChildState::kFailed || child.state == ChildState::kCanceled) {
        broken_.insert(name);
      }
    }
  }

  PipelineDecision Decide() {
    PipelineDecision decision;
    const bool halted = now_.canceled || (!broken_.empty() && !spec_.continue_on_step_failure);
    for (const spec::Step& step : spec_.steps) {
      if (now_.children.contains(step.name) || step.name == spec_.last_step) continue;
      if (halted || NeedsBroken(step)) {
        broken_.insert(step.name);  // whoever needs it will not start either
        decision.never.push_back(step.name);
      } else if (IsReady(step)) {
        decision.starts.push_back(step.name);
      } else {
        waiting_ = true;
      }
    }
    if (!halted) Settle(decision);
    if (halted) {
      for (const std::string& name : active_) {
        if (name != spec_.last_step || now_.canceled) decision.stops.push_back(name);
      }
    }
    StartLast(decision);
    const bool over = active_.empty() && decision.starts.empty() && !waiting_;
    if (over) End(decision);
    if (!over) decision.line = Progress(decision);
    return decision;
  }

 private:
  // In file order a step may stand before one that it needs: look again until nothing changes.
  void Settle(PipelineDecision& decision) {
    for (bool any = true; any;) {
      any = false;
      for (const spec::Step& step : spec_.steps) {
        if (now_.children.contains(step.name) || step.name == spec_.last_step) continue;
        if (broken_.contains(step.name) || !NeedsBroken(step)) continue;
        broken_.insert(step.name);
        decision.never.push_back(step.name);
        any = true;
      }
    }
    waiting_ = std::any_of(spec_.steps.begin(), spec_.steps.end(), [&](const spec::Step& step) {
      return step.name != spec_.last_step && !now_.children.contains(step.name) &&
             !broken_.contains(step.name) && !IsReady(step);
    });
  }

  bool NeedsBroken(const spec::Step& step) const {
    const std::set<std::string> needs = spec::NeedsOf(spec_, step);
    return std::any_of(needs.begin(), needs.end(),
                       [&](const std::string& name) { return broken_.contains(name); });
  }

  bool IsReady(const spec::Step& step) const {
    const std::set<std::string> needs = spec::NeedsOf(spec_, step);
    return std::all_of(needs.begin(), needs.end(), [&](const std::string& name) {
      const auto found = now_.children.find(name);
      return found != now_.children.end() && found->second.state == ChildState::kCompleted;
    });
  }

  void StartLast(PipelineDecision& decision) const {
    if (spec_.last_step.empty() || now_.canceled || waiting_ || !active_.empty()) return;
    if (!decision.starts.empty() || now_.children.contains(spec_.last_step)) return;
    for (const spec::Step& step : spec_.steps) {
      if (step.name != spec_.last_step) continue;
      // It cannot have what it takes from steps that did not complete.
      (IsReady(step) ? decision.starts : decision.never).push_back(step.name);
    }
  }

  void End(PipelineDecision& decision) const {
    const auto cause = Cause();
    if (now_.canceled) {
      decision.outcome = Outcome::kCanceled;
      decision.line = "canceled";
    } else if (cause != now_.children.end()) {
      decision.outcome = Outcome::kFailed;
      const bool failed = cause->second.state == ChildState::kFailed;
      decision.line = absl::StrCat("step ", cause->first,
                                   failed ? " failed: " : " was canceled: ", cause->second.reason);
      if (!decision.never.empty()) {
        absl::StrAppend(&decision.line, "; not started: ", absl::StrJoin(decision.never, ", "));
      }
    } else {
      decision.outcome = Outcome::kCompleted;
      decision.line = absl::StrCat(
          completed_ == 1 ? "its step" : absl::StrCat("all ", completed_, " steps"), " completed");
      if (reused_ > 0) {
        absl::StrAppend(&decision.line, ", ", reused_, " of them reused from earlier jobs");
      }
    }
  }

  // The step that failed first; one that was canceled only if none failed.
  std::map<std::string, Child>::const_iterator Cause() const {
    auto cause = now_.children.end();
    for (auto child = now_.children.begin(); child != now_.children.end(); ++child) {
      const ChildState state = child->second.state;
      if (state != ChildState::kFailed && state != ChildState::kCanceled) continue;
      const bool first =
          cause == now_.children.end() || std::pair(state, child->second.ended) <
                                              std::pair(cause->second.state, cause->second.ended);
      if (first) cause = child;
    }
    return cause;
  }

  std::string Progress(const PipelineDecision& decision) const {
    std::vector<std::string> running, queued;
    for (const std::string& name : active_) {
      (now_.children.at(name).queued ? queued : running).push_back(name);
    }
    queued.insert(queued.end(), decision.starts.begin(), decision.starts.end());
    const auto cause = Cause();
    std::string line = absl::StrCat(completed_, " of ", Steps(spec_.steps.size()), " completed");
    if (cause != now_.children.end()) absl::StrAppend(&line, "; step ", cause->first, " failed");
    if (!decision.stops.empty()) {
      absl::StrAppend(&line, "; ending ", absl::StrJoin(active_, ", "));
      return line;
    }
    if (!running.empty()) absl::StrAppend(&line, "; running ", absl::StrJoin(running, ", "));
    if (!queued.empty()) absl::StrAppend(&line, "; queued ", absl::StrJoin(queued, ", "));
    return line;
  }

  const spec::JobSpec& spec_;
  const PipelineNow& now_;
  std::vector<std::string> active_;
  std::set<std::string> broken_;  // failed, canceled, or never to start
  size_t completed_ = 0, reused_ = 0;
  bool waiting_ = false;  // a step will start later
};

}  // namespace

PipelineDecision NextOfPipeline(const spec::JobSpec& pipeline, const PipelineNow& now) {
  return Pipeline(pipeline, now).Decide();
}

}  // namespace tutti::flow
