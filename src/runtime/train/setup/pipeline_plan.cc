#include "runtime/train/setup/pipeline_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "runtime/device/cpu/kept_memory.h"
#include "runtime/parallel/pipeline/layer_costs.h"
#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/train/optimizer/optimizers.h"

namespace tutti::train {
namespace {

using parallel::LayerCost;

constexpr int kRepetitions = 3;
constexpr double kUnknown = 9e18;  // bytes: as many as one likes

// Numbers of a layer that rank 0 tells the others; names they have.
constexpr size_t kNumbers = 7;

std::vector<double> NumbersOf(const LayerCost& cost) {
  return {cost.forward,
          cost.backward,
          static_cast<double>(cost.parameter_bytes),
          static_cast<double>(cost.buffer_bytes),
          static_cast<double>(cost.kept_bytes),
          static_cast<double>(cost.output_bytes),
          static_cast<double>(cost.working_bytes)};
}

LayerCost CostOf(std::string name, const double* numbers) {
  return {.name = std::move(name),
          .forward = numbers[0],
          .backward = numbers[1],
          .parameter_bytes = static_cast<int64_t>(numbers[2]),
          .buffer_bytes = static_cast<int64_t>(numbers[3]),
          .kept_bytes = static_cast<int64_t>(numbers[4]),
          .output_bytes = static_cast<int64_t>(numbers[5]),
          .working_bytes = static_cast<int64_t>(numbers[6])};
}

parallel::Timetable TableOf(const Recipe& recipe, int64_t micro_batches) {
  return parallel::ScheduleNamed(recipe.pipeline_schedule)
      .make(recipe.parallel.mesh.pipeline, micro_batches);
}

// All but the costs of the layers and the cut.
PipelinePlan Beginning(const Recipe& recipe, int64_t replicas) {
  PipelinePlan plan;
  const int64_t images = (recipe.batch + replicas - 1) / replicas;
  plan.micro_batches = std::min(recipe.accumulation, images);
  plan.micro_batch = (images + plan.micro_batches - 1) / plan.micro_batches;
  const parallel::Decoupling& decoupling = recipe.parallel.decoupling;
  const int64_t under_way = decoupling.is_on() ? decoupling.waiting : 0;
  const bool is_late = decoupling.gradients == "delayed";
  plan.memory = {.table = TableOf(recipe, plan.micro_batches),
                 .states_per_parameter = StatesOf(recipe),
                 .kept_outputs = is_late ? 0 : under_way,
                 .kept_inputs = is_late ? under_way : 0};
  return plan;
}

// Costs of which only the names are known.
std::vector<LayerCost> NamesOf(const std::vector<models::Layer>& layers) {
  std::vector<LayerCost> names;
  for (const models::Layer& layer : layers) names.push_back({.name = layer.name});
  return names;
}

absl::StatusOr<std::vector<models::Layer>> LayersToCut(const Recipe& recipe,
                                                       const models::Model& model) {
  std::vector<models::Layer> layers = model->Layers();
  if (layers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--parallel: ", recipe.model,
        " has no layers that it could be cut between; ResNets, VGG, MobileNets and vision "
        "transformers have"));
  }
  TUTTI_RETURN_IF_ERROR(
      parallel::CheckStages(recipe.model, layers.size(), recipe.parallel.mesh.pipeline));
  if (!recipe.cut.empty()) {
    TUTTI_RETURN_IF_ERROR(
        parallel::ReadCut(recipe.cut, NamesOf(layers), recipe.parallel.mesh.pipeline).status());
  }
  return layers;
}

absl::StatusOr<std::vector<LayerCost>> Measure(const Recipe& recipe, const models::Model& model,
                                               const std::vector<models::Layer>& layers,
                                               const Source& source, int64_t samples) {
  model->train();
  const torch::Tensor micro_batch =
      source.Like(samples).inputs.at(0).to(model->parameters()[0].device());
  return parallel::MeasureLayers(layers, micro_batch, recipe.precision == "bf16", kRepetitions);
}

absl::StatusOr<parallel::Cut> CutOf(const Recipe& recipe, const PipelinePlan& plan,
                                    const std::string& former, int64_t most_bytes) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  const int64_t stages = recipe.parallel.mesh.pipeline;
  if (!recipe.cut.empty()) return parallel::ReadCut(recipe.cut, plan.layers, stages);
  if (!former.empty()) {
    auto cut = parallel::ReadCut(former, plan.layers, stages);
    if (cut.ok()) return cut;
  }
  parallel::Cut cut = parallel::BalancedCut(plan.layers, plan.memory, most_bytes);
  return cut.empty() ? parallel::BalancedCut(plan.layers, plan.memory, kAny) : cut;
}

// What the ranks of a node may take together, when they have let go of the whole model.
struct Node {
  double number = 0, free_bytes = 0;
};

absl::StatusOr<std::vector<Node>> GatherNodes(comm::Communicator& group, const FreeMemoryOf& free,
                                              const models::ModelImpl& model,
                                              base::Deadline deadline) {
  double held = 0;
  for (const torch::Tensor& tensor : model.parameters())
    held += static_cast<double>(tensor.nbytes());
  const comm::Placement place = group.placement();
  const auto said = free();
  const Node own = {
      .number = static_cast<double>(place.node_rank),
      .free_bytes = said.ok() ? static_cast<double>(*said) + held * place.local_size : kUnknown};
  std::vector<Node> nodes(static_cast<size_t>(group.size()));
  TUTTI_RETURN_IF_ERROR(group.AllGather(&own, sizeof(own), nodes.data(), deadline));
  return nodes;
}

int64_t Whole(double bytes) { return static_cast<int64_t>(std::clamp(bytes, 0.0, kUnknown)); }

// An equal part of its node, on the rank that has least.
int64_t LeastPart(const std::vector<Node>& nodes) {
  double least = kUnknown;
  for (const Node& node : nodes) {
    const auto ranks = std::count_if(
        nodes.begin(), nodes.end(), [&](const Node& other) { return other.number == node.number; });
    least = std::min(least, node.free_bytes / static_cast<double>(ranks));
  }
  return Whole(least);
}

// What the others on its node leave to a rank of each stage, the one that they leave least.
std::vector<int64_t> FreeByStage(const std::vector<Node>& nodes, const PipelinePlan& plan,
                                 const parallel::Layout& layout) {
  std::vector<double> free(plan.stages.size(), kUnknown);
  for (int rank = 0; rank < layout.world_size; ++rank) {
    const Node& node = nodes[static_cast<size_t>(rank)];
    double left = node.free_bytes;
    for (int other = 0; other < layout.world_size; ++other) {
      const bool shares = other != rank && nodes[static_cast<size_t>(other)].number == node.number;
      const auto stage = static_cast<size_t>(layout.IndexOf(parallel::kStageAxis, other));
      if (shares) left -= static_cast<double>(plan.stages[stage].bytes());
    }
    double& least = free[static_cast<size_t>(layout.IndexOf(parallel::kStageAxis, rank))];
    least = std::min(least, left);
  }
  std::vector<int64_t> whole;
  for (const double bytes : free) whole.push_back(Whole(bytes));
  return whole;
}

absl::Status CheckMemory(const Recipe& recipe, const std::vector<Node>& nodes,
                         const PipelinePlan& plan, const parallel::Layout& layout) {
  const parallel::Room room{
      .free_bytes = FreeByStage(nodes, plan, layout),
      .table_of = recipe.parallel.decoupling.is_on()
                      ? nullptr
                      : parallel::ScheduleNamed(recipe.pipeline_schedule).make,
      .micro_batches = plan.micro_batches,
      .most_micro_batches = plan.micro_batches * plan.micro_batch};
  const absl::Status fits = parallel::CheckFits(plan.layers, plan.cut, plan.memory, room);
  if (fits.ok() || !recipe.check_memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(fits.message(), " (--no-check-memory tries all the same)"));
}

// Rank 0's, on every rank.
absl::Status ShareCut(parallel::Cut& cut, int64_t stages, comm::Communicator& group,
                      base::Deadline deadline) {
  cut.resize(static_cast<size_t>(stages));
  return group.Broadcast(cut.data(), cut.size() * sizeof(cut[0]), /*root=*/0, deadline);
}

// Rank 0's, on every rank.
absl::StatusOr<std::vector<LayerCost>> Shared(const std::vector<models::Layer>& layers,
                                              const absl::StatusOr<std::vector<LayerCost>>& own,
                                              comm::Communicator& group, base::Deadline deadline) {
  std::vector<double> numbers(1 + kNumbers * layers.size());
  if (group.rank() == 0 && own.ok()) {
    numbers = {1};
    for (const LayerCost& cost : *own) {
      const std::vector<double> some = NumbersOf(cost);
      numbers.insert(numbers.end(), some.begin(), some.end());
    }
  }
  TUTTI_RETURN_IF_ERROR(
      group.Broadcast(numbers.data(), numbers.size() * sizeof(double), /*root=*/0, deadline));
  if (!own.ok()) return own.status();
  if (numbers[0] == 0) {
    return absl::AbortedError("rank 0 could not measure the layers; its own error says why");
  }
  std::vector<LayerCost> costs;
  for (size_t i = 0; i < layers.size(); ++i) {
    costs.push_back(CostOf(layers[i].name, &numbers[1 + kNumbers * i]));
  }
  return costs;
}

size_t EndOf(const PipelinePlan& plan, size_t stage) {
  return stage + 1 < plan.cut.size() ? plan.cut[stage + 1] : plan.layers.size();
}

std::string SizeOf(int64_t bytes) {
  constexpr int64_t kSmall = int64_t{10} << 20;
  if (bytes < kSmall) return absl::StrFormat("%.2g MiB", static_cast<double>(bytes) / (1 << 20));
  return base::BinarySize(static_cast<uint64_t>(bytes));
}

std::string TimeOf(double seconds) {
  return seconds < 1 ? absl::StrFormat("%.3g ms", 1e3 * seconds)
                     : absl::StrFormat("%.3g s", seconds);
}

}  // namespace

double StatesOf(const Recipe& recipe) {
  double states = 2 + (recipe.ema > 0 ? 1 : 0);
  for (const OptimizerEntry& optimizer : Optimizers()) {
    if (optimizer.name == recipe.optimizer) states += Takes(optimizer, "betas") ? 2 : 1;
  }
  return states;
}

double ComputedSeconds(const PipelinePlan& plan) {
  std::vector<parallel::StageSeconds> seconds;
  for (const parallel::StageCost& stage : plan.stages) seconds.push_back(stage.seconds);
  return parallel::Simulate(plan.memory.table, seconds, 0).makespan;
}

absl::Status CheckForPipeline(const Recipe& recipe) {
  if (recipe.parallel.mesh.pipeline == 1) {
    if (recipe.cut.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--cut is for --parallel pipeline=STAGES");
  }
  const std::pair<absl::string_view, bool> wanted[] = {
      {"--sync-bn", recipe.sync_bn}, {"--compression", recipe.compression != "none"}};
  for (const auto& [flag, is_wanted] : wanted) {
    if (!is_wanted) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " does not go with --parallel pipeline=", recipe.parallel.mesh.pipeline,
                     ": leave one of them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PipelinePlan> PlanPipeline(const Recipe& recipe, const models::Model& model,
                                          const Source& source, int64_t replicas,
                                          const std::string& former_cut) {
  PipelinePlan plan = Beginning(recipe, replicas);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<models::Layer> layers, LayersToCut(recipe, model));
  TUTTI_ASSIGN_OR_RETURN(plan.layers, Measure(recipe, model, layers, source, plan.micro_batch));
  TUTTI_ASSIGN_OR_RETURN(plan.cut,
                         CutOf(recipe, plan, former_cut, std::numeric_limits<int64_t>::max()));
  plan.stages = parallel::StagesOf(plan.layers, plan.cut, plan.memory);
  return plan;
}

absl::StatusOr<PipelinePlan> PlanTogether(const Recipe& recipe, const models::Model& model,
                                          const Source& source, const parallel::Layout& layout,
                                          comm::Communicator& group, const PlanContext& context,
                                          base::Deadline deadline) {
  PipelinePlan plan = Beginning(recipe, layout.replicas());
  TUTTI_ASSIGN_OR_RETURN(const std::vector<models::Layer> layers, LayersToCut(recipe, model));
  absl::StatusOr<std::vector<LayerCost>> measured = std::vector<LayerCost>();
  if (layout.reports()) measured = Measure(recipe, model, layers, source, plan.micro_batch);
  device::ReturnKeptBlocks();  // of the measurement
  TUTTI_ASSIGN_OR_RETURN(plan.layers, Shared(layers, measured, group, deadline));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Node> nodes,
                         GatherNodes(group, context.free_memory, *model, deadline));
  TUTTI_ASSIGN_OR_RETURN(plan.cut, CutOf(recipe, plan, context.former_cut, LeastPart(nodes)));
  TUTTI_RETURN_IF_ERROR(ShareCut(plan.cut, recipe.parallel.mesh.pipeline, group, deadline));
  plan.stages = parallel::StagesOf(plan.layers, plan.cut, plan.memory);
  TUTTI_RETURN_IF_ERROR(CheckMemory(recipe, nodes, plan, layout));
  return plan;
}

std::string DescribePlan(const PipelinePlan& plan) {
  std::vector<parallel::StageSeconds> seconds;
  for (const parallel::StageCost& stage : plan.stages) seconds.push_back(stage.seconds);
  const parallel::Simulation simulated = parallel::Simulate(plan.memory.table, seconds, 0);
  const bool is_cut = plan.cut.size() > 1;
  std::string text = absl::StrCat(
      plan.micro_batches, plan.micro_batches == 1 ? " micro-batch" : " micro-batches", " of ",
      plan.micro_batch, plan.micro_batch == 1 ? " image" : " images", "; a step computes ",
      TimeOf(simulated.makespan),
      is_cut ? absl::StrFormat(", stages wait %.0f %% of it", 1e2 * simulated.bubble) : "");
  if (is_cut) text = absl::StrCat(plan.cut.size(), " stages, ", text);
  for (size_t stage = 0; stage < plan.cut.size(); ++stage) {
    const size_t end = EndOf(plan, stage);
    const parallel::StageCost& cost = plan.stages[stage];
    absl::StrAppend(&text, "\n  ", is_cut ? absl::StrCat("stage ", stage) : "a rank", ": ",
                    plan.layers[plan.cut[stage]].name, " to ", plan.layers[end - 1].name, ", ",
                    TimeOf(cost.seconds.forward), " forward and ", TimeOf(cost.seconds.backward),
                    " backward a micro-batch, ", SizeOf(cost.bytes()), ": ",
                    SizeOf(cost.state_bytes), " of parameters, gradients and optimizer, ",
                    SizeOf(cost.activation_bytes), " of activations, ", SizeOf(cost.working_bytes),
                    " while a layer computes");
  }
  return text;
}

std::string DescribeTraffic(const PipelinePlan& plan, int64_t replicas) {
  std::vector<std::string> between, added;
  for (size_t stage = 0; stage < plan.cut.size(); ++stage) {
    const size_t end = EndOf(plan, stage);
    int64_t parameters = 0;
    for (size_t i = plan.cut[stage]; i < end; ++i) parameters += plan.layers[i].parameter_bytes;
    added.push_back(SizeOf(parameters));
    if (end == plan.layers.size()) continue;
    between.push_back(absl::StrCat(stage, " and ", stage + 1, ": ", plan.micro_batches, " x ",
                                   SizeOf(plan.layers[end - 1].output_bytes)));
  }
  std::string text;
  if (!between.empty()) {
    absl::StrAppend(&text, "  activations, and as many bytes of gradients back, go between stages ",
                    absl::StrJoin(between, ", "), "\n");
  }
  if (replicas > 1) {
    absl::StrAppend(
        &text, "  ", replicas, " replicas add up gradients of ", absl::StrJoin(added, ", "),
        absl::StrFormat(", of which each rank sends %.3g times as much\n",
                        2.0 * static_cast<double>(replicas - 1) / static_cast<double>(replicas)));
  }
  return text.empty() ? "  nothing goes between ranks\n" : text;
}

}  // namespace tutti::train
