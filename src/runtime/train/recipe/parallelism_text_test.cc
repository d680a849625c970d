#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/train/recipe/recipe.h"

namespace tutti::train {
namespace {

using testing::HasSubstr;

std::string ReadAndWritten(const std::string& text) {
  parallel::Parallelism read;
  const absl::Status status = ReadParallelism(text, read);
  if (!status.ok()) return std::string(status.message());
  parallel::Parallelism again;
  EXPECT_TRUE(ReadParallelism(ParallelismText(read), again).ok());
  EXPECT_EQ(again, read);
  return ParallelismText(read);
}

TEST(ParallelismText, SaysAllThatApplies) {
  EXPECT_EQ(ReadAndWritten(""), "pipeline=1");
  EXPECT_EQ(ReadAndWritten("{pipeline: 2, data: 3}"), "pipeline=2,data=3");
  EXPECT_EQ(ReadAndWritten("sync=diloco,every=20"),
            "pipeline=1,sync=diloco,every=20,fragments=1,delay=0,mix=0.5,send=fp32,rate=0.7,"
            "momentum=0.9");
  EXPECT_EQ(ReadAndWritten("{sync: local, every: 8, fragments: 2, delay: 3, send: int8}"),
            "pipeline=1,sync=local,every=8,fragments=2,delay=3,mix=0.5,send=int8");
  EXPECT_EQ(ReadAndWritten("servers=2,staleness=4"), "pipeline=1,servers=2,staleness=4");
  EXPECT_EQ(ReadAndWritten("pipeline=4,gradients=synthetic"),
            "pipeline=4,gradients=synthetic,predictor=linear,labels=auto,"
            "predictor-rate=0.001,waiting=2,full=wait");
  EXPECT_EQ(ReadAndWritten("{pipeline: 2, gradients: delayed, waiting: 3, full: drop}"),
            "pipeline=2,gradients=delayed,waiting=3,full=drop");
}

TEST(ParallelismText, WhatCannotBeIsNamedWithWhatCan) {
  const std::pair<const char*, const char*> said[] = {
      {"pipelines=2", "\"pipelines=2\" is none of pipeline, data, sync"},
      {"pipelines=2", "did you mean \"pipeline\""},
      {"pipeline=0", "pipeline takes a whole number from 1 to 65536"},
      {"pipeline=two", "\"pipeline=two\": pipeline takes a whole number"},
      {"data=2,data=3", "data is there twice"},
      {"sync=sometimes", "sync takes steps or local or diloco"},
      {"every=5", "every is a term of sync=local and diloco"},
      {"sync=steps,every=5", "every is a term of sync=local and diloco"},
      {"sync=local,momentum=0.5", "momentum is a term of sync=diloco"},
      {"sync=diloco,momentum=1", "momentum takes a number from 0 to"},
      {"sync=diloco,every=5,delay=5", "a delay of 5 steps ends behind the next exchange"},
      {"sync=diloco,every=5,fragments=6", "6 fragments every 5 steps: at most one a step"},
      {"sync=diloco,pipeline=2", "pipeline, servers and sync are ways of their own"},
      {"servers=1,staleness=1,sync=local", "pipeline, servers and sync are ways of their own"},
      {"servers=2", "servers wants staleness=VERSIONS"},
      {"staleness=2", "staleness is a term of servers"},
      {"servers=2,staleness=-1", "staleness takes a whole number from 0"},
      {"gradients=synthetic", "gradients=synthetic is for the stages of one pipeline"},
      {"pipeline=2,data=2,gradients=delayed", "say pipeline=STAGES, at least 2, without data"},
      {"pipeline=2,gradients=late", "gradients takes exact or synthetic or delayed"},
      {"pipeline=2,predictor=linear", "predictor is a term of gradients=synthetic"},
      {"pipeline=2,gradients=delayed,labels=no", "labels is a term of gradients=synthetic"},
      {"pipeline=2,gradients=synthetic,predictor=magic",
       "predictor takes linear or convolutions or auxiliary or zero or random"},
      {"pipeline=2,gradients=synthetic,width=8", "width is a term of predictor=convolutions"},
      {"pipeline=2,gradients=synthetic,waiting=0", "waiting takes a whole number from 1"}};
  for (const auto& [text, error] : said) EXPECT_THAT(ReadAndWritten(text), HasSubstr(error));
}

}  // namespace
}  // namespace tutti::train
