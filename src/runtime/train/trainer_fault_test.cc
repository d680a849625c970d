// Faults in the middle of a run that must not end it, or must be named: disks that take no more, a
// rank that lives and is stuck.
// Covers: checkpoint_saver.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cstring>
#include <fstream>

#include "absl/synchronization/notification.h"
#include "base/test_patience.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/train/checkpoint_saver.h"
#include "runtime/train/trainer_fixture.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class TrainerFaultTest : public TrainerTest {
 protected:
  // With a checkpoint after each of `epochs` * 3 steps.
  Recipe SavingRecipe(const std::string& output, int64_t epochs = 2) const {
    Recipe recipe = RecipeFor(output);
    recipe.epochs = epochs;
    recipe.checkpoint_every_steps = 1;
    return recipe;
  }
  static fs::path Checkpoints(const Recipe& recipe) {
    return fs::path(recipe.output) / "checkpoints";
  }
  static std::vector<int64_t> StepsOf(const std::vector<nlohmann::json>& events) {
    std::vector<int64_t> steps;
    for (const auto& event : events) steps.push_back(event["step"]);
    return steps;
  }
  static std::vector<nlohmann::json> Metrics(const Recipe& recipe, const std::string& kind) {
    return Events(fs::path(recipe.output) / "metrics.jsonl", kind);
  }
  // A file where the folder of checkpoints should be.
  static void Block(const Recipe& recipe) { std::ofstream(Checkpoints(recipe)) << "in the way"; }
};

TEST_F(TrainerFaultTest, ACheckpointThatCannotBeSavedCostsOnlyItself) {
  const Recipe undisturbed = SavingRecipe("undisturbed"), recipe = SavingRecipe("disturbed");
  ASSERT_TRUE(TrainOver(1, undisturbed).ok());
  const fs::path said = outputs_.path() / "said";
  TrainerContext context;
  context.out = std::fopen(said.c_str(), "w");
  context.step_done = [&](int64_t step) {
    if (step == 1) Block(recipe);
    if (step == 3) fs::remove(Checkpoints(recipe));
  };
  const auto outcome = TrainOver(1, recipe, context);
  std::fclose(context.out);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(Weights(recipe), Weights(undisturbed));
  const auto failed = Metrics(recipe, "checkpoint_failed");
  EXPECT_EQ(StepsOf(failed), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(failed.at(1)["in_a_row"], 2);
  EXPECT_THAT(failed.at(1)["error"].get<std::string>(), HasSubstr("step 2 was not saved"));
  EXPECT_EQ(StepsOf(Metrics(recipe, "checkpoint")), (std::vector<int64_t>{3, 4, 5, 6}));
  EXPECT_THAT(base::ReadFile(said).value(),
              HasSubstr("warning: the checkpoint of step 1 was not saved, those before it are"));
}

TEST_F(TrainerFaultTest, TooManyCheckpointsInARowThatCannotBeSavedEndTheRun) {
  const Recipe recipe = SavingRecipe("blocked", /*epochs=*/4);
  int64_t last = 0;
  TrainerContext context;
  context.step_done = [&](int64_t step) {
    if (step == 1) Block(recipe);
    last = step;
  };
  const absl::Status status = TrainOver(1, recipe, context).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("10 checkpoints in a row could not be saved: the checkpoint of step 10"));
  EXPECT_EQ(last, CheckpointSaver::kMostFailures);
}

TEST_F(TrainerFaultTest, AStoppedRunMustHaveItsCheckpoint) {
  const Recipe recipe = SavingRecipe("stopped");
  TrainerContext context;
  context.stop_wanted = [] { return true; };
  context.step_done = [&](int64_t) { Block(recipe); };
  const absl::Status status = TrainOver(1, recipe, context).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the checkpoint of step 1 was not saved"));
}

// A disk of 16 MiB, of which a file takes all that there is on command.
class SmallDisk {
 public:
  explicit SmallDisk(fs::path folder) : folder_(std::move(folder)) {
    fs::create_directories(folder_);
    mounted_ = ::mount("tutti-test", folder_.c_str(), "tmpfs", 0, "size=16m") == 0;
    if (!mounted_) why_not_ = strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) ::umount(folder_.c_str());
  }
  bool mounted() const { return mounted_; }
  const std::string& why_not() const { return why_not_; }
  void Fill() {
    std::ofstream file(ballast(), std::ios::binary);
    const std::string page(4096, 'x');
    while (file.write(page.data(), static_cast<std::streamsize>(page.size())).flush()) {
    }
  }
  void Empty() { fs::remove(ballast()); }

 private:
  fs::path ballast() const { return folder_ / "ballast"; }

  const fs::path folder_;
  bool mounted_ = false;
  std::string why_not_;
};

TEST_F(TrainerFaultTest, AFullDiskDoesNotEndATrainingThatHasRoomAtItsEnd) {
  Recipe recipe = SavingRecipe("full-for-a-while"), roomy = SavingRecipe("roomy");
  recipe.keep_best = roomy.keep_best = true;
  SmallDisk disk(recipe.output);
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount a small file system: " << disk.why_not();
  ASSERT_TRUE(TrainOver(1, roomy).ok());
  TrainerContext context;
  context.step_done = [&](int64_t step) {
    if (step == 2) disk.Fill();
    if (step == 5) disk.Empty();
  };
  const auto outcome = TrainOver(1, recipe, context);
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(Weights(recipe), Weights(roomy));
  EXPECT_EQ(StepsOf(Metrics(recipe, "checkpoint")), (std::vector<int64_t>{1, 5, 6}));
  EXPECT_TRUE(fs::exists(fs::path(recipe.output) / "best" / "manifest.json"));
  EXPECT_EQ(checkpoint::CheckpointFolder(Checkpoints(recipe), 1).LoadNewest()->checkpoint.step, 6);
}

TEST_F(TrainerFaultTest, ARunWhoseModelCannotBeWrittenFails) {
  const Recipe recipe = SavingRecipe("full");
  SmallDisk disk(recipe.output);
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount a small file system: " << disk.why_not();
  TrainerContext context;
  context.step_done = [&](int64_t step) {
    if (step == 2) disk.Fill();
  };
  const absl::Status status = TrainOver(1, recipe, context).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("model.safetensors"));
}

TEST_F(TrainerFaultTest, ALiveButStuckRankIsNamed) {
  Recipe recipe = RecipeFor("stuck");
  recipe.step_timeout = absl::ToInt64Seconds(base::PatientTimeout(absl::Seconds(2)));
  absl::Notification over;
  parallel::OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> communicator) {
    TrainerContext context;
    context.step_done = [&](int64_t step) {
      if (rank == 1 && step == 2) over.WaitForNotification();
    };
    const absl::Status status = Train(recipe, std::move(communicator), context).status();
    if (rank == 1) return;
    EXPECT_EQ(comm::LostRank(status), 1) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("step 3 (epoch 1): rank 1 is late"));
    over.Notify();
  });
}

}  // namespace
}  // namespace tutti::train
