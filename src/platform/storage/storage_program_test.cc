// Covers: answer_reader.cc.
#include "platform/storage/storage_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/waiting.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/storage/answer_reader.h"

namespace tutti::storage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A shell script stands in for the program.
class RunStorageTest : public ::testing::Test {
 protected:
  void SetProgram(const std::string& script) {
    const auto program = folder_.path() / "program";
    ASSERT_TRUE(base::WriteFileAtomic(program, absl::StrCat("#!/bin/sh\n", script), 0755).ok());
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  absl::StatusOr<StorageResult> Run() {
    StorageRequest request;
    request.operation = Operation::kList;
    request.place = {spec::StoreKind::kS3, "", "bucket"};
    request.credentials.kind = spec::CredentialKind::kAccessKey;
    request.credentials.secret_access_key = "hush-hush";
    return RunStorage(
        request, base::Deadline::After(limit_), cancelled_,
        [&](const StorageProgress& progress) { progress_.push_back(progress); }, lock_.get());
  }

  // Returns whether the process whose id the file has is there no longer.
  static bool HasEnded(const std::filesystem::path& file) {
    const auto text = base::ReadFile(file);
    int pid = 0;
    return text.ok() && absl::SimpleAtoi(*text, &pid) && ::kill(pid, 0) != 0 && errno == ESRCH;
  }

  base::TemporaryDirectory folder_;
  absl::Duration limit_ = base::Patient(absl::Seconds(20));
  std::atomic<bool> cancelled_ = false;
  std::vector<StorageProgress> progress_;
  base::UniqueFd lock_;
};

TEST_F(RunStorageTest, EndsOneThatTellsNothingAndNoneThatMovesBytes) {
  const auto run = [&](absl::Duration longest_silence) {
    return RunStorageWatched(StorageProgram().value(), {}, base::Deadline::After(limit_),
                             cancelled_, {.longest_silence = longest_silence})
        .status();
  };
  SetProgram("sleep 1000");
  const absl::Status silent = run(absl::Milliseconds(50));
  EXPECT_TRUE(absl::IsDeadlineExceeded(silent)) << silent;
  EXPECT_EQ(silent.message(), "tutti-storage has moved nothing for 50ms");
  const absl::Duration silence = base::Patient(absl::Seconds(1));
  SetProgram(absl::StrCat("for i in 1 2 3 4 5; do sleep ", 0.3 * absl::ToDoubleSeconds(silence), R"(
    echo '{"progress": {"objects": 0, "of_objects": 1, "bytes": '$i', "of_bytes": 5}}'
    done
    echo '{"done": {"objects": 1, "bytes": 5}}')"));
  limit_ = absl::Minutes(5);
  const absl::Status slow = run(silence);
  EXPECT_TRUE(slow.ok()) << slow;
}

TEST_F(RunStorageTest, GivesTheRequestAndReadsTheAnswer) {
  SetProgram(absl::StrCat("cat >", folder_.path().string(), "/request\n", R"(
    ps -o args= -p $$ >)",
                          folder_.path().string(), R"(/words
    echo '{"progress": {"objects": 1, "of_objects": 2, "bytes": 3, "of_bytes": 4}}'
    echo '{"object": {"path": "a", "bytes": 5, "etag": "e"}}'
    echo '{"done": {"objects": 1, "bytes": 5, "digest": "d"}}')"));
  const auto result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->objects.size(), 1u);
  EXPECT_EQ(result->objects[0].path, "a");
  EXPECT_EQ(result->bytes, 5);
  EXPECT_EQ(result->digest, "d");
  ASSERT_EQ(progress_.size(), 1u);
  EXPECT_EQ(progress_[0].of_bytes, 4);
  EXPECT_THAT(*base::ReadFile(folder_.path() / "request"), HasSubstr("hush-hush"));
  EXPECT_THAT(*base::ReadFile(folder_.path() / "words"), Not(HasSubstr("hush-hush")));
}

TEST_F(RunStorageTest, ReturnsTheErrorOfTheAnswer) {
  SetProgram(R"(echo '{"error": {"kind": "disk_full", "message": "full"}}'; exit 1)");
  const auto result = Run();
  EXPECT_TRUE(absl::IsResourceExhausted(result.status())) << result.status();
  EXPECT_EQ(result.status().message(), "full");
}

TEST_F(RunStorageTest, TellsItsProcessAndTheObjectsBeforeAnError) {
  SetProgram(R"(
    echo '{"object": {"path": "a", "bytes": 5, "etag": "e"}}'
    echo '{"error": {"kind": "credentials", "message": "not b"}}'; exit 1)");
  pid_t pid = 0;
  std::vector<StoredObject> objects;
  const StorageRequest request{.operation = Operation::kPut,
                               .place = {.kind = spec::StoreKind::kS3, .container = "bucket"},
                               .folder = folder_.path()};
  const auto result =
      RunStorageWatched(*StorageProgram(), request, base::Deadline::After(limit_), cancelled_,
                        {.began = [&](pid_t began) { pid = began; },
                         .object = [&](const StoredObject& object) { objects.push_back(object); }});
  EXPECT_TRUE(absl::IsPermissionDenied(result.status())) << result.status();
  EXPECT_GT(pid, 0);
  ASSERT_EQ(objects.size(), 1u);
  EXPECT_EQ(objects[0].etag, "e");
}

TEST_F(RunStorageTest, TellsWhatTheProgramSaidWhenItEndsWithoutAnAnswer) {
  SetProgram("echo 'it is broken' >&2; kill -SEGV $$");
  const auto result = Run();
  EXPECT_TRUE(absl::IsInternal(result.status())) << result.status();
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("it is broken"));
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("SIGSEGV"));
}

TEST_F(RunStorageTest, HidesSecretsInWhatTheProgramSays) {
  SetProgram("echo 'key hush-hush is no key' >&2; exit 3");
  EXPECT_THAT(std::string(Run().status().message()),
              AllOf(HasSubstr("key *** is no key"), Not(HasSubstr("hush"))));
  SetProgram(R"(echo '{"error": {"kind": "network", "message": "hush-hush is away"}}'; exit 1)");
  EXPECT_EQ(Run().status().message(), "*** is away");
}

TEST_F(RunStorageTest, EndsTheProgramAtTheDeadline) {
  SetProgram(absl::StrCat("echo $$ >", folder_.path().string(), "/pid; exec sleep 600"));
  limit_ = base::Patient(absl::Seconds(1));  // so long that it has begun
  EXPECT_TRUE(absl::IsDeadlineExceeded(Run().status()));
  EXPECT_TRUE(HasEnded(folder_.path() / "pid"));
}

TEST_F(RunStorageTest, EndsTheProgramOnceItIsCancelled) {
  const auto begun = folder_.path() / "begun";
  SetProgram(absl::StrCat("echo $$ >", begun.string(), ".new; mv ", begun.string(), ".new ",
                          begun.string(), "; exec sleep 600"));
  std::thread canceller([&] {
    base::AwaitPatiently(absl::Seconds(20), [&] { return std::filesystem::exists(begun); });
    cancelled_ = true;
  });
  EXPECT_TRUE(absl::IsCancelled(Run().status()));
  canceller.join();
  EXPECT_TRUE(HasEnded(begun));
}

// A process that goes on stands for a program that its death has not reached yet.
TEST_F(RunStorageTest, WhatIsLockedStaysLockedUntilTheProgramHasEnded) {
  const auto file = folder_.path() / "lock", pid = folder_.path() / "pid";
  lock_ = *base::LockFile(file, cancelled_);
  SetProgram(absl::StrCat("sleep 600 >/dev/null 2>&1 & echo $! >", pid.string(),
                          "; echo '{\"done\": {}}'"));
  ASSERT_TRUE(Run().ok());
  lock_.reset();
  const base::UniqueFd other = *base::Open(file, O_RDWR);
  EXPECT_NE(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
  int number = 0;
  ASSERT_TRUE(absl::SimpleAtoi(*base::ReadFile(pid), &number));
  ASSERT_EQ(::kill(number, SIGKILL), 0);
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20),
                                   [&] { return ::flock(other.get(), LOCK_EX | LOCK_NB) == 0; }));
}

TEST_F(RunStorageTest, SaysHowToGetAProgramThatIsNotThere) {
  ::setenv("TUTTI_STORAGE_PROGRAM", "/nowhere/tutti-storage", 1);
  const auto result = Run();
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status())) << result.status();
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("`tools/setup storage && tools/build tutti-storage`"));
}

TEST(AnswerReader, TakesBytesThatAreCutAnywhere) {
  const std::string answer =
      "{\"object\": {\"path\": \"a\", \"bytes\": 1, \"etag\": \"\"}}\n"
      "{\"done\": {\"objects\": 1, \"bytes\": 1}}\n";
  for (size_t size = 1; size <= answer.size(); ++size) {
    AnswerReader reader({});
    for (size_t at = 0; at < answer.size(); at += size) {
      ASSERT_TRUE(reader.Add(absl::string_view(answer).substr(at, size)).ok());
    }
    const auto result = reader.Finish();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->objects.size(), 1u);
  }
}

TEST(AnswerReader, RefusesAnAnswerThatIsNone) {
  EXPECT_TRUE(absl::IsInternal(AnswerReader({}).Finish().status()));
  AnswerReader more({});
  EXPECT_FALSE(more.Add("{\"done\": {}}\n{\"done\": {}}\n").ok());
  AnswerReader endless({});
  EXPECT_FALSE(endless.Add(std::string(kLongestAnswerLine + 1, ' ')).ok());
  AnswerReader half({});
  EXPECT_TRUE(half.Add("{\"done\": {}}\n{\"do").ok());
  EXPECT_TRUE(absl::IsInternal(half.Finish().status()));
}

}  // namespace
}  // namespace tutti::storage
