#include "runtime/train/setup/pipeline_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "runtime/parallel/pipeline/layer_costs.h"
#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/train/optimizer/optimizers.h"

namespace tutti::train {
namespace {

using parallel::LayerCost;

constexpr int kRepetitions = 3;

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

// Values, gradients, and what the optimizer keeps of a parameter.
double StatesOf(const Recipe& recipe) {
  double states = 2 + (recipe.ema > 0 ? 1 : 0);
  for (const OptimizerEntry& optimizer : Optimizers()) {
    if (optimizer.name == recipe.optimizer) states += Takes(optimizer, "betas") ? 2 : 1;
  }
  return states;
}

parallel::Timetable TableOf(const Recipe& recipe, int64_t micro_batches) {
  return parallel::ScheduleNamed(recipe.pipeline_schedule)
      .make(recipe.mesh.pipeline, micro_batches);
}

// All but the costs of the layers and the cut.
PipelinePlan Beginning(const Recipe& recipe, int64_t replicas) {
  PipelinePlan plan;
  const int64_t images = (recipe.batch + replicas - 1) / replicas;
  plan.micro_batches = std::min(recipe.accumulation, images);
  plan.micro_batch = (images + plan.micro_batches - 1) / plan.micro_batches;
  plan.memory = {TableOf(recipe, plan.micro_batches), StatesOf(recipe)};
  return plan;
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
  TUTTI_RETURN_IF_ERROR(parallel::CheckStages(recipe.model, layers.size(), recipe.mesh.pipeline));
  return layers;
}

absl::StatusOr<std::vector<LayerCost>> Measure(const Recipe& recipe, const models::Model& model,
                                               const std::vector<models::Layer>& layers,
                                               const torch::Tensor& inputs, int64_t images) {
  model->train();
  const auto type = recipe.precision == "bf16" ? torch::kBFloat16 : torch::kFloat32;
  std::vector<int64_t> sizes = inputs.sizes().vec();
  sizes[0] = images;
  const torch::Tensor micro_batch = torch::randn(sizes)
                                        .to(type)
                                        .contiguous(torch::MemoryFormat::ChannelsLast)
                                        .to(inputs.device());
  return parallel::MeasureLayers(layers, micro_batch, recipe.precision == "bf16", kRepetitions);
}

absl::Status Cut(const Recipe& recipe, int64_t most_bytes, PipelinePlan& plan) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  if (!recipe.cut.empty()) {
    TUTTI_ASSIGN_OR_RETURN(plan.cut,
                           parallel::ReadCut(recipe.cut, plan.layers, recipe.mesh.pipeline));
  } else {
    plan.cut = parallel::BalancedCut(plan.layers, plan.memory, most_bytes);
    if (plan.cut.empty()) plan.cut = parallel::BalancedCut(plan.layers, plan.memory, kAny);
  }
  plan.stages = parallel::StagesOf(plan.layers, plan.cut, plan.memory);
  return absl::OkStatus();
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

// What each rank of the group may take: its part of what is free on its node.
absl::StatusOr<std::vector<double>> GatherFree(comm::Communicator& group, const FreeMemoryOf& free,
                                               base::Deadline deadline) {
  const double own = static_cast<double>(free().value_or(std::numeric_limits<int64_t>::max())) /
                     group.placement().local_size;
  std::vector<double> all(static_cast<size_t>(group.size()));
  TUTTI_RETURN_IF_ERROR(group.AllGather(&own, sizeof(own), all.data(), deadline));
  return all;
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

}  // namespace

absl::Status CheckForPipeline(const Recipe& recipe) {
  if (recipe.mesh.pipeline == 1) {
    if (recipe.cut.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("--cut is for --parallel pipeline=STAGES");
  }
  const std::pair<absl::string_view, bool> wanted[] = {
      {"--sync-bn", recipe.sync_bn}, {"--compression", recipe.compression != "none"}};
  for (const auto& [flag, is_wanted] : wanted) {
    if (!is_wanted) continue;
    return absl::InvalidArgumentError(absl::StrCat(flag, " does not go with --parallel pipeline=",
                                                   recipe.mesh.pipeline, ": leave one of them"));
  }
  return absl::OkStatus();
}

absl::StatusOr<PipelinePlan> PlanPipeline(const Recipe& recipe, const models::Model& model,
                                          const torch::Tensor& inputs, int64_t replicas) {
  PipelinePlan plan = Beginning(recipe, replicas);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<models::Layer> layers, LayersToCut(recipe, model));
  TUTTI_ASSIGN_OR_RETURN(plan.layers, Measure(recipe, model, layers, inputs, plan.micro_batch));
  TUTTI_RETURN_IF_ERROR(Cut(recipe, std::numeric_limits<int64_t>::max(), plan));
  return plan;
}

absl::StatusOr<PipelinePlan> PlanTogether(const Recipe& recipe, const models::Model& model,
                                          const torch::Tensor& inputs,
                                          const parallel::Layout& layout, comm::Communicator& group,
                                          const FreeMemoryOf& free, base::Deadline deadline) {
  PipelinePlan plan = Beginning(recipe, layout.replicas);
  TUTTI_ASSIGN_OR_RETURN(const std::vector<models::Layer> layers, LayersToCut(recipe, model));
  absl::StatusOr<std::vector<LayerCost>> measured = std::vector<LayerCost>();
  if (layout.reports()) measured = Measure(recipe, model, layers, inputs, plan.micro_batch);
  TUTTI_ASSIGN_OR_RETURN(plan.layers, Shared(layers, measured, group, deadline));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<double> free_bytes, GatherFree(group, free, deadline));
  const double least = *std::min_element(free_bytes.begin(), free_bytes.end());
  TUTTI_RETURN_IF_ERROR(Cut(recipe, static_cast<int64_t>(std::min(least, 9e18)), plan));
  parallel::Room room;
  for (int stage = 0; stage < layout.stages; ++stage) {
    const auto first = free_bytes.begin() + layout.RankOf(stage, 0);
    room.free_bytes.push_back(
        static_cast<int64_t>(std::min(*std::min_element(first, first + layout.replicas), 9e18)));
  }
  room.table_of = parallel::ScheduleNamed(recipe.pipeline_schedule).make;
  room.micro_batches = plan.micro_batches;
  room.most_micro_batches = plan.micro_batches * plan.micro_batch;
  TUTTI_RETURN_IF_ERROR(parallel::CheckFits(plan.layers, plan.cut, plan.memory, room));
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
