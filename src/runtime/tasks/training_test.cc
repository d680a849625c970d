// Segmentation and detection learn a small generated set: networks, targets, losses and metrics
// together.
// Covers: task.cc, metric.h.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>

#include "runtime/tasks/shapes_fake.h"
#include "runtime/tasks/task.h"

namespace tutti::tasks {
namespace {

using torch::Tensor;

struct Learner {
  models::ModelSpec spec;
  models::Model model = *models::MakeModel(spec, /*seed=*/1);
  std::shared_ptr<const Task> task = *MakeTask(spec, *model, {});
  torch::optim::Adam optimizer{model->parameters(), torch::optim::AdamOptions(3e-3)};

  // The loss of a mini-batch, before the step that it makes.
  double Step(const Tensor& images, const Tensor& annotations) {
    model->train();
    optimizer.zero_grad();
    const Tensor targets = task->Targets(annotations);
    const auto units = static_cast<double>(std::max<int64_t>(task->Units(targets), 1));
    const Tensor loss = task->LossOf(model->Outputs({images}), targets).sum / units;
    loss.backward();
    optimizer.step();
    return loss.item<double>();
  }

  std::unique_ptr<Measure> Measured(const Tensor& images, const Tensor& annotations) {
    torch::NoGradGuard no_grad;
    model->eval();
    auto measure = task->NewMeasure();
    measure->Add(model->forward(images), annotations);
    return measure;
  }
};

// Two halves of the set in turn.
void Learn(Learner& learner, const Tensor& images, const Tensor& annotations, int steps) {
  const auto halves = images.chunk(2), known = annotations.chunk(2);
  for (int step = 0; step < steps; ++step) {
    const auto half = static_cast<size_t>(step % 2);
    learner.Step(halves[half], known[half]);
  }
}

TEST(Training, SegmentationLearnsMasksThatItHasNotSeen) {
  at::set_num_threads(1);
  const Shapes seen = DrawShapes(16, 32, /*seed=*/1), others = DrawShapes(8, 32, /*seed=*/2);
  Learner learner{{"fcn_resnet20", 3}};
  const double before = Value(learner.Measured(others.images, others.masks)->Metrics(), "miou");
  Learn(learner, seen.images, seen.masks, 25);
  const auto after = learner.Measured(others.images, others.masks);
  std::printf("mean IoU %.3f -> %.3f, loss %.3f\n", before, Value(after->Metrics(), "miou"),
              after->MeanLoss());
  EXPECT_LT(before, 0.3);
  EXPECT_GT(Value(after->Metrics(), "miou"), 0.5);
  EXPECT_LT(after->MeanLoss(), 0.6);
}

TEST(Training, DetectionFindsTheObjectsThatItWasShown) {
  at::set_num_threads(1);
  const Shapes shown = DrawShapes(8, 64, /*seed=*/1);
  Learner learner{{"ssd64_resnet20", 2}};
  const auto before = learner.Measured(shown.images, shown.boxes);
  Learn(learner, shown.images, shown.boxes, 40);
  const auto after = learner.Measured(shown.images, shown.boxes);
  std::printf("mAP@0.5 %.3f -> %.3f, loss %.3f -> %.3f\n", Value(before->Metrics(), "map50"),
              Value(after->Metrics(), "map50"), before->MeanLoss(), after->MeanLoss());
  EXPECT_LT(Value(before->Metrics(), "map50"), 0.1);
  EXPECT_GT(Value(after->Metrics(), "map50"), 0.5);
  EXPECT_LT(after->MeanLoss(), before->MeanLoss() / 3);
}

TEST(Training, ATaskFitsItsNetwork) {
  for (const auto& [name, task] : {std::pair("resnet20", "classification"),
                                   {"fcn_resnet20", "segmentation"},
                                   {"ssd64_resnet20", "detection"}}) {
    const models::ModelSpec spec{name, 3};
    const auto made = MakeTask(spec, **models::MakeModel(spec, 1), {});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ((*made)->name(), task);
  }
  const models::ModelSpec spec{"fcn_resnet20", 3};
  EXPECT_FALSE(MakeTask(spec, **models::MakeModel(spec, 1), {.label_smoothing = 0.1}).ok());
}

}  // namespace
}  // namespace tutti::tasks
