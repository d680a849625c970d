// Assigns the ranks of a tensorflow job to TensorFlow's tasks, and writes their TF_CONFIG. Ranks
// 0…workers-1 are the workers, the ranks after them the parameter servers; worker 0 is the chief by
// TensorFlow's own rule, so no task is called "chief". Pure functions of the plan.
#pragma once

#include <string>
#include <vector>

#include "spec/json/launch_plan.h"

namespace tutti::launch {

struct TensorFlowTask {
  std::string type;  // "worker" or "ps"
  int index = 0;
};

TensorFlowTask TaskOf(const spec::LaunchPlan& plan, int rank);

// Returns "ADDRESS:PORT" of every worker and of every parameter server, by index. Each task has a
// port of its own above the master's, since the nodes of a plan may share one machine.
std::vector<std::string> WorkerHosts(const spec::LaunchPlan& plan);
std::vector<std::string> ParameterServerHosts(const spec::LaunchPlan& plan);

// Returns the TF_CONFIG of one rank
// (https://www.tensorflow.org/guide/distributed_training#TF_CONFIG), with "environment": "cloud" as
// Azure ML sets it.
std::string TfConfig(const spec::LaunchPlan& plan, int rank);

}  // namespace tutti::launch
