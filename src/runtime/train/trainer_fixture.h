// TrainerTest gives tests of whole runs a small set of images, recipes for it, and runs over
// several ranks in this process.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/test_patience.h"
#include "runtime/parallel/thread_group_fake.h"
#include "runtime/train/setup/image_folder_fake.h"
#include "runtime/train/trainer.h"

namespace tutti::train {

class TrainerTest : public testing::Test {
 protected:
  static constexpr int kImages = 54;  // and of the last 6 no batch
  static constexpr int64_t kStepsPerEpoch = 3;
  static constexpr int kSide = 16;  // pixels: a fourth of the work of CIFAR's

  static void SetUpTestSuite() {
    folder_ = new base::TemporaryDirectory();
    WriteImageFolder(folder_->path() / "data", kImages, 30, 3, kSide);
  }
  static void TearDownTestSuite() { delete folder_; }

  Recipe RecipeFor(const std::string& output) const {
    Recipe recipe;
    recipe.data = folder_->path() / "data";
    recipe.output = outputs_.path() / output;
    recipe.input_size = kSide;
    recipe.batch = 16;
    recipe.epochs = 2;
    recipe.lr = 0.05;
    recipe.weight_decay = 1e-3;
    recipe.nesterov = true;
    recipe.device = "cpu";  // its results are the same bits everywhere
    recipe.precision = "fp32";
    recipe.threads = 1;
    recipe.torchscript = false;
    recipe.step_timeout = absl::ToInt64Seconds(base::Patient(absl::Seconds(30)));
    return recipe;
  }

  // Every rank's outcome must be the same; returns rank 0's.
  static absl::StatusOr<Outcome> TrainOver(int ranks, const Recipe& recipe,
                                           const TrainerContext& context = {}) {
    absl::StatusOr<Outcome> first = absl::UnknownError("did not run");
    parallel::OnEveryRank(ranks, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
      auto outcome = Train(recipe, std::move(communicator), context);
      if (rank == 0) first = std::move(outcome);
    });
    return first;
  }

  static std::string Weights(const Recipe& recipe) {
    const auto bytes =
        base::ReadFile(std::filesystem::path(recipe.output) / "model" / "model.safetensors");
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.value_or("");
  }

  static std::vector<nlohmann::json> Events(const std::filesystem::path& path,
                                            const std::string& kind) {
    std::istringstream lines(*base::ReadFile(path));
    std::vector<nlohmann::json> events;
    for (std::string line; std::getline(lines, line);) {
      auto event = nlohmann::json::parse(line);
      if (event["event"] == kind) events.push_back(std::move(event));
    }
    return events;
  }

  inline static base::TemporaryDirectory* folder_ = nullptr;
  const base::TemporaryDirectory outputs_;
};

}  // namespace tutti::train
