// Covers: served.cc, parameter_worker.cc, parameter_server.cc.
#include "runtime/parallel/servers/parameter_servers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/nn/functional/loss.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "runtime/parallel/servers/served.h"
#include "runtime/parallel/thread_group_fake.h"
#include "runtime/parallel/whole_model_fake.h"

namespace tutti::parallel {
namespace {

using testing::ElementsAre;
using torch::Tensor;

constexpr int64_t kServedSamples = 4;  // of a step
constexpr double kServedRate = 0.125;

ParameterServersOptions ServedOptionsOf(const Layout& layout, int64_t staleness) {
  return {.layout = layout,
          .inner = {.bucket_bytes = 256, .optimizer = PlainDescents()},
          .staleness = staleness};
}

// Does what the training loop does from step to step, and tells what it saw.
struct WorkerSeen {
  std::vector<int64_t> steps;  // of the run, whose samples this rank took
  size_t done = 0;             // of these
  double most_staleness = 0;
  int64_t samples = 0;
  std::vector<Tensor> values;  // after the last meeting
  bool stopped = false;
};

void WorkServed(Strategy& strategy, int64_t step, int64_t end, WorkerSeen& seen,
                const std::function<void(int64_t)>& before_step = nullptr) {
  for (bool is_over = false; !is_over;) {
    const auto turn = strategy.NextTurn(step, end, SoonOfATest());
    ASSERT_TRUE(turn.ok()) << turn.status();
    seen.steps.insert(seen.steps.end(), turn->steps.begin(), turn->steps.end());
    is_over = turn->last;
    step = turn->done;
    if (!turn->works) continue;
    Batch batch;
    if (strategy.layout().trains()) {
      const int64_t own = seen.steps.at(seen.done++);
      if (before_step) before_step(own);
      batch = BatchOfStep(own, kServedSamples);
    }
    const auto result = strategy.Step(batch, kServedRate, SoonOfATest());
    ASSERT_TRUE(result.ok()) << result.status();
    seen.samples += result->count;
    ++step;
  }
  const auto settled = strategy.Settle(SoonOfATest());
  ASSERT_TRUE(settled.ok()) << settled.status();
  seen.samples += settled->count;
  seen.stopped = settled->stop;
  for (const Figure& each : strategy.Figures()) {
    if (each.name == "staleness_most") seen.most_staleness = each.value;
  }
}

std::vector<WorkerSeen> RunServed(int workers, int servers, int64_t staleness, int64_t steps,
                                  const std::function<void(int, int64_t)>& before_step = nullptr) {
  std::vector<WorkerSeen> all(static_cast<size_t>(workers + servers));
  OnEveryRank(workers + servers, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const Layout layout = *LayOut({.servers = servers}, rank, workers + servers);
    const models::Model model = std::make_shared<TwoLayers>();
    auto strategy = MakeParameterServers(model, std::move(communicator),
                                         ServedOptionsOf(layout, staleness), SoonOfATest());
    ASSERT_TRUE(strategy.ok()) << strategy.status();
    ASSERT_TRUE((*strategy)->Synchronize(SoonOfATest()).ok());
    WorkerSeen& seen = all[static_cast<size_t>(rank)];
    WorkServed(**strategy, 0, steps, seen, [&](int64_t step) {
      if (before_step) before_step(rank, step);
    });
    if (layout.trains()) seen.values = ValuesOf(model);
  });
  return all;
}

std::vector<Tensor> ServedGradientsAt(const models::Model& model, int64_t step) {
  const Batch batch = BatchOfStep(step, kServedSamples);
  const Tensor loss =
      torch::nn::functional::cross_entropy(model->forward(batch.inputs[0]), batch.targets);
  return torch::autograd::grad({loss}, model->parameters());
}

TEST(ParameterServers, RoundsEqualOneProcessBitForBit) {
  constexpr int kWorkers = 3;
  constexpr int64_t kSteps = 11;  // of the last round two
  const auto seen = RunServed(kWorkers, 2, 0, kSteps);
  const auto model = std::make_shared<TwoLayers>();
  for (int64_t begin = 0; begin < kSteps; begin += kWorkers) {
    const int64_t end = std::min(begin + kWorkers, kSteps);
    std::vector<Tensor> sums = ServedGradientsAt(model, begin);
    for (int64_t step = begin + 1; step < end; ++step) {
      const auto more = ServedGradientsAt(model, step);
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = sums[i] + more[i];
    }
    torch::NoGradGuard no_grad;
    const auto parameters = model->parameters();
    for (size_t i = 0; i < sums.size(); ++i) {
      const double count = static_cast<double>(end - begin);
      Tensor(parameters[i]).sub_(count > 1 ? sums[i] / count : sums[i], kServedRate);
    }
  }
  for (int worker = 0; worker < kWorkers; ++worker) {
    for (size_t i = 0; i < model->parameters().size(); ++i) {
      EXPECT_TRUE(
          torch::equal(seen[static_cast<size_t>(worker)].values[i], model->parameters()[i]));
    }
  }
  EXPECT_THAT(seen[1].steps, ElementsAre(1, 4, 7, 10));
}

// All begin with the first version, where the bound lets them; one is held up in that step while
// the others begin as many more as the bound lets through, each after one of theirs was taken up.
TEST(ParameterServers, EachSampleIsUsedOnceAndNoGradientIsTooLate) {
  for (const int64_t staleness : {1, 3, 6}) {
    std::atomic<int64_t> begun = 0;  // by the others
    std::atomic<bool> is_held = false, was_held = false;
    const auto seen = RunServed(3, 2, staleness, 30, [&](int rank, int64_t step) {
      if (staleness == 1) return;
      if (rank != 2) {
        ++begun;
        while (!is_held) std::this_thread::yield();
        return;
      }
      if (was_held.exchange(true)) return;
      is_held = true;
      while (begun < staleness) std::this_thread::yield();
    });
    EXPECT_GE(seen[2].most_staleness, static_cast<double>(staleness - 2));
    std::multiset<int64_t> taken;
    for (const WorkerSeen& each : seen) {
      taken.insert(each.steps.begin(), each.steps.end());
      EXPECT_LE(each.most_staleness, static_cast<double>(staleness));
    }
    EXPECT_EQ(taken.size(), 30u);
    EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), 30u);
    for (size_t i = 0; i < seen[0].values.size(); ++i) {
      EXPECT_TRUE(torch::equal(seen[0].values[i], seen[1].values[i]));
    }
    EXPECT_EQ(seen[0].samples, 30 * kServedSamples);  // of all
  }
}

TEST(ParameterServers, AStopEndsEachRankAfterTheSameStep) {
  std::vector<int64_t> ended(4);
  std::vector<bool> stopped(4);
  OnEveryRank(4, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const Layout layout = *LayOut({.servers = 1}, rank, 4);
    auto strategy = *MakeParameterServers(std::make_shared<TwoLayers>(), std::move(communicator),
                                          ServedOptionsOf(layout, 4), SoonOfATest());
    ASSERT_TRUE(strategy->Synchronize(SoonOfATest()).ok());
    int64_t done = 0, next = 0;
    std::vector<int64_t> steps;
    while (true) {
      if (rank == 1 && next == 2) strategy->RequestStop();
      const auto turn = strategy->NextTurn(done, 1000000, SoonOfATest());
      ASSERT_TRUE(turn.ok()) << turn.status();
      steps.insert(steps.end(), turn->steps.begin(), turn->steps.end());
      done = turn->done;
      if (turn->last) break;
      Batch batch;
      if (layout.trains())
        batch = BatchOfStep(steps.at(static_cast<size_t>(next++)), kServedSamples);
      ASSERT_TRUE(strategy->Step(batch, kServedRate, SoonOfATest()).ok());
      ++done;
    }
    ended[static_cast<size_t>(rank)] = done;
    stopped[static_cast<size_t>(rank)] = strategy->Settle(SoonOfATest())->stop;
  });
  EXPECT_THAT(ended, testing::Each(ended[0]));
  EXPECT_LT(ended[0], 1000000);
  EXPECT_THAT(stopped, testing::Each(true));
}

TEST(ParameterServers, PartsGoToWhoeverHasLeast) {
  EXPECT_THAT(OwnersOf({5, 100, 40, 50, 5}, 2), ElementsAre(1, 0, 1, 1, 1));
  EXPECT_THAT(OwnersOf({1, 2}, 3), ElementsAre(1, 0));
}

}  // namespace
}  // namespace tutti::parallel
