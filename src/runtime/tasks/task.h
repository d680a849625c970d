// Task is the interface of what a network is trained for: targets, loss and metrics. The training
// loop, the strategies and the evaluation speak of tasks alone; they do not know labels, masks or
// boxes.
//
// Annotations are what a data set says of its images: [n] labels, [n, H, W] masks or
// [n, most, 5] boxes (detection.h). Targets are what a loss compares a network's outputs with. Both
// are one tensor whose first dimension counts images, so that they go where the images go.
//
// The loss of a mini-batch is the sum of Loss over its parts, divided by the sum of Units over its
// parts: n ranks have the gradients of one process, whatever the sizes of the parts. Immutable;
// thread-safe.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/models/model.h"
#include "runtime/tasks/metric.h"

namespace tutti::tasks {

// How good a model is on a set of images, of which each rank sees a part. Not thread-safe.
class Measure {
 public:
  virtual ~Measure() = default;
  // Adds a batch; `output`: what the network says of images in evaluation mode, fp32 or fp64, on
  // the CPU.
  virtual void Add(const torch::Tensor& output, const torch::Tensor& annotations) = 0;
  // Is called after `sums` were added up over the ranks and `rows` put one after the other.
  virtual std::vector<Metric> Metrics() const = 0;
  virtual double MeanLoss() const = 0;
  virtual bool has_rows() const { return false; }

  std::vector<double> sums;  // as many on every rank
  std::vector<double> rows;
};

struct Loss {
  torch::Tensor sum;      // over the units, with its graph
  torch::Tensor correct;  // images that the network was right about; undefined: not counted
};

class Task {
 public:
  virtual ~Task() = default;
  virtual absl::string_view name() const = 0;
  // Makes them on the CPU.
  virtual torch::Tensor Targets(const torch::Tensor& annotations) const { return annotations; }
  // Counts what the loss is the mean of: images, pixels, boxes.
  virtual int64_t Units(const torch::Tensor& targets) const { return targets.size(0); }
  // Compares `outputs`, as ModelImpl::Outputs gives them, with targets on the same device.
  virtual Loss LossOf(const std::vector<torch::Tensor>& outputs,
                      const torch::Tensor& targets) const = 0;
  virtual std::unique_ptr<Measure> NewMeasure() const = 0;
  // Turns a finished model's main output, in evaluation mode, into what programs want of it.
  virtual torch::Tensor Answer(const torch::Tensor& output) const { return output; }
};

struct TaskOptions {
  double label_smoothing = 0;  // of classification
};

// Returns what `model`, made as `spec`, is for. InvalidArgument: the option and the task do not go
// together.
absl::StatusOr<std::shared_ptr<const Task>> MakeTask(const models::ModelSpec& spec,
                                                     const models::ModelImpl& model,
                                                     const TaskOptions& options);

}  // namespace tutti::tasks
