#include "spec/data/data_map.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;

DataMap Map(const std::vector<std::pair<const char*, const char*>>& entries) {
  DataMap map;
  for (const auto& [prefix, folder] : entries) EXPECT_TRUE(map.Add(prefix, folder).ok()) << prefix;
  return map;
}

TEST(IsAddress, TellsAddressesFromPaths) {
  for (const char* text : {"https://e.org/x", "wasbs://c@a.blob.core.windows.net/", "azureml:n:1",
                           "azureml://datastores/d/paths/x", "s3://b/k", "abfss://c@a/x"}) {
    EXPECT_TRUE(IsAddress(text)) << text;
  }
  for (const char* text :
       {"./a:b", "/x", "data", "", ":x", "file:///x", "FILE:x", "1:2", "a b:c"}) {
    EXPECT_FALSE(IsAddress(text)) << text;
  }
}

TEST(CanonicalAddress, IsOneForAllNamesOfABlob) {
  const std::string blob = "https://acc.blob.core.windows.net/sets/a/b.csv";
  for (const char* address : {"https://acc.blob.core.windows.net/sets/a/b.csv?sv=2020&sig=x",
                              "http://ACC.blob.core.windows.net/sets/a/b.csv/",
                              "wasbs://sets@acc.blob.core.windows.net/a/b.csv",
                              "wasb://sets@acc.blob.core.windows.net/a/b.csv",
                              "abfss://sets@acc.dfs.core.windows.net/a/b.csv"}) {
    EXPECT_EQ(CanonicalAddress(address), blob) << address;
  }
  EXPECT_EQ(CanonicalAddress(
                "azureml://subscriptions/s/resourceGroups/r/workspaces/w/datastores/d/paths/x/"),
            "azureml://datastores/d/paths/x");
  EXPECT_EQ(
      CanonicalAddress("azureml://subscriptions/s/resourcegroups/r/workspaces/w/data/n/versions/1"),
      CanonicalAddress("azureml:n:1"));
}

TEST(IsSigned, KnowsSignaturesBehindAnAddress) {
  for (const char* signed_address :
       {"https://a.blob.core.windows.net/c/x?sv=1&sig=x%3D", "azureml://datastores/d/paths/x?SIG=x",
        "https://b.s3.amazonaws.com/x?X-Amz-Signature=x"}) {
    EXPECT_TRUE(IsSigned(signed_address)) << signed_address;
  }
  for (const char* other : {"s3://b/runs/sig=3", "https://e.org/x?a=1", "/x?sig=1", ""}) {
    EXPECT_FALSE(IsSigned(other)) << other;
  }
  EXPECT_EQ(WithoutQuery("https://e.org/x?a=1"), "https://e.org/x");
  EXPECT_EQ(WithoutQuery("s3://b/x"), "s3://b/x");
  EXPECT_EQ(WithoutQuery("/x?a"), "/x?a");
}

TEST(CanonicalAddress, TheIdOfDataIsThatOfItsName) {
  const std::string id =
      "azureml:/subscriptions/s/resourceGroups/r/providers/Microsoft.MachineLearningServices/"
      "workspaces/w/data/iris/versions/2";
  EXPECT_EQ(CanonicalAddress(id), CanonicalAddress("azureml:iris:2"));
  EXPECT_EQ(PrefixToMap(id), "azureml:iris");
}

TEST(DataMapTest, TheLongestPrefixServes) {
  const DataMap map = Map({{"https://e.org/sets", "/a"},
                           {"https://e.org/sets/big/", "/b"},
                           {"https://e.org/one.csv", "/files/other.csv"}});
  EXPECT_EQ(*map.Find("https://e.org/sets/x/y%20z.csv"), "/a/x/y z.csv");
  EXPECT_EQ(*map.Find("https://e.org/sets"), "/a");
  EXPECT_EQ(*map.Find("https://e.org/sets/big/x"), "/b/x");
  EXPECT_EQ(*map.Find("https://e.org/one.csv"), "/files/other.csv");
  for (const char* address : {"https://e.org/sets2/x", "https://e.org", "https://f.org/sets/x"}) {
    EXPECT_TRUE(absl::IsNotFound(map.Find(address).status())) << address;
  }
}

TEST(DataMapTest, DataByNameIsServedInEveryVersion) {
  const DataMap map = Map({{"azureml:cifar", "/cifar"}, {"azureml:iris:2", "/iris-2"}});
  EXPECT_EQ(*map.Find("azureml:cifar@latest"), "/cifar");
  EXPECT_EQ(*map.Find("azureml:cifar:7"), "/cifar");
  EXPECT_EQ(*map.Find("azureml:iris:2"), "/iris-2");
  EXPECT_TRUE(absl::IsNotFound(map.Find("azureml:iris:1").status()));
  EXPECT_TRUE(absl::IsNotFound(map.Find("azureml:cifar10:1").status()));
}

TEST(DataMapTest, ARegistrysModelIsServedInEveryVersion) {
  const DataMap map = Map({{"azureml://registries/r/models/bert", "/bert"},
                           {"azureml://registries/r/models/vit/versions/2", "/vit-2"}});
  EXPECT_EQ(*map.Find("azureml://registries/r/models/bert/versions/3"), "/bert");
  EXPECT_EQ(*map.Find("azureml://registries/r/models/bert/labels/latest"), "/bert");
  EXPECT_EQ(*map.Find("azureml://registries/r/models/vit/versions/2"), "/vit-2");
  EXPECT_TRUE(absl::IsNotFound(map.Find("azureml://registries/r/models/vit/versions/1").status()));
  EXPECT_TRUE(absl::IsNotFound(map.Find("azureml://registries/r/models/bert2").status()));
}

TEST(DataMapTest, NoAddressLeadsOutOfTheFolder) {
  const DataMap map = Map({{"https://e.org/sets", "/a"}});
  for (const char* address : {"https://e.org/sets/../x", "https://e.org/sets/%2e%2e/x",
                              "https://e.org/sets/a%2f..%2f..%2fx", "https://e.org/sets/%00"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(map.Find(address).status())) << address;
  }
}

TEST(DataMapTest, TakesAddressesAndAbsolutePathsAlone) {
  DataMap map;
  EXPECT_FALSE(map.Add("./here", "/a").ok());
  EXPECT_FALSE(map.Add("https://e.org", "a").ok());
  ASSERT_TRUE(map.Add("https://e.org/x/", "/a").ok());
  ASSERT_TRUE(map.Add("https://E.org/x", "/b").ok());
  EXPECT_EQ(map.entries().size(), 1u);
  EXPECT_EQ(*map.Find("https://e.org/x/y"), "/b/y");
  EXPECT_TRUE(map.Remove("https://e.org/x").ok());
  EXPECT_TRUE(absl::IsNotFound(map.Remove("https://e.org/x")));
}

TEST(PathOfJobOutputTest, FindsWhatAnEarlierJobLeft) {
  const auto path = [](const char* address) { return *PathOfJobOutput(address, "/jobs"); };
  EXPECT_EQ(path("azureml://jobs/a-1/outputs/model/paths/x/y.bin"),
            "/jobs/a-1/outputs/model/x/y.bin");
  EXPECT_EQ(path("azureml://jobs/a-1/outputs/model/paths/"), "/jobs/a-1/outputs/model");
  EXPECT_EQ(path("azureml://jobs/a-1/outputs/model"), "/jobs/a-1/outputs/model");
  EXPECT_EQ(path("azureml://jobs/a-1/outputs/artifacts/paths/outputs/x"), "/jobs/a-1/outputs/x");
  EXPECT_EQ(
      path("azureml://subscriptions/s/resourcegroups/r/workspaces/w/jobs/a/outputs/m/paths/x"),
      "/jobs/a/outputs/m/x");
  EXPECT_EQ(path("runs:/a-1/model"), "/jobs/a-1/outputs/model");
  EXPECT_TRUE(absl::IsNotFound(PathOfJobOutput("https://e.org/jobs/a", "/jobs").status()));
  for (const char* address :
       {"azureml://jobs/a", "azureml://jobs/a/logs/x", "azureml://jobs/../outputs/m/paths/x",
        "azureml://jobs/a/outputs/../../b", "runs:/../x", "runs:/.hidden/x", "runs:/a/../../b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PathOfJobOutput(address, "/jobs").status())) << address;
  }
}

TEST(PrefixToMap, IsTheFolderOfAFile) {
  EXPECT_EQ(PrefixToMap("https://e.org/sets/iris.csv?x=1"), "https://e.org/sets");
  EXPECT_EQ(PrefixToMap("https://e.org/iris.csv"), "https://e.org/iris.csv");
  EXPECT_EQ(PrefixToMap("wasbs://c@a.net/"), "wasbs://c@a.net");
  EXPECT_EQ(PrefixToMap("azureml:n:3"), "azureml:n");
  EXPECT_EQ(PrefixToMap("azureml://registries/r/models/bert/versions/3"),
            "azureml://registries/r/models/bert");
  EXPECT_EQ(PrefixToMap("azureml://registries/r/data/wiki/labels/latest"),
            "azureml://registries/r/data/wiki");
  EXPECT_EQ(PrefixToMap("azureml://subscriptions/s/resourcegroups/g/workspaces/w/models/m/"
                        "versions/1"),
            "azureml:m");
}

TEST(WebAddress, BlobsHaveOneAndOtherThingsHaveNone) {
  EXPECT_EQ(WebAddress("HTTPS://e.org/a?sig=x"), "https://e.org/a?sig=x");
  EXPECT_EQ(WebAddress("wasbs://c@acc.blob.core.windows.net/a/b.csv"),
            "https://acc.blob.core.windows.net/c/a/b.csv");
  EXPECT_EQ(WebAddress("azureml://datastores/x/paths/y"), "");
  EXPECT_EQ(WebAddress("azureml:name:1"), "");
}

}  // namespace
}  // namespace tutti::spec
