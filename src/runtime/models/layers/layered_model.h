// LayeredModel is a model that is its layers, one after the other: a whole network, or those of it
// that a rank keeps. What it holds stands under the names that its layers give. Thread-compatible.
#pragma once

#include <utility>
#include <vector>

#include "runtime/models/model.h"

namespace tutti::models {

class LayeredModel : public ModelImpl {
 public:
  LayeredModel() = default;
  torch::Tensor forward(torch::Tensor input) override;
  std::vector<Layer> Layers() override { return layers_; }

  void Append(Layer layer);

 protected:
  // Runs the layers [first, last).
  Fork Run(Fork x, size_t first, size_t last) const;
  size_t size() const { return layers_.size(); }

 private:
  std::vector<Layer> layers_;
};

}  // namespace tutti::models
