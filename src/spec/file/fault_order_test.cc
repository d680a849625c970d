#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {

JobSpec Pipeline() {
  JobSpec job;
  job.file_name = "job.yml";
  for (const char* file : {"parts/train.yml", "job.yml", "parts/apply.yml"}) {
    job.steps.emplace_back().job.file_name = file;
  }
  return job;
}

std::string Sorted(const std::vector<std::string>& faults) {
  return std::string(
      InFileOrder(absl::InvalidArgumentError(absl::StrJoin(faults, "\n")), Pipeline()).message());
}

TEST(InFileOrder, IsByFileAndLineEachOnceTheJobFileFirst) {
  EXPECT_EQ(Sorted({"parts/apply.yml:2: b", "job.yml:10: c", "parts/train.yml:7: d", "job.yml:9: e",
                    "parts/apply.yml:2: b"}),
            "job.yml:9: e\njob.yml:10: c\nparts/train.yml:7: d\nparts/apply.yml:2: b");
}

TEST(InFileOrder, OfALineTheFirstToldStaysTheFirst) {
  EXPECT_EQ(Sorted({"job.yml:3: b", "job.yml:3: a"}), "job.yml:3: b\njob.yml:3: a");
}

TEST(InFileOrder, AFileAsAWholeIsBeforeItsLinesAndWhatTellsNoPlaceIsLast) {
  EXPECT_EQ(Sorted({"the disk is full", "job.yml:1: a", "job.yml: compute x is away",
                    "env/conda.yml:4: \"job.yml:1: a\" is odd", "and 3 more errors"}),
            "job.yml: compute x is away\njob.yml:1: a\nenv/conda.yml:4: \"job.yml:1: a\" is "
            "odd\nthe disk is full\nand 3 more errors");
}

TEST(InFileOrder, KeepsTheCode) {
  EXPECT_TRUE(InFileOrder(absl::OkStatus(), {}).ok());
  EXPECT_EQ(InFileOrder(absl::NotFoundError("x"), {}), absl::NotFoundError("x"));
}

}  // namespace
}  // namespace tutti::spec
