// Tests the reason that a user is given for what real programs printed when they failed
// (tests/jobs/reasons): from a process's output over the diagnosis to the line with its remedy.
// Covers: diagnosis.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "platform/launch/diagnosis/last_error.h"
#include "platform/service/diagnosis/diagnosis.h"
#include "spec/environment/install_failure.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKept = 16 << 10;  // of a stream, as a launcher does

struct Rank {
  RankExit exit;
  std::map<std::string, std::string> streams;
};

// One file of tests/jobs/reasons/captured, whose form tests/jobs/reasons/README.md has.
struct Captured {
  std::string reason;
  spec::Environment environment;
  std::vector<Rank> ranks;
};

// "=== rank 1: exit code 2, ended as number 0"
Rank RankOf(absl::string_view line) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, absl::ByAnyChar(" :,"));
  Rank rank;
  int number = 0, order = 0;
  EXPECT_TRUE(absl::SimpleAtoi(words[2], &rank.exit.rank)) << line;
  EXPECT_TRUE(absl::SimpleAtoi(words.back(), &order)) << line;
  EXPECT_TRUE(absl::SimpleAtoi(words[words[4] == "signal" ? 5 : 6], &number)) << line;
  (words[4] == "signal" ? rank.exit.signal : rank.exit.code) = number;
  rank.exit.node = absl::StrCat("n", rank.exit.rank + 1);
  rank.exit.time = absl::FromUnixSeconds(order);
  return rank;
}

void ReadHead(absl::string_view line, Captured& captured) {
  if (absl::ConsumePrefix(&line, "reason: ")) captured.reason = std::string(line);
  if (absl::ConsumePrefix(&line, "package: ")) {
    captured.environment.packages.push_back(
        {std::string(line),
         absl::StrCat("requirements.txt:", captured.environment.packages.size() + 1)});
  }
}

Captured Read(const fs::path& path) {
  const auto text = base::ReadFile(path, 1 << 20);
  Captured captured;
  std::string* stream = nullptr;
  for (absl::string_view line : absl::StrSplit(text.value_or(""), '\n')) {
    if (absl::StartsWith(line, "=== ")) {
      captured.ranks.push_back(RankOf(line));
    } else if (absl::ConsumePrefix(&line, "--- ")) {
      stream = &captured.ranks.back().streams[std::string(line)];
    } else if (absl::ConsumePrefix(&line, "|")) {
      absl::StrAppend(stream, line, "\n");
    } else {
      ReadHead(line, captured);
    }
  }
  return captured;
}

std::string Tail(const std::string& text) {
  return text.substr(text.size() - std::min(text.size(), kKept));
}

std::string ReasonFor(Captured captured) {
  if (!captured.environment.packages.empty()) {
    return spec::ExplainFailure(captured.environment, captured.ranks[0].streams["stderr"]);
  }
  GangEnd end;
  for (Rank& rank : captured.ranks) {
    rank.exit.last_error =
        launch::LastError(Tail(rank.streams["stderr"]), Tail(rank.streams["stdout"]));
    end.exits.push_back(rank.exit);
    end.nodes.push_back({.node = rank.exit.node});
  }
  return Diagnose(end).line;
}

std::vector<fs::path> Files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TUTTI_REASONS)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Reasons : public ::testing::TestWithParam<fs::path> {};

TEST_P(Reasons, AreTheCauseInOneLine) {
  const Captured captured = Read(GetParam());
  ASSERT_FALSE(captured.ranks.empty());
  EXPECT_EQ(ReasonFor(captured), captured.reason);
}

INSTANTIATE_TEST_SUITE_P(OfRealPrograms, Reasons, ::testing::ValuesIn(Files()),
                         [](const auto& info) {
                           std::string name = info.param.stem().string();
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace tutti::service
