// Writes a small set of images as tar shards, for tests that train.
#pragma once

#include <filesystem>

namespace tutti::train {

// Writes train-000000.tar, test-000000.tar and classes.txt; JPEGs of `side` x `side`, each
// different.
void WriteImageFolder(const std::filesystem::path& folder, int train, int test, int classes,
                      int side = 32);

}  // namespace tutti::train
