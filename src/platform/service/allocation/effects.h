// Effects collects what the engines and threads have to do once the service's lock is released:
// starts, stops, kills, releases of allocations, and tasks on files. Plain values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "platform/engine/engine.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/problems.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

struct Effects {
  struct Start {
    std::string compute;
    engine::Allocation allocation;
  };
  struct Stop {
    AllocationAt at;
    bool patiently = false;  // Engine::StopPatiently
  };
  struct Kill {
    AllocationAt at;
    int node;
  };
  // The steps that these follow from are written up to here: Store::AwaitDurable of it comes before
  // them.
  int64_t after = 0;
  std::vector<Start> starts;
  std::vector<Stop> stops;
  std::vector<AllocationAt> releases;
  std::vector<Kill> kills;
  struct Task {
    std::string queue;  // of SharedState::folder_work
    std::function<void()> run;
  };
  std::vector<Task> tasks;
  // A task of SharedState::plan_work, with what its queue is named after (PlaceOfPlan).
  struct Plan {
    std::string pipeline;
    std::vector<std::string> inputs;
    std::function<void()> run;
  };
  std::vector<Plan> plans;
  std::vector<Task> decisions;                 // of SharedState::decision_work
  std::vector<Task> checks;                    // of SharedState::health_work
  std::vector<std::function<void()>> cordons;  // changes of cordons, for SharedState::cordon_work
};

// Returns what Engine::Start is given for the job's present attempt.
engine::Allocation AllocationFor(const ServiceOptions& options, const LiveJob& job,
                                 const Placement& placement);

// Returns whether launchers of a job that has nodes are to be started: its first ones, or later
// ones that deliver what the first have left.
bool IsToBeStarted(const LiveJob& job);

// Returns whether the job has outputs that its launchers bring to stores, which may take them a day
// after its chief has ended well.
bool MayStoreLong(const LiveJob& job);

// Adds what the engine has yet to be told of a job that has nodes.
void AddEffects(const ServiceOptions& options, const LiveJob& job, Effects& effects);

// Notes, as a task, the present state of a step's results, before the step is Completed, so that
// every later step that would reuse the results finds the note.
void StampForReuse(const SharedState& state, const std::string& id);

}  // namespace tutti::service
