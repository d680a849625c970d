// SharedBuffer is memory of this rank that the other ranks of its node can reach: a collective on
// it needs no copy in between. Owned by the caller; may outlive its communicator, and is plain
// memory then.
#pragma once

#include <cstddef>

namespace tutti::comm {

class SharedBuffer {
 public:
  virtual ~SharedBuffer() = default;
  // Returns memory that is zero at first, aligned to a page.
  virtual void* data() = 0;
  virtual size_t size() const = 0;
};

}  // namespace tutti::comm
