#include "runtime/scoring/serve/inference_protocol.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace tutti::scoring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr char kImage[] = "image", kPixels[] = "pixels";

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

std::string ShapeOf(absl::Span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

// A tensor of a request.
struct Input {
  std::string name, datatype;
  std::vector<int64_t> shape;
  absl::string_view binary;  // its bytes, where is_binary
  bool is_binary = false;
  const json* data = nullptr;
};

bool HasParameter(const json& object, const char* name) {
  const auto all = object.find("parameters");
  return all != object.end() && all->is_object() && all->contains(name);
}

// Nothing also where it is of another type.
template <typename Value>
std::optional<Value> Parameter(const json& object, const char* name) {
  if (!HasParameter(object, name)) return std::nullopt;
  const json& value = object["parameters"][name];
  const bool fits = std::is_same_v<Value, bool> ? value.is_boolean() : value.is_number_integer();
  return fits ? std::optional(value.get<Value>()) : std::nullopt;
}

// Takes the next input's bytes from `rest`, which follows the JSON.
absl::StatusOr<Input> ReadInput(const json& object, absl::string_view& rest) {
  if (!object.is_object()) return Wrong("an input must be an object");
  Input input;
  try {
    input.name = object.at("name").get<std::string>();
    input.datatype = object.at("datatype").get<std::string>();
    for (const json& size : object.at("shape")) {
      if (!size.is_number_integer()) return Wrong("a shape is a list of whole numbers");
      input.shape.push_back(size.get<int64_t>());
    }
  } catch (const json::exception&) {
    return Wrong("an input needs \"name\", \"datatype\" and \"shape\", a list of numbers");
  }
  if (const auto bytes = Parameter<int64_t>(object, "binary_data_size")) {
    if (*bytes < 0 || static_cast<uint64_t>(*bytes) > rest.size()) {
      return Wrong(absl::StrCat("input ", input.name, " has binary_data_size ", *bytes, ", and ",
                                rest.size(), " bytes follow"));
    }
    input.is_binary = true;
    input.binary = rest.substr(0, static_cast<size_t>(*bytes));
    rest.remove_prefix(static_cast<size_t>(*bytes));
    return input;
  }
  const auto data = object.find("data");
  if (data == object.end() || !data->is_array()) {
    return Wrong(absl::StrCat("input ", input.name, " has no \"data\", a list"));
  }
  input.data = &*data;
  return input;
}

// The image's places in [n]: how many there are.
absl::StatusOr<size_t> CountOf(const Input& input, const TensorSpec& wanted) {
  bool fits = input.datatype == wanted.datatype && input.shape.size() == wanted.shape.size();
  for (size_t i = 1; fits && i < wanted.shape.size(); ++i) {
    fits = input.shape[i] == wanted.shape[i];
  }
  if (wanted.shape.size() == 1 && input.shape.size() == 2 && input.shape[1] == 1) {
    fits = input.datatype == wanted.datatype;  // as Triton's clients batch texts
  }
  if (!fits) {
    return Wrong(absl::StrCat("input ", input.name, " is ", input.datatype, " ",
                              ShapeOf(input.shape), " and must be ", wanted.datatype, " ",
                              ShapeOf(wanted.shape)));
  }
  if (input.shape[0] < 1) return Wrong(absl::StrCat("input ", input.name, " has no images"));
  return static_cast<size_t>(input.shape[0]);
}

// What an element of a list of base64 texts stands for; each may be a list of one.
std::optional<std::string> BytesOf(const json& element) {
  const json& text = element.is_array() && element.size() == 1 ? element[0] : element;
  std::string bytes;
  if (!text.is_string() || !absl::Base64Unescape(text.get_ref<const std::string&>(), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

absl::StatusOr<std::vector<std::string>> TextsOf(const Input& input, size_t count) {
  std::vector<std::string> texts;
  if (input.is_binary) {
    absl::string_view rest = input.binary;
    while (!rest.empty()) {
      uint32_t bytes = 0;
      if (rest.size() >= sizeof bytes) std::memcpy(&bytes, rest.data(), sizeof bytes);
      if (rest.size() < sizeof bytes || rest.size() - sizeof bytes < bytes) {
        return Wrong(absl::StrCat("input ", input.name,
                                  " is cut off: each element is its length, 4 bytes, and itself"));
      }
      texts.emplace_back(rest.substr(sizeof bytes, bytes));
      rest.remove_prefix(sizeof bytes + bytes);
    }
  } else {
    for (const json& element : *input.data) {
      auto bytes = BytesOf(element);
      if (!bytes) {
        return Wrong(absl::StrCat("input ", input.name,
                                  " must have base64 texts in JSON: images as they are go by the "
                                  "binary extension"));
      }
      texts.push_back(*std::move(bytes));
    }
  }
  if (texts.size() != count) {
    return Wrong(absl::StrCat("input ", input.name, " has ", texts.size(),
                              " elements, and its shape says ", count));
  }
  return texts;
}

constexpr int kDimensions = 4;

// Appends the numbers of a list, or of lists in lists as a tensor has dimensions, in their order.
bool AppendNumbers(const json& list, int dimensions, std::vector<float>& values) {
  for (const json& element : list) {
    if (element.is_array()) {
      if (dimensions == 1 || !AppendNumbers(element, dimensions - 1, values)) return false;
    } else if (element.is_number()) {
      values.push_back(element.get<float>());
    } else {
      return false;
    }
  }
  return true;
}

absl::StatusOr<std::vector<float>> NumbersOf(const Input& input, size_t count) {
  std::vector<float> values;
  size_t given = 0;
  if (input.is_binary) {
    given = input.binary.size() / sizeof(float);
    if (input.binary.size() == count * sizeof(float)) {
      values.resize(count);
      std::memcpy(values.data(), input.binary.data(), input.binary.size());
    }
  } else {
    if (!AppendNumbers(*input.data, kDimensions, values)) {
      return Wrong(absl::StrCat("input ", input.name, " must have numbers in \"data\""));
    }
    given = values.size();
  }
  if (values.size() != count) {
    return Wrong(
        absl::StrCat("input ", input.name, " has ", given, " values, and its shape says ", count));
  }
  if (!std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); })) {
    return Wrong(absl::StrCat("input ", input.name, " has a value that is not finite"));
  }
  return values;
}

absl::Status ReadImages(const Input& input, const ModelFacts& facts, std::vector<Image>& images) {
  const std::vector<TensorSpec> inputs = InputsOf(facts);
  if (input.name == kImage) {
    TUTTI_ASSIGN_OR_RETURN(const size_t count, CountOf(input, inputs[0]));
    TUTTI_ASSIGN_OR_RETURN(std::vector<std::string> texts, TextsOf(input, count));
    for (std::string& text : texts) images.push_back({.encoded = std::move(text)});
    return absl::OkStatus();
  }
  if (input.name != kPixels) {
    return Wrong(absl::StrCat("there is no input ", input.name,
                              ": give image (BYTES [n]) or pixels ", "(FP32 ",
                              ShapeOf(inputs[1].shape), ")"));
  }
  TUTTI_ASSIGN_OR_RETURN(const size_t count, CountOf(input, inputs[1]));
  const auto plane = static_cast<size_t>(facts.height * facts.width);
  if (count > (size_t{1} << 32) / plane) return Wrong("input pixels has too many images");
  TUTTI_ASSIGN_OR_RETURN(const std::vector<float> values, NumbersOf(input, count * plane * 3));
  for (size_t i = 0; i < count; ++i) {
    Image image{.size = {static_cast<int>(facts.width), static_cast<int>(facts.height)}};
    image.pixels.resize(plane * 3);
    const float* from = values.data() + i * plane * 3;
    for (size_t color = 0; color < 3; ++color) {
      for (size_t at = 0; at < plane; ++at) image.pixels[at * 3 + color] = *from++;
    }
    images.push_back(std::move(image));
  }
  return absl::OkStatus();
}

absl::Status ReadOutputs(const json& request, const Head& head, InferRequest& result) {
  const std::vector<TensorSpec> outputs = head.outputs();
  const bool all_binary = Parameter<bool>(request, "binary_data_output").value_or(false);
  const auto wanted = request.find("outputs");
  if (wanted == request.end()) {
    for (size_t i = 0; i < head.default_outputs(); ++i) result.outputs.push_back({i, all_binary});
    return absl::OkStatus();
  }
  if (!wanted->is_array()) return Wrong("\"outputs\" must be a list");
  for (const json& one : *wanted) {
    const bool has_name = one.is_object() && one.contains("name") && one["name"].is_string();
    const std::string name = has_name ? one["name"].get<std::string>() : "";
    const auto it = std::find_if(outputs.begin(), outputs.end(),
                                 [&](const TensorSpec& spec) { return spec.name == name; });
    if (it == outputs.end()) {
      const auto names = [](std::string* text, const TensorSpec& spec) { *text += spec.name; };
      return Wrong(absl::StrCat("there is no output ", name, ": there are ",
                                absl::StrJoin(outputs, ", ", names)));
    }
    const auto index = static_cast<size_t>(it - outputs.begin());
    for (const WantedOutput& other : result.outputs) {
      if (other.index == index) return Wrong(absl::StrCat("output ", name, " is asked for twice"));
    }
    result.outputs.push_back({index, Parameter<bool>(one, "binary_data").value_or(all_binary)});
  }
  return absl::OkStatus();
}

template <typename Value>
ordered_json NumbersAsJson(const std::string& bytes) {
  ordered_json list = ordered_json::array();
  for (size_t at = 0; at < bytes.size(); at += sizeof(Value)) {
    Value value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    list.push_back(value);
  }
  return list;
}

ordered_json DataOf(const NamedTensor& tensor) {
  if (tensor.spec.datatype == "FP32") return NumbersAsJson<float>(tensor.bytes);
  if (tensor.spec.datatype == "INT64") return NumbersAsJson<int64_t>(tensor.bytes);
  if (tensor.spec.datatype == "UINT8") return NumbersAsJson<uint8_t>(tensor.bytes);
  ordered_json list = ordered_json::array();
  for (size_t at = 0; at < tensor.bytes.size();) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, tensor.bytes.data() + at, sizeof bytes);
    list.push_back(tensor.bytes.substr(at + sizeof bytes, bytes));
    at += sizeof bytes + bytes;
  }
  return list;
}

}  // namespace

std::vector<TensorSpec> InputsOf(const ModelFacts& facts) {
  return {{kImage, "BYTES", {-1}}, {kPixels, "FP32", {-1, 3, facts.height, facts.width}}};
}

nlohmann::ordered_json JsonOf(const TensorSpec& spec) {
  return {{"name", spec.name}, {"datatype", spec.datatype}, {"shape", spec.shape}};
}

absl::StatusOr<InferRequest> ParseInferRequest(absl::string_view body,
                                               std::optional<uint64_t> json_bytes,
                                               const ModelFacts& facts, const Head& head) {
  if (json_bytes && *json_bytes > body.size()) {
    return Wrong(absl::StrCat(kHeaderLength, " says ", *json_bytes, ", and the body has ",
                              body.size(), " bytes"));
  }
  absl::string_view rest;
  if (json_bytes) {
    rest = body.substr(*json_bytes);
    body = body.substr(0, *json_bytes);
  }
  const json request = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (!request.is_object()) return Wrong("the body is no JSON object");
  InferRequest result;
  if (const auto id = request.find("id"); id != request.end() && id->is_string()) {
    result.id = id->get<std::string>();
  }
  if (HasParameter(request, "top")) {
    const int64_t top = Parameter<int64_t>(request, "top").value_or(0);
    if (top < 1) return Wrong("the parameter top must be a number, 1 or more");
    result.top = static_cast<int>(std::min<int64_t>(top, std::numeric_limits<int>::max()));
  }
  if (const auto timeout = Parameter<int64_t>(request, "timeout");
      timeout && *timeout > 0) {  // microseconds, as Triton has it
    result.timeout = absl::Microseconds(*timeout);
  }
  const auto inputs = request.find("inputs");
  if (inputs == request.end() || !inputs->is_array() || inputs->size() != 1) {
    return Wrong("\"inputs\" must be a list of one tensor: image, or pixels");
  }
  TUTTI_ASSIGN_OR_RETURN(const Input input, ReadInput((*inputs)[0], rest));
  if (!rest.empty()) return Wrong(absl::StrCat(rest.size(), " bytes follow that no input has"));
  TUTTI_RETURN_IF_ERROR(ReadImages(input, facts, result.images));
  TUTTI_RETURN_IF_ERROR(ReadOutputs(request, head, result));
  return result;
}

absl::StatusOr<std::vector<Image>> ParseScoreRequest(absl::string_view body) {
  const json request = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  const json* data = request.is_object() ? &request : nullptr;
  for (const char* key : {"input_data", "data"}) {
    if (data != nullptr && data->is_object() && data->contains(key)) data = &(*data)[key];
  }
  if (data == nullptr || !data->is_array() || data->empty()) {
    return Wrong("the body must be an image, or {\"data\": [\"…\"]} with images as base64");
  }
  std::vector<Image> images;
  for (const json& element : *data) {
    auto bytes = BytesOf(element);
    if (!bytes) {
      return Wrong(absl::StrCat("image ", images.size() + 1, " of \"data\" is no base64 text"));
    }
    images.push_back({.encoded = *std::move(bytes)});
  }
  return images;
}

InferResponse WriteInferResponse(const InferRequest& request, std::span<const Image> images,
                                 const Head& head, const std::string& model,
                                 const std::string& version) {
  std::vector<const Answer*> answers;
  std::vector<data::ImageSize> sizes;
  for (const Image& image : images) {
    answers.push_back(&image.answer);
    sizes.push_back(image.size);
  }
  ordered_json response = {{"model_name", model}, {"model_version", version}};
  if (!request.id.empty()) response["id"] = request.id;
  ordered_json outputs = ordered_json::array();
  std::string binary;
  bool has_binary = false;
  for (const WantedOutput& wanted : request.outputs) {
    const NamedTensor tensor = head.Output(wanted.index, answers, sizes, request.top);
    ordered_json output = JsonOf(tensor.spec);
    if (wanted.binary) {
      output["parameters"] = {{"binary_data_size", tensor.bytes.size()}};
      binary += tensor.bytes;
      has_binary = true;
    } else {
      output["data"] = DataOf(tensor);
    }
    outputs.push_back(std::move(output));
  }
  response["outputs"] = std::move(outputs);
  InferResponse result{response.dump(-1, ' ', false, ordered_json::error_handler_t::replace),
                       std::nullopt};
  if (has_binary) {
    result.json_bytes = result.body.size();
    result.body += binary;
  }
  return result;
}

}  // namespace tutti::scoring
