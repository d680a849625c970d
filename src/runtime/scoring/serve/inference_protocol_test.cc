#include "runtime/scoring/serve/inference_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tutti::scoring {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const ModelFacts& Facts() {
  static const auto* const facts = new ModelFacts{
      .task = "classification", .classes = {"cat", "dog", "frog"}, .height = 2, .width = 1};
  return *facts;
}

const Head& OfThree() {
  static const Head* const head =
      MakeHead({"classification", Facts().classes, Facts().height, Facts().width})->release();
  return *head;
}

absl::StatusOr<InferRequest> Parse(const json& request, const std::string& binary = "") {
  const std::string text = request.dump();
  return ParseInferRequest(text + binary,
                           binary.empty() ? std::nullopt : std::optional<uint64_t>(text.size()),
                           Facts(), OfThree());
}

std::string ErrorOf(const json& input, const std::string& binary = "") {
  return std::string(Parse({{"inputs", {input}}}, binary).status().message());
}

std::string Element(const std::string& text) {
  std::string bytes;
  AppendText(text, bytes);
  return bytes;
}

TEST(InferRequest, HasImagesAsBase64) {
  const auto request =
      Parse({{"id", "7"},
             {"parameters", {{"top", 2}, {"timeout", 1500}}},
             {"inputs",
              {{{"name", "image"},
                {"datatype", "BYTES"},
                {"shape", {2}},
                {"data", {absl::Base64Escape("one"), absl::Base64Escape("other")}}}}}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->id, "7");
  EXPECT_EQ(request->top, 2);
  EXPECT_EQ(request->timeout, absl::Microseconds(1500));
  ASSERT_EQ(request->images.size(), 2u);
  EXPECT_EQ(request->images[1].encoded, "other");
  ASSERT_EQ(request->outputs.size(), 2u);
  EXPECT_FALSE(request->outputs[0].binary);
}

TEST(InferRequest, HasImagesAsTheyAreBehindTheJson) {
  const std::string binary = Element("one") + Element(std::string("\0\xff", 2));
  const auto request = Parse({{"parameters", {{"binary_data_output", true}}},
                              {"inputs",
                               {{{"name", "image"},
                                 {"datatype", "BYTES"},
                                 {"shape", {2, 1}},
                                 {"parameters", {{"binary_data_size", binary.size()}}}}}}},
                             binary);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->images[1].encoded, std::string("\0\xff", 2));
  EXPECT_TRUE(request->outputs[1].binary);
}

TEST(InferRequest, HasPixelsWhichBecomeChannelsLast) {
  json input = {{"name", "pixels"},
                {"datatype", "FP32"},
                {"shape", {1, 3, 2, 1}},
                {"data", {1, 2, 3, 4, 5, 6}}};
  for (const json& data :
       {json({1, 2, 3, 4, 5, 6}), json::parse("[[[[1],[2]],[[3],[4]],[[5],[6]]]]")}) {
    input["data"] = data;
    const auto request = Parse({{"inputs", {input}}});
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_THAT(request->images[0].pixels, ElementsAre(1, 3, 5, 2, 4, 6));
    EXPECT_EQ(request->images[0].size, (data::ImageSize{1, 2}));
  }
}

TEST(InferRequest, SaysInALineWhatIsWrong) {
  EXPECT_THAT(std::string(ParseInferRequest("{", {}, Facts(), OfThree()).status().message()),
              HasSubstr("no JSON object"));
  EXPECT_THAT(std::string(ParseInferRequest("{}", 9, Facts(), OfThree()).status().message()),
              HasSubstr("says 9, and the body has 2 bytes"));
  EXPECT_THAT(std::string(Parse({{"inputs", json::array()}}).status().message()),
              HasSubstr("a list of one tensor"));
  json input = {{"name", "pixels"},
                {"datatype", "FP16"},
                {"shape", {1, 3, 2, 1}},
                {"data", {1, 2, 3, 4, 5, 6}}};
  EXPECT_EQ(ErrorOf(input), "input pixels is FP16 [1, 3, 2, 1] and must be FP32 [-1, 3, 2, 1]");
  input["datatype"] = "FP32";
  input["shape"] = {2, 3, 2, 1};
  EXPECT_EQ(ErrorOf(input), "input pixels has 6 values, and its shape says 12");
  input["shape"] = {-1, 3, 2, 1};
  EXPECT_EQ(ErrorOf(input), "input pixels has no images");
  input["shape"] = {int64_t{1} << 40, 3, 2, 1};
  EXPECT_EQ(ErrorOf(input), "input pixels has too many images");
  input["shape"] = {1, 3, 2, 1};
  input["data"] = {1, 2, 3, 4, 5, "six"};
  EXPECT_EQ(ErrorOf(input), "input pixels must have numbers in \"data\"");
  input["data"] = {1, 2, 3, 4, 5, 1e300};
  EXPECT_EQ(ErrorOf(input), "input pixels has a value that is not finite");
  json deep = json::array({1});
  for (int i = 0; i < 9; ++i) deep = json::array({deep});
  input["data"] = deep;
  EXPECT_EQ(ErrorOf(input), "input pixels must have numbers in \"data\"");
  input["data"] = {1, 2, 3, 4, 5, 6};
  for (const json& twice : {json({"scores", "scores"}), json({1})}) {
    json outputs = json::array();
    for (const json& name : twice) outputs.push_back({{"name", name}});
    EXPECT_FALSE(Parse({{"inputs", {input}}, {"outputs", outputs}}).ok()) << outputs;
  }
  for (const json& top : {json(0), json("many"), json(1.5)}) {
    EXPECT_EQ(Parse({{"inputs", {input}}, {"parameters", {{"top", top}}}}).status().message(),
              "the parameter top must be a number, 1 or more");
  }
  input["shape"] = {1.5, 3, 2, 1};
  EXPECT_EQ(ErrorOf(input), "a shape is a list of whole numbers");
  input["name"] = "x";
  input["shape"] = {1, 3, 2, 1};
  EXPECT_EQ(ErrorOf(input),
            "there is no input x: give image (BYTES [n]) or pixels (FP32 [-1, 3, 2, 1])");
  input = {{"name", "image"}, {"datatype", "BYTES"}, {"shape", {1}}, {"data", {"\xc3\xa9"}}};
  EXPECT_THAT(ErrorOf(input), HasSubstr("must have base64 texts"));
  input.erase("data");
  EXPECT_EQ(ErrorOf(input), "input image has no \"data\", a list");
  input["parameters"] = {{"binary_data_size", 100}};
  EXPECT_EQ(ErrorOf(input, Element("cut")),
            "input image has binary_data_size 100, and 7 bytes follow");
  input["parameters"] = {{"binary_data_size", 6}};
  EXPECT_EQ(ErrorOf(input, Element("cut")), "1 bytes follow that no input has");
  EXPECT_THAT(ErrorOf(input, Element("cut").substr(0, 6)), HasSubstr("is cut off"));
  input["parameters"] = {{"binary_data_size", 14}};
  EXPECT_EQ(ErrorOf(input, Element("one") + Element("two")),
            "input image has 2 elements, and its shape says 1");
}

TEST(InferRequest, NamesTheOutputsThatThereAre) {
  const json input = {{"name", "pixels"},
                      {"datatype", "FP32"},
                      {"shape", {1, 3, 2, 1}},
                      {"data", {1, 2, 3, 4, 5, 6}}};
  const auto named =
      Parse({{"inputs", {input}},
             {"outputs", {{{"name", "scores"}, {"parameters", {{"binary_data", true}}}}}}});
  ASSERT_TRUE(named.ok()) << named.status();
  ASSERT_EQ(named->outputs.size(), 1u);
  EXPECT_EQ(named->outputs[0].index, 2u);
  EXPECT_TRUE(named->outputs[0].binary);
  EXPECT_EQ(Parse({{"inputs", {input}}, {"outputs", {{{"name", "x"}}}}}).status().message(),
            "there is no output x: there are classes, probabilities, scores");
}

TEST(InferResponse, HasTensorsAsJsonOrBehindIt) {
  std::vector<Image> images(2);
  images[0].answer.scores = {0.25f, 0.5f, 0.25f};
  images[1].answer.scores = {0.0f, 0.0f, 1.0f};
  InferRequest request{.id = "7", .top = 2, .outputs = {{0, false}, {1, false}, {2, true}}};
  const InferResponse response = WriteInferResponse(request, images, OfThree(), "net", "3");
  ASSERT_TRUE(response.json_bytes.has_value());
  const json body = json::parse(response.body.substr(0, *response.json_bytes));
  EXPECT_EQ(body["model_name"], "net");
  EXPECT_EQ(body["model_version"], "3");
  EXPECT_EQ(body["id"], "7");
  EXPECT_EQ(body["outputs"][0]["shape"], json({2, 2}));
  EXPECT_EQ(body["outputs"][0]["data"], json({"dog", "cat", "frog", "cat"}));
  EXPECT_EQ(body["outputs"][1]["data"], json({0.5, 0.25, 1.0, 0.0}));
  EXPECT_EQ(body["outputs"][2]["shape"], json({2, 3}));
  EXPECT_EQ(body["outputs"][2]["parameters"]["binary_data_size"], 24);
  EXPECT_EQ(response.body.size(), *response.json_bytes + 24);
  request.outputs = {{0, false}};
  EXPECT_FALSE(WriteInferResponse(request, images, OfThree(), "net", "3").json_bytes.has_value());
}

}  // namespace
}  // namespace tutti::scoring
