// Covers: model_store.cc, descriptions.cc, serving_metrics.cc, access_log.cc.
#include "runtime/scoring/serve/scoring_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "http/client/client.h"
#include "runtime/checkpoint/model_folder.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/models/model.h"
#include "runtime/models/state.h"
#include "runtime/scoring/scorer.h"

namespace tutti::scoring {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ScoringServerTest : public testing::Test {
 protected:
  ScoringServerTest()
      : batcher_({.workers = 1, .decoders = 1}), models_(batcher_, {.precision = "fp32"}) {
    WriteModel("net", /*seed=*/1);
    jpeg_ = data::EncodePattern({}, 3);
    log_ = *AccessLog::Open((directory_.path() / "log").string());
  }

  std::filesystem::path WriteModel(const std::string& name, uint64_t seed) {
    const models::Model network = *models::MakeModel({"resnet20", 3}, seed);
    checkpoint::ModelFolder folder;
    folder.architecture = "resnet20";
    folder.classes = {"cat", "dog", "frog"};
    folder.tensors = models::StateOf(*network);
    const std::filesystem::path path = directory_.path() / name;
    EXPECT_TRUE(checkpoint::WriteModelFolder(path, folder).ok());
    return path;
  }
  void Start(ScoringServerOptions options = {}) {
    const absl::Status added = models_.Add({"net", "", directory_.path() / "net"});
    ASSERT_TRUE(added.ok()) << added;
    auto server = ScoringServer::Start(std::move(options), models_, batcher_, *log_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  http::ClientResponse Send(http::ClientRequest request, const std::string& token = "") {
    http::Client client(server_->url(), token);
    request.timeout = base::Patient(absl::Seconds(30));
    const auto response = client.Send(request);
    EXPECT_TRUE(response.ok()) << response.status();
    return response.value_or(http::ClientResponse{});
  }
  http::ClientResponse Get(const std::string& target) { return Send({.target = target}); }
  http::ClientResponse Post(const std::string& target, const std::string& body,
                            const std::string& type = "application/json") {
    return Send({.method = "POST", .target = target, .content_type = type, .body = body});
  }
  http::ClientResponse PostImage(const std::string& target) {
    return Post(target, jpeg_, "image/jpeg");
  }
  // What `tutti score` says of the image by a model's folder.
  json Expected(const std::filesystem::path& folder, int top) {
    const std::string file = (directory_.path() / "a.jpg").string();
    EXPECT_TRUE(base::WriteFileAtomic(file, jpeg_).ok());
    auto model = *TrainedModel::Open(folder, "fp32");
    const auto scores = ScoreFiles(*model, std::vector{file}, top);
    json all = json::array();
    for (const Row& row : scores[0].rows) {
      all.push_back({{"class", row.label}, {"probability", row.values[0]}});
    }
    return all;
  }
  std::string ErrorOf(const http::ClientResponse& response, int status) {
    EXPECT_EQ(response.status, status) << response.body;
    return json::parse(response.body).value("error", "");
  }

  base::TemporaryDirectory directory_;
  std::string jpeg_;
  std::unique_ptr<AccessLog> log_;
  Batcher batcher_;
  ModelStore models_;
  std::unique_ptr<ScoringServer> server_;
};

TEST_F(ScoringServerTest, AnswersAnImageAsTheProgramForFilesDoes) {
  Start();
  const auto response = PostImage("/v2/models/net/infer?top=2");
  ASSERT_EQ(response.status, 200) << response.body;
  const json expected = Expected(directory_.path() / "net", 2);
  ASSERT_EQ(expected.size(), 2u);
  EXPECT_EQ(json::parse(response.body), json({{"predictions", expected}}));
  EXPECT_EQ(PostImage("/v2/models/net/versions/1/infer?top=2").body, response.body);
  EXPECT_EQ(PostImage("/score?top=2").body, response.body);
  EXPECT_EQ(json::parse(PostImage("/score").body)["predictions"].size(), 3u);
}

TEST_F(ScoringServerTest, AnswersTensorsOfTheProtocol) {
  Start();
  const json request = {{"id", "a"},
                        {"inputs",
                         {{{"name", "image"},
                           {"datatype", "BYTES"},
                           {"shape", {2}},
                           {"data", {absl::Base64Escape(jpeg_), absl::Base64Escape(jpeg_)}}}}}};
  const auto response = Post("/v2/models/net/infer", request.dump());
  ASSERT_EQ(response.status, 200) << response.body;
  const json body = json::parse(response.body);
  EXPECT_EQ(body["id"], "a");
  EXPECT_EQ(body["model_version"], "1");
  const json expected = Expected(directory_.path() / "net", 3);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(body["outputs"][0]["data"][i], expected[i % 3]["class"]);
    EXPECT_NEAR(body["outputs"][1]["data"][i].get<double>(),
                expected[i % 3]["probability"].get<double>(), 1e-6);
  }
}

TEST_F(ScoringServerTest, AnswersAsAzureMlDoes) {
  Start();
  const std::string image = absl::Base64Escape(jpeg_);
  const json expected = {{{"predictions", Expected(directory_.path() / "net", 0)}}};
  for (const json& body : {json{{"data", {image}}},
                           json{{"input_data", {{"columns", {"image"}}, {"data", {{image}}}}}},
                           json{{"input_data", {image}}}}) {
    const auto response = Post("/score", body.dump());
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(json::parse(response.body), expected);
  }
  EXPECT_EQ(Get("/").body, "Healthy\n");
  EXPECT_EQ(json::parse(Get("/swagger.json").body)["swagger"], "2.0");
  EXPECT_EQ(json::parse(Get("/swagger.json?version=3").body)["openapi"], "3.0.3");
  EXPECT_THAT(ErrorOf(Post("/score", "[]"), 400), HasSubstr("the body must be an image"));
  EXPECT_THAT(ErrorOf(Post("/score", R"({"data": ["?"]})"), 400), HasSubstr("image 1 of"));
  EXPECT_THAT(ErrorOf(Send({.target = "/score"}), 405), HasSubstr("only POST"));
}

TEST_F(ScoringServerTest, DescribesItselfAndItsModels) {
  Start();
  ASSERT_TRUE(models_.Add({"net", "9", directory_.path() / "net"}).ok());
  EXPECT_EQ(json::parse(Get("/v2").body)["name"], "tutti");
  EXPECT_EQ(json::parse(Get("/v2/models").body)["models"], json({"net"}));
  const json about = json::parse(Get("/v2/models/net/versions/1").body);
  EXPECT_EQ(about["versions"], json({"1", "9"}));
  EXPECT_EQ(about["inputs"][1]["shape"], json({-1, 3, 32, 32}));
  EXPECT_EQ(about["parameters"]["classes"], json({"cat", "dog", "frog"}));
  EXPECT_EQ(json::parse(Get("/v2/models/net").body)["parameters"]["version"], "9");
  for (const char* path : {"/v2/health/live", "/v2/health/ready", "/v2/models/net/ready",
                           "/v2/models/net/versions/9/ready"}) {
    EXPECT_EQ(Get(path).status, 200) << path;
  }
  const json index = json::parse(Post("/v2/repository/index", "{}").body);
  ASSERT_EQ(index.size(), 2u);
  EXPECT_EQ(index[1]["version"], "9");
  EXPECT_EQ(ErrorOf(Get("/v2/models/cats"), 404), "there is no model cats: there is net");
  EXPECT_EQ(ErrorOf(Get("/v2/models/net/versions/2"), 404),
            "model net has no version 2: there is 1, 9");
  EXPECT_THAT(ErrorOf(Get("/v3"), 404), HasSubstr("there is nothing at /v3"));
  EXPECT_THAT(ErrorOf(Get("/v2/models/net/explain"), 404), HasSubstr("/ready and /infer"));
  EXPECT_THAT(ErrorOf(Get("/v2/models/net/infer"), 405), HasSubstr("only POST"));
}

TEST_F(ScoringServerTest, SaysInALineWhatIsWrongWithAnImage) {
  Start({.max_body = 100'000});
  EXPECT_THAT(ErrorOf(Post("/v2/models/net/infer", "no image", "image/jpeg"), 400),
              HasSubstr("not JPEG, PNG, PNM, BMP, TIFF or WebP"));
  EXPECT_THAT(ErrorOf(Post("/v2/models/net/infer", jpeg_.substr(0, 300), "image/jpeg"), 400),
              HasSubstr("JPEG"));
  EXPECT_EQ(ErrorOf(Post("/v2/models/net/infer?top=x", jpeg_, "image/jpeg"), 400),
            "top must be a number of classes, 1 or more");
  EXPECT_EQ(Post("/v2/models/net/infer", std::string(200'000, 'x'), "image/jpeg").status, 413);
  EXPECT_EQ(Send({.method = "POST",
                  .target = "/v2/models/net/infer",
                  .headers = {{"Content-Encoding", "gzip"}},
                  .body = "x"})
                .status,
            415);
}

TEST_F(ScoringServerTest, LetsInWhoHasATokenAndAnswersPagesOfAnOrigin) {
  Start({.tokens = {"first", "second"}, .allow_origin = "https://example.org"});
  EXPECT_THAT(ErrorOf(PostImage("/score"), 401), HasSubstr("a token is needed"));
  EXPECT_EQ(Get("/v2/health/ready").status, 200) << "which a balancer asks for";
  const http::ClientRequest image{
      .method = "POST", .target = "/score", .content_type = "image/jpeg", .body = jpeg_};
  EXPECT_EQ(Send(image, "second").status, 200);
  EXPECT_EQ(Send(image, "secon").status, 401);
  const auto options = Send({.method = "OPTIONS", .target = "/score"});
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("access-control-allow-origin"), "https://example.org");
}

TEST_F(ScoringServerTest, CountsAndLogsRequestsWithTheirIds) {
  Start();
  const auto named = Send({.method = "POST",
                           .target = "/score",
                           .headers = {{"X-Request-Id", "mine"}},
                           .content_type = "image/jpeg",
                           .body = jpeg_});
  EXPECT_EQ(named.headers.at("x-request-id"), "mine");
  EXPECT_EQ(Post("/score", "x", "image/jpeg").headers.at("x-request-id").size(), 16u);
  const std::string metrics = Get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("tutti_score_requests_total{model=\"net\",version=\"1\","
                                 "outcome=\"answered\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("outcome=\"wrong_input\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("tutti_score_batch_images_sum{model=\"net\",version=\"1\"} 1\n"));
  const std::string log = *base::ReadFile(directory_.path() / "log");
  const std::vector<std::string> lines = absl::StrSplit(log, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u) << log;
  const json first = json::parse(lines[0]);
  EXPECT_EQ(first["id"], "mine");
  EXPECT_EQ(first["status"], 200);
  EXPECT_EQ(first["model"], "net");
  EXPECT_EQ(first["images"], 1);
  EXPECT_EQ(json::parse(lines[1])["status"], 400);
}

TEST_F(ScoringServerTest, ADiskThatTakesNoMoreStopsTheLogAlone) {
  log_ = *AccessLog::Open("/dev/full");
  Start();
  EXPECT_EQ(PostImage("/score").status, 200);
  EXPECT_EQ(PostImage("/score").status, 200);
  EXPECT_THAT(Get("/metrics").body, HasSubstr("tutti_score_access_log_lost_lines_total 2\n"));
}

TEST_F(ScoringServerTest, ServesWhatAFolderHasBecome) {
  Start();
  const std::string before = PostImage("/score").body;
  WriteModel("net", /*seed=*/2);
  EXPECT_EQ(PostImage("/score").body, before) << "until it is loaded";
  const auto loaded = Post("/v2/repository/models/net/load", "{}");
  EXPECT_EQ(loaded.status, 200) << loaded.body;
  const json after = json::parse(PostImage("/score").body);
  EXPECT_EQ(after["predictions"], Expected(directory_.path() / "net", 0));
  EXPECT_NE(after, json::parse(before));
  EXPECT_EQ(json::parse(Get("/v2/models/net").body)["versions"], json({"2"}));
  EXPECT_EQ(Post("/v2/repository/models/cats/load", "{}").status, 404);
  std::filesystem::remove(directory_.path() / "net/manifest.json");
  EXPECT_THAT(Post("/v2/repository/models/net/load", "{}").body, HasSubstr("manifest.json"));
  EXPECT_EQ(json::parse(PostImage("/score").body), after) << "what was served goes on";
}

TEST_F(ScoringServerTest, SeesThatAFolderHasChanged) {
  Start();
  models_.Watch(absl::Milliseconds(20));
  WriteModel("net", /*seed=*/2);
  EXPECT_TRUE(
      base::AwaitPatiently(absl::Seconds(60), [&] { return models_.Find("net", "2").ok(); }));
}

TEST_F(ScoringServerTest, RefusesAtOnceWhatItCouldNotAnswerInTime) {
  Start({.deadline = absl::Nanoseconds(1)});
  // More than any batch has.
  const json body = {{"data", std::vector<std::string>(100, absl::Base64Escape(jpeg_))}};
  const auto response = Post("/score", body.dump());
  EXPECT_THAT(ErrorOf(response, 429), HasSubstr("too many images wait"));
  EXPECT_EQ(response.headers.at("retry-after").find_first_not_of("0123456789"), std::string::npos);
  EXPECT_THAT(Get("/metrics").body, HasSubstr("outcome=\"too_late\"} 1\n"));
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr("tutti_score_images_waiting{model=\"net\",version=\"1\"} 0\n"));
}

TEST_F(ScoringServerTest, DrainsWhatIsUnderWay) {
  Start();
  EXPECT_EQ(PostImage("/score").status, 200);
  server_->Drain(absl::Seconds(30));
  http::Client client(server_->url(), "");
  EXPECT_FALSE(client.Send({.target = "/v2/health/live"}).ok());
}

TEST(ModelSource, HasANameAndAVersion) {
  const auto whole = ParseModelSource("cats:7=/data/a=b");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->name, "cats");
  EXPECT_EQ(whole->version, "7");
  EXPECT_EQ(whole->path, "/data/a=b");
  EXPECT_EQ(ParseModelSource("out/model/")->name, "model");
  EXPECT_EQ(ParseModelSource("out/model")->version, "");
  EXPECT_EQ(ParseModelSource("/a=b/model")->name, "model");
  EXPECT_THAT(std::string(ParseModelSource("ca ts=x").status().message()), HasSubstr("is no NAME"));
  EXPECT_THAT(std::string(ParseModelSource("a:b:c=x").status().message()), HasSubstr("is no NAME"));
  EXPECT_THAT(std::string(ParseModelSource("out/my model").status().message()),
              HasSubstr("give one, NAME=out/my model"));
}

}  // namespace
}  // namespace tutti::scoring
