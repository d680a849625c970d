// What the service tells of nodes, file servers, secrets, and of what it has removed:
// docs/formats/rest.md. Times are RFC 3339, UTC, with microseconds; a text that is not known is
// empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/views/view_fields.h"

namespace tutti::spec {

inline constexpr const char* kCheckOutcomes[] = {"ok", "ill", "unknown"};
inline constexpr const char* kFileServerAccess[] = {"read_only", "read_write"};
inline constexpr const char* kPrunable[] = {"snapshots", "data", "environments",
                                            "images",    "logs", "results"};

// What jobs have of a node.
struct NodeUseView {
  static constexpr char kSchema[] = "NodeUse";
  int cores = 0;
  uint64_t memory_bytes = 0;
  int gpus = 0;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("cores", &NodeUseView::cores);
    visitor.Field("memory_bytes", &NodeUseView::memory_bytes);
    visitor.Field("gpus", &NodeUseView::gpus);
  }
};

struct NodeView {
  static constexpr char kSchema[] = "Node";
  std::string name, compute, address;
  std::vector<int> cores;
  uint64_t memory_bytes = 0;
  std::vector<std::string> gpus;
  NodeUseView used;
  std::string state, reason, cordoned_by, job;
  std::vector<std::string> jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &NodeView::name);
    visitor.Field("compute", &NodeView::compute);
    visitor.Field("address", &NodeView::address);
    visitor.Field("cores", &NodeView::cores);
    visitor.Field("memory_bytes", &NodeView::memory_bytes);
    visitor.Field("gpus", &NodeView::gpus, "as CUDA_VISIBLE_DEVICES names them");
    visitor.Field("used", &NodeView::used,
                  "what jobs have of it; of a node of Slurm's none is told");
    visitor.Field("state", &NodeView::state,
                  "idle, running or cordoned; of a node of Slurm's also preparing, leaving, "
                  "unusable or off");
    visitor.Field("reason", &NodeView::reason, kNullIfEmpty, "why it takes no jobs");
    visitor.Field("cordoned_by", &NodeView::cordoned_by, kNullIfEmpty,
                  "who has cordoned it: user, check or jobs");
    visitor.Field("job", &NodeView::job, kNullIfEmpty, "the first of jobs");
    visitor.Field("jobs", &NodeView::jobs, "those that have it, or a part of it");
  }
};

// How far the last fill of a file server has come.
struct FileServerFillView {
  static constexpr char kSchema[] = "FileServerFill";
  std::string state, from;
  int64_t files = 0, of_files = 0, bytes = 0, of_bytes = 0;
  std::string updated, reason;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("state", &FileServerFillView::state, "filling, filled or cut off");
    visitor.Field("from", &FileServerFillView::from, "the address of its source");
    visitor.Field("files", &FileServerFillView::files,
                  "of what it has to bring; of one that is filled, of all that the source has");
    visitor.Field("of_files", &FileServerFillView::of_files);
    visitor.Field("bytes", &FileServerFillView::bytes);
    visitor.Field("of_bytes", &FileServerFillView::of_bytes);
    visitor.Field("updated", &FileServerFillView::updated, kTime);
    visitor.Field("reason", &FileServerFillView::reason, kNullIfEmpty, "why it was cut off");
  }
};

struct FileServerView {
  static constexpr char kSchema[] = "FileServer";
  std::string name, folder, address;
  int port = 0;
  std::string access, state, reason;
  std::optional<FileServerFillView> fill;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &FileServerView::name, "clients mount /NAME");
    visitor.Field("folder", &FileServerView::folder, "what it serves");
    visitor.Field("address", &FileServerView::address);
    visitor.Field("port", &FileServerView::port);
    visitor.Field("access", &FileServerView::access, Form{.values = kFileServerAccess});
    visitor.Field("state", &FileServerView::state,
                  "starting, running, failed, waits for the service, or unknown");
    visitor.Field("reason", &FileServerView::reason, kNullIfEmpty,
                  "why it has failed, or is started again");
    visitor.Field("fill", &FileServerView::fill, "null: it was never filled");
  }
};

struct FileServersView {
  static constexpr char kSchema[] = "FileServers";
  std::vector<FileServerView> file_servers;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("file_servers", &FileServersView::file_servers, kNeeded);
  }
};

struct NodesView {
  static constexpr char kSchema[] = "Nodes";
  std::vector<NodeView> nodes;
  std::vector<FileServerView> file_servers;
  std::vector<std::string> warnings;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("nodes", &NodesView::nodes, kNeeded);
    visitor.Field("file_servers", &NodesView::file_servers, "of the service's machine");
    visitor.Field("warnings", &NodesView::warnings);
  }
};

// What was found of one thing of a node.
struct NodeCheckView {
  static constexpr char kSchema[] = "NodeCheck";
  std::string name, outcome, detail;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &NodeCheckView::name,
                  "disk, home, memory, gpu, link, program, site or answer");
    visitor.Field("outcome", &NodeCheckView::outcome, Form{.values = kCheckOutcomes},
                  "unknown: it could not be looked at, from which nothing follows");
    visitor.Field("detail", &NodeCheckView::detail);
  }
};

struct NodeChecksView {
  static constexpr char kSchema[] = "NodeChecks";
  std::vector<NodeCheckView> checks;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("checks", &NodeChecksView::checks, kNeeded);
  }
};

// What is broken of the service itself, a line each.
struct ProblemsView {
  static constexpr char kSchema[] = "Problems";
  std::vector<std::string> problems;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("problems", &ProblemsView::problems);
  }
};

struct SecretView {
  static constexpr char kSchema[] = "Secret";
  std::string name, created, set;
  bool readable = false;
  std::vector<std::string> waiting_jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &SecretView::name);
    visitor.Field("created", &SecretView::created, kTime, "when its name was first given a value");
    visitor.Field("set", &SecretView::set, kTime, "when it got the present one");
    visitor.Field("readable", &SecretView::readable, "false: the key of its value is not there");
    visitor.Field("waiting_jobs", &SecretView::waiting_jobs,
                  "those that name it and have not begun");
  }
};

struct SecretsView {
  static constexpr char kSchema[] = "Secrets";
  std::vector<SecretView> secrets;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("secrets", &SecretsView::secrets, kNeeded);
  }
};

// The answer to a secret's deletion.
struct FailedJobsView {
  static constexpr char kSchema[] = "FailedJobs";
  std::vector<std::string> failed_jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("failed_jobs", &FailedJobsView::failed_jobs);
  }
};

// One thing that was removed, or would be.
struct RemovalView {
  static constexpr char kSchema[] = "Removal";
  std::string kind, name, place;
  uint64_t bytes = 0;
  std::string last_used, why;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("kind", &RemovalView::kind, Form{.values = kPrunable});
    visitor.Field("name", &RemovalView::name,
                  "a snapshot's, a cached folder's, an image's, or a job's");
    visitor.Field("place", &RemovalView::place, kNullIfEmpty,
                  "the cluster's compute in whose folder it lies (hpc), or the node of it that has "
                  "the image (hpc/n1); null: this machine");
    visitor.Field("bytes", &RemovalView::bytes);
    visitor.Field("last_used", &RemovalView::last_used, kTime);
    visitor.Field("why", &RemovalView::why, "with the key of site.yml that says so");
  }
};

struct KeptModelsView {
  static constexpr char kSchema[] = "KeptModels";
  int64_t versions = 0;
  uint64_t bytes = 0;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("versions", &KeptModelsView::versions);
    visitor.Field("bytes", &KeptModelsView::bytes);
  }
};

struct PrunedView {
  static constexpr char kSchema[] = "Pruned";
  bool dry_run = false;
  uint64_t bytes = 0;
  std::vector<RemovalView> removed;
  KeptModelsView models;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("dry_run", &PrunedView::dry_run);
    visitor.Field("bytes", &PrunedView::bytes, "of all of them");
    visitor.Field("removed", &PrunedView::removed, kNeeded);
    visitor.Field("models", &PrunedView::models,
                  "what registered models keep, which retention never removes");
  }
};

}  // namespace tutti::spec
