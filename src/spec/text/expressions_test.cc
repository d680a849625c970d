#include "spec/text/expressions.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;

const ExpressionValues& Values() {
  static const auto* values = new ExpressionValues{
      {{"data", "/mnt/d"}, {"lr", "0.1"}, {"evil", "${{inputs.lr}}"}}, {{"model", "/out/model"}}};
  return *values;
}

std::string Expand(absl::string_view text) {
  const auto expanded = ExpandExpressions(text, Values());
  return expanded.ok() ? *expanded : std::string(expanded.status().message());
}

TEST(Expressions, PutValuesInPlace) {
  EXPECT_EQ(Expand("a ${{inputs.data}}/${{ inputs.lr }} > ${{outputs.model}}"),
            "a /mnt/d/0.1 > /out/model");
  EXPECT_EQ(Expand(""), "");
  EXPECT_EQ(Expand("$RANK ${RANK} {{x}} $ { }}"), "$RANK ${RANK} {{x}} $ { }}");
}

TEST(Expressions, DoNotExpandWhatAValueContains) {
  EXPECT_EQ(Expand("${{inputs.evil}}"), "${{inputs.lr}}");
}

TEST(Expressions, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_EQ(Expand("${{inputs.dat}}"),
            "${{inputs.dat}}: the job has no input \"dat\" (did you mean \"data\"?)");
  EXPECT_EQ(Expand("${{outputs.zebra}}"), "${{outputs.zebra}}: the job has no output \"zebra\"");
}

TEST(Expressions, SayToWhichKindOfJobTheyBelong) {
  EXPECT_THAT(Expand("${{search_space.lr}}"), HasSubstr("belongs to sweep jobs"));
  EXPECT_THAT(Expand("${{parent.jobs.a.outputs.b}}"), HasSubstr("belongs to pipeline jobs"));
}

TEST(Expressions, RefuseWhatTheyDoNotUnderstand) {
  EXPECT_EQ(Expand("x ${{inputs.data"), "${{inputs.data: has no closing }}");
  for (const char* text : {"${{}}", "${{ }}", "${{inputs}}", "${{inputs.}}", "${{name}}"}) {
    EXPECT_THAT(Expand(text), HasSubstr("write ${{inputs.NAME}} or ${{outputs.NAME}}")) << text;
  }
}

TEST(Expressions, ALongTextOfOpenBracesEndsSoon) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "${{";
  EXPECT_THAT(Expand(text), HasSubstr("has no closing"));
}

TEST(Expressions, WhatDependsOnAnInputWithoutAValueIsLeftOut) {
  const ExpressionValues values{{{"a", "1"}}, {}, {"b"}};
  const auto expand = [&](absl::string_view text) { return *ExpandExpressions(text, values); };
  EXPECT_EQ(expand("x $[[--a ${{inputs.a}}]] $[[--b ${{inputs.b}}]] y"), "x --a 1  y");
  EXPECT_EQ(expand("$[[${{inputs.a}} ${{inputs.b}}]]"), "");
  EXPECT_EQ(expand("if [[ $x ]]; then $[[ 1 ]]; fi"), "if [[ $x ]]; then $[[ 1 ]]; fi");
  EXPECT_EQ(expand("$[[ ${{inputs.a}}"), "$[[ 1");
  EXPECT_THAT(std::string(ExpandExpressions("${{inputs.b}}", values).status().message()),
              HasSubstr("\"b\" is optional and has no value"));
}

TEST(Expressions, ACheckFindsEachOneThatIsWrong) {
  const auto errors = CheckExpressions("a ${{inputs.x}} ${{inputs.y}} ${{outputs.x}}",
                                       {{"x", Input()}}, {{"z", Output()}});
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].offset, 16u);
  EXPECT_EQ(errors[0].expression, "${{inputs.y}}");
  EXPECT_THAT(errors[1].message, HasSubstr("did you mean \"z\"?"));
}

}  // namespace
}  // namespace tutti::spec
