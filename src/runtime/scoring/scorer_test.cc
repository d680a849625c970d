// Covers: trained_model.cc.
#include "runtime/scoring/scorer.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/instruction_set.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/data/augment/load_image.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/device/cpu/bf16/amx.h"
#include "runtime/device/cpu/bf16/convolution_bf16.h"
#include "runtime/device/cpu/fp32/convolution_fp32.h"
#include "runtime/models/model.h"
#include "runtime/models/script_model.h"
#include "runtime/models/state.h"

namespace tutti::scoring {
namespace {

namespace fs = std::filesystem;

class ScorerTest : public testing::Test {
 protected:
  ScorerTest() : network_(*models::MakeModel({"resnet20", 3}, /*seed=*/5)) {
    network_->forward(torch::randn({16, 3, 32, 32}));  // running statistics of its own
    network_->eval();
    folder_.architecture = "resnet20";
    folder_.classes = {"cat", "dog", "frog"};
    folder_.input.mean = {0.4914, 0.4822, 0.4465};
    folder_.input.stddev = {0.247, 0.2435, 0.2616};
    folder_.tensors = models::StateOf(*network_);
  }
  fs::path model() const { return directory_.path() / "model"; }

  std::string Image(int seed, int size = 32) {
    const std::string file = (directory_.path() / absl::StrCat(seed, "-", size, ".jpg")).string();
    const std::string encoded = data::EncodePattern({.width = size, .height = size}, seed);
    EXPECT_TRUE(base::WriteFileAtomic(file, encoded).ok());
    return file;
  }
  // By the network alone, without batches.
  torch::Tensor Expected(const std::string& file, bool mirrored = false) {
    data::Augmentation augmentation;
    std::copy_n(folder_.input.mean.begin(), 3, augmentation.mean);
    std::copy_n(folder_.input.stddev.begin(), 3, augmentation.stddev);
    const torch::Tensor pixels = torch::empty({1, 32, 32, 3});
    auto loader = *data::ImageLoader::Make(augmentation, data::PixelType::kFloat32);
    EXPECT_TRUE(loader->Load(*base::ReadFile(file), pixels.mutable_data_ptr()).ok());
    const torch::Tensor image = pixels.permute({0, 3, 1, 2});
    torch::Tensor logits = network_->forward(image);
    if (mirrored) logits = (logits + network_->forward(image.flip(3))) / 2;
    return torch::softmax(logits, 1)[0];
  }
  absl::Status OpenError() {
    EXPECT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
    return TrainedModel::Open(model(), "auto").status();
  }

  base::TemporaryDirectory directory_;
  models::Model network_;
  checkpoint::ModelFolder folder_;
};

TEST_F(ScorerTest, GivesTheNetworksProbabilitiesOverSeveralBatches) {
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  auto scorer = TrainedModel::Open(model(), "fp32");
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  EXPECT_EQ((*scorer)->facts().precision_why, "");
  std::vector<std::string> files;
  for (int i = 0; i < 70; ++i) files.push_back(Image(i));
  const auto scores = ScoreFiles(**scorer, files, /*top=*/5);
  ASSERT_EQ(scores.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(scores[i].file, files[i]);
    ASSERT_TRUE(scores[i].status.ok()) << scores[i].status;
    ASSERT_EQ(scores[i].rows.size(), 3u);  // all classes there are
    const auto [values, indices] = Expected(files[i]).topk(3);
    for (int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(scores[i].rows[k].label, folder_.classes[indices[k].item<int64_t>()]);
      EXPECT_NEAR(scores[i].rows[k].values[0], values[k].item<double>(), 1e-4);
    }
  }
}

TEST_F(ScorerTest, ScoresByTheMeanOverAnImageAndItsMirrorImage) {
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  const std::string file = Image(3);
  const auto scores =
      ScoreFiles(**TrainedModel::Open(model(), "fp32"), std::vector{file}, 1, /*mirrored=*/true);
  ASSERT_TRUE(scores[0].status.ok()) << scores[0].status;
  const double expected = Expected(file, /*mirrored=*/true).max().item<double>();
  EXPECT_NEAR(scores[0].rows[0].values[0], expected, 1e-4);
  EXPECT_GT(std::abs(expected - Expected(file).max().item<double>()), 1e-4);
}

TEST_F(ScorerTest, ScoresInBf16CloseToFp32AndSaysWhichIsFastest) {
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  const std::string file = Image(3);
  const auto scores = ScoreFiles(**TrainedModel::Open(model(), "bf16"), std::vector{file}, 3);
  ASSERT_TRUE(scores[0].status.ok()) << scores[0].status;
  const double expected = Expected(file).max().item<double>();
  EXPECT_NEAR(scores[0].rows[0].values[0], expected, 0.05);
  EXPECT_NE(scores[0].rows[0].values[0], expected);
  EXPECT_TRUE(absl::StrContains((*TrainedModel::Open(model(), "auto"))->facts().precision_why,
                                " (auto): this processor "));
}

// What others trained may have been trained with exact products.
TEST_F(ScorerTest, ComputesTorchScriptWithExactProducts) {
  const absl::Cleanup restore = [] { device::cpu::UseWinograd(false); };
  const device::cpu::Convolution usual = {8, 16, 16, 32, 32, 3};
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  ASSERT_TRUE(TrainedModel::Open(model(), "bf16").ok());
  EXPECT_EQ(device::cpu::GoesByWinograd(usual), base::MayUseAvx512Bf16() && !device::cpu::HasAmx());
  folder_.torchscript = *models::ToTorchScript(network_, 32, 32);
  folder_.architecture = "script:model.pt";
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  device::cpu::UseWinograd(true);
  device::cpu::fp32::UsePatches(false);
  const auto scorer = TrainedModel::Open(model(), "bf16");
  ASSERT_TRUE(scorer.ok()) << scorer.status();
  EXPECT_FALSE(device::cpu::GoesByWinograd(usual));
  EXPECT_TRUE(device::cpu::fp32::GoesByPatches(usual)) << "which are as good as exact";
}

TEST_F(ScorerTest, ScoresImagesOfAnotherSize) {
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  const auto scores =
      ScoreFiles(**TrainedModel::Open(model(), "fp32"), std::vector{Image(1, /*size=*/100)}, 1);
  ASSERT_TRUE(scores[0].status.ok()) << scores[0].status;
  EXPECT_EQ(scores[0].rows.size(), 1u);
}

TEST_F(ScorerTest, NamesAFileThatItCannotReadAndScoresTheOthers) {
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  const std::string text = (directory_.path() / "notes.txt").string();
  ASSERT_TRUE(base::WriteFileAtomic(text, "no image").ok());
  const std::vector<std::string> files = {"/no/such.jpg", Image(1), text,
                                          directory_.path().string(), Image(2)};
  const auto scores = ScoreFiles(**TrainedModel::Open(model(), "fp32"), files, 1);
  for (int bad : {0, 2, 3}) {
    EXPECT_FALSE(scores[bad].status.ok());
    EXPECT_TRUE(absl::StrContains(scores[bad].status.message(), files[bad])) << scores[bad].status;
    EXPECT_TRUE(scores[bad].rows.empty());
  }
  for (int good : {1, 4}) {
    ASSERT_TRUE(scores[good].status.ok()) << scores[good].status;
    EXPECT_NEAR(scores[good].rows[0].values[0], Expected(files[good]).max().item<double>(), 1e-4);
  }
}

TEST_F(ScorerTest, SaysWhatIsWrongWithTheModel) {
  EXPECT_TRUE(absl::StrContains(TrainedModel::Open(directory_.path(), "auto").status().message(),
                                "give the folder that tutti-train wrote"));
  folder_.classes.push_back("bird");
  const absl::Status classes = OpenError();
  EXPECT_TRUE(absl::StrContains(classes.message(),
                                "model.safetensors does not fit model.json (resnet20, 4 classes)"))
      << classes;
  folder_.architecture = "resnet21";
  const absl::Status name = OpenError();
  EXPECT_TRUE(absl::StrContains(name.message(), "model.json: no model \"resnet21\"")) << name;
}

TEST_F(ScorerTest, RefusesScoresThatAreNotFinite) {
  {
    torch::NoGradGuard no_grad;
    folder_.tensors["fc.bias"].fill_(std::numeric_limits<float>::quiet_NaN());
  }
  ASSERT_TRUE(checkpoint::WriteModelFolder(model(), folder_).ok());
  const auto scores = ScoreFiles(**TrainedModel::Open(model(), "fp32"), std::vector{Image(1)}, 1);
  EXPECT_TRUE(absl::StrContains(scores[0].status.message(), "not finite")) << scores[0].status;
}

}  // namespace
}  // namespace tutti::scoring
