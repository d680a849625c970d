// Makes the environment variables of each rank, which are the environment contract
// (docs/formats/environment.md), as a pure function of the plan.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/process/read_only_view.h"
#include "spec/json/launch_plan.h"
#include "spec/text/expressions.h"

namespace tutti::launch {

using Variables = std::map<std::string, std::string>;

// How the job's processes reach their run in the service's MLflow tracking.
struct Tracking {
  std::string address;  // "https://10.0.0.1:6280"; empty: they log to files
  std::string run;      // the id that MLFLOW_RUN_ID has; empty: it is not set
  std::string experiment;
  std::string
      certificate;    // a file with the certificate that the service shows; empty: a known one
  std::string token;  // secret: never in a process's arguments, nor written down
};

// NodeFacts is what only the node knows.
struct NodeFacts {
  std::string program_folder;     // the tutti programs' folder, first in PATH
  Variables own;                  // the launcher's environment; a fixed list of it is handed on
  Variables inputs;               // name -> path or literal, as staged
  Variables outputs;              // name -> folder
  std::set<std::string> matched;  // files of this machine that its inputs' patterns match
  std::vector<std::string> gpus;  // this node's devices, as CUDA_VISIBLE_DEVICES names them
  bool has_cdi = false;           // podman knows the node's GPUs
  // Names the GPUs that this process may open as podman does, by CUDA's numbers, which counts these
  // alone (base::CdiNames); nothing where there are no device files.
  std::optional<std::vector<std::string>> gpu_names;
  int cores = 1;            // processors of the node's share
  std::string temporary;    // for TMPDIR; empty: the scratch folder
  std::string python;       // the job's Python environment; empty: the machine's
  std::string own_package;  // a folder of modules, tutti's, for the machine's Python; or empty
  std::string data_cache;   // for TUTTI_DATA_CACHE, where inputs are streamed; or empty
  std::string data_stream;  // for TUTTI_DATA_STREAM, which tells its streams from others'; or empty
  std::string image;        // the id of the image whose containers ranks run in; or empty
  std::string pmi;          // "10.0.0.1:4711", where PMI is served to the ranks; or empty
  std::string mlflow_run;   // the id of a run that each rank's MLflow store has; or empty
  Tracking tracking;
  Variables secrets;           // what the job's secrets add: values, and the paths of files
  Variables secrets_in_files;  // of an image: the files that its shell reads variables from
  Variables pmix;              // of the rank from Slurm's PMIx, over all others; or none
  std::shared_ptr<const base::ReadOnlyView> view;  // of files, which ranks have; or null
};

// Returns what ${{…}} stands for on this node.
spec::ExpressionValues ValuesOf(const spec::LaunchPlan& plan, const Variables& inputs,
                                const Variables& outputs);

// Returns the folder of the job that all of its nodes have: the first node's scratch folder, which
// is there before any process starts. Its path follows from the node's own: a cluster's shared
// folder has ALLOCATION/INDEX (slurm_engine.cc), this machine NODE/ALLOCATION (local_engine.cc).
// Empty: they share none.
std::filesystem::path SharedScratch(const spec::LaunchPlan& plan);

// Returns the whole environment of the process with `local_rank` on the plan's own node. Four
// layers: what is handed on and defaulted; over it what the job's environment sets; over that the
// user's environment_variables and secrets; over them the contract, which says who a process is and
// where its files are, and which a user cannot break.
Variables EnvironmentOf(const spec::LaunchPlan& plan, int local_rank, const NodeFacts& facts);

// Returns the names in environment_variables, of secrets, and of the environment's, that the
// contract overrides, for a warning.
std::vector<std::string> OverriddenNames(const spec::LaunchPlan& plan);

// Returns an MPI host file that Open MPI, MPICH and Intel MPI read alike: an address a line, once
// for each process.
std::string HostFile(const spec::LaunchPlan& plan);

}  // namespace tutti::launch
