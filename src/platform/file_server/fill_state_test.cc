// Covers: state_file.cc.
#include "platform/file_server/fill_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process/child_process.h"

namespace tutti::file_server {
namespace {

TEST(FillState, IsReadAsItWasWritten) {
  const base::TemporaryDirectory folder;
  EXPECT_TRUE(absl::IsNotFound(ReadFillState(folder.path()).status()));
  const FillState state{.from = "s3://b/x",
                        .state = "cut off",
                        .files = 1,
                        .of_files = 2,
                        .bytes = 3,
                        .of_bytes = 4,
                        .updated = 5,
                        .error = "the store is away"};
  ASSERT_TRUE(WriteFillState(folder.path(), state).ok());
  const auto read = ReadFillState(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, state);
}

TEST(FillState, WhoseProcessHasEndedIsCutOff) {
  const base::TemporaryDirectory folder;
  FillState state{.from = "s3://b/x", .state = "filling", .pid = ::getpid()};
  state.start_time = base::ProcessStartTime(state.pid).value();
  ASSERT_TRUE(WriteFillState(folder.path(), state).ok());
  EXPECT_EQ(ReadFillState(folder.path())->state, "filling");
  ++state.start_time;  // the id is another process's by now
  ASSERT_TRUE(WriteFillState(folder.path(), state).ok());
  EXPECT_EQ(ReadFillState(folder.path())->state, "cut off");
}

TEST(FillState, WhatIsOfAnotherTypeKeepsItsDefault) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(
      base::WriteFileAtomic(folder.path() / "fill.json", R"({"from": 1, "files": "x", "bytes": 7})")
          .ok());
  const auto read = ReadFillState(folder.path());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->from, "");
  EXPECT_EQ(read->files, 0);
  EXPECT_EQ(read->bytes, 7);
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "fill.json", "[]").ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadFillState(folder.path()).status()));
}

}  // namespace
}  // namespace tutti::file_server
