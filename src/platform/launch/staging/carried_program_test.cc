#include "platform/launch/staging/carried_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

class CarriedProgramTest : public ::testing::Test {
 protected:
  CarriedProgramTest() {
    const fs::path made = root_.path() / "made";
    EXPECT_TRUE(base::MakeDirectories(made / "lib").ok());
    EXPECT_TRUE(base::ReplaceFile(made / "program", "#!/bin/sh\n").ok());
    EXPECT_TRUE(base::ReplaceFile(made / "lib/libx.so", "x").ok());
    EXPECT_EQ(::chmod((made / "program").c_str(), 0755), 0);
    archive_ = root_.path() / "archive";
    const std::string pack =
        absl::StrCat("tar -czf ", archive_.native(), " -C ", made.native(), " .");
    EXPECT_EQ(std::system(pack.c_str()), 0);
    snapshot_ = absl::StrCat("sha256:", base::Hex(*base::Sha256OfFile(archive_)));
  }

  fs::path folder() const { return programs_ / snapshot_.substr(7); }
  absl::StatusOr<fs::path> Carry(const std::string& name = "program") {
    return CarriedProgram(
        name, snapshot_, programs_,
        [this](const fs::path& file) {
          ++fetched_;
          std::error_code error;
          fs::copy_file(archive_, file, fs::copy_options::overwrite_existing, error);
          return error ? absl::UnavailableError(error.message()) : absl::OkStatus();
        },
        cancelled_);
  }

  base::TemporaryDirectory root_;
  const fs::path programs_ = root_.path() / "programs";
  fs::path archive_;
  std::string snapshot_;
  std::atomic<int> fetched_ = 0;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(CarriedProgramTest, IsFetchedOnceAndSharedByAllThatAsk) {
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([this] {
      const auto program = Carry();
      ASSERT_TRUE(program.ok()) << program.status();
      EXPECT_EQ(*program, folder() / "program");
    });
  }
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(fetched_, 1);
  EXPECT_EQ(*base::ReadFile(folder() / "lib/libx.so"), "x");
  EXPECT_FALSE(fs::exists(folder().native() + ".tar.gz"));
  EXPECT_FALSE(fs::exists(folder().native() + ".part"));
}

// As kill -9 leaves it at any step.
TEST_F(CarriedProgramTest, MakesAnewWhatAKilledLauncherHasLeft) {
  ASSERT_TRUE(base::MakeDirectories(folder().native() + ".part").ok());
  ASSERT_TRUE(base::ReplaceFile(folder().native() + ".part/program", "half").ok());
  ASSERT_TRUE(base::ReplaceFile(folder().native() + ".tar.gz", "half").ok());
  const auto program = Carry();
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(*base::ReadFile(*program), "#!/bin/sh\n");
  fs::remove(*program);  // and what is there without its program
  ASSERT_TRUE(Carry().ok());
  EXPECT_EQ(fetched_, 2);
}

TEST_F(CarriedProgramTest, SaysThatTheArchiveHasNoSuchProgramAndKeepsNothing) {
  const auto program = Carry("other");
  EXPECT_TRUE(absl::IsDataLoss(program.status())) << program.status();
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      CarriedProgram("program", "sha256:../..", programs_, nullptr, cancelled_).status()));
}

TEST_F(CarriedProgramTest, RemovesVersionsThatNoJobHasTakenForAMonth) {
  const fs::path old = programs_ / std::string(64, 'a'), used = programs_ / std::string(64, 'b');
  for (const fs::path& folder : {old, used}) ASSERT_TRUE(base::MakeDirectories(folder).ok());
  const timespec then = absl::ToTimespec(absl::Now() - absl::Hours(24 * 31));
  const timespec times[2] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, old.c_str(), times, 0), 0);
  ASSERT_TRUE(Carry().ok());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(used));
}

}  // namespace
}  // namespace tutti::launch
