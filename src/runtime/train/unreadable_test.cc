// What runs tell of images that they could not read.
// Covers: report/run_report.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "base/file.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

namespace fs = std::filesystem;
using Counts = std::vector<std::pair<int64_t, int64_t>>;  // step, images

class UnreadableImages : public TrainerTest {
 protected:
  // Folders of two classes with 8 training and 4 test images each. `broken` training images, at
  // most two, are no whole JPEGs, and if there are any a test image is empty.
  void WriteClasses(int broken) {
    const auto images = data::MakeFakeDataset(24, 2, kSide, kSide);
    std::string scratch;
    for (int64_t i = 0; i < images->size(); ++i) {
      const std::string name = (images->label(i) == 0 ? "cat/" : "dog/") + std::to_string(i);
      const fs::path path = data_ / (i < 16 ? "train" : "test") / (name + ".jpg");
      std::string jpeg(images->Encoded(i, scratch).value());
      if (i == 0 && broken > 0) jpeg.resize(40);
      if (i == 2 && broken > 1) jpeg = "no JPEG at all";
      if (i == 20 && broken > 0) jpeg.clear();
      ASSERT_TRUE(base::MakeDirectories(path.parent_path()).ok());
      ASSERT_TRUE(base::WriteFileAtomic(path, jpeg).ok());
    }
  }

  // A batch is an epoch, so that every epoch meets every image.
  Recipe RecipeOfWholeEpochs(int64_t epochs) {
    Recipe recipe = RecipeFor("unreadable");
    recipe.data = data_;
    recipe.epochs = epochs;
    recipe.batch = 16;
    return recipe;
  }

  static Counts CountsOf(const Recipe& recipe) {
    Counts counts;
    for (const auto& event : Events(fs::path(recipe.output) / "metrics.jsonl", "unreadable")) {
      EXPECT_EQ(event["epoch"], event["step"]) << "an epoch is a step";
      counts.emplace_back(event["step"], event["images"]);
    }
    return counts;
  }

  const fs::path data_ = outputs_.path() / "images";
};

TEST_F(UnreadableImages, AreCountedAtEveryEpochsEndWithAndWithoutEvaluation) {
  WriteClasses(2);
  Recipe recipe = RecipeOfWholeEpochs(3);
  recipe.evaluate_every = 2;
  recipe.tensorboard = outputs_.path() / "events";
  ASSERT_TRUE(TrainOver(1, recipe).ok());
  // The last epoch is evaluated because the run ends.
  EXPECT_EQ(CountsOf(recipe), (Counts{{1, 2}, {2, 3}, {3, 3}, {3, 3}}));

  // Summary{value{tag: "unreadable" simple_value: 2}} of the first epoch, then 3 in each line.
  std::string events;
  for (const auto& file : fs::directory_iterator(recipe.tensorboard)) {
    events += base::ReadFile(file.path()).value();
  }
  const auto count = [&](const std::string& value) {
    int found = 0;
    const std::string wanted = "\x0a\x0aunreadable\x15" + value;
    for (size_t at = events.find(wanted); at != events.npos; at = events.find(wanted, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count({"\x00\x00\x00\x40", 4}), 1);
  EXPECT_EQ(count({"\x00\x00\x40\x40", 4}), 3);
}

TEST_F(UnreadableImages, OfTwoRanksAreAddedUp) {
  WriteClasses(2);
  Recipe recipe = RecipeOfWholeEpochs(1);
  recipe.evaluate_every = 0;
  ASSERT_TRUE(TrainOver(2, recipe).ok());
  EXPECT_EQ(CountsOf(recipe), (Counts{{1, 2}, {1, 3}})) << "before and after the run's evaluation";
}

TEST_F(UnreadableImages, AreToldWhenARunIsStopped) {
  WriteClasses(1);
  Recipe recipe = RecipeOfWholeEpochs(2);
  TrainerContext context;
  context.stop_wanted = [] { return true; };
  const auto outcome = TrainOver(2, recipe, context);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_TRUE(outcome->stopped);
  EXPECT_EQ(CountsOf(recipe), (Counts{{1, 1}}));
}

TEST_F(UnreadableImages, AreZeroWhereThereAreNone) {
  WriteClasses(0);
  const Recipe recipe = RecipeOfWholeEpochs(2);
  ASSERT_TRUE(TrainOver(2, recipe).ok());
  EXPECT_EQ(CountsOf(recipe), (Counts{{1, 0}, {2, 0}}));
}

// Stages that see labels alone would not know which image has taken its place.
TEST_F(UnreadableImages, EndAPipelineWithTheReason) {
  WriteClasses(1);
  Recipe recipe = RecipeOfWholeEpochs(1);
  recipe.parallel.mesh.pipeline = 2;
  recipe.accumulation = 2;
  const auto outcome = TrainOver(2, recipe);
  EXPECT_THAT(std::string(outcome.status().message()),
              testing::HasSubstr("images that cannot be read are not replaced where a pipeline"));
}

// The first is unreadable or exactly of the input's size, and tells nothing of the others.
TEST_F(UnreadableImages, DoNotDecideWhetherImagesOfOtherSizesAreResized) {
  std::string scratch;
  for (const bool first_readable : {true, false}) {
    const fs::path data = data_ / (first_readable ? "readable" : "unreadable");
    for (int i = 0; i < 24; ++i) {
      const int side = i % 8 == 0 ? kSide : kSide + i;
      const auto images = data::MakeFakeDataset(1, 1, side, kSide + 2 * (i % 8));
      const fs::path path = data / (i < 16 ? "train" : "test") / (i % 2 == 0 ? "cat" : "dog") /
                            absl::StrFormat("%02d.jpg", i);
      std::string jpeg(images->Encoded(0, scratch).value());
      if (i == 0 && !first_readable) jpeg.resize(40);
      ASSERT_TRUE(base::MakeDirectories(path.parent_path()).ok());
      ASSERT_TRUE(base::WriteFileAtomic(path, jpeg).ok());
    }
    for (const char* augment : {"standard", "crop", "flip", "none"}) {
      Recipe recipe = RecipeOfWholeEpochs(1);
      recipe.data = data;
      recipe.augment = augment;
      recipe.output = outputs_.path() / absl::StrCat(augment, first_readable);
      recipe.max_unreadable = 1;
      const auto outcome = TrainOver(1, recipe);
      EXPECT_TRUE(outcome.ok()) << augment << ": " << outcome.status();
    }
  }
}

}  // namespace
}  // namespace tutti::train
