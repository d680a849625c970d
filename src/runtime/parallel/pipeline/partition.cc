#include "runtime/parallel/pipeline/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "base/text/closest.h"

namespace tutti::parallel {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int64_t kMostFiner = 1024;  // how many times smaller a micro-batch CheckFits considers

// Costs of runs of layers as stages, each by two sums over all layers before a place.
class LayerRuns {
 public:
  LayerRuns(std::span<const LayerCost> layers, const MemoryPlan& plan)
      : plan_(plan), sums_(1), inputs_(1, 0) {
    for (const LayerCost& layer : layers) {
      Sums sums = sums_.back();
      sums.forward += layer.forward;
      sums.backward += layer.backward;
      sums.parameters += layer.parameter_bytes;
      sums.buffers += layer.buffer_bytes;
      sums.kept += layer.kept_bytes;
      sums_.push_back(sums);
      inputs_.push_back(layer.output_bytes);
      working_.push_back(layer.working_bytes);
    }
    for (const auto& actions : plan.table) in_flight_.push_back(MostInFlight(actions));
  }

  size_t layers() const { return sums_.size() - 1; }
  size_t stages() const { return in_flight_.size(); }

  // Returns what the layers from `first` up to `end` cost as that stage.
  StageCost CostOf(size_t stage, size_t first, size_t end) const {
    const Sums &from = sums_[first], &to = sums_[end];
    const int64_t parameters = to.parameters - from.parameters;
    const double states = std::ceil(static_cast<double>(parameters) * plan_.states_per_parameter);
    const int64_t later = plan_.kept_outputs * inputs_[end] + plan_.kept_inputs * inputs_[first];
    const auto behind = static_cast<int64_t>(stages() - 1 - stage);
    return {.seconds = {to.forward - from.forward, to.backward - from.backward},
            .state_bytes = static_cast<int64_t>(states) + to.buffers - from.buffers,
            .activation_bytes =
                (to.kept - from.kept + inputs_[first]) * in_flight_[stage] + later * behind,
            .working_bytes = *std::max_element(working_.begin() + static_cast<ptrdiff_t>(first),
                                               working_.begin() + static_cast<ptrdiff_t>(end))};
  }

 private:
  struct Sums {
    double forward = 0, backward = 0;
    int64_t parameters = 0, buffers = 0, kept = 0;
  };
  const MemoryPlan plan_;
  std::vector<Sums> sums_;          // [layers + 1]
  std::vector<int64_t> inputs_;     // what a stage gets that begins at a layer
  std::vector<int64_t> working_;    // by layer
  std::vector<int64_t> in_flight_;  // by stage
};

double WorkOf(const StageCost& stage) { return stage.seconds.forward + stage.seconds.backward; }

std::vector<StageCost> CostsOf(const LayerRuns& runs, const Cut& cut) {
  std::vector<StageCost> stages;
  for (size_t stage = 0; stage < cut.size(); ++stage) {
    const size_t end = stage + 1 < cut.size() ? cut[stage + 1] : runs.layers();
    stages.push_back(runs.CostOf(stage, cut[stage], end));
  }
  return stages;
}

// Returns the cut whose worst stage is least bad; none where each has a stage that is kNever.
// `badness` (stage, its cost) is at least 0. O(stages * layers^2): the worst stage of the first
// `end` layers as stages 0 to s is the lesser, over all `first`, of
//
//   max(worst of the first `first` layers as stages 0 to s - 1, badness of [first, end) as stage s)
template <typename Badness>
Cut LeastBadCut(const LayerRuns& runs, const Badness& badness) {
  const size_t layers = runs.layers(), stages = runs.stages();
  if (stages == 0 || stages > layers) return {};
  std::vector<double> worst(layers + 1, kNever);
  worst[0] = 0;
  std::vector<std::vector<size_t>> firsts(stages, std::vector<size_t>(layers + 1, 0));
  for (size_t stage = 0; stage < stages; ++stage) {
    std::vector<double> next(layers + 1, kNever);
    for (size_t end = stage + 1; end <= layers; ++end) {
      for (size_t first = stage; first < end; ++first) {
        const double own = badness(stage, runs.CostOf(stage, first, end));
        const double both = std::max(worst[first], own);
        if (both >= next[end]) continue;
        next[end] = both;
        firsts[stage][end] = first;
      }
    }
    worst = std::move(next);
  }
  if (worst[layers] == kNever) return {};
  Cut cut(stages);
  for (size_t stage = stages, end = layers; stage-- > 0; end = cut[stage]) {
    cut[stage] = firsts[stage][end];
  }
  return cut;
}

// BalancedCut with a limit for each stage. The fastest cut is found first, then the smallest of
// those as fast: one search for the lesser of both could not build on cuts of fewer layers, for one
// that is slower may be smaller and no slower than a later stage.
Cut BalancedWithin(const LayerRuns& runs, std::span<const int64_t> most_bytes) {
  const auto fits = [&](size_t stage, const StageCost& cost) {
    return cost.bytes() <= most_bytes[stage];
  };
  const Cut fastest = LeastBadCut(runs, [&](size_t stage, const StageCost& cost) {
    return fits(stage, cost) ? WorkOf(cost) : kNever;
  });
  if (fastest.empty()) return {};
  double slowest = 0;
  for (const StageCost& cost : CostsOf(runs, fastest)) slowest = std::max(slowest, WorkOf(cost));
  return LeastBadCut(runs, [&](size_t stage, const StageCost& cost) {
    const bool allowed = fits(stage, cost) && WorkOf(cost) <= slowest;
    return allowed ? static_cast<double>(cost.bytes()) : kNever;
  });
}

std::vector<absl::string_view> LayerNames(std::span<const LayerCost> layers) {
  std::vector<absl::string_view> names;
  for (const LayerCost& layer : layers) names.push_back(layer.name);
  return names;
}

absl::StatusOr<size_t> FindLayer(absl::string_view name, std::span<const LayerCost> layers) {
  const std::vector<absl::string_view> names = LayerNames(layers);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return absl::InvalidArgumentError(absl::StrCat("--cut: there is no layer \"", name, "\"",
                                                 base::DidYouMean(name, names), "; the layers are ",
                                                 absl::StrJoin(names, ", ")));
}

std::string MemoryText(int64_t bytes) {
  return base::BinarySize(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

std::string StageText(std::span<const LayerCost> layers, const Cut& cut, size_t stage) {
  const size_t end = stage + 1 < cut.size() ? cut[stage + 1] : layers.size();
  const std::string &first = layers[cut[stage]].name, &last = layers[end - 1].name;
  return absl::StrCat("stage ", stage, " of ", cut.size(), " (", first,
                      first == last ? "" : absl::StrCat(" to ", last), ")");
}

// Returns the stage that lacks most; none: all fit.
std::optional<size_t> StageThatLacksMost(std::span<const StageCost> stages,
                                         std::span<const int64_t> free_bytes) {
  std::optional<size_t> found;
  int64_t most = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int64_t lacks = stages[stage].bytes() - free_bytes[stage];
    if (lacks <= most) continue;
    most = lacks;
    found = stage;
  }
  return found;
}

// Returns what layers cost with micro-batches that are `times` as small.
std::vector<LayerCost> Finer(std::span<const LayerCost> layers, int64_t times) {
  std::vector<LayerCost> finer(layers.begin(), layers.end());
  for (LayerCost& layer : finer) {
    layer.forward /= static_cast<double>(times);
    layer.backward /= static_cast<double>(times);
    layer.kept_bytes = (layer.kept_bytes + times - 1) / times;
    layer.output_bytes = (layer.output_bytes + times - 1) / times;
  }
  return finer;
}

// What CheckFits proposes, each "" if it does not help.
std::string ByMoreMicroBatches(std::span<const LayerCost> layers, const Cut& cut,
                               const MemoryPlan& plan, const Room& room) {
  const auto stages = static_cast<int64_t>(cut.size());
  for (int64_t times = 2; times <= kMostFiner; times *= 2) {
    if (times > room.most_micro_batches / room.micro_batches) break;
    const int64_t count = room.micro_batches * times;
    const std::vector<LayerCost> finer = Finer(layers, times);
    const LayerRuns runs(finer, {room.table_of(stages, count), plan.states_per_parameter});
    if (!StageThatLacksMost(CostsOf(runs, cut), room.free_bytes).has_value()) {
      return absl::StrCat("with --accumulation ", count, " this one does");
    }
    if (const Cut other = BalancedWithin(runs, room.free_bytes); !other.empty()) {
      return absl::StrCat("with --accumulation ", count, " --cut ", CutText(other, layers),
                          " does");
    }
  }
  return "";
}

std::string ByMoreStages(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan,
                         const Room& room) {
  const int64_t least = *std::min_element(room.free_bytes.begin(), room.free_bytes.end());
  for (size_t stages = cut.size() + 1; stages <= layers.size(); ++stages) {
    const Timetable table = room.table_of(static_cast<int64_t>(stages), room.micro_batches);
    const Cut finer = BalancedCut(layers, {table, plan.states_per_parameter}, least);
    if (finer.empty()) continue;
    return absl::StrCat("--parallel pipeline=", stages, " --cut ", CutText(finer, layers), " does");
  }
  return "";
}

std::string WayThatFits(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan,
                        const Room& room) {
  const Cut other = BalancedWithin(LayerRuns(layers, plan), room.free_bytes);
  if (!other.empty()) return absl::StrCat("a cut that fits: --cut ", CutText(other, layers));
  if (room.table_of == nullptr) return "no other cut fits";
  std::string way = ByMoreMicroBatches(layers, cut, plan, room);
  if (way.empty()) way = ByMoreStages(layers, cut, plan, room);
  if (!way.empty()) return absl::StrCat("no other cut fits, and ", way);
  return "no other cut fits, nor do more micro-batches or more stages";
}

}  // namespace

std::vector<StageCost> StagesOf(std::span<const LayerCost> layers, const Cut& cut,
                                const MemoryPlan& plan) {
  return CostsOf(LayerRuns(layers, plan), cut);
}

Cut BalancedCut(std::span<const LayerCost> layers, const MemoryPlan& plan, int64_t most_bytes) {
  return BalancedWithin(LayerRuns(layers, plan),
                        std::vector<int64_t>(plan.table.size(), most_bytes));
}

absl::Status CheckStages(absl::string_view model, size_t layers, int64_t stages) {
  if (stages < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a pipeline has 1 stage or more, and was to have ", stages));
  }
  if (static_cast<uint64_t>(stages) <= layers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(model, " has ", layers,
                                                 layers == 1 ? " layer" : " layers",
                                                 " and cannot be cut into ", stages, " stages"));
}

absl::StatusOr<Cut> ReadCut(absl::string_view names, std::span<const LayerCost> layers,
                            int64_t stages) {
  TUTTI_RETURN_IF_ERROR(CheckStages("the model", layers.size(), stages));
  const std::vector<absl::string_view> words = absl::StrSplit(names, ',', absl::SkipWhitespace());
  if (words.size() + 1 != static_cast<size_t>(stages)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--cut names ", words.size(), words.size() == 1 ? " layer, and " : " layers, and ", stages,
        stages == 1 ? " stage needs " : " stages need ", stages - 1,
        ": that with which each stage but the first begins"));
  }
  Cut cut = {0};
  for (const absl::string_view word : words) {
    const absl::string_view name = absl::StripAsciiWhitespace(word);
    TUTTI_ASSIGN_OR_RETURN(const size_t layer, FindLayer(name, layers));
    if (layer == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--cut: the first stage begins with ", name,
                                                     "; name the layers that later ones do"));
    }
    if (layer == cut.back()) {
      return absl::InvalidArgumentError(absl::StrCat("--cut names ", name, " twice"));
    }
    if (layer < cut.back()) {
      return absl::InvalidArgumentError(absl::StrCat("--cut names ", name, " after ",
                                                     layers[cut.back()].name,
                                                     ", which the model has in the other order"));
    }
    cut.push_back(layer);
  }
  return cut;
}

std::string CutText(const Cut& cut, std::span<const LayerCost> layers) {
  const std::span<const size_t> later = std::span(cut).subspan(cut.empty() ? 0 : 1);
  return absl::StrJoin(later, ",", [&](std::string* text, size_t layer) {
    absl::StrAppend(text, layers[layer].name);
  });
}

absl::Status CheckFits(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan,
                       const Room& room) {
  const std::vector<StageCost> stages = StagesOf(layers, cut, plan);
  const std::optional<size_t> stage = StageThatLacksMost(stages, room.free_bytes);
  if (!stage.has_value()) return absl::OkStatus();
  const StageCost& cost = stages[*stage];
  return absl::ResourceExhaustedError(absl::StrCat(
      StageText(layers, cut, *stage), " needs ", MemoryText(cost.bytes()), ", ",
      MemoryText(cost.state_bytes), " of state and ", MemoryText(cost.activation_bytes),
      " of activations",
      cost.working_bytes == 0
          ? ""
          : absl::StrCat(", ", MemoryText(cost.working_bytes), " while a layer computes"),
      ", and its rank may take ", MemoryText(room.free_bytes[*stage]), "; ",
      WayThatFits(layers, cut, plan, room)));
}

}  // namespace tutti::parallel
