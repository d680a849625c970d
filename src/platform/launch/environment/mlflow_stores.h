// Makes the MLflow stores of a node's ranks, in the job's results (decision 043), before the ranks
// begin, and removes them if nothing was logged.
#pragma once

#include <filesystem>
#include <string>

#include "spec/json/launch_plan.h"

namespace tutti::launch {

inline constexpr char kTrackingToken[] = "MLFLOW_TRACKING_TOKEN";

// Returns whether the job, or its environment, sets a variable itself.
bool NamesVariable(const spec::LaunchPlan& plan, const std::string& name);
// Returns whether it says itself where MLflow logs to.
bool NamesItsOwnMlflow(const spec::LaunchPlan& plan);
// Returns whether its processes may be given the service's tracking, by the plan alone: it names
// neither another place nor a user, whom MLflow's client would name in the token's place.
bool MayTrack(const spec::LaunchPlan& plan);
// Returns whether the command or a script of the job's code chooses where MLflow logs to, and none
// speaks of MLFLOW_TRACKING_URI: our run is not there, and our token is not for whoever is.
bool ChoosesItsTracking(const spec::LaunchPlan& plan);
// Returns whether the command or a script of the job's code chooses an experiment, and none speaks
// of MLFLOW_RUN_ID: MLflow refuses a run of another experiment that the environment names.
bool ChoosesItsExperiment(const spec::LaunchPlan& plan);

// Returns the store of the rank with that number in the whole job.
std::filesystem::path MlflowStoreOf(const spec::LaunchPlan& plan, int rank);

// Makes the stores, so that processes that a rank starts (torchrun's) need not make one at the same
// time: MLflow does that without a lock. Only for jobs that bring code or an environment: what has
// neither hardly logs, and its processes begin within a moment. What cannot be made is left to
// MLflow.
//
// Returns the id of a run in each of them, where the command or a script of the code speaks of
// MLFLOW_RUN_ID, which it was then written to find (decision 043); else "".
std::string MakeMlflowStores(const spec::LaunchPlan& plan);
void RemoveUnusedMlflowStores(const spec::LaunchPlan& plan);

}  // namespace tutti::launch
