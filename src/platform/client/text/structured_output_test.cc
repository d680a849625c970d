#include "platform/client/text/structured_output.h"

#include <gtest/gtest.h>

#include <sstream>

namespace tutti::client {
namespace {

std::string Write(absl::string_view json, Format format) {
  std::ostringstream out;
  EXPECT_TRUE(WriteStructured(out, json, format).ok());
  return out.str();
}

TEST(StructuredOutput, KeepsTheOrderOfKeys) {
  EXPECT_EQ(Write(R"({"b": 1, "a": [true, null]})", Format::kJson),
            "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    null\n  ]\n}\n");
}

TEST(StructuredOutput, YamlIsTheSameValue) {
  EXPECT_EQ(Write(R"({"id": "brave_ant", "size": 2.5, "list": [], "nodes": ["n1"], "x": null})",
                  Format::kYaml),
            "id: brave_ant\nsize: 2.5\nlist: []\nnodes:\n  - n1\nx: ~\n");
}

TEST(StructuredOutput, YamlQuotesWhatWouldReadAsSomethingElse) {
  EXPECT_EQ(Write(R"(["12", "yes", "", "a: b", "2026-01-01", "null", "- x"])", Format::kYaml),
            "- \"12\"\n- \"yes\"\n- \"\"\n- \"a: b\"\n- \"2026-01-01\"\n- \"null\"\n- \"- x\"\n");
}

TEST(StructuredOutput, WhatIsNoJsonIsAnError) {
  std::ostringstream out;
  EXPECT_FALSE(WriteStructured(out, "<html>", Format::kYaml).ok());
  EXPECT_FALSE(WriteStructured(out, std::string(1'000'000, '['), Format::kJson).ok());
  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_FALSE(WriteStructured(out, deep, Format::kJson).ok());
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace tutti::client
