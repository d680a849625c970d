#include "runtime/scoring/serve/descriptions.h"

#include "runtime/scoring/serve/inference_protocol.h"

namespace tutti::scoring {
namespace {

using nlohmann::ordered_json;

ordered_json ListOf(const std::vector<TensorSpec>& specs) {
  ordered_json list = ordered_json::array();
  for (const TensorSpec& spec : specs) list.push_back(JsonOf(spec));
  return list;
}

// The schema of one image's answer.
ordered_json AnswerSchema(const Head& head) {
  ordered_json row = {{"class", {{"type", "string"}}}};
  for (const Column& column : head.columns()) {
    row[std::string(column.name)] = {{"type", "number"}};
  }
  return {
      {"type", "object"},
      {"properties",
       {{std::string(head.rows_name()),
         {{"type", "array"}, {"items", {{"type", "object"}, {"properties", std::move(row)}}}}}}}};
}

}  // namespace

ordered_json ServerMetadata() {
  return {{"name", "tutti"},
          {"version", TUTTI_VERSION},
          {"extensions", {"binary_tensor_data", "model_repository"}}};
}

ordered_json ModelMetadata(const ServedModel& model, const std::vector<std::string>& versions) {
  const ModelFacts& facts = model.model->facts();
  return {{"name", model.name},
          {"versions", versions},
          {"platform", facts.platform},
          {"inputs", ListOf(InputsOf(facts))},
          {"outputs", ListOf(model.model->head().outputs())},
          {"parameters",
           {{"version", model.version},
            {"task", facts.task},
            {"precision", facts.precision},
            {"max_batch", model.plan.limit},
            {"classes", facts.classes}}}};
}

ordered_json ScoreDocument(const ServedModel& model, const std::string& version) {
  const bool is_3 = version == "3";
  const ordered_json answers = {{"type", "array"}, {"items", AnswerSchema(model.model->head())}};
  const ordered_json body = {{"type", "object"},
                             {"required", {"data"}},
                             {"properties",
                              {{"data",
                                {{"type", "array"},
                                 {"description", "images as they are in files, each as base64"},
                                 {"items", {{"type", "string"}, {"format", "byte"}}}}}}}};
  ordered_json post = {{"operationId", "score"},
                       {"summary", "Answers of " + model.name + " for images"}};
  ordered_json ok = {{"description", "an answer for each image, in their order"}};
  ordered_json document;
  if (is_3) {
    document["openapi"] = "3.0.3";
    post["requestBody"] = {{"required", true},
                           {"content", {{"application/json", {{"schema", body}}}}}};
    ok["content"] = {{"application/json", {{"schema", answers}}}};
  } else {
    document["swagger"] = "2.0";
    post["consumes"] = {"application/json"};
    post["produces"] = {"application/json"};
    post["parameters"] = ordered_json::array(
        {{{"name", "images"}, {"in", "body"}, {"required", true}, {"schema", body}}});
    ok["schema"] = answers;
  }
  post["responses"] = {{"200", std::move(ok)}};
  document["info"] = {{"title", model.name}, {"version", model.version}};
  document["paths"] = {{"/score", {{"post", std::move(post)}}}};
  return document;
}

}  // namespace tutti::scoring
