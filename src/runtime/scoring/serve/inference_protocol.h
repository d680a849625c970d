// Reads and writes the bodies of the Open Inference Protocol (KServe's v2: docs/serving/README.md),
// as JSON and with its binary extension. Pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/scoring/serve/batch_queue.h"
#include "runtime/scoring/trained_model.h"

namespace tutti::scoring {

inline constexpr char kHeaderLength[] = "Inference-Header-Content-Length";

struct WantedOutput {
  size_t index = 0;  // of Head::outputs()
  bool binary = false;
};

struct InferRequest {
  std::string id;
  std::vector<Image> images;
  int top = 0;  // as Head::Rows has it
  std::vector<WantedOutput> outputs;
  std::optional<absl::Duration> timeout;
};

// Reads a request. `json_bytes`: how many of the body's first bytes are JSON (the header
// Inference-Header-Content-Length); nothing: all. InvalidArgument says what is wrong with it, in
// one line; of a tensor also what it should be.
absl::StatusOr<InferRequest> ParseInferRequest(absl::string_view body,
                                               std::optional<uint64_t> json_bytes,
                                               const ModelFacts& facts, const Head& head);

// Reads the body of Azure ML's /score: {"data": ["…"]} or {"input_data": {"data": [["…"]]}}, images
// as base64. Errors as ParseInferRequest.
absl::StatusOr<std::vector<Image>> ParseScoreRequest(absl::string_view body);

struct InferResponse {
  std::string body;
  std::optional<size_t> json_bytes;  // set where tensors follow the JSON
};

// Writes the answer to a request whose images have answers that are OK.
InferResponse WriteInferResponse(const InferRequest& request, std::span<const Image> images,
                                 const Head& head, const std::string& model,
                                 const std::string& version);

// Returns the inputs that a model takes: "image" (BYTES) or "pixels" (FP32), of which a request has
// one.
std::vector<TensorSpec> InputsOf(const ModelFacts& facts);

// Returns {"name", "datatype", "shape"}.
nlohmann::ordered_json JsonOf(const TensorSpec& spec);

}  // namespace tutti::scoring
