// What cp, mv, sync and rm write for programs. tests/storage/test_storage_command.py runs them over
// stores. Covers: storage_commands.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/connection_fake.h"

namespace tutti::client {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Stands for tutti-storage: lists of the folders `from` and `to` what lies beside it, and answers
// all else with `done`.
constexpr char kListsAndMoves[] = R"(#!/bin/sh
cat >"$0.asked"
if ! grep -q '"browse"' "$0.asked"; then
  cat "$0.done"
elif grep -q '/to"' "$0.asked"; then
  cat "$0.to"
else
  cat "$0.from"
fi
)";
constexpr char kTwoFiles[] = R"({"object": {"path": "a", "bytes": 3, "etag": "", "modified": 17}}
{"object": {"path": "b/c", "bytes": 4, "etag": "", "modified": 17}}
{"done": {"objects": 2, "bytes": 7}}
)";

class StorageReportsTest : public ::testing::Test {
 protected:
  using Command = absl::StatusOr<ExitCode> (*)(Context&, const StorageOptions&);

  StorageReportsTest() {
    const std::string program = folder_.path() / "storage";
    if (!base::WriteFileAtomic(program, kListsAndMoves).ok()) std::abort();
    ::chmod(program.c_str(), 0700);
    ::setenv("TUTTI_STORAGE_PROGRAM", program.c_str(), 1);
    Answer("from", kTwoFiles);
    Answer("to", R"({"done": {"objects": 0, "bytes": 0}})"
                 "\n");
    Answer("done", R"({"done": {"objects": 2, "bytes": 7}})"
                   "\n");
  }
  ~StorageReportsTest() override { ::unsetenv("TUTTI_STORAGE_PROGRAM"); }

  void Answer(const std::string& of, const std::string& lines) {
    if (!base::WriteFileAtomic(folder_.path() / absl::StrCat("storage.", of), lines).ok()) {
      std::abort();
    }
  }
  // Runs it; an address is a name in the folder of the test.
  absl::Status Do(Command command, StorageOptions options) {
    out_.str("");
    err_.str("");
    for (std::string& address : options.addresses) address = At(address);
    Context context{
        fake_.connect(), folder_.path() / "home", "/programs", "0.1.0", out_, err_, {}, {}};
    const auto done = command(context, options);
    if (done.ok()) exit_code_ = *done;
    return done.status();
  }
  std::string At(const std::string& path) const { return folder_.path() / path; }
  json Told() const { return json::parse(out_.str(), nullptr, /*allow_exceptions=*/false); }
  json File(const std::string& path, int64_t bytes) const {
    return {{"from", At("from/" + path)}, {"to", At("to/" + path)}, {"bytes", bytes}};
  }

  const base::TemporaryDirectory folder_;
  FakeService fake_{[](const http::ClientRequest&) { return FakeService::Answer{.status = 404}; }};
  std::ostringstream out_, err_;
  ExitCode exit_code_ = ExitCode::kOk;  // of the last command that did not fail
};

TEST_F(StorageReportsTest, ACopyTellsWhatItWouldDoAndWhatItDid) {
  StorageOptions options{.addresses = {"from", "to"}, .recursive = true, .dry_run = true};
  options.format = Format::kJson;
  ASSERT_TRUE(Do(StorageCopy, options).ok());
  json expected = {{"command", "cp"},
                   {"dry_run", true},
                   {"sources", json::array({At("from")})},
                   {"target", At("to")},
                   {"files", json::array({File("a", 3), File("b/c", 4)})},
                   {"bytes", 7},
                   {"copied", 2},
                   {"left_out", 0},
                   {"not_copied", json::array()},
                   {"removed", json::array()}};
  EXPECT_EQ(Told(), expected);
  EXPECT_THAT(err_.str(), HasSubstr("would copy 2 files"));
  options.dry_run = false;
  const absl::Status copied = Do(StorageCopy, options);
  ASSERT_TRUE(copied.ok()) << copied;
  expected["dry_run"] = false;
  EXPECT_EQ(Told(), expected);
  EXPECT_THAT(err_.str(), HasSubstr("copied 2 files"));
}

TEST_F(StorageReportsTest, ACopyBringsTheOthersAndNamesWhatItLeavesOut) {
  Answer("from", R"({"object": {"path": "a", "bytes": 3, "etag": "", "modified": 17}}
{"object": {"path": "b//c", "bytes": 4, "etag": "", "modified": 17}}
{"object": {"path": "up", "bytes": 0, "etag": "", "left_out": "a link to a folder that it lies in"}}
{"done": {"objects": 2, "bytes": 7}}
)");
  const std::string up = At("from/up") + ": a link to a folder that it lies in\n";
  for (const Command command : {StorageCopy, StorageSync, StorageMove}) {
    const absl::Status copied =
        Do(command, {.addresses = {"from", "to"}, .recursive = true, .format = Format::kJson});
    ASSERT_TRUE(copied.ok()) << copied;
    EXPECT_NE(exit_code_, ExitCode::kOk);
    EXPECT_EQ(Told()["files"], json::array({File("a", 3)}));
    EXPECT_EQ(Told()["not_copied"].size(), 2u);
    EXPECT_THAT(err_.str(), AllOf(HasSubstr("left out: " + up), HasSubstr(At("from/b//c: "))));
  }
  for (const Command command : {StorageList, StorageUsage}) {
    ASSERT_TRUE(Do(command, {.addresses = {"from"}, .recursive = true}).ok());
    EXPECT_THAT(err_.str(), HasSubstr("left out: " + up));
  }
}

TEST_F(StorageReportsTest, AMoveTellsWhatIsGoneFromTheSource) {
  const absl::Status moved =
      Do(StorageMove, {.addresses = {"from", "to"}, .recursive = true, .format = Format::kJson});
  ASSERT_TRUE(moved.ok()) << moved;
  EXPECT_EQ(Told()["command"], "mv");
  EXPECT_EQ(Told()["removed"], json::array({At("from/a"), At("from/b/c")}));
}

TEST_F(StorageReportsTest, ASyncTellsWhatWasThereAndWhatIsGoneFromTheTarget) {
  Answer("to", R"({"object": {"path": "a", "bytes": 3, "etag": "", "modified": 17}}
{"object": {"path": "old", "bytes": 1, "etag": "", "modified": 17}}
{"done": {"objects": 2, "bytes": 4}}
)");
  for (const bool dry_run : {true, false}) {
    const absl::Status synced = Do(StorageSync, {.addresses = {"from", "to"},
                                                 .dry_run = dry_run,
                                                 .yes = true,
                                                 .remove_others = true,
                                                 .format = Format::kJson});
    ASSERT_TRUE(synced.ok()) << synced;
    EXPECT_EQ(Told(), json({{"command", "sync"},
                            {"dry_run", dry_run},
                            {"sources", json::array({At("from")})},
                            {"target", At("to")},
                            {"files", json::array({File("b/c", 4)})},
                            {"bytes", 4},
                            {"copied", 1},
                            {"left_out", 1},
                            {"not_copied", json::array()},
                            {"removed", json::array({At("to/old")})}}));
  }
}

TEST_F(StorageReportsTest, ARemovalTellsWhatIsGone) {
  for (const bool dry_run : {true, false}) {
    const absl::Status removed = Do(StorageRemove, {.addresses = {"from"},
                                                    .recursive = true,
                                                    .dry_run = dry_run,
                                                    .yes = true,
                                                    .format = Format::kJson});
    ASSERT_TRUE(removed.ok()) << removed;
    EXPECT_EQ(Told(), json({{"command", "rm"},
                            {"dry_run", dry_run},
                            {"sources", json::array({At("from")})},
                            {"removed", json::array({At("from/a"), At("from/b/c")})},
                            {"objects", 2},
                            {"bytes", 7}}));
  }
}

TEST_F(StorageReportsTest, WritesYamlAndOfATableNoDocument) {
  StorageOptions options{.addresses = {"from"}, .recursive = true, .dry_run = true};
  options.format = Format::kYaml;
  ASSERT_TRUE(Do(StorageRemove, options).ok());
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("command: rm\n"), HasSubstr("objects: 2\n")));
  options.format = Format::kTable;
  ASSERT_TRUE(Do(StorageRemove, options).ok());
  EXPECT_EQ(out_.str(), "would remove a\nwould remove b/c\n");
}

TEST_F(StorageReportsTest, WritesNothingWhenACommandFails) {
  Answer("done", R"({"error": {"kind": "disk_full", "message": "the disk is full"}})"
                 "\n");
  const StorageOptions options{.addresses = {"from", "to"},
                               .recursive = true,
                               .yes = true,
                               .remove_others = true,
                               .format = Format::kJson};
  for (const Command command : {StorageCopy, StorageMove, StorageSync}) {
    EXPECT_THAT(std::string(Do(command, options).message()), HasSubstr("the disk is full"));
    EXPECT_THAT(out_.str(), IsEmpty());
  }
  StorageOptions one = options;
  one.addresses = {"from"};
  EXPECT_FALSE(Do(StorageRemove, one).ok());
  EXPECT_THAT(out_.str(), IsEmpty());
}

}  // namespace
}  // namespace tutti::client
