// Which processors are refused is tested by tests/training/test_processors.py.
#include "platform/storage/arrow/arrow_processor.h"

#include <gtest/gtest.h>

namespace tutti::storage {
namespace {

TEST(ArrowProcessor, IsFineWhereArrowHasBegun) {
  EXPECT_EQ(CheckProcessorForArrow(), absl::OkStatus());
}

}  // namespace
}  // namespace tutti::storage
