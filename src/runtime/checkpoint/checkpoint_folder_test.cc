// Covers: manifest.cc.
#include "runtime/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/match.h"
#include "base/file.h"
#include "base/process/kill_at_system_call_for_tests.h"

namespace tutti::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::Test;

// All of it follows from the step, so that a reader can tell whether it has all of it.
Checkpoint Example(int64_t step, int64_t elements = 64) {
  Checkpoint checkpoint;
  checkpoint.step = step;
  checkpoint.model["conv1.weight"] = torch::full({elements}, static_cast<double>(step));
  checkpoint.model["bn1.num_batches_tracked"] = torch::full({}, step, torch::kInt64);
  checkpoint.optimizer["momentum.conv1.weight"] = torch::full({3, 2}, -step, torch::kFloat32);
  checkpoint.state = {{"epoch", step / 10}, {"step", step}, {"seed", 1}};
  return checkpoint;
}

void ExpectEqual(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.state, b.state);
  for (const auto& [ours, theirs] :
       {std::pair(a.model, b.model), std::pair(a.optimizer, b.optimizer)}) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (const auto& [name, tensor] : ours) {
      EXPECT_EQ(tensor.scalar_type(), theirs.at(name).scalar_type()) << name;
      EXPECT_TRUE(tensor.equal(theirs.at(name))) << name;
    }
  }
}

// Killing a process loses nothing that was written, synced or not: the tests need no disk, and the
// hundreds of checkpoints of the last one would keep a slow disk busy for a minute.
struct InMemory {
  InMemory() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/1);
  }
};

class CheckpointFolderTest : public Test {
 protected:
  fs::path root() const { return directory_.path() / "checkpoints"; }
  fs::path PathOf(const std::string& step, const std::string& file) const {
    return root() / ("step-0000000" + step) / file;
  }
  void Save(int64_t step, int keep = 3) {
    const auto saved = CheckpointFolder(root(), keep).Save(SourcesOf(Example(step)));
    ASSERT_TRUE(saved.ok()) << saved.status();
  }
  std::vector<int64_t> Steps() const { return *CheckpointFolder(root(), 1).List(); }

  InMemory in_memory_;  // before the folder that it decides about
  base::TemporaryDirectory directory_;
};

void FlipByte(const fs::path& path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(at);
  file.put(byte);
}

TEST_F(CheckpointFolderTest, LoadsWhatWasSaved) {
  Save(1);
  Save(2);
  const CheckpointFolder folder(root(), 3);
  const auto loaded = folder.Load(1);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectEqual(*loaded, Example(1));
  const auto newest = folder.LoadNewest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  ExpectEqual(newest->checkpoint, Example(2));
  EXPECT_EQ(newest->path, root() / "step-00000002");
  EXPECT_TRUE(newest->warnings.empty());
}

TEST_F(CheckpointFolderTest, KeepsTheNewestAndReleasesOlderOnes) {
  for (int64_t step = 1; step <= 5; ++step) Save(step, /*keep=*/2);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{4, 5}));
}

TEST_F(CheckpointFolderTest, LeavesThoseOfLaterStepsAlone) {
  Save(7);
  Save(8);
  Save(2, /*keep=*/1);
  Save(3, /*keep=*/1);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{3, 7, 8}));
}

TEST_F(CheckpointFolderTest, ReplacesACheckpointOfTheSameStep) {
  Save(1);
  Checkpoint other = Example(1);
  other.state["seed"] = 2;
  ASSERT_TRUE(CheckpointFolder(root(), 3).Save(SourcesOf(other)).ok());
  ExpectEqual(*CheckpointFolder(root(), 3).Load(1), other);
  EXPECT_FALSE(fs::exists(root() / "step-00000001.tmp"));
}

TEST_F(CheckpointFolderTest, AsksForTheModelsTensorsAndThenForTheOptimizers) {
  const Checkpoint whole = Example(1);
  CheckpointSources sources = SourcesOf(whole);
  std::vector<std::string> asked;
  for (TensorSources* part : {&sources.model, &sources.optimizer}) {
    for (auto& [name, source] : *part) {
      source.get = [&asked, name = name, get = source.get] {
        asked.push_back(name);
        return get();
      };
    }
  }
  const auto saved = CheckpointFolder(root(), 3).Save(sources);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(asked, (std::vector<std::string>{"bn1.num_batches_tracked", "conv1.weight",
                                             "momentum.conv1.weight"}));
  ExpectEqual(*CheckpointFolder(root(), 3).Load(1), whole);
}

TEST_F(CheckpointFolderTest, ATensorThatDoesNotComeLeavesTheOlderOnesIntact) {
  Save(1);
  for (const bool of_optimizer : {false, true}) {
    for (const int64_t step : {1, 2}) {  // over the older one, beside it
      CheckpointSources sources = SourcesOf(Example(step));
      auto& source = of_optimizer ? sources.optimizer.at("momentum.conv1.weight")
                                  : sources.model.at("conv1.weight");
      source.get = [] { return absl::UnavailableError("rank 1 left"); };
      const absl::Status status = CheckpointFolder(root(), 3).Save(sources).status();
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_TRUE(absl::StrContains(status.message(), "conv1.weight\": rank 1 left")) << status;
      EXPECT_EQ(Steps(), (std::vector<int64_t>{1}));
      ExpectEqual(*CheckpointFolder(root(), 3).Load(1), Example(1));
      EXPECT_EQ(std::distance(fs::directory_iterator(root()), {}), 1) << "nothing else stays";
    }
  }
}

TEST_F(CheckpointFolderTest, SaysThatThereIsNone) {
  const CheckpointFolder folder(root(), 3);
  EXPECT_TRUE(folder.List()->empty());
  EXPECT_TRUE(absl::IsNotFound(folder.LoadNewest().status()));
  EXPECT_TRUE(absl::IsNotFound(folder.Load(3).status()));
}

TEST_F(CheckpointFolderTest, NamesTheFileThatHasAFlippedByte) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    Save(1);
    const fs::path path = PathOf("1", file);
    FlipByte(path, static_cast<int64_t>(fs::file_size(path)) - 2);
    const absl::Status status = CheckpointFolder(root(), 3).Load(1).status();
    EXPECT_EQ(status,
              absl::DataLossError(path.string() + " is damaged: its SHA-256 is not the one in its "
                                                  "manifest"));
  }
}

TEST_F(CheckpointFolderTest, TrustsNoManifestWithAFlippedByte) {
  Save(1);
  const fs::path path = PathOf("1", "manifest.json");
  const auto size = static_cast<int64_t>(fs::file_size(path));
  const CheckpointFolder folder(root(), 3);
  for (int64_t at = 0; at < size; ++at) {
    FlipByte(path, at);
    const auto loaded = folder.Load(1);
    if (loaded.ok()) ExpectEqual(*loaded, Example(1));  // white space that became another
    if (!loaded.ok()) {
      EXPECT_TRUE(absl::StrContains(loaded.status().message(), "step-00000001/"))
          << loaded.status();
    }
    FlipByte(path, at);
  }
  EXPECT_TRUE(folder.Load(1).ok());
}

TEST_F(CheckpointFolderTest, NamesTheFileThatIsMissingOrCutShort) {
  Save(1);
  fs::resize_file(PathOf("1", "model.safetensors"), 10);
  EXPECT_TRUE(absl::StrContains(CheckpointFolder(root(), 3).Load(1).status().message(),
                                "model.safetensors is damaged: it has 10 bytes"));
  fs::remove(PathOf("1", "model.safetensors"));
  EXPECT_TRUE(absl::StrContains(CheckpointFolder(root(), 3).Load(1).status().message(),
                                "model.safetensors is damaged: No such file"));
}

TEST_F(CheckpointFolderTest, GoesBackToTheOneBeforeADamagedOneAndSaysSo) {
  Save(1);
  Save(2);
  FlipByte(PathOf("2", "model.safetensors"), 100);
  const CheckpointFolder folder(root(), 3);
  const auto newest = folder.LoadNewest();
  ASSERT_TRUE(newest.ok()) << newest.status();
  ExpectEqual(newest->checkpoint, Example(1));
  ASSERT_EQ(newest->warnings.size(), 1u);
  EXPECT_TRUE(absl::StrContains(newest->warnings[0], "step 2 passed over"));
  EXPECT_TRUE(absl::StrContains(newest->warnings[0], "step-00000002/model.safetensors"));

  FlipByte(PathOf("1", "state.json"), 3);
  const absl::Status none = folder.LoadNewest().status();
  EXPECT_TRUE(absl::IsDataLoss(none));
  EXPECT_TRUE(absl::StrContains(none.message(), "step-00000001/state.json")) << none;
}

TEST_F(CheckpointFolderTest, IgnoresAndClearsWhatAKilledWriterLeft) {
  Save(1);
  fs::create_directories(root() / "step-00000002.tmp");
  std::ofstream(root() / "step-00000002.tmp" / "model.safetensors") << "half";
  fs::create_directories(root() / "step-00000007.tmp");  // a removal that did not end
  fs::create_directories(root() / "notes.tmp");          // the user's
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1}));
  Save(2);
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(fs::exists(root() / "step-00000002.tmp"));
  EXPECT_FALSE(fs::exists(root() / "step-00000007.tmp"));
  EXPECT_TRUE(fs::exists(root() / "notes.tmp"));
}

TEST_F(CheckpointFolderTest, DoesNotReplaceAFolderOfSomethingElse) {
  fs::create_directories(root() / "step-00000001");
  std::ofstream(PathOf("1", "thesis.tex")) << "\\chapter{1}";
  const absl::Status status = CheckpointFolder(root(), 3).Save(SourcesOf(Example(1))).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(fs::exists(PathOf("1", "thesis.tex")));
}

// Nothing takes away or renames what a file system is mounted on.
TEST_F(CheckpointFolderTest, AnOlderOneThatCannotBeRemovedIsToldAndTriedAgain) {
  Save(1);
  Save(2);
  const fs::path stuck = root() / "step-00000001";
  if (::mount("tutti-test", stuck.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a file system here: " << strerror(errno);
  }
  const auto saved = CheckpointFolder(root(), /*keep=*/1).Save(SourcesOf(Example(3)));
  ::umount(stuck.c_str());
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_TRUE(absl::StrContains(saved->not_removed.message(), stuck.string()))
      << saved->not_removed;
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1, 3})) << "the other one is gone";
  const auto next = CheckpointFolder(root(), /*keep=*/1).Save(SourcesOf(Example(4)));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_TRUE(next->not_removed.ok()) << next->not_removed;
  EXPECT_EQ(Steps(), (std::vector<int64_t>{4}));
}

// On a file system of 1 MiB, a checkpoint of 512 kB fits once.
TEST_F(CheckpointFolderTest, LeavesTheOlderOnesIntactWhenTheDiskIsFull) {
  fs::create_directories(root());
  if (::mount("tutti-test", root().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a small file system here: " << strerror(errno);
  }
  CheckpointFolder folder(root(), 3);
  constexpr int64_t kElements = 128 * 1024;
  EXPECT_TRUE(folder.Save(SourcesOf(Example(1, kElements))).ok());
  const absl::Status full = folder.Save(SourcesOf(Example(2, kElements))).status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_TRUE(absl::StrContains(full.message(),
                                "the checkpoint of step 2 was not saved, those before it are "
                                "intact: "))
      << full;
  EXPECT_TRUE(absl::StrContains(full.message(), "model.safetensors: No space left on device"))
      << full;
  const auto newest = folder.LoadNewest();
  EXPECT_TRUE(newest.ok()) << newest.status();
  if (newest.ok()) ExpectEqual(newest->checkpoint, Example(1, kElements));
  EXPECT_FALSE(fs::exists(root() / "step-00000002.tmp"));
  ::umount(root().c_str());
}

// The same without privileges: no file may grow beyond 100 kB.
TEST_F(CheckpointFolderTest, LeavesNothingOfACheckpointThatCouldNotBeWritten) {
  Save(1);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit limit = {100'000, old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const absl::Status status =
      CheckpointFolder(root(), 3).Save(SourcesOf(Example(2, /*elements=*/100'000))).status();
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  ::signal(SIGXFSZ, old_handler);
  EXPECT_TRUE(absl::StrContains(status.message(), "model.safetensors: File too large")) << status;
  EXPECT_EQ(Steps(), (std::vector<int64_t>{1}));
  EXPECT_TRUE(CheckpointFolder(root(), 3).Load(1).ok());
  EXPECT_FALSE(fs::exists(root() / "step-00000002.tmp"));
}

// Has a child save step 2 (and release step 1), killed at its n-th stop.
bool KillWhileItSaves(const fs::path& root, int n) {
  return base::KillAtSystemCall(
      n, [&] { return CheckpointFolder(root, /*keep=*/1).Save(SourcesOf(Example(2))).ok(); });
}

TEST_F(CheckpointFolderTest, SurvivesAKillAtEverySystemCallOfSave) {
  for (int64_t existing : {1, 2}) {  // released by the new one; replaced by the new one
    int n = 0;
    for (bool ended = false; !ended; ++n) {
      SCOPED_TRACE(testing::Message() << "killed at stop " << n << ", over step " << existing);
      fs::remove_all(root());
      Save(existing);
      ended = KillWhileItSaves(root(), n);
      const CheckpointFolder folder(root(), 1);
      for (int64_t step : Steps()) {
        const auto loaded = folder.Load(step);
        ASSERT_TRUE(loaded.ok()) << loaded.status();
        ExpectEqual(*loaded, Example(step));
      }
      const auto newest = folder.LoadNewest();
      ASSERT_TRUE(newest.ok()) << newest.status();
      EXPECT_TRUE(!ended || Steps() == (std::vector<int64_t>{2}));
      Save(3, /*keep=*/1);  // and goes on from there
      EXPECT_EQ(Steps(), (std::vector<int64_t>{3}));
      ASSERT_LT(n, 2000);
    }
    EXPECT_GT(n, 20);
  }
}

}  // namespace
}  // namespace tutti::checkpoint
