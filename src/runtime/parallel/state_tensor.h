// State is all that a rank holds of a run, as a list of named tensors: of the model, of what the
// optimizer and averages keep, of what compression has kept back, of the position in the data. A
// checkpoint keeps the union of the ranks' lists; a resumed run takes it up on as many ranks as it
// has, laid out as it is. Names are of the whole run ("layer1.0.conv1.weight",
// "momentum.layer1.0.conv1.weight"), whoever holds them.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti::parallel {

struct StateTensor {
  // Which of a checkpoint's files has it: what is scored in the end, or what else the run needs.
  enum class Part { kModel, kRun };

  std::string name;
  // Shares memory with what it is of: who writes to it changes that. Dense, on any device.
  torch::Tensor tensor;
  Part part = Part::kModel;
  // Where it is a part of a larger one: the shape of the whole, and where this one begins in it.
  // Empty: it is the whole.
  std::vector<int64_t> shape = {}, begin = {};
  // Tells whether this rank writes it: exactly one of those that hold it does.
  bool writes = true;
  // Tells whether it is of no layer, and so the same on every rank that trains (a count of
  // updates).
  bool common = false;
  // Tells whether a checkpoint may lack it, which leaves it as it is.
  bool may_lack = false;

  std::vector<int64_t> WholeShape() const { return shape.empty() ? tensor.sizes().vec() : shape; }
};

using State = std::vector<StateTensor>;

// Returns the tensors by name; they share the state's memory.
inline std::map<std::string, torch::Tensor> ByName(const State& state) {
  std::map<std::string, torch::Tensor> tensors;
  for (const StateTensor& each : state) tensors.emplace(each.name, each.tensor);
  return tensors;
}

}  // namespace tutti::parallel
