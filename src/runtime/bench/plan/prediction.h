// Predicts what n nodes do of what one node has shown (docs/decisions/111-plan.md):
//
//   step(n) = max(compute x slowdown + exposed(n), loader, file server)
//
// exposed(n) is PredictStep's: buckets are added up while backward runs, one after the other, in
// the time that the collectives' own model (comm/collective/selection.h) gives the algorithm that
// they would choose on this link.
//
// Pure functions. Times are seconds, rates are bytes or images a second.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/bench/step_model.h"

namespace tutti::bench {

// How a rank's loader does alone.
struct LoaderFacts {
  double images_per_second = 0;  // 0: not measured
  double processor_seconds = 0;  // of an image, over all threads
  double bytes_per_image = 0;    // as it is stored
  int64_t workers = 1;
};

// How a recipe's learning rate goes with more images in a step.
enum class RateRule { kAsItIs, kPerRank, kPerImage };

// What one node has shown.
struct NodeFacts {
  std::string source;  // "reference.yml"
  std::string model, precision = "fp32", device = "cpu";
  int ranks = 1;                     // that were at work together while a step was measured
  int ranks_per_node = 1;            // of which these are; that batch and threads are meant for
  int threads = 1;                   // of computation per rank
  double cores = 1;                  // of the node; half a core where two nodes share one
  double batch = 0;                  // images per step and rank
  train::StepParts parts;            // of a rank, without the wait for data
  double fixed = 0;                  // share of forward and backward that no smaller batch shortens
  double waited = 0;                 // share of the time in which other programs had the cores
  bool batch_is_shared = false;      // more ranks share the node's batch; else each brings `batch`
  std::vector<double> bucket_bytes;  // of gradients, in the order in which backward completes them
  double wire_share = 1;             // of these bytes that cross a link: of compressed ones less
  double memory = 0, memory_of_an_image = 0;  // bytes of a rank; 0: not measured
  double memory_speed = 0;                    // bytes a second of all cores; 0: not measured
  LoaderFacts loader;
  int64_t train_images = 0;  // of an epoch; 0: unknown
  double learning_rate = 0;  // 0: unknown
  RateRule rate_rule = RateRule::kAsItIs;
  double warmup_epochs = 0;

  double gradient_bytes() const;
};

// A link, as a node has it.
struct NetworkLink {
  std::string name;      // as it was asked for
  double bits = 0;       // a second, of the line
  double latency = 0;    // of a message
  double payload = 0.9;  // share of the bits that are data

  double bytes_per_second() const { return bits * payload / 8; }
};

// Reads "1gbit", "100mbit", "2.5gbit:80us" or "ib-edr". InvalidArgument says what there is.
absl::StatusOr<NetworkLink> ReadLink(absl::string_view text);

// Reads "1..8", "4" or "1,2,4"; of a range above eight its powers of two and both ends.
// InvalidArgument says what is wrong.
absl::StatusOr<std::vector<int>> ReadNodes(absl::string_view text);

// What is asked of the facts.
struct PlanQuestion {
  std::vector<int> nodes = {1, 2, 4, 8};  // ascending
  int ranks_per_node = 1;
  NetworkLink link;  // between nodes
  std::optional<NetworkLink>
      data_link;     // of the one file server of all nodes; none: data are local
  double price = 0;  // of a node and hour; 0: unknown
};

// kBatch: a rank has so few images that what a step takes beside them is a tenth of it.
enum class PlanLimit { kCompute, kBatch, kNetwork, kLoader, kFileServer };
absl::string_view NameOf(PlanLimit limit);

struct PlanRow {
  int nodes = 1, ranks = 1;
  double batch = 0;       // images per step and rank
  Prediction step;        // without waits for data
  double data = 0;        // seconds that loader or file server take for a step's images
  double seconds = 0;     // of the step, with them
  double efficiency = 1;  // images a second, of as many times one node's
  PlanLimit limit = PlanLimit::kCompute;
  double cost = 0;  // of an epoch, or of a million images; 0: no price

  double images_per_second() const { return ranks * batch / seconds; }
};

// From what is exposed on, as a share of the step, the network is its limit.
inline constexpr double kNetworkLimit = 0.1;

// Predicts a row; its efficiency is against one node of the same question.
PlanRow PredictRow(const NodeFacts& facts, const PlanQuestion& question, int nodes);

// Predicts a row a number of nodes. InvalidArgument: the batch is smaller than the ranks.
absl::StatusOr<std::vector<PlanRow>> PredictRows(const NodeFacts& facts,
                                                 const PlanQuestion& question);

// Returns the seconds of an all-reduce of so many bytes over nodes of so many ranks.
double AllReduceSeconds(const NodeFacts& facts, const PlanQuestion& question, int nodes,
                        double bytes);

// Returns the share of forward and backward that remains of any batch, by the line through the
// step `whole` and the step `part` with `share` of its images.
double FixedShare(const train::StepParts& whole, const train::StepParts& part, double share);

// Returns the facts with another batch per rank, which makes forward and backward longer or
// shorter.
NodeFacts WithBatch(const NodeFacts& facts, double batch);

// Splits so many bytes as parallel::FlattenParameters splits a model of many small layers.
std::vector<double> EvenBuckets(double bytes);

}  // namespace tutti::bench
