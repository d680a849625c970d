// Knows which distributions on PyPI install the same files: mlflow and mlflow-skinny, tensorflow
// and tensorflow-cpu. Two versions of such files in one environment are a mixture that fails to
// import, so the distributions of one family are held to one version. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spec/text/diagnostics.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns the constraints, as pip and uv read them, that hold the rest of each family to what the
// requirements ask of one of it: "mlflow-skinny==2.5.0" for "mlflow==2.5.0". PyTorch before 2 is
// given the numpy that it was compiled against: "numpy<2".
std::vector<std::string> ConstraintsOf(const std::vector<std::string>& requirements);

// Returns what is left of `requirement`, which an image has, beside `asked`, which a file asks for:
// itself, if they share no files; "" if what is asked for has its files; else itself in the version
// that is asked for.
std::string Beside(absl::string_view asked, const std::string& requirement);

// Warns, at `line`, of two packages of one family that are pinned to different versions.
void WarnOfSharedFiles(const std::vector<Requirement>& packages, int line,
                       Diagnostics& diagnostics);

}  // namespace tutti::spec
