// A distribution is how a job's processes are started and find each other. Each kind is a driver
// (DistributionDriver): all that this room and the service know of it; what nodes do for it is in
// platform/launch/distribution/. Pure functions; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace tutti::spec {

class Diagnostics;
class JsonFields;
class MappingReader;
struct JobSpec;

// Says of a ray job what its cluster is like.
struct RaySettings {
  int port = 0;              // of the head; 0: 6379, or another that is free
  bool dashboard = true;     // where the environment has what it needs
  int dashboard_port = 0;    // 0: 8265, if that is free
  std::string head_options;  // of `ray start` on the first node, as a shell reads them
  std::string worker_options;
};

// How many processes a job has and which launcher conventions they expect.
struct Distribution {
  std::string type = "none";           // a driver's
  int process_count_per_instance = 1;  // where a driver says no other
  int worker_count = 0;                // tensorflow
  int parameter_server_count = 0;      // tensorflow
  RaySettings ray;                     // ray
};

// A port of the first node by which processes find each other before their own begin to talk.
struct StartPort {
  int asked = 0;  // for by the job; 0: any
  int usual = 0;  // is taken first where jobs share a machine
  // The program behind it listens on all of the machine's addresses, which nodes may share.
  bool on_all_addresses = false;
};

// What stands for a rank that serves others, in sentences.
struct ServerWords {
  absl::string_view chief, servers;
};

struct DistributionDriver {
  absl::string_view type;             // in job files, JSON and events: "mpi"
  absl::string_view other_type = "";  // is taken for it in job files: "horovod"
  // The key of a job file that says how many processes there are, of each node or of all; "": each
  // node has one.
  absl::string_view count_key = "process_count_per_instance";
  bool counts_all = false;
  // Reads the keys of the section in `line` but for its type. Null: count_key alone.
  void (*read)(int line, MappingReader& reader, JobSpec& spec, Diagnostics& diagnostics) = nullptr;
  // Write and read what JSON has for this kind alone. Null: nothing.
  void (*write_json)(const Distribution& from, nlohmann::json& document) = nullptr;
  void (*read_json)(JsonFields& fields, Distribution& to) = nullptr;
  // Returns the number of processes on all nodes. Null: count_key's of each node.
  int (*world_size)(const Distribution& distribution, int nodes) = nullptr;
  // Returns how many of the last ranks serve the chief, rank 0, and never end by themselves. Null:
  // none.
  int (*server_count)(const Distribution& distribution, int nodes) = nullptr;
  ServerWords server_words = {};
  // Returns the port that it needs beside the master's. Null: none.
  std::optional<StartPort> (*start_port)(const Distribution& distribution, int nodes) = nullptr;

  bool has_ranks = true;           // a single process too is told its rank
  bool is_mpi = false;             // its processes are one MPI world
  bool may_be_lightning = false;   // a process takes its node's devices to itself, as Lightning may
  absl::string_view program = "";  // that nodes must have: "ray"
  // What tutti sets beside what all jobs have: names, and a value in words.
  std::span<const std::pair<absl::string_view, absl::string_view>> variables = {};
  // Says what its processes talk by over TCP, and what would use RDMA. Null: that is not known.
  absl::string_view (*talks_over_tcp)(bool has_gpus) = nullptr;
};

// Returns all drivers, in the order in which messages name them; "none" is the last.
std::span<const DistributionDriver* const> Distributions();

// Returns the driver of this type, or that takes it for its own; null: there is none.
const DistributionDriver* FindDistribution(absl::string_view type);

// Returns a distribution's driver. Its type is one's.
const DistributionDriver& DriverOf(const Distribution& distribution);

// Return what the driver says, for so many nodes.
int WorldSizeOf(const Distribution& distribution, int nodes);
int ServerCountOf(const Distribution& distribution, int nodes);
std::optional<StartPort> StartPortOf(const Distribution& distribution, int nodes);

}  // namespace tutti::spec
