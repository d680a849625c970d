#include "platform/tracking/calls/request_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tutti::tracking {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json Parsed(absl::string_view body) {
  auto object = ParseRequest(body);
  EXPECT_TRUE(object.ok()) << object.status();
  return object.ok() ? *std::move(object) : json::object();
}

TEST(ParseRequest, TakesOneObject) {
  EXPECT_TRUE(Parsed("").empty());
  EXPECT_EQ(Parsed(R"({"a": 1})")["a"], 1);
  for (const char* wrong : {"[]", "1", "{", "{} {}", "nul", R"({"a": NaN})", "{\"a\": \"\xff\"}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseRequest(wrong).status())) << wrong;
  }
}

TEST(ParseRequest, RefusesWhatIsDeepBeforeItIsRead) {
  const std::string deep = "{\"a\":" + std::string(1 << 20, '[');
  EXPECT_THAT(ParseRequest(deep).status().message(), HasSubstr("too deep"));
  EXPECT_TRUE(ParseRequest(R"({"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["})").ok());
  EXPECT_TRUE(ParseRequest(R"({"a": "\"[[[[[[[[[[[[[[[[[[[[[[[[[[["})").ok());
}

TEST(RequestFields, ARequiredFieldThatIsMissingIsAnError) {
  for (const char* body : {"{}", R"({"experiment_id": null})", R"({"experiment_id": ""})"}) {
    const json object = Parsed(body);
    RequestFields fields(object);
    fields.Text("experiment_id", Need::kRequired);
    EXPECT_THAT(fields.status().message(),
                HasSubstr("Missing value for required parameter 'experiment_id'"));
  }
}

TEST(RequestFields, ReadsNumbersAsProtobufWritesThem) {
  const json object = Parsed(
      R"({"a": "12", "b": 3.0, "c": "NaN", "d": "-Infinity", "e": 1e3, "f": 9223372036854775807})");
  RequestFields fields(object);
  EXPECT_EQ(fields.Integer("a", Need::kRequired), 12);
  EXPECT_EQ(fields.Integer("b", Need::kRequired), 3);
  EXPECT_TRUE(std::isnan(fields.Number("c")));
  EXPECT_EQ(fields.Number("d"), -HUGE_VAL);
  EXPECT_EQ(fields.Integer("e", Need::kRequired), 1000);
  EXPECT_EQ(fields.Integer("f", Need::kRequired), INT64_MAX);
  EXPECT_EQ(fields.Integer("none", Need::kOptional), std::nullopt);
  EXPECT_EQ(fields.Integer("none", 7, 1, 9), 7);
  EXPECT_TRUE(fields.status().ok());
}

TEST(RequestFields, NamesWhatIsOfAnotherType) {
  const json object = Parsed(R"({"metrics": [{"value": "x"}], "t": [1], "n": 1.5, "big": 1e300})");
  RequestFields metric(object["metrics"][0], "metrics[0].");
  metric.Number("value");
  EXPECT_THAT(metric.status().message(),
              HasSubstr("Invalid value \"x\" for parameter 'metrics[0].value' supplied"));
  for (const char* name : {"n", "big", "t"}) {
    RequestFields fields(object);
    fields.Integer(name, Need::kRequired);
    EXPECT_THAT(fields.status().message(), HasSubstr("a whole number")) << name;
  }
  RequestFields fields(object);
  fields.Objects("t");
  EXPECT_THAT(fields.status().message(), HasSubstr("an array of objects"));
  fields.Text("none", Need::kRequired);
  EXPECT_THAT(fields.status().message(), HasSubstr("an array of objects"));  // the first stays
}

TEST(RequestFields, TakesNoNul) {
  const json object = Parsed(R"({"a": "x\u0000y", "b": ["\u0000"]})");
  RequestFields one(object);
  EXPECT_EQ(one.Text("a", Need::kRequired), "");
  EXPECT_FALSE(one.status().ok());
  RequestFields several(object);
  EXPECT_TRUE(several.Texts("b").empty());
  EXPECT_FALSE(several.status().ok());
}

TEST(RequestFields, OfAQueryKeepsRepeatedKeys) {
  http::Request request;
  request.query = {{"run_ids", "b"}, {"run_ids", "a"}, {"max_results", "5"}};
  const json object = QueryObject(request);
  RequestFields fields(object);
  EXPECT_THAT(fields.Texts("run_ids"), ElementsAre("b", "a"));
  EXPECT_THAT(fields.Texts("max_results"), ElementsAre("5"));
  EXPECT_EQ(fields.Integer("max_results", 1, 1, 9), 5);
  EXPECT_TRUE(fields.status().ok());
}

TEST(ParseRequest, SaysWhatIsWrong) {
  const auto why = [](absl::string_view body) {
    return std::string(ParseRequest(body).status().message());
  };
  EXPECT_THAT(why("[1]"), ::testing::HasSubstr("one JSON object"));
  for (const char* body : {R"({"value": NaN})", R"({"value": 1e400})", R"({"a": "\ud800"})"}) {
    EXPECT_THAT(why(body), ::testing::HasSubstr("\"NaN\"")) << body;
  }
  EXPECT_THAT(why("{\"a\": \"\xff\"}"), ::testing::HasSubstr("not UTF-8"));
}

TEST(Fields, ANumberIsAsJsonHasIt) {
  for (const char* text : {"0x10", "inf", "nan", "1 "}) {
    const nlohmann::json object = {{"value", text}};
    RequestFields fields(object);
    fields.Number("value");
    EXPECT_FALSE(fields.status().ok()) << text;
  }
  const nlohmann::json object = {{"value", "-1.5e3"}};
  RequestFields fields(object);
  EXPECT_EQ(fields.Number("value"), -1500);
  EXPECT_TRUE(fields.status().ok());
}

}  // namespace
}  // namespace tutti::tracking
