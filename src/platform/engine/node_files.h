// Looks for files that nodes write into a folder which they share with the service.
#pragma once

#include <filesystem>

namespace tutti::engine {

bool IsThere(const std::filesystem::path& path);

// IsThere for files that nodes write: an NFS client remembers for up to a minute that a file did
// not exist, but no longer than until its folder is opened.
bool IsThereByNow(const std::filesystem::path& path);

}  // namespace tutti::engine
