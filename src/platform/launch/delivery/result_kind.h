// Tells by its path whether a file that a job writes is a result by its kind, whatever its size:
// models, metrics, what loggers of trainings write. All else small is a by-product.
#pragma once

#include <filesystem>

namespace tutti::launch {

// Of a file's path within the working folder: its folders and name alone, it is not opened.
bool IsResultByKind(const std::filesystem::path& path);

}  // namespace tutti::launch
