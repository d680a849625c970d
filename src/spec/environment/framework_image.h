// Chooses the packages that stand for an image or environment whose name says a framework's
// version: "pytorch/pytorch:1.13.1-cuda11.6-cudnn8-runtime", "pytorch-1.6-ubuntu18.04-py37-cuda11".
// Pure. Inside the room spec only.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "spec/site/site.h"

namespace tutti::spec {

// Returns what stands for `image`, which the rule `matched` of the built-in table fits: of the
// lines of `environments` that the built-in table pins, the one whose framework is of the nearest
// version of the same major. `matched` itself where the tag says no version or one that is newer
// than all of them, and for any other image. `differs` of what is returned says how it is not what
// the tag promises.
EnvironmentRule RuleOfFrameworkImage(absl::string_view image, const EnvironmentRule& matched,
                                     const std::vector<EnvironmentRule>& environments);

// Returns the same of the name of an environment, in the case in which patterns are written, that
// `matched` fits without pinning a version: lines of the name's own family ("acpt-pytorch-") come
// first.
EnvironmentRule RuleOfFrameworkName(absl::string_view name, const EnvironmentRule& matched,
                                    const std::vector<EnvironmentRule>& environments);

}  // namespace tutti::spec
