// Covers: runtime/parallel/pipeline/stages.cc, runtime/parallel/decoupled/cut_predictor.cc.
#include "runtime/parallel/decoupled/decoupled_stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>

#include <map>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "base/status.h"
#include "runtime/models/layers/layered_model.h"
#include "runtime/models/state.h"
#include "runtime/parallel/thread_group_fake.h"
#include "runtime/parallel/whole_model_fake.h"

namespace tutti::parallel {
namespace {

using Gradients = DecoupledOptions::Gradients;
using testing::Each;
using testing::HasSubstr;
using torch::Tensor;

constexpr double kStageRate = 0.1, kPredictorRate = 0.02;
constexpr int64_t kInABatch = 6, kStepsTaken = 9;

// [n, 6] -> 8 -> 7 -> [n, 5] in fp64, a layer each; the first two with batch-norm and ReLU.
class ThreeLayers final : public models::LayeredModel {
 public:
  ThreeLayers() {
    AddLayer("a", 6, 8, /*is_last=*/false);
    AddLayer("b", 8, 7, /*is_last=*/false);
    AddLayer("c", 7, 5, /*is_last=*/true);
  }

 private:
  void AddLayer(const std::string& name, int64_t in, int64_t out, bool is_last) {
    torch::nn::Linear line(in, out);
    torch::nn::BatchNorm1d norm(out);
    line->to(torch::kFloat64);
    norm->to(torch::kFloat64);
    torch::NoGradGuard no_grad;
    line->weight.copy_(torch::arange(in * out, torch::kFloat64).view({out, in}).sin());
    line->bias.copy_(torch::arange(out, torch::kFloat64).cos());
    models::Layer layer{.name = name, .modules = {{name + ".line", line.ptr()}}};
    if (!is_last) layer.modules.emplace_back(name + ".norm", norm.ptr());
    layer.forward = [line, norm, is_last](const models::Fork& x) mutable -> models::Fork {
      const Tensor y = line->forward(x.main);
      const Tensor z = is_last ? y : torch::relu(norm->forward(y));
      return {z, z};
    };
    Append(std::move(layer));
  }
};

Cut CutInto(int stages) { return stages == 1 ? Cut{0} : stages == 2 ? Cut{0, 1} : Cut{0, 1, 2}; }

struct StagesSetting {
  int stages = 3;
  Gradients gradients = Gradients::kSynthetic;
  models::PredictorSpec predictor = {.kind = "convolutions", .width = 4, .classes = 5};
  int64_t waiting = 1;
  bool drops = false;
  double predictor_rate = kPredictorRate;
};

absl::StatusOr<std::unique_ptr<DecoupledStages>> MakeStages(
    const StagesSetting& setting, std::unique_ptr<comm::Communicator> communicator) {
  const int rank = communicator->rank();
  TUTTI_ASSIGN_OR_RETURN(const Layout layout,
                         LayOut({.pipeline = setting.stages}, rank, communicator->size()));
  const DecoupledOptions options{.layout = layout,
                                 .cut = CutInto(setting.stages),
                                 .gradients = setting.gradients,
                                 .predictor = setting.predictor,
                                 .predictor_rate = setting.predictor_rate,
                                 .seed = 3,
                                 .waiting = setting.waiting,
                                 .drops = setting.drops,
                                 .optimizer = PlainDescents(),
                                 .predictor_optimizer = PlainDescents()};
  return DecoupledStages::Create(std::make_shared<ThreeLayers>(),
                                 torch::zeros({1, 6}, torch::kFloat64), std::move(communicator),
                                 options, SoonOfATest());
}

// Takes the steps from `step` up to `end` or to where all stop, and what was told of them.
struct Leg {
  StepResult told;
  double losses = 0;  // x samples
  int64_t end = 0, works = 0;
};
Leg TakeLeg(DecoupledStages& stages, int64_t step, int64_t end,
            const std::function<void(int64_t)>& before = nullptr, int64_t samples = kInABatch,
            double rate = kStageRate) {
  Leg leg;
  const auto add = [&](const StepResult& result) {
    leg.losses += result.loss * static_cast<double>(result.count);
    leg.told.count += result.count;
    leg.told.correct += result.correct;
  };
  for (Turn turn; !turn.last;) {
    // As the loop asks: after the leg's last step it is about the next meeting.
    const auto next = stages.NextTurn(step, step < end ? end : end + kStepsTaken, SoonOfATest());
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok()) return leg;
    turn = *next;
    step = turn.done;
    if (!turn.works) continue;
    if (before) before(step);
    const Batch batch =
        stages.layout().stage() == 0 ? BatchOfStep(step, samples) : Batch{{}, torch::zeros({0})};
    const auto result = stages.Step(batch, rate, SoonOfATest());
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return leg;
    add(*result);
    ++leg.works;
    ++step;
  }
  leg.end = step;
  const auto settled = stages.Settle(SoonOfATest());
  EXPECT_TRUE(settled.ok()) << settled.status();
  if (settled.ok()) add(*settled);
  leg.told.stop = settled.ok() && settled->stop;
  return leg;
}

using Tensors = std::map<std::string, Tensor>;

void Copy(const State& state, Tensors& into) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const StateTensor& each : state) into[each.name] = each.tensor.detach().clone();
}

// What the ranks hold after the legs, each up to one of `ends`.
Tensors TrainedBy(const StagesSetting& setting, const std::vector<int64_t>& ends,
                  const Tensors& begin = {}, int64_t step = 0) {
  Tensors all;
  OnEveryRank(setting.stages, [&](int, std::unique_ptr<comm::Communicator> communicator) {
    auto stages = MakeStages(setting, std::move(communicator));
    ASSERT_TRUE(stages.ok()) << stages.status();
    torch::NoGradGuard no_grad;
    for (const StateTensor& each : (*stages)->state()) {
      if (!begin.empty()) each.tensor.copy_(begin.at(each.name));
    }
    const torch::AutoGradMode with_gradients(true);
    ASSERT_TRUE((*stages)->Synchronize(SoonOfATest()).ok());
    int64_t at = step;
    for (const int64_t end : ends) {
      TakeLeg(**stages, at, end);
      at = end;
    }
    Copy((*stages)->state(), all);
  });
  return all;
}

void Descend(const std::vector<Tensor>& parameters, const std::vector<Tensor>& gradients,
             double rate) {
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor(parameters[i]).sub_(gradients[i], /*alpha=*/rate);
  }
}

// The same training in one thread by nothing but autograd's grad, a stage after the other in each
// step: what a stage's gradient is when it is taken up does not depend on who was first.
class PlainStages {
 public:
  explicit PlainStages(const StagesSetting& setting) : setting_(setting) {
    const auto whole = std::make_shared<ThreeLayers>();
    std::vector<models::Layer> layers = whole->Layers();
    const Cut cut = CutInto(setting.stages);
    for (size_t s = 0; s < cut.size(); ++s) {
      const size_t end = s + 1 < cut.size() ? cut[s + 1] : layers.size();
      stages_.push_back({models::MakeStage({layers.begin() + static_cast<ptrdiff_t>(cut[s]),
                                            layers.begin() + static_cast<ptrdiff_t>(end)})});
      if (s + 1 < cut.size() && setting.gradients == Gradients::kSynthetic) {
        stages_[s].predictor = *models::MakePredictor(
            setting.predictor, torch::zeros({1, s == 0 ? 8 : 7}, torch::kFloat64), 3, NameOf(s));
        if (setting.predictor.is_auxiliary()) stages_[s].scale = 1;
      }
    }
  }

  void TakeSteps(int64_t begin, int64_t end) {
    for (int64_t step = begin; step < end; ++step) {
      Batch batch = BatchOfStep(step, kInABatch);
      Tensor input = batch.inputs[0];
      for (size_t s = 0; s < stages_.size(); ++s) input = StepOf(s, step, input, batch.targets);
    }
    for (size_t s = stages_.size() - 1; s-- > 0;) {
      while (!stages_[s].kept.empty()) TakeUp(s);
    }
  }

  Tensors State() const {
    Tensors all;
    for (size_t s = 0; s < stages_.size(); ++s) {
      for (const auto& [name, tensor] : models::StateOf(*stages_[s].model)) all[name] = tensor;
      if (stages_[s].predictor == nullptr) continue;
      for (const auto& [name, tensor] : models::StateOf(*stages_[s].predictor)) {
        all[absl::StrCat(NameOf(s), ".", name)] = tensor;
      }
      all[absl::StrCat(NameOf(s), ".scale")] = torch::full({1}, stages_[s].scale, torch::kFloat64);
    }
    return all;
  }

 private:
  std::string NameOf(size_t stage) const {
    return absl::StrCat("predictor.", stage == 0 ? "b." : "c.", setting_.predictor.kind, "-",
                        setting_.predictor.width, "-", setting_.predictor.classes);
  }
  struct Waiting {
    Tensor input, activation, targets, gradient;  // the gradient as soon as there is one
  };
  struct Stage {
    models::Model model, predictor;
    double scale = 0;
    std::deque<Waiting> kept;
  };

  // Returns the activation.
  Tensor StepOf(size_t s, int64_t step, const Tensor& given, const Tensor& targets) {
    Stage& stage = stages_[s];
    const bool is_last = s + 1 == stages_.size();
    const size_t lag = static_cast<size_t>(setting_.waiting) * (stages_.size() - 1 - s);
    while (!is_last && stage.kept.size() >= lag) TakeUp(s);
    stage.model->train();
    const Tensor input = given.detach().clone().requires_grad_(true);
    const Tensor output = stage.model->forward(input);
    std::vector<Tensor> wanted = stage.model->parameters();
    wanted.push_back(input);
    const auto samples = static_cast<double>(kInABatch);
    if (is_last) {
      const Tensor loss = tasks::Classification().LossOf({output}, targets).sum / samples;
      Train(s, torch::autograd::grad({loss}, wanted));
      return Tensor();
    }
    stage.kept.push_back({input, output.detach(), targets});
    if (setting_.gradients == Gradients::kSynthetic) {
      const Tensor guess = stage.predictor->Outputs({output.detach(), targets})[0].detach();
      Train(s, torch::autograd::grad({output}, wanted, {guess * (stage.scale / samples)}));
    }
    return output.detach();
  }
  // Updates a stage, and gives the one before it the gradient that is its own.
  void Train(size_t s, std::vector<Tensor> gradients) {
    if (s > 0) {
      for (Waiting& each : stages_[s - 1].kept) {
        if (each.gradient.defined()) continue;
        each.gradient = gradients.back();
        break;
      }
    }
    gradients.pop_back();
    Descend(stages_[s].model->parameters(), gradients, kStageRate);
  }
  void TakeUp(size_t s) {
    Stage& stage = stages_[s];
    const Waiting kept = stage.kept.front();
    stage.kept.pop_front();
    if (setting_.gradients == Gradients::kDelayed) {
      std::vector<Tensor> before;
      for (const Tensor& each : stage.model->buffers()) before.push_back(each.clone());
      const Tensor output = stage.model->forward(kept.input);
      std::vector<Tensor> wanted = stage.model->parameters();
      wanted.push_back(kept.input);
      std::vector<Tensor> gradients = torch::autograd::grad({output}, wanted, {kept.gradient});
      for (size_t i = 0; i < before.size(); ++i) stage.model->buffers()[i].copy_(before[i]);
      return Train(s, std::move(gradients));
    }
    const auto samples = static_cast<double>(kInABatch);
    if (setting_.predictor.is_auxiliary()) {
      const std::vector<Tensor> parameters = stage.predictor->parameters();
      const Tensor loss = stage.predictor->Outputs({kept.activation, kept.targets})[1] / samples;
      return Descend(parameters, torch::autograd::grad({loss}, parameters), kPredictorRate);
    }
    const Tensor guess = stage.predictor->Outputs({kept.activation, kept.targets})[0];
    const Tensor truth = kept.gradient * samples;
    const double root =
        std::sqrt(truth.square().sum().item<double>() / static_cast<double>(truth.numel()));
    stage.scale = stage.scale == 0 ? root : 0.95 * stage.scale + 0.05 * root;
    if (stage.scale == 0)
      return;  // a guess that was zero, of a stage whose predictor had not learnt
    const Tensor loss = (guess - truth / stage.scale).square().sum() / samples;
    const std::vector<Tensor> parameters = stage.predictor->parameters();
    Descend(parameters, torch::autograd::grad({loss}, parameters), kPredictorRate);
  }

  const StagesSetting setting_;
  std::vector<Stage> stages_;
};

void ExpectSame(const Tensors& own, const Tensors& expected) {
  ASSERT_EQ(own.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(own.contains(name)) << name;
    EXPECT_TRUE(torch::equal(own.at(name), tensor)) << name;
  }
}

class Ways : public ::testing::TestWithParam<StagesSetting> {};

TEST_P(Ways, EqualAPlainLoopBitForBit) {
  PlainStages plain(GetParam());
  plain.TakeSteps(0, 5);
  plain.TakeSteps(5, kStepsTaken);
  ExpectSame(TrainedBy(GetParam(), {5, kStepsTaken}), plain.State());
}

TEST_P(Ways, GoOnFromWhatTheyHeldWhereAllMet) {
  const Tensors at_five = TrainedBy(GetParam(), {5});
  ExpectSame(TrainedBy(GetParam(), {kStepsTaken}, at_five, 5),
             TrainedBy(GetParam(), {5, kStepsTaken}));
}

INSTANTIATE_TEST_SUITE_P(
    DecoupledStages, Ways,
    ::testing::Values(StagesSetting{}, StagesSetting{.predictor = {.kind = "linear"}},
                      StagesSetting{.predictor = {.kind = "auxiliary", .classes = 5}},
                      StagesSetting{.predictor = {.kind = "linear", .classes = 5}, .waiting = 2},
                      StagesSetting{.stages = 2, .waiting = 3},
                      StagesSetting{.gradients = Gradients::kDelayed},
                      StagesSetting{.stages = 2, .gradients = Gradients::kDelayed, .waiting = 2}));

TEST(DecoupledStages, WithTheTrueGradientAreBackpropagation) {
  const auto whole = std::make_shared<ThreeLayers>();
  whole->train();
  for (int64_t step = 0; step < kStepsTaken; ++step) {
    const Batch batch = BatchOfStep(step, kInABatch);
    const Tensor loss =
        tasks::Classification().LossOf({whole->forward(batch.inputs[0])}, batch.targets).sum /
        static_cast<double>(kInABatch);
    Descend(whole->parameters(), torch::autograd::grad({loss}, whole->parameters()), kStageRate);
  }
  Tensors plain;
  for (const auto& [name, tensor] : models::StateOf(*whole)) plain[name] = tensor;
  for (const int stages : {1, 2, 3}) {
    ExpectSame(TrainedBy({.stages = stages, .gradients = Gradients::kAwaited}, {4, kStepsTaken}),
               plain);
  }
}

TEST(DecoupledStages, TellWhatTheLastStageHasSeen) {
  std::vector<Leg> legs(3);
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto stages = MakeStages({}, std::move(communicator));
    ASSERT_TRUE(stages.ok()) << stages.status();
    legs[static_cast<size_t>(rank)] = TakeLeg(**stages, 0, kStepsTaken);
    const std::vector<Figure> figures = (*stages)->Figures();
    ASSERT_EQ(figures[2].name, "gradient_staleness");
    // The gradient of step k is taken up before step k + 2, by the second stage before k + 1; of
    // the last steps at the end.
    const double staleness[] = {(7 * 2 + 2 + 1) / 9.0, (8 * 1 + 1) / 9.0, 0};
    EXPECT_NEAR(figures[2].value, staleness[rank], 1e-12);
    EXPECT_EQ(figures[3].value, 0);
  });
  for (const Leg& leg : legs) {
    EXPECT_EQ(leg.told.count, kStepsTaken * kInABatch);
    EXPECT_DOUBLE_EQ(leg.losses, legs[2].losses);
    EXPECT_EQ(leg.told.correct, legs[2].told.correct);
    EXPECT_EQ(leg.works, kStepsTaken);
    EXPECT_FALSE(leg.told.stop);
  }
}

TEST(DecoupledStages, AStopOfAnyStageEndsAllAtOneStep) {
  for (const int who : {0, 2}) {
    std::vector<Leg> legs(3);
    OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto stages = MakeStages({}, std::move(communicator));
      ASSERT_TRUE(stages.ok()) << stages.status();
      legs[static_cast<size_t>(rank)] = TakeLeg(**stages, 0, 1 << 20, [&](int64_t step) {
        if (rank == who && step == 7) (*stages)->RequestStop();
      });
    });
    for (const Leg& leg : legs) {
      EXPECT_TRUE(leg.told.stop);
      EXPECT_EQ(leg.end, legs[0].end);
    }
    EXPECT_LT(legs[0].end, 20);
  }
}

// Samples of a batch whose activation is larger than what lies between two ranks.
constexpr int64_t kLarge = 50'000;

// The second stage does nothing before the first has done fifty steps: none of its updates can have
// been by a gradient of the second.
void GoOnAlone(Gradients gradients) {
  constexpr int64_t kAlone = 50;
  absl::Notification alone;
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto stages = MakeStages({.stages = 2, .gradients = gradients, .waiting = 2, .drops = true},
                             std::move(communicator));
    ASSERT_TRUE(stages.ok()) << stages.status();
    std::vector<int64_t> seen;
    if (rank == 1) alone.WaitForNotification();
    const Leg leg = TakeLeg(
        **stages, 0, kAlone + 10,
        [&](int64_t step) {
          seen.push_back(step);
          if (rank == 0 && step == kAlone && !alone.HasBeenNotified()) alone.Notify();
        },
        kLarge);
    EXPECT_EQ(leg.end, kAlone + 10);
    if (rank == 0) {
      EXPECT_EQ(leg.works, kAlone + 10);
      const double dropped = (*stages)->Figures()[3].value;
      EXPECT_GE(dropped, kAlone - 10);
      EXPECT_EQ(leg.told.count, (kAlone + 10 - static_cast<int64_t>(dropped)) * kLarge);
    } else {
      EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
      EXPECT_EQ(leg.told.count, static_cast<int64_t>(seen.size()) * kLarge);
      EXPECT_THAT(seen, testing::Not(testing::Contains(kAlone / 2)));
    }
  });
}
TEST(DecoupledStages, TheFirstGoesOnWhileTheSecondStandsStill) {
  GoOnAlone(Gradients::kSynthetic);
  GoOnAlone(Gradients::kDelayed);
}

// The middle one drops batches while earlier ones are behind it: the first hears of all in order.
// The first waits for the middle one to take each batch, and so drops none itself, until fifty are
// taken; meanwhile the last one stands still.
TEST(DecoupledStages, AMiddleStageThatDropsTellsOfItInOrder) {
  constexpr int64_t kHeld = 50;
  for (const Gradients gradients : {Gradients::kSynthetic, Gradients::kDelayed}) {
    absl::Notification held;
    absl::Mutex mutex;
    int64_t taken = 0;  // by the middle one
    OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto stages = MakeStages({.gradients = gradients, .drops = true}, std::move(communicator));
      ASSERT_TRUE(stages.ok()) << stages.status();
      if (rank == 2) held.WaitForNotification();
      const auto wait_for_the_middle_one = [&](int64_t step) {
        const auto has_taken = [&] { return taken >= step; };
        mutex.LockWhenWithTimeout(absl::Condition(&has_taken), SoonOfATest().Remaining());
        EXPECT_GE(taken, step);
        mutex.Unlock();
        if (step == kHeld) held.Notify();
      };
      const Leg leg = TakeLeg(
          **stages, 0, kHeld + 10,
          [&](int64_t step) {
            if (rank == 0 && step <= kHeld) wait_for_the_middle_one(step);
            if (rank != 1) return;
            const absl::MutexLock lock(&mutex);
            ++taken;
          },
          kLarge);
      EXPECT_EQ(leg.end, kHeld + 10);
      if (rank != 1) return;
      EXPECT_GT((*stages)->Figures()[3].value, 0);
    });
  }
}

TEST(DecoupledStages, PredictByTheWholeModel) {
  const Tensor inputs = BatchOfStep(0, kInABatch).inputs[0];
  const auto whole = std::make_shared<ThreeLayers>();
  whole->eval();
  const Tensor expected = whole->forward(inputs);
  OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto stages = MakeStages({.drops = true}, std::move(communicator));
    ASSERT_TRUE(stages.ok()) << stages.status();
    for (int i = 0; i < 12; ++i) {
      const auto output = (*stages)->Predict({inputs}, SoonOfATest());
      ASSERT_TRUE(output.ok()) << output.status();
      if (rank < 2) continue;
      EXPECT_TRUE(torch::equal(*output, expected));
    }
  });
}

// Zero is what a predictor begins with: a stage before it stays as it was.
TEST(DecoupledStages, AZeroPredictorTrainsTheLastStageAlone) {
  const Tensors trained = TrainedBy({.predictor = {.kind = "zero"}}, {kStepsTaken});
  const auto fresh = std::make_shared<ThreeLayers>();
  const auto parameters = fresh->named_parameters();
  EXPECT_TRUE(torch::equal(trained.at("a.line.weight"), parameters["a.line.weight"]));
  EXPECT_TRUE(torch::equal(trained.at("b.line.weight"), parameters["b.line.weight"]));
  EXPECT_FALSE(torch::equal(trained.at("c.line.weight"), parameters["c.line.weight"]));
}

// Where the stages stand still the guess comes to point where the gradient does.
TEST(DecoupledStages, APredictorLearnsTheGradient) {
  OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    auto stages = MakeStages(
        {.stages = 2, .predictor = {.kind = "linear", .classes = 5}, .predictor_rate = 0.01},
        std::move(communicator));
    ASSERT_TRUE(stages.ok()) << stages.status();
    for (int64_t leg = 0; leg < 200; ++leg) TakeLeg(**stages, 0, 1, nullptr, kInABatch, 0);
    (*stages)->Figures();
    TakeLeg(**stages, 0, 1, nullptr, kInABatch, 0);
    const std::vector<Figure> figures = (*stages)->Figures();
    if (rank == 0) {
      EXPECT_GT(figures[1].value, 0.8);  // cosine; of a guess at random about zero
      EXPECT_LT(figures[0].value, 0.5);  // error; of zero it is one
    }
  });
}

TEST(DecoupledStages, SayWhatDoesNotGoOnEveryRank) {
  OnEveryRank(2, [&](int, std::unique_ptr<comm::Communicator> communicator) {
    EXPECT_THAT(MakeStages({.stages = 2, .predictor = {.kind = "magic"}}, std::move(communicator))
                    .status()
                    .message(),
                HasSubstr("behind stage 0: no predictor is called \"magic\""));
  });
}

}  // namespace
}  // namespace tutti::parallel
