// Ways to train that are not there yet, each as a strategy of about a hundred lines over the
// interface alone: it carries them. Each equals a plain loop, bit for bit or to the last digits of
// fp64, and goes on from what it has saved.
// Covers: whole_state.cc, runtime/parallel/strategy.h, runtime/parallel/state_tensor.h.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <mutex>

#include "base/status.h"
#include "base/test_patience.h"
#include "runtime/models/state.h"
#include "runtime/parallel/mailbox.h"
#include "runtime/parallel/strategy.h"
#include "runtime/parallel/thread_group_fake.h"
#include "runtime/train/whole_state.h"

namespace tutti::train {
namespace {

using parallel::Batch;
using parallel::Layout;
using parallel::Mailbox;
using parallel::State;
using parallel::StateTensor;
using parallel::StepResult;
using parallel::Strategy;
using torch::Tensor;

constexpr double kSketchRate = 0.1;
constexpr int64_t kSketchSteps = 6, kSketchSamples = 8;

base::Deadline SoonEnough() { return base::Deadline::After(base::Patient(absl::Seconds(60))); }

// A linear layer, or what a test makes of it.
struct SketchLine : models::ModelImpl {
  SketchLine(int64_t inputs, int64_t outputs) {
    line = register_module("line", torch::nn::Linear(inputs, outputs));
    to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    for (Tensor& each : parameters()) {
      each.copy_(torch::arange(each.numel(), torch::kFloat64).view(each.sizes()).sin());
    }
  }
  Tensor forward(Tensor x) override { return line->forward(x); }
  torch::nn::Linear line = nullptr;
};

Tensor SquaredLoss(const Tensor& output, const Tensor& targets) {
  return (output - targets).square().sum();
}

std::vector<Tensor> GradientsOf(const Tensor& loss, const std::vector<Tensor>& of) {
  return torch::autograd::grad({loss}, of);
}

void Descend(const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients) {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor(parameters[i]).sub_(gradients[i], /*alpha=*/kSketchRate);
  }
}

// What the three have in common, which is little.
class Sketch : public Strategy {
 public:
  Sketch(Layout layout, models::Model model, std::unique_ptr<comm::Communicator> group)
      : layout_(std::move(layout)), model_(std::move(model)), stream_(std::move(group)) {}
  const Layout& layout() const override { return layout_; }
  const models::Model& model() const override { return model_; }
  const parallel::Buckets& buckets() const override { return buckets_; }
  absl::StatusOr<Tensor> Predict(const std::vector<Tensor>& inputs, base::Deadline) override {
    return model_->Outputs(inputs)[0];
  }
  void RequestStop() override {}

 protected:
  comm::Stream& ranks() override { return stream_; }
  State OfModel(const std::string& prefix, bool writes) const {
    State all;
    for (const auto& [name, tensor] : models::StateOf(*model_)) {
      all.push_back({.name = prefix + name, .tensor = tensor, .writes = writes});
    }
    return all;
  }

 private:
  const Layout layout_;
  const models::Model model_;
  const parallel::Buckets buckets_;
  comm::Stream stream_;
};

// Workers ask the last rank for the parameters and give it their gradients, which it takes up one
// after the other, in the workers' order.
class ParameterServer final : public Sketch {
 public:
  static std::unique_ptr<Strategy> Make(std::unique_ptr<comm::Communicator> group) {
    const int server = group->size() - 1;
    Layout layout{.rank = group->rank(),
                  .world_size = group->size(),
                  .role = group->rank() == server ? Layout::Role::kServes : Layout::Role::kTrains,
                  .axes = {{std::string(parallel::kDataAxis), server}}};
    std::vector<std::unique_ptr<Mailbox>> pulls, pushes;
    for (int worker = 0; worker < server; ++worker) {
      if (group->rank() != server && group->rank() != worker) continue;
      pulls.push_back(*Mailbox::Open(*group, {.from = server, .to = worker}, SoonEnough()));
      pushes.push_back(*Mailbox::Open(*group, {.from = worker, .to = server}, SoonEnough()));
    }
    return std::unique_ptr<Strategy>(new ParameterServer(std::move(layout), std::move(group),
                                                         std::move(pulls), std::move(pushes)));
  }
  ~ParameterServer() override {
    Mailbox::CloseAll(std::move(pulls_), /*sends=*/true);
    Mailbox::CloseAll(std::move(pushes_), /*sends=*/true);
  }
  State state() override { return OfModel("", !layout().trains()); }
  absl::Status Synchronize(base::Deadline) override { return absl::OkStatus(); }
  bool in_step() const override { return false; }
  absl::StatusOr<StepResult> Step(const Batch& batch, double, base::Deadline deadline) override {
    const std::vector<Tensor> parameters = model()->parameters();
    if (!layout().trains()) return Serve(parameters, deadline);
    pulls_[0]->Expect(1, deadline);
    TUTTI_ASSIGN_OR_RETURN(const parallel::Message pulled, pulls_[0]->Receive());
    {
      torch::NoGradGuard no_grad;
      for (size_t i = 0; i < parameters.size(); ++i) Tensor(parameters[i]).copy_(pulled[i]);
    }
    const Tensor loss = SquaredLoss(model()->forward(batch.inputs[0]), batch.targets);
    TUTTI_RETURN_IF_ERROR(pushes_[0]->Send(GradientsOf(loss, parameters), deadline));
    return StepResult{.loss = loss.item<double>(), .count = batch.targets.size(0)};
  }

 private:
  ParameterServer(Layout layout, std::unique_ptr<comm::Communicator> group,
                  std::vector<std::unique_ptr<Mailbox>> pulls,
                  std::vector<std::unique_ptr<Mailbox>> pushes)
      : Sketch(std::move(layout), std::make_shared<SketchLine>(3, 2), std::move(group)),
        pulls_(std::move(pulls)),
        pushes_(std::move(pushes)) {}
  absl::StatusOr<StepResult> Serve(const std::vector<Tensor>& parameters, base::Deadline deadline) {
    parallel::Message copy;
    for (const Tensor& each : parameters) copy.push_back(each.detach().clone());
    for (const auto& pull : pulls_) TUTTI_RETURN_IF_ERROR(pull->Send(copy, deadline));
    for (const auto& push : pushes_) {
      push->Expect(1, deadline);
      TUTTI_ASSIGN_OR_RETURN(const parallel::Message gradients, push->Receive());
      Descend(parameters, gradients);
    }
    return StepResult();
  }

  std::vector<std::unique_ptr<Mailbox>> pulls_, pushes_;
};

// The first of two stages takes what its predictor says for the gradient, and updates at once; the
// true gradient, which comes a step later, teaches the predictor.
class PredictedGradients final : public Sketch {
 public:
  static std::unique_ptr<Strategy> Make(std::unique_ptr<comm::Communicator> group) {
    const Layout layout = *parallel::LayOut({.pipeline = 2}, group->rank(), 2);
    auto forth = *Mailbox::Open(*group, {.from = 0, .to = 1, .waiting = 2}, SoonEnough());
    auto back = *Mailbox::Open(*group, {.from = 1, .to = 0, .waiting = 2}, SoonEnough());
    return std::unique_ptr<Strategy>(
        new PredictedGradients(layout, std::move(group), std::move(forth), std::move(back)));
  }
  ~PredictedGradients() override {
    std::vector<std::unique_ptr<Mailbox>> both;
    both.push_back(std::move(forth_));
    both.push_back(std::move(back_));
    Mailbox::CloseAll(std::move(both), /*sends=*/true);
  }
  State state() override {
    State all = OfModel(layout().stage() == 0 ? "0." : "1.", true);
    for (const auto& [name, tensor] : models::StateOf(*predictor_)) {
      all.push_back({.name = "predictor." + name,
                     .tensor = tensor,
                     .part = StateTensor::Part::kRun,
                     .writes = layout().stage() == 0});
    }
    return all;
  }
  absl::Status Synchronize(base::Deadline) override { return absl::OkStatus(); }
  bool in_step() const override { return false; }
  absl::StatusOr<StepResult> Step(const Batch& batch, double, base::Deadline deadline) override {
    if (layout().stage() == 1) return LastStage(batch, deadline);
    TUTTI_RETURN_IF_ERROR(Learn(deadline));
    const Tensor output = model()->forward(batch.inputs[0]);
    given_ = output.detach();
    TUTTI_RETURN_IF_ERROR(forth_->Send({given_, batch.targets}, deadline));
    const auto parameters = model()->parameters();
    const Tensor guess = predictor_->forward(given_).detach();
    Descend(parameters, torch::autograd::grad({output}, parameters, {guess}));
    return StepResult{.count = batch.targets.size(0)};
  }
  // Nothing is under way afterwards.
  absl::StatusOr<StepResult> Settle(base::Deadline deadline) override {
    if (layout().stage() == 0) TUTTI_RETURN_IF_ERROR(Learn(deadline));
    return StepResult();
  }

 private:
  PredictedGradients(const Layout& layout, std::unique_ptr<comm::Communicator> group,
                     std::unique_ptr<Mailbox> forth, std::unique_ptr<Mailbox> back)
      : Sketch(
            layout,
            std::make_shared<SketchLine>(layout.stage() == 0 ? 3 : 4, layout.stage() == 0 ? 4 : 2),
            std::move(group)),
        forth_(std::move(forth)),
        back_(std::move(back)) {}
  absl::Status Learn(base::Deadline deadline) {
    if (!given_.defined()) return absl::OkStatus();
    back_->Expect(1, deadline);
    TUTTI_ASSIGN_OR_RETURN(const parallel::Message truth, back_->Receive());
    const auto parameters = predictor_->parameters();
    Descend(parameters,
            GradientsOf(SquaredLoss(predictor_->forward(given_), truth[0]), parameters));
    given_ = Tensor();
    return absl::OkStatus();
  }
  // The labels are those of the activation, whichever batch this rank has.
  absl::StatusOr<StepResult> LastStage(const Batch& batch, base::Deadline deadline) {
    forth_->Expect(1, deadline);
    TUTTI_ASSIGN_OR_RETURN(const parallel::Message message, forth_->Receive());
    const Tensor input = message[0].requires_grad_(true);
    const Tensor loss = SquaredLoss(model()->forward(input), message[1]);
    std::vector<Tensor> parameters = model()->parameters(), all = parameters;
    all.push_back(input);
    std::vector<Tensor> gradients = GradientsOf(loss, all);
    TUTTI_RETURN_IF_ERROR(back_->Send({gradients.back()}, deadline));
    gradients.pop_back();
    Descend(parameters, gradients);
    return StepResult{.loss = loss.item<double>(), .count = batch.targets.size(0)};
  }

  const std::shared_ptr<SketchLine> predictor_ = std::make_shared<SketchLine>(4, 4);
  Tensor given_;  // whose true gradient is still to come
  std::unique_ptr<Mailbox> forth_, back_;
};

// Words and which of them count, [n, T] both -> [n, 2].
struct Reader : models::ModelImpl {
  Reader() {
    words = register_module("words", torch::nn::Embedding(11, 4));
    line = register_module("line", std::make_shared<SketchLine>(4, 2));
    to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    words->weight.copy_(torch::arange(44, torch::kFloat64).view({11, 4}).cos());
  }
  Tensor forward(Tensor) override { TORCH_CHECK(false, "it takes two inputs"); }
  std::vector<Tensor> Outputs(const std::vector<Tensor>& inputs) override {
    const Tensor weights = inputs.at(1).unsqueeze(2);
    return {line->forward((words->forward(inputs.at(0)) * weights).sum(1))};
  }
  torch::nn::Embedding words = nullptr;
  std::shared_ptr<SketchLine> line;
};

// Ranks add up their gradients; each holds everything, and of the words it writes its half.
class TokenParallel final : public Sketch {
 public:
  static std::unique_ptr<Strategy> Make(std::unique_ptr<comm::Communicator> group) {
    Layout layout = parallel::DataLayout(*group);
    return std::unique_ptr<Strategy>(new TokenParallel(std::move(layout), std::move(group)));
  }
  State state() override {
    State all;
    for (StateTensor& each : OfModel("", rank() == 0)) {
      if (each.name == "words.weight") each = HalfOf(each.tensor);
      all.push_back(std::move(each));
    }
    return all;
  }
  // Each half from its writer.
  absl::Status Synchronize(base::Deadline deadline) override {
    for (const auto& [name, tensor] : models::StateOf(*model())) {
      const Tensor shared = tensor.clone();
      if (name == "words.weight") {
        std::vector<double> sums(static_cast<size_t>(shared.numel()));
        const Tensor all = torch::from_blob(sums.data(), shared.sizes(), torch::kFloat64);
        const StateTensor half = HalfOf(tensor);
        all.narrow(0, half.begin[0], half.tensor.size(0)).copy_(half.tensor);
        TUTTI_RETURN_IF_ERROR(SumOverRanks(sums, deadline));
        tensor.copy_(all);
      } else {
        TUTTI_RETURN_IF_ERROR(Broadcast(tensor, deadline));
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<StepResult> Step(const Batch& batch, double, base::Deadline deadline) override {
    const auto parameters = model()->parameters();
    Tensor loss;
    std::vector<Tensor> gradients;
    for (const Batch& half : batch.Split(2)) {  // micro-batches
      loss = SquaredLoss(model()->Outputs(half.inputs)[0], half.targets);
      const auto found = GradientsOf(loss, parameters);
      for (size_t i = 0; i < found.size(); ++i) {
        if (gradients.size() < found.size())
          gradients.push_back(found[i].clone());
        else
          gradients[i].add_(found[i]);
      }
    }
    for (const Tensor& each : gradients) {
      TUTTI_RETURN_IF_ERROR(SumOverRanks(
          {each.mutable_data_ptr<double>(), static_cast<size_t>(each.numel())}, deadline));
    }
    Descend(parameters, gradients);
    return StepResult{.loss = loss.item<double>(), .count = batch.targets.size(0)};
  }

 private:
  TokenParallel(Layout layout, std::unique_ptr<comm::Communicator> group)
      : Sketch(std::move(layout), std::make_shared<Reader>(), std::move(group)) {}
  StateTensor HalfOf(const Tensor& words) const {
    const int64_t first = rank() == 0 ? 0 : 5, count = rank() == 0 ? 5 : 6;
    return {.name = "words.weight",
            .tensor = words.narrow(0, first, count),
            .shape = words.sizes().vec(),
            .begin = {first, 0}};
  }
};

struct Coming {
  int ranks = 2;
  std::function<std::unique_ptr<Strategy>(std::unique_ptr<comm::Communicator>)> make;
  std::function<Batch(int64_t step)> batch;  // over all ranks that train
};

struct Stored {
  checkpoint::TensorMap model, run;
};

// Trains the steps [first, last), from what was saved, if anything; returns what is saved then.
Stored TrainSteps(const Coming& way, const Stored& from, int64_t first, int64_t last) {
  Stored saved;
  parallel::OnEveryRank(way.ranks, [&](int rank, std::unique_ptr<comm::Communicator> group) {
    const auto strategy = way.make(std::move(group));
    const Layout& layout = strategy->layout();
    const absl::Duration moment = base::Patient(absl::Seconds(60));
    const absl::Status read = ReadWhole(*strategy, from.model, from.run, strategy->state(), moment);
    ASSERT_TRUE(read.ok()) << rank << ": " << read;
    ASSERT_TRUE(strategy->Synchronize(SoonEnough()).ok());
    for (int64_t step = first; step < last; ++step) {
      const Batch part =
          layout.trains()
              ? way.batch(step).Split(layout.replicas())[static_cast<size_t>(layout.replica())]
              : Batch{{}, torch::zeros({0})};
      const auto result = strategy->Step(part, kSketchRate, SoonEnough());
      ASSERT_TRUE(result.ok()) << rank << ": " << result.status();
      EXPECT_EQ(result->count, layout.trains() ? part.targets.size(0) : 0);
    }
    ASSERT_TRUE(strategy->Settle(SoonEnough()).ok());
    const absl::Status written =
        WriteWhole(*strategy, strategy->state(), moment, [&](const WholeSources& sources) {
          for (const auto& [files, to] :
               {std::pair(&sources.model, &saved.model), std::pair(&sources.run, &saved.run)}) {
            for (const std::string& name : checkpoint::FileOrder(*files)) {
              TUTTI_ASSIGN_OR_RETURN(const Tensor tensor, files->at(name).get());
              (*to)[name] = tensor.clone();
            }
          }
          return absl::OkStatus();
        });
    ASSERT_TRUE(written.ok()) << rank << ": " << written;
  });
  return saved;
}

// Of all tensors, the largest difference.
double LargestDifference(const checkpoint::TensorMap& a, const checkpoint::TensorMap& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(b.contains(name)) << name;
    if (b.contains(name)) {
      most = std::max(most, (tensor - b.at(name)).abs().max().item<double>());
    }
  }
  return most;
}

void ExpectPlainAndResumable(const Coming& way, const Stored& plain, double bound) {
  const Stored whole = TrainSteps(way, {}, 0, kSketchSteps);
  EXPECT_LE(LargestDifference(whole.model, plain.model), bound);
  EXPECT_LE(LargestDifference(whole.run, plain.run), bound);
  const Stored half = TrainSteps(way, {}, 0, kSketchSteps / 2);
  EXPECT_GT(LargestDifference(half.model, whole.model), 1e-6);
  const Stored resumed = TrainSteps(way, half, kSketchSteps / 2, kSketchSteps);
  EXPECT_EQ(LargestDifference(resumed.model, whole.model), 0);
  EXPECT_EQ(LargestDifference(resumed.run, whole.run), 0);
}

Batch ImagesOfStep(int64_t step) {
  const Tensor x =
      (torch::arange(kSketchSamples * 3, torch::kFloat64) + 100 * step).view({-1, 3}).sin();
  return {{x}, torch::stack({x.sum(1), x.select(1, 0)}, 1) / 4};
}

checkpoint::TensorMap NamedState(const std::string& prefix, const models::ModelImpl& model) {
  checkpoint::TensorMap named;
  for (const auto& [name, tensor] : models::StateOf(model)) named[prefix + name] = tensor.clone();
  return named;
}

TEST(ComingStrategies, AParameterServerEqualsGradientsTakenUpInTheWorkersOrder) {
  SketchLine plain(3, 2);
  for (int64_t step = 0; step < kSketchSteps; ++step) {
    std::vector<std::vector<Tensor>> gradients;
    for (const Batch& part : ImagesOfStep(step).Split(2)) {
      const Tensor loss = SquaredLoss(plain.forward(part.inputs[0]), part.targets);
      gradients.push_back(GradientsOf(loss, plain.parameters()));
    }
    for (const auto& each : gradients) Descend(plain.parameters(), each);
  }
  ExpectPlainAndResumable({3, ParameterServer::Make, ImagesOfStep}, {NamedState("", plain), {}}, 0);
}

TEST(ComingStrategies, PredictedGradientsBetweenStagesEqualOneLoopOverBoth) {
  SketchLine first(3, 4), last(4, 2), predictor(4, 4);
  for (int64_t step = 0; step < kSketchSteps; ++step) {
    const Batch batch = ImagesOfStep(step);
    const Tensor output = first.forward(batch.inputs[0]), given = output.detach();
    const Tensor guess = predictor.forward(given).detach();
    Descend(first.parameters(), torch::autograd::grad({output}, first.parameters(), {guess}));
    const Tensor input = given.clone().requires_grad_(true);
    const Tensor loss = SquaredLoss(last.forward(input), batch.targets);
    std::vector<Tensor> parameters = last.parameters(), all = parameters;
    all.push_back(input);
    std::vector<Tensor> gradients = GradientsOf(loss, all);
    const Tensor truth = gradients.back();
    gradients.pop_back();
    Descend(parameters, gradients);
    Descend(predictor.parameters(),
            GradientsOf(SquaredLoss(predictor.forward(given), truth), predictor.parameters()));
  }
  Stored plain{NamedState("0.", first), NamedState("predictor.", predictor)};
  plain.model.merge(NamedState("1.", last));
  ExpectPlainAndResumable({2, PredictedGradients::Make, ImagesOfStep}, plain, 0);
}

TEST(ComingStrategies, DataParallelismTakesBatchesOfTokensWithTwoInputs) {
  const auto batch = [](int64_t step) -> Batch {
    const Tensor words = (torch::arange(kSketchSamples * 5) * 7 + step).remainder(11).view({-1, 5});
    const Tensor counts = torch::ones({kSketchSamples, 5}, torch::kFloat64).tril(2) / 5;
    return {{words, counts}, torch::ones({kSketchSamples, 2}, torch::kFloat64) * 0.5};
  };
  Reader plain;
  for (int64_t step = 0; step < kSketchSteps; ++step) {
    const Batch whole = batch(step);
    const Tensor loss = SquaredLoss(plain.Outputs(whole.inputs)[0], whole.targets);
    Descend(plain.parameters(), GradientsOf(loss, plain.parameters()));
  }
  ExpectPlainAndResumable({2, TokenParallel::Make, batch}, {NamedState("", plain), {}}, 1e-12);
}

}  // namespace
}  // namespace tutti::train
