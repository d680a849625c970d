// Tells by its path whether a file that a job writes is a result by its kind, whatever its size:
// models, metrics, what loggers of trainings write. All else small is a by-product.
#pragma once

#include <filesystem>

namespace tutti::launch {

// Returns whether a file is a result by its path within the working folder. The file is not opened:
// only its name and the names of its folders count.
bool IsResultByKind(const std::filesystem::path& path);

}  // namespace tutti::launch
