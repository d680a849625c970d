#include "platform/container/python/python_check.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::container {
namespace {
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Finds no Python, and fetches none: version 3.4 since it is not there, others for want of time.
constexpr char kUvWithoutPythons[] = R"(#!/bin/sh
echo "$2 $3" >> "${0%/*}/calls"
case "$2 $3" in
  "install 3.4"*) echo "error: No download found" >&2; exit 2 ;;
  install*) exec sleep 60 ;;
esac
exit 2
)";

class PythonCheck : public ::testing::Test {
 protected:
  PythonCheck() {
    EXPECT_TRUE(base::WriteFileAtomic(bin_.path() / "uv", kUvWithoutPythons, 0755).ok());
    ::setenv("PATH", (bin_.path().string() + ":" + path_).c_str(), 1);
    ::unsetenv("UV_PYTHON_DOWNLOADS");
  }
  ~PythonCheck() override { ::setenv("PATH", path_.c_str(), 1); }

  static spec::Step StepOf(const std::string& version, const std::string& location) {
    spec::Step step;
    step.job.compute = "local";
    step.job.environment.is_host = false;
    step.job.environment.python = version;
    step.job.environment.python_place = location;
    return step;
  }
  static spec::JobSpec Pipeline(std::vector<spec::Step> steps) {
    spec::JobSpec job;
    job.kind = spec::JobKind::kPipeline;
    job.steps = std::move(steps);
    return job;
  }
  absl::Status Check(const spec::JobSpec& job, absl::Duration patience) {
    return CheckPythons(job, folder_.path(), base::Deadline::After(patience), warnings_);
  }
  int Installs() const {
    int installs = 0;
    for (const absl::string_view line :
         absl::StrSplit(base::ReadFile(bin_.path() / "calls").value_or(""), '\n')) {
      installs += absl::StrContains(line, "install") ? 1 : 0;
    }
    return installs;
  }

  const std::string path_ = std::getenv("PATH");
  const base::TemporaryDirectory bin_, folder_;
  std::vector<std::string> warnings_;
};

TEST_F(PythonCheck, FetchesEachVersionOnceAndWarnsAtEachPlace) {
  const spec::JobSpec job =
      Pipeline({StepOf("3.4", "a.yml:1"), StepOf("3.4", "b.yml:2"), StepOf("3.4", "c.yml:3")});
  EXPECT_TRUE(Check(job, base::Patient(absl::Seconds(20))).ok());
  EXPECT_EQ(Installs(), 1);
  EXPECT_THAT(warnings_,
              ElementsAre(HasSubstr("a.yml:1: Python 3.4 is not on this machine and cannot be "
                                    "fetched: No download found; this machine's Python is taken, "
                                    "with versions given by == or ~= as the least: ask for Python "
                                    "3.8 or a newer one"),
                          HasSubstr("b.yml:2: "), HasSubstr("c.yml:3: ")));
}

TEST_F(PythonCheck, RefusesEveryPython2) {
  const absl::Status status =
      Check(Pipeline({StepOf("2.7", "a.yml:1"), StepOf("2", "b.yml:2")}), absl::Seconds(1));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "a.yml:1: Python 2.7 cannot be had: ask for Python 3.8 or a newer one\n"
            "b.yml:2: Python 2 cannot be had: ask for Python 3.8 or a newer one");
}

TEST_F(PythonCheck, WaitsForAllVersionsTogetherAndGoesOnForTheNext) {
  std::vector<spec::Step> steps;
  for (int i = 90; i < 96; ++i) steps.push_back(StepOf(absl::StrCat("3.", i), "a.yml:1"));
  const base::Deadline soon = base::Deadline::After(base::Patient(absl::Seconds(20)));
  EXPECT_TRUE(Check(Pipeline(steps), absl::Seconds(3)).ok());
  EXPECT_TRUE(Check(Pipeline(steps), absl::Seconds(3)).ok());
  EXPECT_FALSE(soon.Expired());
  EXPECT_LE(Installs(), 6) << "the second joins the first's searches";
  EXPECT_THAT(warnings_, Each(HasSubstr("can be had is not known yet")))
      << "the launcher has more time, and may get it";
  EXPECT_EQ(warnings_.size(), 12u) << "each of six, by each of two";
  EXPECT_THAT(warnings_[0], HasSubstr("a.yml:1: whether Python 3.9"));
}

TEST_F(PythonCheck, SearchesThatNobodyAwaitedHinderNoOthers) {
  for (int i = 0; i < 20; ++i) {
    const std::string version = absl::StrCat("3.4,!=3.4.", i);
    EXPECT_TRUE(Check(Pipeline({StepOf(version, "a.yml:1")}), absl::ZeroDuration()).ok());
  }
  base::AwaitPatiently(absl::Seconds(20), [&] {  // until some of those have ended
    EXPECT_TRUE(Check(Pipeline({StepOf("3.4", "b.yml:2")}), absl::Milliseconds(50)).ok());
    return std::any_of(warnings_.begin(), warnings_.end(), [](const std::string& warning) {
      return absl::StrContains(warning, "is not on this machine");
    });
  });
}

TEST_F(PythonCheck, WhatOneHasNotWaitedForServesTheNext) {
  const spec::JobSpec job = Pipeline({StepOf("3.4", "a.yml:1")});
  EXPECT_TRUE(Check(job, absl::ZeroDuration()).ok());
  base::AwaitPatiently(absl::Seconds(20), [&] { return Installs() > 0; });
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("a.yml:1: whether Python 3.4 can be had")));
  warnings_.clear();
  EXPECT_TRUE(Check(job, base::Patient(absl::Seconds(20))).ok());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("a.yml:1: Python 3.4 is not on this machine")));
  EXPECT_EQ(Installs(), 1);
}

}  // namespace
}  // namespace tutti::container
