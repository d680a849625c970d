#include "platform/container/registries.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::container {
namespace {

TEST(Registries, AreSearchedOnDockerHubUnlessTheySayOtherwise) {
  EXPECT_EQ(WithDockerHub(""), "unqualified-search-registries = [\"docker.io\"]\n");
  EXPECT_EQ(WithDockerHub("# unqualified-search-registries = []\n[[registry]]\nlocation = 'a'\n"),
            "unqualified-search-registries = [\"docker.io\"]\n"
            "# unqualified-search-registries = []\n[[registry]]\nlocation = 'a'\n");
  for (const char* own : {"unqualified-search-registries = ['mirror.example']\n",
                          "short-name-mode = 'disabled'\n unqualified-search-registries=[]\n",
                          "[registries.search]\nregistries = ['mirror.example']\n"}) {
    EXPECT_EQ(WithDockerHub(own), own);
  }
}

TEST(Registries, AreThoseThatPodmanWouldFind) {
  const base::TemporaryDirectory folder;
  const std::filesystem::path own = folder.path() / ".config/containers/registries.conf";
  ASSERT_TRUE(base::MakeDirectories(own.parent_path()).ok());
  ASSERT_TRUE(base::WriteFileAtomic(own, "# the user's\n").ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "named", "# named\n").ok());
  const auto written = [&](std::map<std::string, std::string> variables) {
    const auto file = WriteRegistries(variables, folder.path());
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? base::ReadFile(*file, 1 << 20).value() : "";
  };
  const std::string home = folder.path().string();
  EXPECT_EQ(written({{"HOME", home}}), WithDockerHub("# the user's\n"));
  EXPECT_EQ(written({{"HOME", home}, {"CONTAINERS_REGISTRIES_CONF", home + "/named"}}),
            WithDockerHub("# named\n"));
  EXPECT_EQ(written({{"CONTAINERS_REGISTRIES_CONF", home + "/gone"}}), WithDockerHub(""));
}

}  // namespace
}  // namespace tutti::container
