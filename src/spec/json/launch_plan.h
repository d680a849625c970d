// LaunchPlan is the one document that a launcher gets (docs/formats/launch-plan.md). The service
// writes one per node, an engine carries it to the node, `tutti launch --plan FILE` reads it there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/types/job.h"
#include "spec/types/node_checks.h"

namespace tutti::spec {

struct PlanNode {
  std::string name;     // host name as the job sees it
  std::string address;  // numeric, reachable from the job's other nodes
  int first_rank = 0;
  int process_count = 1;
};

struct LaunchPlan {
  std::string allocation_id;
  std::string job_id;
  int node_index = 0;
  std::vector<PlanNode> nodes;  // all nodes of the gang, in rank order
  int master_port = 6105;
  // The port on the first node where launchers meet for MPI, or where Ray's head listens; 0:
  // neither.
  int start_port = 0;
  // The snapshot that tutti-storage comes in ("sha256:…"), for nodes that do not have it beside the
  // launcher; empty: they have it, or the job uses no store.
  std::string storage_program;
  // The start of the nodes' machine for which the plan was made, where that is the service's own:
  // it may run in no other. Empty: the claim on the allocation is durable instead.
  std::string boot_id;
  std::string experiment_name;
  Distribution distribution;
  Environment environment;
  std::vector<std::string> container_options;  // of JobSpec
  std::string environments_directory;          // where environments are made and shared
  std::string command;                         // ${{…}} unexpanded: only the node knows its paths
  std::map<std::string, std::string> environment_variables;
  // The same as in JobSpec: names alone. The launcher asks for the values, which no document has.
  std::map<std::string, std::string> secret_variables, secret_files;
  std::string snapshot;  // "sha256:…" of the code archive; empty: none
  std::map<std::string, Input> inputs;
  std::vector<std::string> mounts;  // of JobSpec
  std::map<std::string, Output> outputs;
  std::string
      directory;  // the allocation's own folder on this node: spool, working folder, outputs
  // The folder, above `directory`, that all nodes of the cluster share: its disk is no node's own.
  // Empty: each node's folders are on disks of its own.
  std::string shared_folder;
  // The launcher runs on the service's machine, and delivers what that of the node has left.
  bool is_courier = false;
  // What the data that the node keeps of all jobs may take (retention.data.size of the site); 0: no
  // limit, or the service sees to it.
  int64_t data_bytes = 0;
  // `attempt` counts from 1 how often the job was begun. `former_directory` is the folder that the
  // attempt before had on the node of this index, whose outputs this one takes over; empty: there
  // is none.
  int attempt = 1;
  std::string former_directory;
  // The earlier job from which this one resumes, and the folder of its outputs, with which those of
  // the first attempt begin; empty: none.
  std::string resume, resume_outputs;
  int64_t memory_bytes = 0;  // this node's share; 0: no limit
  // The job's share of the node: processors that no other job has, and GPUs by the names that
  // CUDA_VISIBLE_DEVICES takes. Without processors the job has the whole node.
  std::vector<int> cores;
  std::vector<std::string> gpus;
  // The service has MLflow's tracking, where the job gets a run; the launcher asks for it.
  bool tracks = false;
  // What the launcher looks at on its node, before and after the processes; none: the service looks
  // at its nodes itself.
  std::optional<NodeChecks> checks;
  bool measures_usage = false;  // the launcher tells the service what the processes use
  double timeout_seconds = 0;   // wall time of the processes; 0: no limit
  double grace_seconds = 10;    // from SIGTERM to SIGKILL
  std::string service_file;     // spec/types/service_endpoint.h; read anew at every reconnection
  // The bearer token of this allocation's calls; empty: of plans of before there were such, whose
  // launchers take the one in service_file.
  std::string launcher_token;
  std::string
      job_token;  // hexadecimal; the job's processes prove with it that they belong together

  int WorldSize() const;
  const PlanNode& node() const { return nodes.at(node_index); }
  bool has_part() const { return !cores.empty(); }
  bool has_secrets() const { return !secret_variables.empty() || !secret_files.empty(); }
};

std::string ToJson(const LaunchPlan& plan);
// Parses a plan; InvalidArgument names the field that is missing or of the wrong type.
absl::StatusOr<LaunchPlan> LaunchPlanFromJson(absl::string_view text);

}  // namespace tutti::spec
