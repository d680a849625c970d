#include "platform/tracking/calls/model_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"

namespace tutti::tracking {
namespace {

using http::Response;
using nlohmann::json;
using Result = absl::StatusOr<Response>;

constexpr int64_t kUsualModels = 100;

Result AnswerModel(const absl::StatusOr<Model>& model) {
  if (!model.ok()) return model.status();
  return Answer({{"model", JsonOf(*model)}});
}

std::vector<KeyValue> ParamsIn(RequestFields& fields) {
  std::vector<KeyValue> params = TagsIn(fields, "params");
  for (KeyValue& param : params) {
    fields.Fail(CheckKey("param", param.key));
    param.value = CutParam(param.value);
  }
  return params;
}

std::vector<KeyValue> ModelTagsIn(RequestFields& fields) {
  std::vector<KeyValue> tags = TagsIn(fields, "tags");
  for (KeyValue& tag : tags) {
    fields.Fail(CheckKey("tag", tag.key));
    tag.value = CutTag(tag.value);
  }
  return tags;
}

// Reads a status by its name or by protobuf's number.
ModelStatus ModelStatusIn(RequestFields& fields) {
  const std::string text = fields.TextOrNumber("status", Need::kRequired);
  if (text == "LOGGED_MODEL_PENDING" || text == "1") return ModelStatus::kPending;
  if (text == "LOGGED_MODEL_READY" || text == "2") return ModelStatus::kReady;
  if (text == "LOGGED_MODEL_UPLOAD_FAILED" || text == "3") return ModelStatus::kFailed;
  fields.Fail(absl::InvalidArgumentError(
      absl::StrCat("Invalid value for parameter 'status': '", text, "'.")));
  return ModelStatus::kUnknown;
}

Result CreateModel(TrackingStore& store, const std::vector<std::string>&, RequestFields& fields) {
  Model model{.experiment = ExperimentIn(fields),
              .name = fields.Text("name", Need::kOptional),
              .type = fields.Text("model_type", Need::kOptional),
              .source_run = fields.Text("source_run_id", Need::kOptional),
              .params = ParamsIn(fields),
              .tags = ModelTagsIn(fields)};
  TUTTI_RETURN_IF_ERROR(fields.status());
  for (const char c : {'/', ':', '.', '%', '"', '\''}) {
    if (model.name.find(c) == std::string::npos && model.name.size() <= kMostNameLength) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid model name ('", model.name.substr(0, kMostNameLength),
        "') provided. Model name must be a non-empty string and cannot contain the following "
        "characters: ('/', ':', '.', '%', '\"', \"'\")"));
  }
  return AnswerModel(store.CreateModel(model));
}

// The fields of order_by are objects here.
std::vector<Ordering> ModelOrder(RequestFields& fields) {
  std::vector<Ordering> orders;
  const std::vector<const json*> objects = fields.Objects("order_by");
  if (objects.size() > kMostOrderings) {
    fields.Fail(absl::InvalidArgumentError(
        absl::StrCat("Invalid order_by: it has more than ", kMostOrderings, " clauses.")));
    return orders;
  }
  for (const json* object : objects) {
    RequestFields order(*object, "order_by.");
    auto parsed = ParseOrdering(order.Text("field_name", Need::kRequired), Subject::kModels);
    if (!order.Text("dataset_name", Need::kOptional).empty()) {
      fields.Fail(absl::UnimplementedError(
          "tutti's tracking does not order logged models by a data set's metrics"));
    }
    fields.Fail(order.status());
    fields.Fail(parsed.status());
    if (!parsed.ok()) continue;
    const auto ascending = object->find("ascending");
    parsed->ascending = ascending == object->end() || *ascending != false;
    orders.push_back(*std::move(parsed));
  }
  return orders;
}

Result SearchModels(TrackingStore& store, const std::vector<std::string>&, RequestFields& fields) {
  SearchRequest request = SearchIn(fields, Subject::kModels, kUsualModels);
  request.order = ModelOrder(fields);
  const std::vector<int64_t> experiments = ExperimentsIn(fields);
  if (!fields.Objects("datasets").empty()) {
    fields.Fail(
        absl::UnimplementedError("tutti's tracking does not search logged models by data sets"));
  }
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const ModelPage page, store.SearchModels(request, experiments));
  json models = json::array();
  for (const Model& model : page.models) models.push_back(JsonOf(model));
  return AnswerPage("models", std::move(models), page.more, request.offset);
}

using PathParts = std::vector<std::string>;

Result GetModel(TrackingStore& store, const PathParts& parts, RequestFields& fields) {
  const bool also_deleted = fields.Text("allow_deleted", Need::kOptional) == "true";
  TUTTI_RETURN_IF_ERROR(fields.status());
  return AnswerModel(store.GetModel(parts[1], also_deleted));
}

Result DeleteModel(TrackingStore& store, const PathParts& parts, RequestFields&) {
  return Answer(store.DeleteModel(parts[1]));
}

Result FinalizeModel(TrackingStore& store, const PathParts& parts, RequestFields& fields) {
  const ModelStatus status = ModelStatusIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return AnswerModel(store.FinalizeModel(parts[1], status));
}

Result SetTags(TrackingStore& store, const PathParts& parts, RequestFields& fields) {
  const std::vector<KeyValue> tags = ModelTagsIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return AnswerModel(store.SetModelTags(parts[1], tags));
}

Result DeleteTag(TrackingStore& store, const PathParts& parts, RequestFields&) {
  return Answer(store.DeleteModelTag(parts[1], absl::StrJoin(parts.begin() + 3, parts.end(), "/")));
}

Result LogParams(TrackingStore& store, const PathParts& parts, RequestFields& fields) {
  const std::vector<KeyValue> params = ParamsIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.LogModelParams(parts[1], params));
}

// The first that fits is a path's.
constexpr ModelCall kCalls[] = {
    {"POST", "logged-models", CreateModel},
    {"POST", "logged-models/search", SearchModels},
    {"GET", "logged-models/{model}", GetModel},
    {"PATCH", "logged-models/{model}", FinalizeModel},
    {"DELETE", "logged-models/{model}", DeleteModel},
    {"PATCH", "logged-models/{model}/tags", SetTags},
    {"DELETE", "logged-models/{model}/tags/{tag...}", DeleteTag},
    {"POST", "logged-models/{model}/params", LogParams},
};

bool Fits(absl::string_view pattern, const PathParts& parts) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(pattern, '/');
  if (wanted.back() == "{tag...}" ? parts.size() < wanted.size() : parts.size() != wanted.size()) {
    return false;
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    const bool is_any = wanted[i].front() == '{';
    const bool is_model = is_any && i == 1;
    if (is_model && (parts[i].empty() || parts[i] == "search")) return false;
    if (!is_any && parts[i] != wanted[i]) return false;
  }
  return true;
}

}  // namespace

const ModelCall* FindModelCall(absl::string_view method, absl::string_view path) {
  const PathParts parts = absl::StrSplit(path, '/');
  for (const ModelCall& call : kCalls) {
    if (call.method == method && Fits(call.path, parts)) return &call;
  }
  return nullptr;
}

Result AnswerModelCall(const ModelCall& call, TrackingStore& store, absl::string_view path,
                       RequestFields& fields) {
  return call.answer(store, absl::StrSplit(path, '/'), fields);
}

std::vector<ModelOfRun> ModelsIn(RequestFields& fields, const char* name) {
  std::vector<ModelOfRun> models;
  for (const json* object : fields.Objects(name)) {
    RequestFields model(*object, absl::StrCat(name, "."));
    models.push_back({model.Text("model_id", Need::kRequired),
                      model.Integer("step", Need::kOptional).value_or(0)});
    fields.Fail(model.status());
  }
  return models;
}

}  // namespace tutti::tracking
