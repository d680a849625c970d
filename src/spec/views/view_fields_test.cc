// Covers: view_reader.h, view_schema.h, view_writer.cc, job_view.h, model_view.h,
// node_view.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "spec/views/job_view.h"
#include "spec/views/model_view.h"
#include "spec/views/node_view.h"
#include "spec/views/view_reader.h"
#include "spec/views/view_schema.h"
#include "spec/views/view_writer.h"

namespace tutti::spec {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// A field of each type and form.
struct InnerView {
  static constexpr char kSchema[] = "Inner";
  int number = 0;
  std::vector<InnerView> below;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("number", &InnerView::number);
    visitor.Field("below", &InnerView::below);
  }
};
constexpr const char* kColours[] = {"red", "green"};
struct WholeView {
  static constexpr char kSchema[] = "Whole";
  std::string text, none, time, never, colour = "red", state = "Queued";
  bool flag = false;
  int64_t count = 0;
  uint64_t bytes = 0;
  double rate = 0;
  std::optional<int> maybe;
  std::optional<InnerView> inner, absent;
  std::vector<int> numbers;
  std::map<std::string, int64_t> counts;
  JsonText any;
  std::vector<std::string> list;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("text", &WholeView::text, "said of it");
    visitor.Field("none", &WholeView::none, kNullIfEmpty);
    visitor.Field("time", &WholeView::time, kTime);
    visitor.Field("never", &WholeView::never, kTimeOrNull);
    visitor.Field("colour", &WholeView::colour, Form{.values = kColours});
    visitor.Field("state", &WholeView::state, kJobState);
    visitor.Field("flag", &WholeView::flag);
    visitor.Field("count", &WholeView::count);
    visitor.Field("bytes", &WholeView::bytes);
    visitor.Field("rate", &WholeView::rate);
    visitor.Field("maybe", &WholeView::maybe);
    visitor.Field("inner", &WholeView::inner);
    visitor.Field("absent", &WholeView::absent, kAbsentIfNone);
    visitor.Field("numbers", &WholeView::numbers);
    visitor.Field("counts", &WholeView::counts);
    visitor.Field("any", &WholeView::any);
    visitor.Field("list", &WholeView::list, kNeeded);
  }
};

TEST(ViewWriterTest, WritesFieldsInTheirOrder) {
  WholeView view{.text = "a \"b\" \x07",
                 .time = "2026-01-01T00:00:00Z",
                 .flag = true,
                 .count = -1,
                 .bytes = std::numeric_limits<uint64_t>::max(),
                 .rate = 0.1};
  view.inner = {.number = 3, .below = {{.number = 4}}};
  view.numbers = {1, 2};
  view.counts = {{"x", 1}, {"ÿ", 2}};
  view.any = {R"({"z":[1]})"};
  EXPECT_EQ(
      ViewWriter::Text(view),
      R"({"text":"a \"b\" \u0007","none":null,"time":"2026-01-01T00:00:00Z","never":null,)"
      R"("colour":"red","state":"Queued","flag":true,"count":-1,"bytes":18446744073709551615,)"
      R"("rate":0.1,"maybe":null,"inner":{"number":3,"below":[{"number":4,"below":[]}]},)"
      R"("numbers":[1,2],"counts":{"x":1,"ÿ":2},"any":{"z":[1]},"list":[]})");
}

TEST(ViewWriterTest, TextThatIsNotUtf8AndNumbersThatAreNotFiniteAreJsonToo) {
  const WholeView view{.text = "\xff", .rate = std::numeric_limits<double>::quiet_NaN()};
  const json written = json::parse(ViewWriter::Text(view));
  EXPECT_EQ(written["text"], "\xEF\xBF\xBD");
  EXPECT_EQ(written["rate"], nullptr);
}

TEST(ViewReaderTest, ReadsWhatTheWriterWrites) {
  WholeView view{.text = "日本", .never = "t", .count = 7, .bytes = 8, .rate = 2.5};
  view.maybe = 5;
  view.inner = {.number = 3};
  view.absent = {.number = 4};
  view.counts = {{"x", 1}};
  view.list = {"a"};
  const std::string text = ViewWriter::Text(view);
  const auto read = ViewReader::Read<WholeView>(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->absent->number, 4);
  EXPECT_EQ(ViewWriter::Text(*read), text);
}

TEST(ViewReaderTest, WhatIsOfAnotherTypeKeepsItsDefault) {
  const auto read = ViewReader::Read<WholeView>(
      R"({"text": 3, "colour": null, "flag": 1, "count": "x", "bytes": -5, "rate": "y", "maybe": {},
          "inner": [], "numbers": [1, "x", 1e300, -1e300], "counts": {"a": 1, "b": "c"}, "new": 1,
          "list": ["a", 7]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->text, "");
  EXPECT_EQ(read->colour, "red");
  EXPECT_FALSE(read->flag);
  EXPECT_EQ(read->count, 0);
  EXPECT_EQ(read->bytes, 0u);
  EXPECT_FALSE(read->maybe.has_value());
  EXPECT_FALSE(read->inner.has_value());
  EXPECT_EQ(read->numbers, (std::vector<int>{1, std::numeric_limits<int>::max(),
                                             std::numeric_limits<int>::min()}));
  EXPECT_EQ(read->counts.size(), 1u);
  EXPECT_EQ(read->list, std::vector<std::string>{"a"});
}

TEST(ViewReaderTest, WhatIsNotTheDocumentIsAnError) {
  for (const char* text : {"", "<html>", "[]", "{"}) {
    EXPECT_THAT(std::string(ViewReader::Read<WholeView>(text).status().message()),
                HasSubstr("is not readable"));
  }
  for (const char* text : {"{}", R"({"list": 3})"}) {
    EXPECT_THAT(std::string(ViewReader::Read<WholeView>(text).status().message()),
                HasSubstr("has no \"list\""));
  }
}

TEST(ViewReaderTest, GoesNoDeeperThanItsStackHasRoom) {
  std::string text = "{\"below\":[";
  for (int i = 0; i < 10'000; ++i) text += "{\"below\":[";
  for (int i = 0; i < 10'001; ++i) text += "]}";
  const auto read = ViewReader::Read<InnerView>(text);
  ASSERT_TRUE(read.ok());
  int depth = 0;
  for (const InnerView* at = &*read; !at->below.empty(); at = &at->below[0]) ++depth;
  EXPECT_GT(depth, 20);
  EXPECT_LT(depth, 100);
}

TEST(ViewSchemasTest, SaysWhatTheWriterWrites) {
  ViewSchemas schemas;
  schemas.Add<WholeView>();
  const json whole = json::parse(schemas.schemas()["Whole"].dump());
  const json& fields = whole["properties"];
  EXPECT_EQ(fields["text"], json::parse(R"({"type": "string", "description": "said of it"})"));
  EXPECT_EQ(fields["none"], json::parse(R"({"type": ["string", "null"]})"));
  EXPECT_EQ(fields["never"], json::parse(R"({"type": ["string", "null"], "format": "date-time",
                            "description": "RFC 3339, UTC, microseconds"})"));
  EXPECT_EQ(fields["colour"], json::parse(R"({"type": "string", "enum": ["red", "green"]})"));
  EXPECT_EQ(fields["state"], json::parse(R"({"$ref": "#/components/schemas/State"})"));
  EXPECT_EQ(fields["maybe"], json::parse(R"({"type": ["integer", "null"]})"));
  EXPECT_EQ(
      fields["inner"],
      json::parse(R"({"oneOf": [{"$ref": "#/components/schemas/Inner"}, {"type": "null"}]})"));
  EXPECT_EQ(fields["absent"], json::parse(R"({"$ref": "#/components/schemas/Inner"})"));
  EXPECT_EQ(fields["counts"],
            json::parse(R"({"type": "object", "additionalProperties": {"type": "integer"}})"));
  EXPECT_EQ(whole["required"].size(), fields.size() - 1) << "all but `absent`";
  EXPECT_EQ(whole["additionalProperties"], false);
  EXPECT_EQ(schemas.schemas()["Inner"]["properties"]["below"]["items"]["$ref"],
            "#/components/schemas/Inner");
}

TEST(ViewsTest, AJobOfAListIsAJobWithLess) {
  BriefJobView brief;
  brief.id = "brave_ant";
  brief.part = {.cpus = 2};
  const auto whole = ViewReader::Read<JobView>(ViewWriter::Text(brief));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->id, "brave_ant");
  EXPECT_EQ(whole->part->cpus, 2);
  EXPECT_TRUE(whole->events.empty());
  EXPECT_FALSE(whole->peak_memory.has_value());
}

TEST(Rfc3339Test, HasMicroseconds) {
  const absl::Time time = absl::FromUnixMicros(1'700'000'000'000'001);
  EXPECT_EQ(Rfc3339(time), "2023-11-14T22:13:20.000001Z");
  EXPECT_EQ(Rfc3339(time), absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone()));
  EXPECT_EQ(Rfc3339(std::optional<absl::Time>()), "");
}

}  // namespace
}  // namespace tutti::spec
