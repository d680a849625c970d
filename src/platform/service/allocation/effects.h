// What is to be done to the engines, and on the thread for background tasks, once the service's
// lock is released. Plain values.
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
  struct Kill {
    AllocationAt at;
    int node;
  };
  std::vector<Start> starts;
  std::vector<AllocationAt> stops;
  std::vector<AllocationAt> releases;
  std::vector<Kill> kills;
  std::vector<std::function<void()>> tasks;
};

// What Engine::Start is given for the job's present attempt.
engine::Allocation AllocationFor(const ServiceOptions& options, const LiveJob& job,
                                 const Placement& placement);

// Adds what the engine has yet to be told of a job that has nodes.
void AddEffects(const ServiceOptions& options, const LiveJob& job, Effects& effects);

// Of a step that has completed, before any that waits for it begins: tasks go in their order.
void StampOnceReusable(const SharedState& state, const LiveJob& job, Effects& effects);
// Notes how the results of that job are now. A task.
void StampForReuse(const SharedState& state, const std::string& id);

}  // namespace tutti::service
