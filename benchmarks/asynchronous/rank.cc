// A rank that trains when it is asked to, for benchmarks/asynchronous/compare and
// benchmarks/synthetic_gradients/compare: tutti's own strategies on a model whose steps take a
// given time (padded_model.h), and of a pipeline on stages that sleep (sleeping_model.h).
//
//   asynchronous_rank CONTROL_SOCKET [FIELD=VALUE...]      (RANK, WORLD_SIZE, MASTER_ADDR and
//                                                           MASTER_PORT are set)
//
// Fields are a recipe's, as parallel=sync=diloco,every=24, optimizer=adamw, batch=16; pad=MS that a
// pass takes, slow=RANK for which it takes twice as long, layers=N, width=N; of a pipeline, each of
// whose stages has one layer, pass=F,B, the MS of a stage's passes with the whole batch.
//
// Asked "steps N" it answers with "SECONDS STEPS PROCESSOR UPDATE": the time by the clock in which
// so many steps were taken, the processor's seconds of its process, and those that updates of
// parameters took. Ranks that take turns, and stages that wait for nobody, leave the first and the
// last tenth of the N out of the first two, since not all work then, and meet at the end. Others do
// not meet, and go on in the next N where they were.
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "benchmarks/asynchronous/padded_model.h"
#include "benchmarks/collectives/ranks/rank_program.h"
#include "benchmarks/pipeline/sleeping_model.h"
#include "runtime/comm/group_options.h"
#include "runtime/parallel/decoupled/decoupled_stages.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/pipeline/pipeline_parallel.h"
#include "runtime/train/optimizer/optimizers.h"
#include "runtime/train/setup/pipeline_plan.h"
#include "runtime/train/setup/prepare_machine.h"
#include "runtime/train/setup/run_parts.h"

namespace tutti {
namespace {

constexpr double kLearningRate = 1e-4;

base::Deadline Soon() { return base::Deadline::After(absl::Seconds(300)); }

struct Options {
  train::Recipe recipe;
  PaddedOptions model;
  SleepingOptions stage;
  int64_t slow = -1;
};

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Training {
 public:
  Training(std::unique_ptr<parallel::Strategy> strategy, const Options& options)
      : strategy_(std::move(strategy)) {
    const int64_t share = options.recipe.batch / strategy_->layout().shares();
    batch_ = {{torch::randn({share, options.model.width})},
              torch::randint(options.model.width, {share}, torch::kInt64)};
    if (!strategy_->layout().trains()) batch_ = {{}, torch::zeros({0})};
    if (!strategy_->layout().reads_inputs()) batch_.inputs.clear();
  }

  int rank() const { return strategy_->rank(); }

  // See above.
  absl::StatusOr<std::string> Steps(int64_t count) {
    std::vector<double> together = {0};
    TUTTI_RETURN_IF_ERROR(strategy_->SumOverRanks(together, Soon()));
    const bool meets = strategy_->layout().takes_turns || strategy_->layout().targets_travel;
    const int64_t begin = step_, end = step_ + count, edge = count / 10;
    const double processor = ProcessorSeconds();
    double update = 0, updates = 0, now = 0;
    Mark first, last;
    parallel::LapTimer timer;
    for (parallel::Turn turn; !turn.last;) {
      TUTTI_ASSIGN_OR_RETURN(turn, strategy_->NextTurn(step_, end, Soon()));
      now += timer.Lap();
      step_ = turn.done;
      if (first.step < begin + edge) first = {now, step_};
      if (step_ <= end - edge) last = {now, step_};
      if (!turn.works) continue;
      TUTTI_ASSIGN_OR_RETURN(const parallel::StepResult result,
                             strategy_->Step(batch_, kLearningRate, Soon()));
      ++step_;
      update += result.times.update;
      ++updates;
    }
    if (!meets) {
      first = {0, begin};
      last = {now + timer.Lap(), end};
    }
    const double used = ProcessorSeconds() - processor;
    if (meets) {
      step_ = end;
      TUTTI_RETURN_IF_ERROR(strategy_->Settle(Soon()).status());
    }
    return absl::StrFormat("%.9g %d %.9g %.9g", last.seconds - first.seconds,
                           last.step - first.step, used, update / std::max(updates, 1.0));
  }

 private:
  struct Mark {
    double seconds = 0;
    int64_t step = 0;
  };

  const std::unique_ptr<parallel::Strategy> strategy_;
  parallel::Batch batch_;
  int64_t step_ = 0;
};

absl::StatusOr<std::unique_ptr<parallel::Strategy>> MakeStages(
    Options options, std::unique_ptr<comm::Communicator> ranks) {
  train::Recipe& recipe = options.recipe;
  const int stages = ranks->size();
  TUTTI_ASSIGN_OR_RETURN(parallel::Layout layout,
                         parallel::LayOut(recipe.parallel.mesh, ranks->rank(), stages));
  options.stage.layers = stages;
  options.stage.samples = recipe.batch;
  options.stage.slow = options.slow;
  options.stage.width = options.model.width;
  const models::Model whole = MakeSleepingModel(options.stage);
  parallel::Cut cut;
  for (size_t stage = 0; stage < static_cast<size_t>(stages); ++stage) cut.push_back(stage);
  const auto optimizer = [recipe](const parallel::Buckets& buckets, const models::Model&) {
    return train::MakeOptimizer(recipe, buckets);
  };
  const parallel::Decoupling& decoupling = recipe.parallel.decoupling;
  if (!decoupling.is_on()) {
    return parallel::PipelineParallel::Create(
        whole, std::move(ranks),
        {.layout = layout,
         .cut = cut,
         .timetable = parallel::ScheduleNamed(recipe.pipeline_schedule).make,
         .micro_batches = recipe.accumulation,
         .optimizer = optimizer},
        Soon());
  }
  layout.targets_travel = true;
  using Gradients = parallel::DecoupledOptions::Gradients;
  return parallel::DecoupledStages::Create(
      whole, torch::randn({1, options.stage.width}), std::move(ranks),
      {.layout = layout,
       .cut = cut,
       .gradients = decoupling.gradients == "delayed" ? Gradients::kDelayed : Gradients::kSynthetic,
       .predictor = {.kind = decoupling.predictor, .width = decoupling.width},
       .predictor_rate = decoupling.predictor_rate,
       .waiting = decoupling.waiting,
       .drops = decoupling.full == "drop",
       .optimizer = optimizer,
       .predictor_optimizer = train::PredictorOptimizer(recipe)},
      Soon());
}

absl::Status Set(Options& options, const std::string& word) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
  const auto& [name, value] = parts;
  if (name == "pad" && absl::SimpleAtod(value, &options.model.seconds)) {
    options.model.seconds /= 1e3;
    return absl::OkStatus();
  }
  if (name == "pass") {
    const std::pair<std::string, std::string> both = absl::StrSplit(value, absl::MaxSplits(',', 1));
    if (absl::SimpleAtod(both.first, &options.stage.forward) &&
        absl::SimpleAtod(both.second, &options.stage.backward)) {
      options.stage.forward /= 1e3;
      options.stage.backward /= 1e3;
      return absl::OkStatus();
    }
  }
  int64_t* const number = name == "slow"     ? &options.slow
                          : name == "layers" ? &options.model.layers
                          : name == "width"  ? &options.model.width
                                             : nullptr;
  if (number != nullptr && absl::SimpleAtoi(value, number)) return absl::OkStatus();
  for (const train::Field& field : train::FieldsOf(options.recipe)) {
    if (field.name == name) return base::Annotate(train::SetField(field, value), name);
  }
  return absl::InvalidArgumentError(absl::StrCat("\"", word, "\" says nothing here"));
}

absl::Status Main(const char* control, const std::vector<std::string>& words) {
  Options options;
  options.recipe.precision = "fp32";
  options.recipe.threads = 1;
  options.recipe.batch = 8;
  for (const std::string& word : words) TUTTI_RETURN_IF_ERROR(Set(options, word));
  train::PrepareMachine(options.recipe.threads, /*gpu=*/false);
  TUTTI_ASSIGN_OR_RETURN(const comm::GroupOptions group, comm::GroupOptionsFromEnvironment());
  TUTTI_ASSIGN_OR_RETURN(auto communicator, comm::JoinGroup(group));
  if (options.slow == communicator->rank()) options.model.seconds *= 2;
  TUTTI_ASSIGN_OR_RETURN(auto strategy,
                         options.recipe.parallel.mesh.pipeline > 1
                             ? MakeStages(options, std::move(communicator))
                             : train::MakeStrategy(options.recipe, MakePaddedModel(options.model),
                                                   std::move(communicator)));
  TUTTI_RETURN_IF_ERROR(strategy->Synchronize(Soon()));
  Training training(std::move(strategy), options);
  benchmark::Driver driver(control);
  driver.Say(absl::StrCat("rank ", training.rank()));
  for (std::string line = driver.ReadLine(); line != "quit"; line = driver.ReadLine()) {
    int64_t count = 0;
    if (std::sscanf(line.c_str(), "steps %ld", &count) != 1 || count < 1) {
      return absl::InvalidArgumentError(absl::StrCat("told \"", line, "\""));
    }
    TUTTI_ASSIGN_OR_RETURN(const std::string answer, training.Steps(count));
    driver.Say(answer);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) {
  if (argc < 2) tutti::benchmark::Fail("usage: asynchronous_rank CONTROL_SOCKET [FIELD=VALUE...]");
  const absl::Status status = tutti::Main(argv[1], {argv + 2, argv + argc});
  if (!status.ok()) tutti::benchmark::Fail(status.ToString());
  return 0;
}
