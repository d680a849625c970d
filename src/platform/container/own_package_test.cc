#include "platform/container/own_package.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace tutti::container {
namespace {

using ::testing::HasSubstr;

TEST(OwnPackage, HorovodIsTheWheelBesideTheProgram) {
  const base::TemporaryDirectory root;
  const std::filesystem::path program = root.path() / "bin/tutti";
  const std::filesystem::path wheel = root.path() / "share/tutti/horovod-0.28.1+tutti-py3.whl";
  for (const auto& file : {program, wheel}) {
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, "x").ok());
  }
  spec::Environment environment;
  environment.packages = {{"torch", "c.yml:1"}, {"horovod", "c.yml:2"}};
  const auto made = WithOwnPackage(environment, program);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->packages[0].text, "torch");
  EXPECT_EQ(made->packages[1].text, std::filesystem::canonical(wheel).string());
  EXPECT_EQ(made->packages[1].location, "c.yml:2");
}

TEST(OwnPackage, WithoutTheWheelTheLineThatAsksForItIsSaid) {
  const base::TemporaryDirectory root;
  spec::Environment environment;
  EXPECT_TRUE(WithOwnPackage(environment, root.path() / "bin/tutti").ok());
  environment.packages = {{"horovod", "c.yml:2"}};
  EXPECT_THAT(WithOwnPackage(environment, root.path() / "bin/tutti").status().message(),
              HasSubstr("c.yml:2: horovod is tutti's own Python package, which is not in"));
}

}  // namespace
}  // namespace tutti::container
