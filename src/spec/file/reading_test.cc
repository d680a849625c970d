// Tests what is left of a file of which a part was refused, for further checks to look at.
// Covers: spec/types/read_file.cc, job_file.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "spec/file/job_file.h"

namespace tutti::spec {
namespace {
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReadingTest : public ::testing::Test {
 protected:
  JobSpec Read(absl::string_view text) {
    const Reading reading =
        ReadAllOfJobFile(text, "job.yml", directory_.path(), BuiltInSite(), ReadFromDisk);
    EXPECT_FALSE(reading.faults.ok()) << text;
    return reading.job.spec;
  }
  // Returns what CheckPaths adds to what the reader says.
  std::string Added(absl::string_view text) {
    std::vector<std::string> warnings;
    return std::string(CheckPaths(Read(text), warnings).message());
  }

  base::TemporaryDirectory directory_;
};

TEST_F(ReadingTest, KeepsWhatWasReadWithoutAComplaint) {
  const JobSpec job = Read(
      "command: python a.py\ncode: ./gone\nfoo: 1\nenvironment: {image: a.example/b:1}\n"
      "resources: {instance_count: 99}\n"
      "inputs: {x: {path: gone}, y: {type: uri_file, path: 'https://a.example/y'}}\n");
  EXPECT_THAT(job.code, HasSubstr("/gone"));
  EXPECT_EQ(job.environment.image.reference, "a.example/b:1");
  EXPECT_EQ(job.instance_count, 99);
  EXPECT_EQ(job.compute, "local");
  EXPECT_EQ(job.inputs.at("y").path, "https://a.example/y");
  EXPECT_THAT(job.inputs.at("x").path, HasSubstr("/gone"));
}

TEST_F(ReadingTest, SaysNothingOfCodeThatWasRefusedNorOfTheCommandThatNeedsIt) {
  EXPECT_EQ(Added("command: python a.py\ncode: [a]\n"), "");
  EXPECT_EQ(Added("command: python a.py\ncode: https://a.example/folder\n"), "");
  EXPECT_EQ(Added("command: python a.py\ncod: src\n"), "");     // meant as code
  EXPECT_EQ(Added("command: python a.py\nsource: src\n"), "");  // perhaps
  EXPECT_THAT(Added("command: python a.py\ndescripton: x\n"), HasSubstr("has no code"));
}

TEST_F(ReadingTest, SaysNothingOfWhatAVariableMayHaveChanged) {
  EXPECT_EQ(Read("command: prog\nenvironment_variables: {PATH: [a]}\n").command, "");
  EXPECT_EQ(Read("command: prog\nenvironment_variable: {PATH: /a}\n").command, "");
}

TEST_F(ReadingTest, KnowsNoEnvironmentThatWasRefused) {
  for (const char* text : {"environment: no-such-name\n", "environment: {image: 'A b'}\n",
                           "environment: {image: [x]}\n", "environmet: {image: x}\n"}) {
    const JobSpec job = Read(absl::StrCat("command: prog\n", text));
    EXPECT_FALSE(job.environment.is_host) << text;
    EXPECT_TRUE(job.environment.image.empty()) << text;
    EXPECT_EQ(job.environment.name, "host") << text;  // which says nothing of GPUs
  }
}

TEST_F(ReadingTest, KeepsTheImageOfAnEnvironmentWhosePackagesWereRefused) {
  const JobSpec job = Read("command: x\nenvironment: {image: 'a.example/b:1', conda_file: gone}\n");
  EXPECT_EQ(job.environment.image.reference, "a.example/b:1");
  EXPECT_THAT(job.environment.packages, IsEmpty());
}

TEST_F(ReadingTest, KnowsNoComputeThatWasRefusedInAnyJobThatTakesIt) {
  EXPECT_EQ(Read("command: x\ncompute: gpus\n").compute, "");
  EXPECT_EQ(Read("command: x\ncompute: [a]\n").compute, "");
  EXPECT_EQ(Read("command: x\ncomputte: gpus\n").compute, "");
  const std::string steps = "jobs: {a: {command: x}, b: {command: x, compute: local}}\n";
  for (const char* compute : {"compute: gpus\n", "settings: {default_compute: gpus}\n",
                              "setings: {default_compute: gpus}\n"}) {
    const JobSpec job = Read(absl::StrCat("type: pipeline\n", compute, steps));
    ASSERT_EQ(job.steps.size(), 2u) << compute;
    EXPECT_EQ(job.steps[0].job.compute, "") << compute;
    EXPECT_EQ(job.steps[1].job.compute, "local") << compute;
  }
}

TEST_F(ReadingTest, SaysNothingOfAnInputThatWasRefused) {
  ASSERT_TRUE(base::WriteFileAtomic(directory_.path() / "file", "").ok());
  EXPECT_EQ(Added("command: x\ninputs: {d: {type: uri_flie, path: file}}\n"), "");
  EXPECT_EQ(Added("command: x\ninputs: {d: {path: gone, mode: rw}}\n"), "");
  EXPECT_EQ(Added("type: pipeline\ninputs: {d: {type: uri_flie, path: file}}\njobs: {a: {command: "
                  "x, inputs: {d: '${{parent.inputs.d}}'}}}\n"),
            "");
}

TEST_F(ReadingTest, SaysNothingOfACountThatWasRefused) {
  EXPECT_EQ(Read("command: x\nresources: {instance_count: many}\n").instance_count, 1);
}

TEST_F(ReadingTest, ChecksTheStepsThatWereRead) {
  EXPECT_THAT(absl::StrSplit(Added("type: pipeline\njobs:\n  a: {command: x, code: ./gone}\n"
                                   "  b: {command: x, code: [a]}\n"
                                   "  c: {component: nowhere.yml}\n"
                                   "  d: {commnd: x, inputs: {x: {path: ./far}}}\n"),
                             '\n'),
              ElementsAre(absl::StrCat("job.yml:3: code: ", directory_.path().string(),
                                       "/gone does not exist"),
                          absl::StrCat("job.yml:6: input \"x\": ", directory_.path().string(),
                                       "/far does not exist")));
}

TEST_F(ReadingTest, NamesTheLineOfABindingAlsoWhereTheStepsComponentCannotBeHad) {
  const Reading reading = ReadAllOfJobFile(
      "type: pipeline\njobs:\n  a: {command: x}\n  b:\n    component: gone.yml\n    inputs:\n"
      "      x: ${{parent.jobs.a.outputs.o}}\n",
      "job.yml", directory_.path(), BuiltInSite());
  EXPECT_THAT(std::string(reading.faults.message()),
              HasSubstr("job.yml:7: step \"b\" takes input \"x\" from output \"o\""));
}

TEST_F(ReadingTest, ChecksTheTrialsOfASweep) {
  EXPECT_EQ(Added("type: sweep\ntrial: {command: 'x ${{search_space.a}}', code: ./gone}\n"
                  "search_space: {a: {type: choice, values: [1]}}\nobjectve: {}\n"),
            absl::StrCat("job.yml:2: code: ", directory_.path().string(), "/gone does not exist"));
}

TEST_F(ReadingTest, ChecksNothingOfWhatIsNoJob) {
  EXPECT_EQ(Added("command: [\n"), "");
  EXPECT_EQ(Added("type: automl\ncode: ./gone\n"), "");
}

TEST_F(ReadingTest, AsksNoClusterForWhatABatchScriptDoesNotSayPlainly) {
  EXPECT_EQ(Read("#!/bin/sh\n#SBATCH --nodes=many\n").compute, "");
}

}  // namespace
}  // namespace tutti::spec
