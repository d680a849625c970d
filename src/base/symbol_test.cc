#include "base/symbol.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tutti::base {
namespace {

TEST(SymbolTest, FindsAFunctionOfALibraryAndSaysWhenThereIsNone) {
  void* const library = ::dlopen(nullptr, RTLD_NOW);  // this program with all that it is linked to
  ASSERT_NE(library, nullptr);
  int (*magnitude)(int) = nullptr;
  ASSERT_TRUE(Resolve(library, "abs", magnitude));
  EXPECT_EQ(magnitude(-3), 3);
  EXPECT_FALSE(Resolve(library, "tutti_has_no_such_function", magnitude));
  EXPECT_EQ(magnitude, nullptr);
  ::dlclose(library);
}

}  // namespace
}  // namespace tutti::base
