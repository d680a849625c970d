// Chooses between the builds of PyTorch for CPUs, which its own index has, and those of the package
// index, which bring CUDA's libraries, several GB of them. Pure functions; thread-safe.
#pragma once

#include <map>
#include <string>

#include "spec/types/job.h"

namespace tutti::launch {

// Returns the environment with `torch` as what uv is told by --torch-backend: "cpu" where its files
// say so, or where they say nothing and the node has no GPU; what UV_TORCH_BACKEND of `variables`
// says, which comes first; "" where the builds of the index are meant, where no package brings
// PyTorch, and where files or variables name PyTorch's builds or its index themselves.
spec::Environment WithTorchBuilds(spec::Environment environment,
                                  const std::map<std::string, std::string>& variables,
                                  bool node_has_gpus);

// Returns whether the environment's files pin PyTorch itself to a version.
bool PinsTorch(const spec::Environment& environment);

}  // namespace tutti::launch
