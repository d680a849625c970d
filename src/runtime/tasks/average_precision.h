// Computes mean average precision as COCO defines it: per class and overlap, the mean over 101
// recalls of the best precision at that recall or more. Internal to this room; pure functions.
#pragma once

#include <torch/types.h>

#include <span>
#include <vector>

#include "runtime/tasks/detection.h"

namespace tutti::tasks {

// Appends for each detection of one image three numbers: class, score, and a bit for each overlap
// (0.5, 0.55, ..., 0.95) at which it has found an object that no likelier one of its class has.
// `objects` [m, 5] as in annotations.
void AppendRows(const Detections& found, const torch::Tensor& objects, std::vector<double>& rows);

struct MeanPrecision {
  double at_half = 0, mean = 0;
};

// Computes it from the rows of any images; `objects` says how many objects of each class they have.
// Classes without objects are left out.
MeanPrecision MeanAveragePrecision(std::span<const double> rows, std::span<const double> objects);

}  // namespace tutti::tasks
