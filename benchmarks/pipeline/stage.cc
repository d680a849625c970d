// A rank of what benchmarks/pipeline measures: steps of tutti's own PipelineParallel on synthetic
// images, of a network or of layers that sleep in place of computing (sleep=F,B: milliseconds of a
// stage's passes).
//
//   pipeline_stage plan [FIELD=VALUE...]        where the network is cut and what that takes
//   pipeline_stage serve [FIELD=VALUE...]       answers a number of steps with their seconds
//   pipeline_stage steps N [FIELD=VALUE...]     what each pass took, beside the schedule's table
//   pipeline_stage memory N [FIELD=VALUE...]    what this rank's memory is at most in a step
//
// Fields are a recipe's, as model=resnet50, batch=64, accumulation=8, pipeline-schedule=gpipe,
// cut=layer3.0, and sleep=F,B, width=ELEMENTS (that sleeping stages send of a sample), and of
// `steps` trace=FILE and simulation=FILE, for gantt.py. All but `plan` (parallel=pipeline=STAGES)
// run on as many ranks as there are stages, by the environment, and print lines of JSON: rank 0,
// of `memory` each.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "benchmarks/pipeline/counted_memory.h"
#include "benchmarks/pipeline/passes.h"
#include "benchmarks/pipeline/sleeping_model.h"
#include "runtime/comm/group_options.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/pipeline/pipeline_parallel.h"
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/setup/pipeline_plan.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr double kLearningRate = 0.01;
constexpr int64_t kWarmUp = 3;

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(300)); }

struct Options {
  train::Recipe recipe;
  bool sleeps = false;
  SleepingOptions sleeping;
  std::string trace, simulation;  // files; empty: none is wanted
};

// What a rank has. Parts end before those that they use.
struct Rank {
  std::unique_ptr<parallel::PipelineParallel> strategy;
  parallel::Batch batch;
  std::vector<train::TraceSpan> passes;  // since somebody last looked

  absl::Status Steps(int64_t count) {
    for (; count > 0; --count) {
      TUTTI_RETURN_IF_ERROR(strategy->Step(batch, kLearningRate, Soon()).status());
    }
    return absl::OkStatus();
  }
};

int64_t SideOf(const Options& options) { return models::InputSize(options.recipe.model); }

int64_t ClassesOf(const Options& options) {
  if (options.sleeps) return options.sleeping.width;
  return SideOf(options) == 32 ? 10 : 1000;  // as peer_networks.py
}

absl::StatusOr<models::Model> MakeWhole(const Options& options) {
  if (options.sleeps) return MakeSleepingModel(options.sleeping);
  return models::MakeModel({options.recipe.model, ClassesOf(options)}, 1);
}

torch::Tensor Inputs(const Options& options, int64_t batch) {
  const int64_t side = SideOf(options);
  if (options.sleeps) return torch::randn({batch, options.sleeping.width});
  return torch::randn({batch, 3, side, side})
      .to(options.recipe.precision == "bf16" ? torch::kBFloat16 : torch::kFloat32)
      .contiguous(torch::MemoryFormat::ChannelsLast);
}

// Gives planners what to measure with.
class SyntheticSource final : public train::Source {
 public:
  explicit SyntheticSource(const Options& options) : options_(options) {}
  int64_t steps_per_epoch() const override { return 1; }
  void Want(int64_t) override {}
  absl::StatusOr<parallel::Batch> Next(base::Deadline) override {
    return Like(options_.recipe.batch);
  }
  parallel::Batch Like(int64_t samples) const override { return {{Inputs(options_, samples)}, {}}; }
  int64_t unreadable() const override { return 0; }
  parallel::State state() override { return {}; }
  absl::Status Seek() override { return absl::OkStatus(); }
  void SetPosition(int64_t) override {}

 private:
  const Options& options_;
};

absl::StatusOr<parallel::Cut> CutOf(const Options& options, const models::Model& whole,
                                    int stages) {
  std::vector<parallel::LayerCost> names;
  for (const models::Layer& layer : whole->Layers()) names.push_back({.name = layer.name});
  parallel::Cut cut;
  for (int stage = 0; options.sleeps && stage < stages; ++stage) {
    cut.push_back(static_cast<size_t>(stage));
  }
  return options.sleeps ? cut : parallel::ReadCut(options.recipe.cut, names, stages);
}

auto Watch(Rank& rank) {
  return [&rank](const parallel::Action& action, double seconds) {
    const auto kind = action.pass == parallel::Pass::kForward ? train::SpanKind::kForwardPass
                                                              : train::SpanKind::kBackwardPass;
    rank.passes.push_back({static_cast<double>(kind),
                           absl::ToDoubleSeconds(base::SteadyNow()) - seconds, seconds,
                           static_cast<double>(action.micro_batch)});
  };
}

void PrepareMachine(const train::Recipe& recipe) {
  train::PrepareMachine(recipe.threads, /*gpu=*/false);
  device::cpu::UseWinograd(train::UsesWinograd(recipe));
  device::cpu::fp32::UsePatches(train::UsesWinograd(recipe));
}

absl::Status Prepare(Options& options, Rank& rank) {
  TUTTI_ASSIGN_OR_RETURN(comm::GroupOptions group, comm::GroupOptionsFromEnvironment());
  group.peer_timeout = absl::Hours(24);  // a contender is stopped until its turn
  TUTTI_ASSIGN_OR_RETURN(auto communicator, comm::JoinGroup(group));
  const int stages = communicator->size();
  options.sleeping.layers = stages;
  TUTTI_ASSIGN_OR_RETURN(const parallel::Layout layout,
                         parallel::LayOut({.pipeline = stages}, group.rank, stages));
  TUTTI_ASSIGN_OR_RETURN(models::Model whole, MakeWhole(options));
  TUTTI_ASSIGN_OR_RETURN(const parallel::Cut cut, CutOf(options, whole, stages));
  if (layout.reads_inputs()) rank.batch.inputs = {Inputs(options, options.recipe.batch)};
  rank.batch.targets = torch::randint(ClassesOf(options), {options.recipe.batch}, torch::kInt64);
  const parallel::PipelineOptions made{
      .layout = layout,
      .cut = cut,
      .timetable = parallel::ScheduleNamed(options.recipe.pipeline_schedule).make,
      .micro_batches = options.recipe.accumulation,
      .bf16 = options.recipe.precision == "bf16",
      .on_pass = Watch(rank),
      .optimizer = [recipe = options.recipe](const parallel::Buckets& buckets,
                                             const models::Model&) {
        return train::MakeOptimizer(recipe, buckets);
      }};
  TUTTI_ASSIGN_OR_RETURN(
      rank.strategy,
      parallel::PipelineParallel::Create(std::move(whole), std::move(communicator), made, Soon()));
  TUTTI_RETURN_IF_ERROR(rank.strategy->Synchronize(Soon()));
  return absl::OkStatus();
}

void Say(const json& words) {
  std::puts(words.dump().c_str());
  std::fflush(stdout);
}

absl::Status Plan(const Options& options) {
  const train::Recipe& recipe = options.recipe;
  TUTTI_ASSIGN_OR_RETURN(const models::Model whole, MakeWhole(options));
  TUTTI_ASSIGN_OR_RETURN(const train::PipelinePlan plan,
                         train::PlanPipeline(recipe, whole, SyntheticSource(options),
                                             /*replicas=*/1));
  json stages = json::array();
  for (const parallel::StageCost& stage : plan.stages) {
    stages.push_back({{"forward", stage.seconds.forward},
                      {"backward", stage.seconds.backward},
                      {"state_bytes", stage.state_bytes},
                      {"activation_bytes", stage.activation_bytes},
                      {"working_bytes", stage.working_bytes}});
  }
  Say({{"cut", parallel::CutText(plan.cut, plan.layers)},
       {"stages", stages},
       {"text", train::DescribePlan(plan)}});
  return absl::OkStatus();
}

absl::Status Serve(Rank& rank) {
  TUTTI_RETURN_IF_ERROR(rank.Steps(kWarmUp));
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    parallel::LapTimer timer;
    int64_t count = 0;
    if (!absl::SimpleAtoi(line, &count)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", line, "\" is no number of steps"));
    }
    rank.passes.clear();
    TUTTI_RETURN_IF_ERROR(rank.Steps(count));
    std::printf("%.6f\n", timer.Lap());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Every rank's, by stage; as many on each.
absl::StatusOr<StagePasses> Gather(Rank& rank) {
  const size_t stages = static_cast<size_t>(rank.strategy->world_size());
  const size_t count = rank.passes.size();
  std::vector<train::TraceSpan> all(stages * count);
  std::copy(rank.passes.begin(), rank.passes.end(),
            all.begin() + static_cast<ptrdiff_t>(rank.strategy->rank() * static_cast<int>(count)));
  constexpr size_t kNumbers = sizeof(all[0]) / sizeof(double);
  TUTTI_RETURN_IF_ERROR(rank.strategy->SumOverRanks(
      {reinterpret_cast<double*>(all.data()), kNumbers * all.size()}, Soon()));
  StagePasses passes;
  for (size_t stage = 0; stage < stages; ++stage) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(stage * count);
    passes.emplace_back(begin, begin + static_cast<ptrdiff_t>(count));
  }
  return passes;
}

absl::Status Write(const std::string& path, const StagePasses& passes) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path);
  file << train::ChromeTrace(passes);
  return file.flush() ? absl::OkStatus()
                      : absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
}

// The number of the step whose makespan is the median.
size_t TypicalStep(const std::vector<double>& makespans) {
  const double median = MedianOf(makespans);
  return static_cast<size_t>(std::find(makespans.begin(), makespans.end(), median) -
                             makespans.begin());
}

absl::Status Report(const Options& options, const StagePasses& passes, double seconds,
                    size_t steps) {
  std::vector<parallel::StageSeconds> work;
  for (const auto& stage : passes) work.push_back(SecondsOf(stage));
  const parallel::Timetable table =
      parallel::ScheduleNamed(options.recipe.pipeline_schedule)
          .make(static_cast<int64_t>(passes.size()), options.recipe.accumulation);
  const parallel::Simulation simulated = parallel::Simulate(table, work, /*transfer=*/0);
  std::vector<double> makespans, bubbles;
  for (size_t step = 0; step < steps; ++step) {
    const StepMeasure measured = MeasureOf(PassesOfStep(passes, step, steps));
    makespans.push_back(measured.makespan);
    bubbles.push_back(measured.bubble);
  }
  json stages = json::array();
  for (const parallel::StageSeconds& one : work) stages.push_back({one.forward, one.backward});
  Say({{"table", simulated.makespan},
       {"table_bubble", simulated.bubble},
       {"stages", stages},
       {"makespans", makespans},
       {"bubbles", bubbles},
       {"step", seconds / static_cast<double>(steps)}});
  TUTTI_RETURN_IF_ERROR(Write(options.trace, PassesOfStep(passes, TypicalStep(makespans), steps)));
  return Write(options.simulation, PassesOf(simulated));
}

absl::Status Measure(const Options& options, Rank& rank, size_t steps) {
  TUTTI_RETURN_IF_ERROR(rank.Steps(kWarmUp));
  rank.passes.clear();
  parallel::LapTimer timer;
  TUTTI_RETURN_IF_ERROR(rank.Steps(static_cast<int64_t>(steps)));
  const double seconds = timer.Lap();
  TUTTI_ASSIGN_OR_RETURN(const StagePasses passes, Gather(rank));
  if (rank.strategy->rank() != 0) return absl::OkStatus();
  return Report(options, passes, seconds, steps);
}

// In bytes, of this process: "VmRSS", "VmHWM".
int64_t FromStatus(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return 1024 * std::atoll(line.c_str() + name.size() + 1);
  }
  return 0;
}

// Bytes of gradients that lie in no memory of libtorch's, but in what the node's ranks share.
int64_t SharedGradients(const parallel::PipelineParallel& strategy) {
  int64_t bytes = 0;
  for (const auto& bucket : strategy.buckets()) {
    const torch::Tensor gradients = bucket->gradients();
    if (!CountedMemory::Made(gradients)) bytes += static_cast<int64_t>(gradients.nbytes());
  }
  return bytes;
}

absl::Status MeasureMemory(Options& options, int64_t steps) {
  CountedMemory& memory = CountedMemory::Begin();
  Rank rank;
  const int64_t started = FromStatus("VmRSS"), nothing = memory.live();
  TUTTI_RETURN_IF_ERROR(Prepare(options, rank));
  const int64_t batch =
      rank.batch.inputs.empty() ? int64_t{0} : static_cast<int64_t>(rank.batch.inputs[0].nbytes());
  const int64_t shared = SharedGradients(*rank.strategy);
  memory.ForgetMost();
  TUTTI_RETURN_IF_ERROR(rank.Steps(steps));
  Say({{"stage", rank.strategy->layout().stage()},
       {"tensors", memory.most() - nothing + shared},
       {"batch", batch},
       {"shared", shared},
       {"resident", FromStatus("VmHWM") - started}});
  return absl::OkStatus();
}

// "model=vgg16"
absl::Status Set(Options& options, const std::string& word) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  const auto& [name, value] = parts;
  if (name == "trace" || name == "simulation") {
    (name == "trace" ? options.trace : options.simulation) = value;
    return absl::OkStatus();
  }
  if (name == "width" && absl::SimpleAtoi(value, &options.sleeping.width)) return absl::OkStatus();
  if (name == "sleep") {
    const std::pair<std::string, std::string> both = absl::StrSplit(value, ',');
    options.sleeps = absl::SimpleAtod(both.first, &options.sleeping.forward) &&
                     absl::SimpleAtod(both.second, &options.sleeping.backward);
    options.sleeping.forward /= 1e3;
    options.sleeping.backward /= 1e3;
    if (options.sleeps) return absl::OkStatus();
  }
  for (const train::Field& field : train::FieldsOf(options.recipe)) {
    if (field.name == name) return base::Annotate(train::SetField(field, value), name);
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" says nothing here"));
}

absl::Status Main(const std::string& what, const std::vector<std::string>& words) {
  Options options;
  options.recipe.model = "resnet50";
  options.recipe.precision = "fp32";
  options.recipe.threads = 1;
  int64_t steps = 0;
  size_t first = 0;
  if (what == "steps" || what == "memory") {
    if (words.empty() || !absl::SimpleAtoi(words[first++], &steps) || steps < 1) {
      return absl::InvalidArgumentError(absl::StrCat(what, " wants a number of steps"));
    }
  }
  for (; first < words.size(); ++first) TUTTI_RETURN_IF_ERROR(Set(options, words[first]));
  PrepareMachine(options.recipe);
  if (what == "plan") return Plan(options);
  if (what == "memory") return MeasureMemory(options, steps);
  Rank rank;
  TUTTI_RETURN_IF_ERROR(Prepare(options, rank));
  if (what == "serve") return Serve(rank);
  if (what == "steps") return Measure(options, rank, static_cast<size_t>(steps));
  return absl::InvalidArgumentError(absl::StrCat("\"", what, "\" is nothing to do"));
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("pipeline_stage plan|serve|steps|memory [N] [FIELD=VALUE...]\n", stderr);
    return 2;
  }
  const absl::Status status = tutti::Main(argv[1], {argv + 2, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "pipeline_stage: %s\n", status.ToString().c_str());
  return 1;
}
