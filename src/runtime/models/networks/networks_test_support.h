// Makes networks and counts their parameters, for tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "runtime/models/model.h"

namespace tutti::models {

inline Model MakeNetwork(const std::string& name, int64_t classes,
                         std::optional<uint64_t> seed = 1) {
  auto model = MakeModel({name, classes}, seed);
  EXPECT_TRUE(model.ok()) << model.status();
  return *model;
}

inline int64_t CountOf(const Model& model) {  // of its parameters' elements
  int64_t count = 0;
  for (const torch::Tensor& parameter : model->parameters()) count += parameter.numel();
  return count;
}

}  // namespace tutti::models
