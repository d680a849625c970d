// OptimizerOptions is what a recipe says of its optimizer: the name and every optimizer's
// coefficients, which optimizers.cc hands to the one that is named. A Recipe (recipe/recipe.h) is
// one of these. Plain data.
#pragma once

#include <string>
#include <vector>

namespace tutti::train {

struct OptimizerOptions {
  std::string optimizer = "sgd";
  double momentum = 0.9;
  std::vector<double> betas = {0.9, 0.999};
  double epsilon = 1e-8;
  double trust = 0.001;
  double weight_decay = 1e-4;
  std::string decay = "all";
  bool nesterov = false;
};

}  // namespace tutti::train
