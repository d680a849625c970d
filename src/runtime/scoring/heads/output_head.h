// Head says what a network's output means for the images that it was computed of, for one task: it
// is all that scoring knows of tasks. Files, protocol and server ask no model which kind it is.
//
// It reads what model.pt gives (docs/formats/checkpoint.md), so that a network of tutti's and its
// TorchScript are read by one code. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/image.h"

namespace at {
class Tensor;
}

namespace tutti::scoring {

// Answer is what a model says of one image. A head fills what its task has.
struct Answer {
  absl::Status status;  // Internal: the output was not finite
  // Probabilities: of each class by its label, or of each box, in descending order.
  std::vector<float> scores;
  std::vector<int32_t> labels;  // of each box
  std::vector<float> boxes;     // left, top, right, bottom of each, in parts of the image's sides
  std::vector<uint8_t> mask;    // the class of each pixel of the model's input, row by row
};

// TensorSpec describes a tensor of the Open Inference Protocol; -1 is any size.
struct TensorSpec {
  std::string name;
  std::string datatype;  // "FP32", "INT64", "UINT8", "BYTES"
  std::vector<int64_t> shape;
};

// Values are row-major and little-endian; an element of BYTES is its length, 4 bytes, and itself.
struct NamedTensor {
  TensorSpec spec;
  std::string bytes;
};

// Row is a line of what is told to people and programs: a class, and a value for each column.
struct Row {
  std::string label;
  std::vector<double> values;
};

struct Column {
  absl::string_view name;   // "probability"
  bool is_percent = false;  // in tables for people
};

class Head {
 public:
  virtual ~Head() = default;

  // Checks the output for one image, [1, …], of a network that is not tutti's. InvalidArgument says
  // what it should be.
  virtual absl::Status Check(const at::Tensor& output) const = 0;
  // Returns the answers of an output for n images, fp32 on the CPU.
  virtual std::vector<Answer> Read(const at::Tensor& output) const = 0;

  // Returns the tensors that it can give, those first that are given unless others are asked for.
  virtual std::vector<TensorSpec> outputs() const = 0;
  virtual size_t default_outputs() const = 0;  // how many those are
  // Returns one of these tensors for answers that are OK, of images of these sizes. `top` bounds
  // what is ranked; 0: five classes, all boxes.
  virtual NamedTensor Output(size_t index, std::span<const Answer* const> answers,
                             std::span<const data::ImageSize> images, int top) const = 0;

  virtual absl::string_view rows_name() const = 0;  // "predictions", in JSON
  virtual std::vector<Column> columns() const = 0;
  // Returns the rows of an answer that is OK, most probable first.
  virtual std::vector<Row> Rows(const Answer& answer, data::ImageSize image, int top) const = 0;
  // Returns the answer as a PNG; "" where it is no image.
  virtual std::string Png(const Answer& answer) const { return ""; }
};

// HeadSpec is what a head must know of its model.
struct HeadSpec {
  std::string task;                  // tasks::Task::name
  std::vector<std::string> classes;  // by label
  int64_t height = 0, width = 0;     // of the model's input
};

// InvalidArgument lists the tasks that there are.
absl::StatusOr<std::unique_ptr<const Head>> MakeHead(HeadSpec spec);

// The tasks, one source file each.
std::unique_ptr<const Head> MakeClassificationHead(HeadSpec spec);
std::unique_ptr<const Head> MakeSegmentationHead(HeadSpec spec);
std::unique_ptr<const Head> MakeDetectionHead(HeadSpec spec);

// Internal to heads: appends values to a tensor's bytes.
void AppendText(absl::string_view text, std::string& bytes);
template <typename Value>
void AppendValue(Value value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace tutti::scoring
