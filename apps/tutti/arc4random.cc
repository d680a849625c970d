// libarchive, which this program has in it (cmake/libarchive.cmake), asks glibc 2.36 for random
// bytes. It gets them here instead, so that the program starts where glibc is older, too: nothing
// else in it needs that one (docs/install/wheels.md).
#include <cstddef>
#include <string>

#include "base/hash.h"

extern "C" void arc4random_buf(void* buffer, size_t count) noexcept {
  tutti::base::RandomBytes(count).copy(static_cast<char*>(buffer), count);
}
