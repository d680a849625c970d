// Covers: docker_stages.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "spec/environment/docker_stages.h"
#include "spec/environment/package_files.h"

namespace tutti::spec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// Has what a Dockerfile comes to, with requirements.txt beside it.
struct Followed {
  Dockerfile found;
  Environment environment;
  std::vector<std::string> packages, warnings;
};

Followed Follow(absl::string_view text) {
  const ReadFileFunction read_file = [](const std::filesystem::path& file) {
    return file.filename() == "requirements.txt"
               ? absl::StatusOr<std::string>("numpy\n")
               : absl::NotFoundError(absl::StrCat(file.string(), " does not exist"));
  };
  int files_left = 32;
  const ReadContext context{"/base", BuiltInSite(), read_file, files_left};
  Followed followed;
  Diagnostics diagnostics("Dockerfile");
  followed.found = ReadDockerfile(text, {"Dockerfile", "/base/Dockerfile"}, context,
                                  followed.environment, diagnostics);
  EXPECT_TRUE(diagnostics.status().ok()) << diagnostics.status() << text;
  for (const Requirement& package : followed.environment.packages) {
    followed.packages.push_back(package.text);
  }
  followed.warnings = diagnostics.warnings();
  return followed;
}

TEST(DockerStages, InstructionsAreJoinedAndCommentsGone) {
  const DockerStages read = ReadDockerStages(
      "# escape=`\nARG V=3 W=${V}.1\nFROM --platform=$P x:${W} as One\nRUN a `\n# no\n  b\n"
      "RUN <<EOF\nc\n# no\nd\nEOF\nCOPY <<'END' /x\nRUN no\nEND\nFROM one\nfrom y:${NONE:-7}");
  ASSERT_EQ(read.stages.size(), 3u);
  EXPECT_EQ(read.stages[0].image, "x:3.1");
  EXPECT_EQ(read.stages[0].name, "one");
  EXPECT_EQ(read.stages[0].line, 3);
  ASSERT_EQ(read.stages[0].instructions.size(), 3u);
  EXPECT_EQ(read.stages[0].instructions[0].rest, "a  b");
  EXPECT_EQ(read.stages[0].instructions[1].rest, "<<EOF ; c ; d");
  EXPECT_EQ(read.stages[0].instructions[1].line, 7);
  EXPECT_EQ(read.stages[1].base, 0u);
  EXPECT_EQ(read.stages[2].image, "y:7");
  EXPECT_THAT(read.ChainOf(1), ElementsAre(0, 1));
  EXPECT_EQ(read.Find("ONE", 2), 0u);
  EXPECT_EQ(read.Find("1", 2), 1u);
  EXPECT_EQ(read.Find("2", 2), std::nullopt);
}

TEST(DockerStages, AStageIsOneOfThoseBeforeIt) {
  const DockerStages read = ReadDockerStages("FROM base AS base\nFROM base AS job\n");
  EXPECT_EQ(read.stages[0].image, "base");
  EXPECT_EQ(read.stages[1].base, 0u);
}

TEST(Dockerfile, TheImageIsThatOfTheFirstStageBelowTheLast) {
  const Followed followed = Follow(
      "\nFROM python:3.11 AS base\nENV BELOW=1\nARG GONE=2\nRUN pip install a\n"
      "FROM golang:1 AS other\nENV OTHER=1\nRUN apt-get install -y gcc && pip install never\n"
      "COPY nowhere /x\nFROM base AS job\nENV OVER=$BELOW IS=$GONE\nRUN pip install b\n");
  EXPECT_EQ(followed.found.image, "python:3.11");
  EXPECT_EQ(followed.found.line, 2);
  EXPECT_EQ(followed.found.needs_build, "") << "the job's stage takes nothing of the other";
  EXPECT_THAT(followed.packages, ElementsAre("a", "b"));
  EXPECT_THAT(followed.environment.variables, ElementsAre(Pair("BELOW", "1"), Pair("OVER", "1")));
  EXPECT_THAT(followed.environment.copied, IsEmpty());
  EXPECT_THAT(followed.warnings, ElementsAre(HasSubstr("Dockerfile:11: ENV IS is not set")));
}

TEST(Dockerfile, PackagesThatAStageInstalledForAnotherAreHad) {
  const Followed venv = Follow(
      "FROM python:3.11 AS build\nENV STAYS=1\nRUN apt-get install -y gcc && python -m venv /venv\n"
      "COPY requirements.txt .\nRUN /venv/bin/pip install -r requirements.txt\n"
      "FROM python:3.11-slim\nCOPY --from=build /venv /venv\nENV OWN=1\nRUN pip install tqdm\n");
  EXPECT_THAT(venv.packages, ElementsAre("numpy", "tqdm"));
  EXPECT_EQ(venv.found.image, "python:3.11-slim");
  EXPECT_EQ(venv.found.needs_build, "") << "what the packages were built with is not in the image";
  EXPECT_THAT(venv.warnings, IsEmpty());
  EXPECT_THAT(venv.environment.variables, ElementsAre(Pair("OWN", "1")));
  const Followed wheels = Follow(
      "FROM python:3.11\nCOPY requirements.txt .\nRUN pip wheel -w /wheels -r requirements.txt\n"
      "FROM python:3.11\nCOPY --chown=0 --from=0 /wheels /wheels\n"
      "RUN pip install --no-index --find-links=/wheels /wheels/*\n");
  EXPECT_THAT(wheels.packages, ElementsAre("numpy"));
  EXPECT_THAT(wheels.environment.options, IsEmpty());
}

TEST(Dockerfile, WhatOnlyAStageCanMakeNeedsItsBuild) {
  const Followed tool = Follow(
      "FROM golang:1 AS build\nRUN go build -o /tool\nFROM python:3.11\n"
      "COPY --from=build /tool /usr/bin/tool\n");
  EXPECT_EQ(tool.found.needs_build, "Dockerfile:4: COPY --from=build");
  EXPECT_EQ(Follow("FROM python:3.11\nCOPY --from=nginx:1 /etc/nginx /x\n").found.needs_build,
            "Dockerfile:2: COPY --from=nginx:1");
  const Followed uv = Follow(
      "FROM python:3.11\nCOPY --from=ghcr.io/astral-sh/uv:latest /uv /bin/\n"
      "RUN --mount=type=cache,target=/c uv pip install --system tqdm\n");
  EXPECT_EQ(uv.found.needs_build, "");
  EXPECT_THAT(uv.packages, ElementsAre("tqdm"));
  EXPECT_THAT(uv.warnings, IsEmpty());
}

TEST(Dockerfile, InstructionsMayBeLists) {
  const Followed followed = Follow(
      "FROM python:3.11\nCOPY [\"requirements.txt\", \"/r/\"]\n"
      "RUN [\"pip\", \"install\", \"-r\", \"/r/requirements.txt\"]\n"
      "RUN <<EOF\npip install tqdm\nEOF\n");
  EXPECT_THAT(followed.packages, ElementsAre("numpy", "tqdm"));
  EXPECT_EQ(followed.environment.copied.at(0).path, "requirements.txt");
  EXPECT_EQ(followed.environment.copied.at(0).location.line, 2);
}

TEST(Dockerfile, FilesThatAStageMakesAreNotLookedForBesideIt) {
  for (const char* install : {"pip install -r /x/made.txt", "conda env update -f /x/made.txt",
                              "conda install --file /x/made.txt"}) {
    const Followed followed =
        Follow(absl::StrCat("FROM a AS make\nRUN lock > /x/made.txt\nFROM python:3.11\n"
                            "COPY --from=make /x/made.txt /x/\nRUN ",
                            install, "\n"));
    EXPECT_THAT(followed.packages, IsEmpty()) << install;
    EXPECT_EQ(followed.found.needs_build, "Dockerfile:4: COPY --from=make") << install;
  }
}

}  // namespace
}  // namespace tutti::spec
