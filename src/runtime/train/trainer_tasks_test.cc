// Segmentation, detection and scripts through the trainer, on small generated sets.
// Covers: evaluation.cc, run_output.cc.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/script.h>

#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "base/file.h"
#include "base/machine/instruction_set.h"
#include "base/test_patience.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/device/cpu/bf16/amx.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"
#include "runtime/parallel/data_parallel.h"
#include "runtime/parallel/thread_group_fake.h"
#include "runtime/train/device_fixture.h"
#include "runtime/train/optimizer/sgd.h"
#include "runtime/train/setup/batch_tensors.h"
#include "runtime/train/setup/image_folder_fake.h"
#include "runtime/train/setup/input.h"
#include "runtime/train/setup/run_parts.h"
#include "runtime/train/setup/shapes_folder_fake.h"
#include "runtime/train/trainer.h"

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class TasksTest : public testing::Test {
 protected:
  Recipe RecipeFor(const std::string& model, const std::string& data) const {
    Recipe recipe;
    recipe.data = folder_.path() / data;
    recipe.output = folder_.path() / (data + "-outputs");
    recipe.model = model;
    recipe.batch = 8;
    recipe.device = "cpu";
    recipe.precision = "fp32";
    recipe.threads = 1;
    recipe.evaluate_every = recipe.checkpoint_every = 0;
    recipe.step_timeout = 60;
    recipe.torchscript = false;
    return recipe;
  }
  // Rank 0's outcome.
  static absl::StatusOr<Outcome> TrainOver(int ranks, const Recipe& recipe) {
    absl::StatusOr<Outcome> first = absl::UnknownError("did not run");
    parallel::OnEveryRank(ranks, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto outcome = Train(recipe, std::move(communicator), {});
      if (rank == 0) first = std::move(outcome);
    });
    return first;
  }
  static std::string Refused(const Recipe& recipe) {
    return std::string(TrainOver(1, recipe).status().message());
  }

  const base::TemporaryDirectory folder_;
};

class TaskOnDevice : public OnDevice<TasksTest> {};

TEST_P(TaskOnDevice, SegmentationLearnsShapesAndTheBestModelStays) {
  WriteShapes(folder_.path() / "masks", data::Annotations::kMasks, {.train = 32, .test = 8});
  Recipe recipe = RecipeFor("fcn_resnet20", "masks");
  recipe.device = GetParam();
  recipe.input_size = 32;
  recipe.epochs = 8;
  recipe.lr = 0.1;
  recipe.evaluate_every = 2;
  recipe.keep_best = true;
  recipe.torchscript = true;
  const auto outcome = TrainOver(1, recipe);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  std::printf("mean IoU %.3f\n", tasks::Value(outcome->metrics, "miou"));
  EXPECT_GT(tasks::Value(outcome->metrics, "miou"), 0.4);
  EXPECT_GT(tasks::Value(outcome->metrics, "pixels"), 0.7);
  for (const char* name : {"model", "best"}) {
    const auto model = checkpoint::ReadModelFolder(fs::path(recipe.output) / name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->task, "segmentation");
    EXPECT_TRUE(fs::exists(fs::path(recipe.output) / name / "model.pt"));
  }
}

TEST_P(TaskOnDevice, DetectionLearnsShapesAndTwoRanksMeasureWhatOneDoes) {
  WriteShapes(folder_.path() / "boxes", data::Annotations::kBoxes, {.train = 32, .test = 8});
  Recipe recipe = RecipeFor("ssd64_resnet20", "boxes");
  recipe.device = GetParam();
  recipe.augment = "flip";
  recipe.epochs = 8;
  recipe.lr = 0.02;
  recipe.warmup_epochs = 1;
  recipe.checkpoint_every = 8;
  const auto outcome = TrainOver(2, recipe);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  std::printf("mAP@0.5 %.3f\n", tasks::Value(outcome->metrics, "map50"));
  EXPECT_GT(tasks::Value(outcome->metrics, "map50"), 0.2);
  const auto model = checkpoint::ReadModelFolder(fs::path(recipe.output) / "model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->input.stretch);
  recipe.resume = "latest";  // nothing left to train: only the evaluation
  const auto again = TrainOver(1, recipe);
  ASSERT_TRUE(again.ok()) << again.status();
  for (const char* metric : {"map50", "map"}) {
    EXPECT_NEAR(tasks::Value(again->metrics, metric), tasks::Value(outcome->metrics, metric),
                on_gpu() ? 0.02 : 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, TaskOnDevice, testing::Values("cpu", "cuda"));

TEST_F(TasksTest, WhatDoesNotFitIsNamed) {
  WriteShapes(folder_.path() / "boxes", data::Annotations::kBoxes, {.train = 8, .test = 8});
  EXPECT_THAT(Refused(RecipeFor("fcn_resnet20", "boxes")), HasSubstr("is trained with masks, but"));
  EXPECT_THAT(Refused(RecipeFor("resnet20", "boxes")), HasSubstr("has boxes"));
  Recipe recipe = RecipeFor("ssd64_resnet20", "boxes");
  recipe.task = "segmentation";
  EXPECT_THAT(Refused(recipe), HasSubstr("is a network for detection, not for segmentation"));
  recipe.task = "detection";
  recipe.input_size = 128;
  EXPECT_THAT(Refused(recipe), HasSubstr("takes images of 64 pixels a side alone"));
  Recipe transformer = RecipeFor("vit_ti_4", "boxes");
  transformer.input_size = 64;
  EXPECT_THAT(Refused(transformer), HasSubstr("vit_ti_4 takes images of 32 pixels a side alone"));
  recipe.input_size = 0;
  recipe.label_smoothing = 0.1;
  EXPECT_THAT(Refused(recipe), HasSubstr("leave --label-smoothing"));
  recipe.cutmix = 1;
  EXPECT_THAT(
      Refused(recipe),
      HasSubstr("--cutmix is for classification alone, and ssd64_resnet20 is for detection"));
}

// As many objects in the same images, one of them elsewhere.
TEST_F(TasksTest, ARankWithOtherBoxesIsNamedByAll) {
  for (const char* folder : {"boxes", "older"}) {
    WriteShapes(folder_.path() / folder, data::Annotations::kBoxes, {.train = 8, .test = 8});
  }
  std::ofstream(folder_.path() / "boxes/train/boxes/3.txt") << "1 0.5 0.5 0.2 0.2\n";
  std::ofstream(folder_.path() / "older/train/boxes/3.txt") << "1 0.5 0.5 0.2 0.3\n";
  parallel::OnEveryRank(3, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    const Recipe recipe = RecipeFor("ssd64_resnet20", rank == 2 ? "older" : "boxes");
    const absl::Status status = Train(recipe, std::move(communicator), {}).status();
    EXPECT_EQ(status.message(), "rank 2 has other training images than rank 0");
  });
}

// Where two steps in fp64 lead: in fp32 rounding decides which boxes without an object are the
// hardest, so that the gradients of one process itself are off by a thousandth from run to run.
checkpoint::TensorMap TwoStepsOf(const Recipe& recipe, const ModelInputSpec& spec, int ranks) {
  at::set_num_threads(1);
  checkpoint::TensorMap end;
  parallel::OnEveryRank(ranks, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    Input input = *OpenInput(recipe, spec, *parallel::LayOut({}, rank, ranks));
    const models::ModelSpec spec{recipe.model, 2};
    const models::Model model = *models::MakeModel(spec, 1);
    const std::shared_ptr<const tasks::Task> task = *tasks::MakeTask(spec, *model, {});
    model->to(torch::kFloat64);
    const auto strategy = *parallel::DataParallel::Create(
        model, std::move(communicator), {.task = task, .synchronized_batch_norm = recipe.sync_bn});
    Sgd sgd(strategy->buckets(), {.momentum = 0.9});
    for (int step = 0; step < 2; ++step) {
      const auto soon = base::Deadline::After(base::Patient(absl::Seconds(60)));
      const auto batch = input.train->Next(soon);
      ASSERT_TRUE(batch.ok()) << batch.status();
      const auto result =
          strategy->Step({{ImagesOf(*batch, input.evaluation, false).to(torch::kFloat64)},
                          task->Targets(AnnotationsOf(*batch, input.evaluation))},
                         0, soon);
      ASSERT_TRUE(result.ok()) << result.status();
      sgd.Step(0.0005);
    }
    if (rank != 0) return;
    for (const auto& [name, tensor] : models::StateOf(*model)) end[name] = tensor.clone();
  });
  return end;
}

double DistanceOf(const checkpoint::TensorMap& a, const checkpoint::TensorMap& b) {
  double difference = 0, norm = 0;
  for (const auto& [name, tensor] : b) {
    if (!tensor.is_floating_point()) continue;
    difference += (a.at(name) - tensor).to(torch::kFloat64).square().sum().item<double>();
    norm += tensor.to(torch::kFloat64).square().sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

TEST_F(TasksTest, RanksWithUnequalNumbersOfObjectsEqualOneProcess) {
  WriteShapes(folder_.path() / "boxes", data::Annotations::kBoxes, {.train = 32, .test = 8});
  Recipe recipe = RecipeFor("ssd64_resnet20", "boxes");
  recipe.sync_bn = true;
  const ModelInputSpec spec{64, data::Annotations::kBoxes};
  const auto one = TwoStepsOf(recipe, spec, 1);
  const double distance = DistanceOf(TwoStepsOf(recipe, spec, 3), one);
  std::printf("3 ranks end %.1e from one process\n", distance);
  EXPECT_LT(distance, 1e-9);
}

constexpr char kScript[] = R"(
  def forward(self, x):
      x = torch.batch_norm(x, self.weight, self.bias, self.running_mean, self.running_var,
                           self.training, 0.1, 1e-5, True)
      x = torch.relu(torch.conv2d(x, self.kernel))
      return torch.matmul(x.mean([2, 3]), self.last)
)";

// `normalise`: in train mode with the batch's statistics, which ranks do not share in a script.
void SaveScript(const fs::path& path, int64_t classes, bool normalise) {
  torch::manual_seed(4);
  torch::jit::Module module("__torch__.Small");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("weight", torch::ones({3}), false);
  module.register_parameter("bias", torch::zeros({3}), false);
  module.register_parameter("kernel", torch::randn({16, 3, 5, 5}) / 8, false);
  module.register_parameter("last", torch::randn({16, classes}), false);
  for (const auto& parameter : module.parameters()) parameter.requires_grad_(true);
  module.register_buffer("running_mean", torch::zeros({3}));
  module.register_buffer("running_var", torch::ones({3}));
  std::string source = kScript;
  const std::string training = "self.training,";
  if (!normalise) source.replace(source.find(training), training.size(), "False,");
  module.define(source);
  module.save(path.string());
}

TEST_F(TasksTest, AScriptOverTwoRanksEqualsOneProcess) {
  WriteImageFolder(folder_.path() / "images", 32, 16, 2);
  SaveScript(folder_.path() / "small.pt", 2, /*normalise=*/false);
  Recipe recipe = RecipeFor("script:" + (folder_.path() / "small.pt").string(), "images");
  recipe.input_size = 32;
  const auto one = TwoStepsOf(recipe, {.size = 32}, 1), two = TwoStepsOf(recipe, {.size = 32}, 2);
  EXPECT_GT(DistanceOf(one, models::StateOf(**models::LoadScript(folder_.path() / "small.pt"))),
            1e-4);
  EXPECT_LT(DistanceOf(two, one), 1e-12);
}

TEST_F(TasksTest, AScriptTrainsOverRanksAndItsFolderIsComplete) {
  WriteImageFolder(folder_.path() / "images", 32, 16, 2);
  SaveScript(folder_.path() / "small.pt", 2, /*normalise=*/true);
  Recipe recipe = RecipeFor("script:" + (folder_.path() / "small.pt").string(), "images");
  recipe.input_size = 32;
  recipe.epochs = 2;
  recipe.checkpoint_every = 1;
  const auto two = TrainOver(2, recipe);
  ASSERT_TRUE(two.ok()) << two.status();
  const auto model = checkpoint::ReadModelFolder(fs::path(recipe.output) / "model");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->architecture, "script:model.pt");
  const auto first = *models::LoadScript(folder_.path() / "small.pt");
  const auto trained = models::LoadScript(fs::path(recipe.output) / "model" / "model.pt");
  ASSERT_TRUE(trained.ok()) << trained.status();
  for (const auto& parameter : (*trained)->named_parameters()) {
    EXPECT_TRUE(parameter.value().equal(model->tensors.at(parameter.key())));
    EXPECT_FALSE(parameter.value().equal(first->named_parameters()[parameter.key()]));
  }
  EXPECT_FALSE(model->tensors.at("running_mean").eq(0).any().item<bool>())
      << "the ranks' statistics are averaged";
  recipe.resume = "latest";  // nothing left to train: only the evaluation
  const auto one = TrainOver(1, recipe);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(tasks::Value(one->metrics, "top1"), tasks::Value(two->metrics, "top1"));
}

// What others trained may have been trained with exact products.
TEST_F(TasksTest, AScriptComputesWithExactProductsUnlessTheRecipeSaysOtherwise) {
  const absl::Cleanup restore = [] {
    device::cpu::UseWinograd(false);
    device::cpu::fp32::UsePatches(true);
  };
  const fs::path file = folder_.path() / "small.pt";
  SaveScript(file, 2, /*normalise=*/true);
  const auto goes_by_winograd = [&](const Recipe& recipe) {
    const auto strategy =
        MakeStrategy(recipe, *models::LoadScript(file), *comm::JoinGroup({}), torch::kCPU);
    EXPECT_TRUE(strategy.ok()) << strategy.status();
    return device::cpu::GoesByWinograd({8, 16, 16, 32, 32, 3});
  };
  Recipe recipe = RecipeFor("script:" + file.string(), "images");
  recipe.precision = "bf16";
  device::cpu::UseWinograd(true);
  EXPECT_FALSE(goes_by_winograd(recipe));
  recipe.winograd = true;
  EXPECT_EQ(goes_by_winograd(recipe), base::MayUseAvx512Bf16() && !device::cpu::HasAmx());
  const auto goes_by_patches = [&] {
    goes_by_winograd(recipe);
    return device::cpu::fp32::GoesByPatches({8, 16, 16, 32, 32, 3});
  };
  recipe.precision = "fp32";
  recipe.winograd = std::nullopt;
  EXPECT_TRUE(goes_by_patches()) << "which are as good as exact";
  recipe.winograd = false;
  EXPECT_FALSE(goes_by_patches());
}

TEST_F(TasksTest, AScriptThatDoesNotFitIsNamed) {
  WriteImageFolder(folder_.path() / "images", 8, 8, 2);
  const std::string file = folder_.path() / "small.pt";
  SaveScript(file, 7, true);
  Recipe recipe = RecipeFor("script:" + file, "images");
  recipe.input_size = 32;
  EXPECT_THAT(Refused(recipe), AllOf(HasSubstr(file), HasSubstr("[1, 7]"), HasSubstr("[1, 2]")));
  recipe.sync_bn = true;
  EXPECT_THAT(Refused(recipe), HasSubstr("--sync-bn"));
  std::ofstream(folder_.path() / "text.pt") << "no module";
  recipe.model = "script:" + (folder_.path() / "text.pt").string();
  EXPECT_THAT(Refused(recipe), HasSubstr("is no TorchScript module"));
  recipe.model = "script:/nowhere.pt";
  EXPECT_EQ(TrainOver(1, recipe).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tutti::train
